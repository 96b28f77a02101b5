//! News for listen streams: what changed, who wants to know, and how it gets from one to the other
//! (SUB area).
//!
//! A change may happen on another instance, or outside any request (a webhook, a timer). The
//! [`ChangeFeed`] of a platform carries it to every open listen stream whose [`Topics`] want it. A feed
//! only says *that* something changed; what it is now is read in the ordinary way. There is no replay
//! and no memory: a listener hears what happens after it subscribed (SUB-10).
//!
//! Topics are scoped by tenant: a change published for a tenant reaches the listeners of that tenant
//! alone, one published without a tenant reaches the listeners without one.

use std::{fmt, sync::Arc};

#[cfg(not(target_arch = "wasm32"))]
pub use in_process::InProcessFeed;

use serde::{Deserialize, Serialize};

use crate::target::{BoxFuture, BoxStream, MaybeSend, MaybeSync};

/// Something that a client may want to read again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Change {
    /// The list of tools (TOOL-19).
    Tools,
    /// The list of prompts (PROMPT-11).
    Prompts,
    /// The list of resources (RES-16).
    Resources,
    /// The contents of the resource with this URI (RES-17).
    Resource(String),
    /// The task with this key (TASK-34), which only its owner hears of.
    Task(String),
}

impl Change {
    /// Makes a change of one resource's contents.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource(uri.into())
    }
}

/// What one listener wants to know (SUB-01), by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topics {
    /// The tenant of the listener.
    pub tenant: Option<String>,
    /// Whether it wants changes of the list of tools.
    pub tools: bool,
    /// Whether it wants changes of the list of prompts.
    pub prompts: bool,
    /// Whether it wants changes of the list of resources.
    pub resources: bool,
    /// The resources that it watches, each with what lies below it.
    pub uris: Vec<String>,
    /// The keys of the tasks that it follows.
    pub tasks: Vec<String>,
}

impl Topics {
    /// Makes topics that want nothing yet, for a listener of the given tenant.
    #[must_use]
    pub fn new(tenant: Option<String>) -> Self {
        Self { tenant, ..Self::default() }
    }

    /// Wants changes of the list of tools.
    #[must_use]
    pub const fn with_tools(mut self) -> Self {
        self.tools = true;
        self
    }

    /// Wants changes of the list of prompts.
    #[must_use]
    pub const fn with_prompts(mut self) -> Self {
        self.prompts = true;
        self
    }

    /// Wants changes of the list of resources.
    #[must_use]
    pub const fn with_resources(mut self) -> Self {
        self.resources = true;
        self
    }

    /// Watches resources.
    #[must_use]
    pub fn with_uris<S: Into<String>>(mut self, uris: impl IntoIterator<Item = S>) -> Self {
        self.uris.extend(uris.into_iter().map(Into::into));
        self
    }

    /// Follows tasks, by their keys.
    #[must_use]
    pub fn with_tasks<S: Into<String>>(mut self, keys: impl IntoIterator<Item = S>) -> Self {
        self.tasks.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Whether nothing is wanted (SUB-14).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !(self.tools || self.prompts || self.resources)
            && self.uris.is_empty()
            && self.tasks.is_empty()
    }

    /// What a listener is told of a change published for `tenant`, if anything.
    ///
    /// A resource counts as watched if its URI is, or if it lies below a watched one: `a/b` lies below
    /// `a` and `a/`. The listener is told the URI that changed, not the one that it watches (RES-17).
    #[must_use]
    pub fn wants(&self, tenant: Option<&str>, change: &Change) -> Option<Change> {
        (self.tenant.as_deref() == tenant && self.covers(change)).then(|| change.clone())
    }

    fn covers(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.iter().any(|watched| lies_within(uri, watched)),
            Change::Task(key) => self.tasks.contains(key),
        }
    }
}

fn lies_within(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || watched.ends_with('/'))
}

/// Carries changes from whoever makes them to the listeners, on whatever instance these are.
///
/// An implementation may tell a listener the same change once for several that came close together, and
/// must bound what it keeps for a listener that stops reading.
pub trait ChangeFeed: MaybeSend + MaybeSync + 'static {
    /// Tells the listeners of a tenant, or those without one, of a change.
    ///
    /// # Errors
    /// When the change may not have reached every listener.
    fn publish<'a>(
        &'a self,
        tenant: Option<&'a str>,
        change: Change,
    ) -> BoxFuture<'a, Result<(), FeedError>>;

    /// Subscribes a listener. Once the future has resolved no change is missed; the stream gives what
    /// the topics want, and the subscription ends when it is dropped. If the stream ends by itself, the
    /// feed is lost.
    ///
    /// # Errors
    /// When the feed cannot be reached, or takes no more listeners.
    fn subscribe(
        &self,
        topics: Topics,
    ) -> BoxFuture<'_, Result<BoxStream<'static, Change>, FeedError>>;
}

/// Why a [`ChangeFeed`] did not do its work.
#[derive(Debug)]
pub struct FeedError {
    message: String,
}

impl FeedError {
    /// Makes an error with a text for the log.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the change feed failed: {}", self.message)
    }
}

impl std::error::Error for FeedError {}

/// Publishes changes for one tenant, or for the listeners without one. Works outside a request too.
///
/// Without a feed (the default) publishing succeeds and does nothing: there is nobody to tell.
#[derive(Clone, Default)]
pub struct Publisher {
    feed: Option<Arc<dyn ChangeFeed>>,
    tenant: Option<String>,
}

impl Publisher {
    /// Makes a publisher for the listeners without a tenant.
    #[must_use]
    pub fn new(feed: Arc<dyn ChangeFeed>) -> Self {
        Self { feed: Some(feed), tenant: None }
    }

    /// Returns a publisher for the listeners of a tenant.
    #[must_use]
    pub fn for_tenant(&self, tenant: impl Into<String>) -> Self {
        Self { feed: self.feed.clone(), tenant: Some(tenant.into()) }
    }

    /// Tells the listeners of a change.
    ///
    /// # Errors
    /// When the feed may not have reached every listener.
    pub async fn publish(&self, change: Change) -> Result<(), FeedError> {
        match &self.feed {
            Some(feed) => feed.publish(self.tenant.as_deref(), change).await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("has_feed", &self.feed.is_some())
            .field("tenant", &self.tenant)
            .finish()
    }
}

/// Absent on wasm32: there each request has its own life, and the platform kills a future that is woken
/// from another request, which is all that this feed does.
#[cfg(not(target_arch = "wasm32"))]
mod in_process {
    use std::{
        collections::{BTreeMap, HashSet, VecDeque},
        fmt,
        future::ready,
        pin::Pin,
        sync::{Arc, Mutex, MutexGuard, PoisonError},
        task::{Context, Poll, Waker},
    };

    use futures_core::Stream;

    use super::{Change, ChangeFeed, FeedError, Topics, lies_within};
    use crate::target::{BoxFuture, BoxStream, boxed, boxed_stream};

    /// Carries changes within one process; clones are the same feed. Not for fleets: other instances
    /// hear nothing. Absent on wasm32, where no future may be woken from another request.
    ///
    /// A listener that does not read is told each list and each URI once when it does, in the order of
    /// the first change. At most 1,024 URIs below its watched ones are kept apart; after that the
    /// watched URI stands for what lies below it.
    #[derive(Clone, Default)]
    pub struct InProcessFeed {
        listeners: Arc<Mutex<Listeners>>,
    }

    impl ChangeFeed for InProcessFeed {
        fn publish<'a>(
            &'a self,
            tenant: Option<&'a str>,
            change: Change,
        ) -> BoxFuture<'a, Result<(), FeedError>> {
            boxed(async move {
                let wakers: Vec<Waker> = lock(&self.listeners)
                    .by_id
                    .values_mut()
                    .filter_map(|listener| listener.offer(tenant, &change))
                    .collect();
                // Not under the lock: a waker may run code that takes it.
                wakers.into_iter().for_each(Waker::wake);
                Ok(())
            })
        }

        fn subscribe(
            &self,
            topics: Topics,
        ) -> BoxFuture<'_, Result<BoxStream<'static, Change>, FeedError>> {
            let id = lock(&self.listeners).add(Listener::new(topics));
            let listeners = Arc::clone(&self.listeners);
            boxed(ready(Ok(boxed_stream(Subscription { id, listeners }))))
        }
    }

    impl fmt::Debug for InProcessFeed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("InProcessFeed")
                .field("listeners", &lock(&self.listeners).by_id.len())
                .finish()
        }
    }

    #[derive(Default)]
    struct Listeners {
        next_id: u64,
        by_id: BTreeMap<u64, Listener>,
    }

    impl Listeners {
        fn add(&mut self, listener: Listener) -> u64 {
            let id = self.next_id;
            self.next_id += 1;
            self.by_id.insert(id, listener);
            id
        }
    }

    struct Listener {
        topics: Topics,
        pending: Pending,
        waker: Option<Waker>,
    }

    impl Listener {
        fn new(topics: Topics) -> Self {
            Self { topics, pending: Pending::default(), waker: None }
        }

        /// Keeps what the topics want of a change; returns whom to wake.
        fn offer(&mut self, tenant: Option<&str>, change: &Change) -> Option<Waker> {
            let change = self.topics.wants(tenant, change)?;
            self.pending.push(change, &self.topics.uris);
            self.waker.take()
        }
    }

    /// Changes not yet read, each once. Holds at most one a list, one a task or watched URI, and
    /// [`MAX_BELOW`] others.
    #[derive(Default)]
    struct Pending {
        order: VecDeque<Change>,
        members: HashSet<Change>,
        /// How many are URIs that lie below a watched one.
        below: usize,
    }

    impl Pending {
        fn push(&mut self, change: Change, watched: &[String]) {
            if self.members.contains(&change) {
                return;
            }
            let Some(uri) = uri_below(&change, watched) else {
                return self.append(change);
            };
            if self.below < MAX_BELOW {
                self.below += 1;
                return self.append(change);
            }
            if let Some(parent) = watched.iter().find(|watched| lies_within(uri, watched)) {
                let parent = Change::resource(parent);
                if !self.members.contains(&parent) {
                    self.append(parent);
                }
            }
        }

        fn append(&mut self, change: Change) {
            self.members.insert(change.clone());
            self.order.push_back(change);
        }

        fn pop(&mut self, watched: &[String]) -> Option<Change> {
            let change = self.order.pop_front()?;
            self.members.remove(&change);
            if uri_below(&change, watched).is_some() {
                self.below -= 1;
            }
            Some(change)
        }
    }

    /// The URI of a resource that is not itself watched.
    fn uri_below<'a>(change: &'a Change, watched: &[String]) -> Option<&'a str> {
        match change {
            Change::Resource(uri) if !watched.contains(uri) => Some(uri),
            Change::Tools
            | Change::Prompts
            | Change::Resources
            | Change::Resource(_)
            | Change::Task(_) => None,
        }
    }

    /// One listener's end; dropping it removes the listener.
    struct Subscription {
        id: u64,
        listeners: Arc<Mutex<Listeners>>,
    }

    impl Stream for Subscription {
        type Item = Change;

        fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
            let mut listeners = lock(&self.listeners);
            let Some(listener) = listeners.by_id.get_mut(&self.id) else {
                return Poll::Ready(None);
            };
            if let Some(change) = listener.pending.pop(&listener.topics.uris) {
                return Poll::Ready(Some(change));
            }
            let former = listener.waker.replace(cx.waker().clone());
            // A dropped waker may drop its task, and with it a subscription, which takes the lock.
            drop(listeners);
            drop(former);
            Poll::Pending
        }
    }

    impl Drop for Subscription {
        fn drop(&mut self) {
            let listener = lock(&self.listeners).by_id.remove(&self.id);
            // After the lock, for the sake of the waker inside.
            drop(listener);
        }
    }

    /// A panic elsewhere leaves the listeners whole, so a poisoned lock is as good as any.
    fn lock(listeners: &Mutex<Listeners>) -> MutexGuard<'_, Listeners> {
        listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many URIs below the watched ones are kept apart for a listener that does not read.
    pub(super) const MAX_BELOW: usize = 1024;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wanted_by_default() {
        let topics = Topics::new(None);
        assert!(topics.is_empty());
        for change in [Change::Tools, Change::Prompts, Change::Resources, Change::resource("a:b")] {
            assert_eq!(topics.wants(None, &change), None);
        }
    }

    #[test]
    fn each_kind_is_wanted_by_itself() {
        let all = [Change::Tools, Change::Prompts, Change::Resources, Change::resource("a:b")];
        let wanted = |topics: &Topics| {
            all.each_ref().map(|change| topics.wants(None, change).as_ref() == Some(change))
        };
        let none = Topics::new(None);
        assert_eq!(wanted(&none.clone().with_tools()), [true, false, false, false]);
        assert_eq!(wanted(&none.clone().with_prompts()), [false, true, false, false]);
        assert_eq!(wanted(&none.clone().with_resources()), [false, false, true, false]);
        assert_eq!(wanted(&none.with_uris(["a:b"])), [false, false, false, true]);
    }

    #[test]
    fn a_tenant_hears_its_own_changes_alone() {
        let nobody = Topics::new(None).with_tools();
        let acme = Topics::new(Some("acme".to_owned())).with_tools();
        for (topics, tenant, heard) in [
            (&nobody, None, true),
            (&nobody, Some("acme"), false),
            (&nobody, Some(""), false),
            (&acme, Some("acme"), true),
            (&acme, Some("other"), false),
            (&acme, None, false),
        ] {
            assert_eq!(topics.wants(tenant, &Change::Tools).is_some(), heard, "{tenant:?}");
        }
    }

    #[test]
    fn a_resource_below_a_watched_one_is_told_by_its_own_uri() {
        let topics = Topics::new(None).with_uris(["file:///a", "file:///b/"]);
        for (uri, heard) in [
            ("file:///a", true),
            ("file:///a/x", true),
            ("file:///a/x/y", true),
            ("file:///ab", false),
            ("file:///a?x", false),
            ("file:///", false),
            ("file:///b/", true),
            ("file:///b/x", true),
            ("file:///b", false),
        ] {
            let change = Change::resource(uri);
            assert_eq!(topics.wants(None, &change), heard.then_some(change), "{uri}");
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    mod in_process_feed {
        use std::{
            sync::atomic::{AtomicUsize, Ordering},
            task::{Context, Poll, Wake, Waker},
        };

        use futures_util::{FutureExt as _, StreamExt as _};

        use super::{super::in_process::MAX_BELOW, *};

        type Listener = BoxStream<'static, Change>;

        fn listen(feed: &InProcessFeed, topics: Topics) -> Listener {
            feed.subscribe(topics).now_or_never().unwrap().unwrap()
        }

        fn publish(feed: &InProcessFeed, change: Change) {
            feed.publish(None, change).now_or_never().unwrap().unwrap();
        }

        fn heard(listener: &mut Listener) -> Vec<Change> {
            std::iter::from_fn(|| listener.next().now_or_never().flatten()).collect()
        }

        fn poll_with(listener: &mut Listener, waker: &Waker) -> Poll<Option<Change>> {
            listener.poll_next_unpin(&mut Context::from_waker(waker))
        }

        #[test]
        fn every_listener_hears_what_it_wants() {
            let feed = InProcessFeed::default();
            let mut tools = listen(&feed, Topics::new(None).with_tools());
            let mut files = listen(&feed, Topics::new(None).with_uris(["file:///a"]));
            let mut acme = listen(&feed, Topics::new(Some("acme".to_owned())).with_tools());

            publish(&feed, Change::Tools);
            publish(&feed.clone(), Change::resource("file:///a/b"));
            feed.publish(Some("acme"), Change::Tools).now_or_never().unwrap().unwrap();

            assert_eq!(heard(&mut tools), [Change::Tools]);
            assert_eq!(heard(&mut files), [Change::resource("file:///a/b")]);
            assert_eq!(heard(&mut acme), [Change::Tools]);
        }

        #[test]
        fn what_happened_before_is_not_heard() {
            let feed = InProcessFeed::default();
            publish(&feed, Change::Tools);
            assert_eq!(heard(&mut listen(&feed, Topics::new(None).with_tools())), []);
        }

        #[test]
        fn repeated_changes_are_told_once_in_the_order_of_the_first() {
            let feed = InProcessFeed::default();
            let topics = Topics::new(None).with_tools().with_prompts().with_uris(["a:1"]);
            let mut listener = listen(&feed, topics);
            for _ in 0..3 {
                publish(&feed, Change::Prompts);
                publish(&feed, Change::resource("a:1"));
                publish(&feed, Change::Tools);
            }
            let each_once = [Change::Prompts, Change::resource("a:1"), Change::Tools];
            assert_eq!(heard(&mut listener), each_once);

            publish(&feed, Change::Tools);
            assert_eq!(
                heard(&mut listener),
                [Change::Tools],
                "a change after reading is told again"
            );
        }

        #[test]
        fn a_waiting_listener_is_woken_and_only_for_what_it_wants() {
            struct Count(AtomicUsize);
            impl Wake for Count {
                fn wake(self: Arc<Self>) {
                    self.0.fetch_add(1, Ordering::Relaxed);
                }
            }
            let count = Arc::new(Count(AtomicUsize::new(0)));
            let waker = Waker::from(Arc::clone(&count));
            let feed = InProcessFeed::default();
            let mut listener = listen(&feed, Topics::new(None).with_tools());

            assert_eq!(poll_with(&mut listener, &waker), Poll::Pending);
            publish(&feed, Change::Prompts);
            assert_eq!(count.0.load(Ordering::Relaxed), 0);
            publish(&feed, Change::Tools);
            publish(&feed, Change::Tools);
            assert_eq!(count.0.load(Ordering::Relaxed), 1);
            assert_eq!(poll_with(&mut listener, &waker), Poll::Ready(Some(Change::Tools)));
        }

        #[test]
        fn a_waker_may_use_the_feed() {
            struct Publishes(InProcessFeed);
            impl Wake for Publishes {
                fn wake(self: Arc<Self>) {
                    publish(&self.0, Change::Prompts);
                }
            }
            let feed = InProcessFeed::default();
            let mut listener = listen(&feed, Topics::new(None).with_tools().with_prompts());
            let waker = Waker::from(Arc::new(Publishes(feed.clone())));
            assert_eq!(poll_with(&mut listener, &waker), Poll::Pending);
            publish(&feed, Change::Tools);
            assert_eq!(heard(&mut listener), [Change::Tools, Change::Prompts]);
        }

        #[test]
        fn a_waker_may_own_a_listener() {
            struct Owns(std::sync::Mutex<Option<Listener>>);
            impl Wake for Owns {
                fn wake(self: Arc<Self>) {
                    drop(self.0.lock().unwrap().take());
                }
            }
            let feed = InProcessFeed::default();
            let owned = |feed: &InProcessFeed| {
                let listener = listen(feed, Topics::new(None).with_tools());
                Waker::from(Arc::new(Owns(std::sync::Mutex::new(Some(listener)))))
            };
            let mut listener = listen(&feed, Topics::new(None).with_tools());
            assert_eq!(poll_with(&mut listener, &owned(&feed)), Poll::Pending);
            assert_eq!(poll_with(&mut listener, &owned(&feed)), Poll::Pending);
            publish(&feed, Change::Tools);
            assert_eq!(poll_with(&mut listener, &owned(&feed)), Poll::Ready(Some(Change::Tools)));
            assert_eq!(poll_with(&mut listener, &owned(&feed)), Poll::Pending);
            drop(listener);
            assert_eq!(format!("{feed:?}"), "InProcessFeed { listeners: 0 }");
        }

        #[test]
        fn a_dropped_listener_is_forgotten() {
            let feed = InProcessFeed::default();
            let kept = listen(&feed, Topics::new(None).with_tools());
            drop(listen(&feed, Topics::new(None).with_tools()));
            drop(feed.subscribe(Topics::new(None)));
            assert_eq!(format!("{feed:?}"), "InProcessFeed { listeners: 1 }");
            drop(kept);
            assert_eq!(format!("{feed:?}"), "InProcessFeed { listeners: 0 }");
        }

        #[test]
        fn too_many_unread_uris_collapse_to_the_watched_one() {
            let feed = InProcessFeed::default();
            let mut listener =
                listen(&feed, Topics::new(None).with_tools().with_uris(["a:/x", "a:/y"]));
            let below = |n: usize| Change::resource(format!("a:/x/{n}"));
            for n in 0..MAX_BELOW + 50 {
                publish(&feed, below(n));
            }
            publish(&feed, below(0));
            publish(&feed, Change::resource("a:/y"));
            publish(&feed, Change::Tools);

            let mut expected: Vec<_> = (0..MAX_BELOW).map(below).collect();
            expected.extend([Change::resource("a:/x"), Change::resource("a:/y"), Change::Tools]);
            assert_eq!(heard(&mut listener), expected);

            publish(&feed, below(7));
            assert_eq!(heard(&mut listener), [below(7)], "reading makes room");
        }

        #[test]
        fn a_publisher_reaches_its_tenant_alone() {
            let feed = InProcessFeed::default();
            let mut nobody = listen(&feed, Topics::new(None).with_tools());
            let mut acme = listen(&feed, Topics::new(Some("acme".to_owned())).with_tools());
            let publisher = Publisher::new(Arc::new(feed));

            publisher.for_tenant("acme").publish(Change::Tools).now_or_never().unwrap().unwrap();
            assert_eq!((heard(&mut nobody), heard(&mut acme)), (vec![], vec![Change::Tools]));
            publisher.publish(Change::Tools).now_or_never().unwrap().unwrap();
            assert_eq!((heard(&mut nobody), heard(&mut acme)), (vec![Change::Tools], vec![]));
        }

        #[test]
        fn a_publisher_without_a_feed_does_nothing() {
            let publisher = Publisher::default().for_tenant("acme");
            publisher.publish(Change::Tools).now_or_never().unwrap().unwrap();
        }
    }
}
