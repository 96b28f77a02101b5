//! What every task store, mailbox and replay guard must do: a suite to run over an implementation.
//!
//! ```
//! # mod tests {
//! use mcp_edge::MemoryStore;
//! use mcp_edge_test::store::Stores;
//!
//! async fn stores() -> Stores {
//!     let store = MemoryStore::default();
//!     Stores::new(store.clone(), store.clone())
//!         .with_mailboxes(store.clone(), store.clone())
//!         .with_replay_guards(store.clone(), store)
//! }
//!
//! mcp_edge_test::store_suite!(stores);
//! # }
//! ```
//!
//! Each statement is a function of its own, so that one that fails has a name. All times lie near the
//! end of the century: where a platform's own clock removes what has expired, it removes none of this.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

#[allow(missing_docs, reason = "the names of its functions say what they state")]
pub mod due;
#[allow(missing_docs, reason = "the names of its functions say what they state")]
pub mod expiry;
#[allow(missing_docs, reason = "the names of its functions say what they state")]
pub mod once;
#[allow(missing_docs, reason = "the names of its functions say what they state")]
pub mod tasks;

use std::{any::Any, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use mcp_edge::{Created, DueIndex, Mailbox, ReplayGuard, TaskRecord, TaskStore, Timestamp};
use tokio::sync::Barrier;

/// Two handles on one backing that nobody else uses, as two instances have over one database. It is
/// empty at first.
pub struct Stores {
    tasks: [Arc<dyn TaskStore>; 2],
    mailboxes: Option<[Arc<dyn Mailbox>; 2]>,
    guards: Option<[Arc<dyn ReplayGuard>; 2]>,
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl Stores {
    /// Takes two handles, on connections of their own where there are such. Without
    /// [`TaskStore::due_index`] nothing is stated about due tasks.
    pub fn new(one: impl TaskStore, other: impl TaskStore) -> Self {
        let tasks: [Arc<dyn TaskStore>; 2] = [Arc::new(one), Arc::new(other)];
        Self { tasks, mailboxes: None, guards: None, kept: Vec::new() }
    }

    /// Adds two handles on one mailbox.
    #[must_use]
    pub fn with_mailboxes(mut self, one: impl Mailbox, other: impl Mailbox) -> Self {
        self.mailboxes = Some([Arc::new(one), Arc::new(other)]);
        self
    }

    /// Adds two handles on one replay guard.
    #[must_use]
    pub fn with_replay_guards(mut self, one: impl ReplayGuard, other: impl ReplayGuard) -> Self {
        self.guards = Some([Arc::new(one), Arc::new(other)]);
        self
    }

    /// Keeps something as long as the stores, such as a folder that is removed when it is dropped.
    #[must_use]
    pub fn keeping(mut self, it: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(it));
        self
    }

    fn due_indexes(&self) -> Option<[&dyn DueIndex; 2]> {
        Some([self.tasks[0].due_index()?, self.tasks[1].due_index()?])
    }

    /// Writes a new task where nothing stands in its way; returns it as it is stored.
    async fn create(&self, task: TaskRecord) -> TaskRecord {
        let created = self.tasks[0].create(&task, u32::MAX, NOW).await.unwrap();
        assert_eq!(created, Created::Created);
        TaskRecord { version: 1, ..task }
    }

    /// Both handles give the same answer.
    async fn get(&self, key: &str, now: Timestamp) -> Option<TaskRecord> {
        let [one, other] = [&self.tasks[0], &self.tasks[1]];
        let found = one.get(key, now).await.unwrap();
        assert_eq!(found, other.get(key, now).await.unwrap(), "both handles see the same");
        found
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores")
            .field("has_mailboxes", &self.mailboxes.is_some())
            .field("has_replay_guards", &self.guards.is_some())
            .finish_non_exhaustive()
    }
}

/// What the clock of an instance says.
const NOW: Timestamp = Timestamp::from_millis(4_000_000_000_000);

const HOUR: Duration = Duration::from_hours(1);

const MILLISECOND: Duration = Duration::from_millis(1);

/// An open task that lives for a day and is not due.
fn task(name: &str) -> TaskRecord {
    TaskRecord {
        key: format!("{name:A>22}"),
        owner: owner("o"),
        version: 0,
        is_open: true,
        due: None,
        expires: NOW + 24 * HOUR,
        body: body(name),
    }
}

fn due_task(name: &str, due: Timestamp) -> TaskRecord {
    TaskRecord { due: Some(due), ..task(name) }
}

fn owner(name: &str) -> String {
    format!("{name:A>43}")
}

fn body(text: &str) -> Bytes {
    format!("{{\"text\":\"{text}\"}}").into()
}

/// Runs `count` futures in parallel, over one handle and the other in turns.
async fn at_once<H, T, F>(
    handles: &[Arc<H>; 2],
    count: usize,
    run: impl Fn(Arc<H>, usize) -> F,
) -> Vec<T>
where
    H: ?Sized,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(count));
    let running: Vec<_> = (0..count)
        .map(|n| {
            let (future, barrier) = (run(Arc::clone(&handles[n % 2]), n), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                future.await
            })
        })
        .collect();
    let mut ended = Vec::new();
    for one in running {
        ended.push(one.await.unwrap());
    }
    ended
}

/// Makes a `tokio` test of each statement of [`store`](crate::store). `$stores` is an async function
/// that returns [`Stores`] over a new backing.
///
/// The crate that calls it depends on `tokio` with the features `macros` and `rt-multi-thread`.
#[macro_export]
macro_rules! store_suite {
    ($stores:path) => {
        $crate::store_suite! { @tests $stores:
            tasks::a_task_is_read_as_it_was_written
            tasks::an_unknown_task_is_not_found
            tasks::a_taken_key_stays_as_it_is
            tasks::one_of_many_concurrent_creates_wins
            tasks::an_update_writes_everything_and_counts_the_version_up
            tasks::another_version_changes_nothing
            tasks::one_of_many_concurrent_updates_wins
            tasks::a_stalled_writer_never_writes_again
            tasks::a_task_that_has_ended_never_changes
            tasks::an_owner_has_no_more_open_tasks_than_allowed
            tasks::concurrent_creates_do_not_exceed_the_bound
            tasks::the_largest_body_is_kept_exactly
            tasks::a_larger_body_is_refused_and_changes_nothing
            tasks::keys_and_owners_are_exact
            tasks::a_lease_is_taken_by_one
            expiry::an_expired_task_is_as_good_as_gone
            expiry::an_expired_task_does_not_count
            expiry::an_update_may_prolong_a_task
            expiry::the_version_decides_whatever_the_clocks_say
            expiry::an_instance_ahead_takes_nothing_from_those_behind
            expiry::purging_frees_the_keys_of_what_expired_before
            expiry::purging_keeps_to_its_limit
            due::what_is_due_longest_comes_first
            due::only_open_tasks_that_are_due_are_claimed
            due::a_claimed_task_is_due_again_when_the_claim_ends
            due::a_claim_leaves_the_task_as_it_is
            due::an_update_after_a_claim_sets_anew_when_it_is_due
            due::concurrent_sweeps_share_the_work
            once::the_first_message_wins_taken_or_not
            once::a_message_is_taken_once
            once::one_of_many_concurrent_messages_wins
            once::an_expired_message_is_gone_and_its_id_free
            once::messages_are_kept_exactly
            once::an_id_is_spent_once
            once::an_expired_id_may_be_spent_again
            once::ids_are_exact
            once::an_instance_ahead_frees_nothing_for_those_behind
        }
    };
    (@tests $stores:path: $($module:ident::$name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                $crate::store::$module::$name(&$stores().await).await;
            }
        )*
    };
}
