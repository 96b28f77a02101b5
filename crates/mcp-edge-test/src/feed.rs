//! What every change feed must do: a suite to run over an implementation.
//!
//! ```
//! # mod tests {
//! use mcp_edge::InProcessFeed;
//! use mcp_edge_test::feed::Feeds;
//!
//! async fn feeds() -> Feeds {
//!     let feed = InProcessFeed::default();
//!     Feeds::new(feed.clone(), feed)
//! }
//!
//! mcp_edge_test::feed_suite!(feeds);
//! # }
//! ```
//!
//! A feed may tell a change once for several, and nothing is said about the order of changes that
//! several publish.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of it is test code")]

#[allow(missing_docs, reason = "the names of its functions say what they state")]
pub mod statements;

use std::{any::Any, fmt, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use mcp_edge::{BoxStream, Change, ChangeFeed, Topics};
use tokio::time::timeout;

/// Two handles on one feed that nobody else uses, as two instances have.
pub struct Feeds {
    feeds: [Arc<dyn ChangeFeed>; 2],
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl Feeds {
    /// Takes two handles, on connections of their own where there are such.
    pub fn new(one: impl ChangeFeed, other: impl ChangeFeed) -> Self {
        Self { feeds: [Arc::new(one), Arc::new(other)], kept: Vec::new() }
    }

    /// Keeps something as long as the feeds, such as a folder that is removed when it is dropped.
    #[must_use]
    pub fn keeping(mut self, it: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(it));
        self
    }

    async fn listen(&self, handle: usize, topics: Topics) -> Listener {
        Listener(self.feeds[handle].subscribe(topics).await.unwrap())
    }

    async fn publish(&self, handle: usize, tenant: Option<&str>, change: Change) {
        self.feeds[handle].publish(tenant, change).await.unwrap();
    }
}

impl fmt::Debug for Feeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeds").finish_non_exhaustive()
    }
}

struct Listener(BoxStream<'static, Change>);

impl Listener {
    /// The next change, which is on its way.
    async fn next(&mut self) -> Change {
        let next = timeout(PATIENCE, self.0.next()).await;
        next.expect("a change that was published is heard").expect("the feed is not lost")
    }

    /// What is heard up to a change that is told at last.
    async fn until(&mut self, last: &Change) -> Vec<Change> {
        let mut heard = Vec::new();
        loop {
            let next = self.next().await;
            if next == *last {
                return heard;
            }
            heard.push(next);
        }
    }

    /// What is heard until nothing more comes.
    async fn rest(&mut self) -> Vec<Change> {
        let mut heard = Vec::new();
        while let Ok(next) = timeout(QUIET, self.0.next()).await {
            heard.push(next.expect("the feed is not lost"));
        }
        heard
    }
}

fn tenant(name: &str) -> Topics {
    Topics::new(Some(name.to_owned()))
}

/// How long a change may take. A feed takes far less.
const PATIENCE: Duration = Duration::from_secs(20);

/// After that long nothing more is coming.
const QUIET: Duration = Duration::from_secs(1);

/// Makes a `tokio` test of each statement of [`feed`](crate::feed). `$feeds` is an async function that
/// returns [`Feeds`] over a new backing.
///
/// The crate that calls it depends on `tokio` with the features `macros` and `rt-multi-thread`.
#[macro_export]
macro_rules! feed_suite {
    ($feeds:path) => {
        $crate::feed_suite! { @tests $feeds:
            every_handle_hears_what_either_publishes
            every_kind_of_change_arrives_as_it_was_published
            a_listener_hears_what_it_wants_alone
            tenants_are_kept_apart
            a_listener_is_there_once_it_has_subscribed
            what_happened_before_is_not_heard
            a_task_is_heard_by_those_who_follow_it
            long_uris_arrive_or_wake
            texts_are_exact
            a_listener_that_does_not_read_is_told_little_and_misses_nothing
            a_change_is_not_told_twice
            a_listener_that_leaves_disturbs_nobody
            listeners_may_come_and_go
        }
    };
    (@tests $feeds:path: $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                $crate::feed::statements::$name(&$feeds().await).await;
            }
        )*
    };
}
