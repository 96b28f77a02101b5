//! What all share.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::Duration,
};

use mcp_edge::{
    BoxFuture, Created, DueIndex, MemoryStore, Platform, StoreError, TaskDriver, TaskRecord,
    TaskStore, Timestamp,
};
use shuttle::rand::{Rng as _, RngCore as _, thread_rng};

use crate::log::{By, Log};

/// What is to happen in a schedule.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) is_cancelled: bool,
    /// Whether its time may be over before it has ended.
    pub(crate) may_expire: bool,
}

/// Longer than any schedule takes.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// About as long as most tasks take that nobody disturbs, in milliseconds: what is to happen at any time
/// of a task happens within it.
pub(crate) const WHILE: u64 = 150_000;

/// How many instances there are.
pub(crate) const INSTANCES: usize = 2;

/// What all actors of a schedule share.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) ttl: Duration,
    pub(crate) clock: Clock,
    log: Arc<Mutex<Log>>,
    store: MemoryStore,
    agenda: Arc<Mutex<Agenda>>,
}

/// When each instance is to look at the task, and which one that is.
#[derive(Default)]
struct Agenda {
    key: String,
    due: [Option<Timestamp>; INSTANCES],
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let clock = Clock::default();
        let price_rises_at = clock.now() + millis(WHILE);
        Self {
            ttl: if plan.may_expire { Duration::from_secs(20) + millis(WHILE) } else { DAY },
            clock,
            log: Arc::new(Mutex::new(Log::new(price_rises_at))),
            store: MemoryStore::default(),
            agenda: Arc::default(),
        }
    }

    /// What happened so far. A rule that was broken poisons it, so nobody goes on after that.
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }

    /// The store, in the hands of somebody.
    pub(crate) fn store(&self, by: By) -> Paused {
        Paused { world: self.clone(), by }
    }

    /// Tells instances when to look: mostly both, sometimes one, and sometimes the message is lost.
    pub(crate) fn schedule(&self, key: &str, at: Timestamp) {
        let mut agenda = self.agenda.lock().unwrap();
        key.clone_into(&mut agenda.key);
        for due in &mut agenda.due {
            if !one_in(5) {
                *due = Some(due.map_or(at, |known| known.min(at)));
            }
        }
    }

    /// The task, if an instance is to look at it now.
    pub(crate) fn take_due(&self, instance: usize) -> Option<String> {
        let mut agenda = self.agenda.lock().unwrap();
        agenda.due[instance].take_if(|due| *due <= self.clock.now())?;
        Some(agenda.key.clone())
    }
}

impl TaskDriver for World {
    fn schedule<'a>(
        &'a self,
        key: &'a str,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            pause().await;
            self.schedule(key, at);
            pause().await;
            Ok(())
        })
    }
}

/// A store around whose operations anything else may happen.
pub(crate) struct Paused {
    world: World,
    by: By,
}

impl TaskStore for Paused {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        Box::pin(async move {
            pause().await;
            let found = self.world.store.get(key, now).await?;
            self.world.log().read(self.by);
            pause().await;
            Ok(found)
        })
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            pause().await;
            let created = self.world.store.create(record, max_open, now).await?;
            if created == Created::Created {
                let stored = self.world.store.get(&record.key, now).await?;
                self.world.log().created(&stored.expect("it was created"));
            }
            pause().await;
            Ok(created)
        })
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            pause().await;
            let done = self.world.store.update(record, now).await?;
            if done {
                let stored = self.world.store.get(&record.key, now).await?;
                let stored = stored.expect("it was updated");
                self.world.log().written(self.by, record.version, &stored, now);
            }
            pause().await;
            Ok(done)
        })
    }

    fn due_index(&self) -> Option<&dyn DueIndex> {
        self.world.store.due_index()
    }
}

/// The clock of all instances, which stands still unless somebody moves it.
#[derive(Clone)]
pub(crate) struct Clock(Arc<Mutex<Time>>);

struct Time {
    now: Timestamp,
    timers: Vec<(Timestamp, Waker)>,
}

impl Default for Clock {
    fn default() -> Self {
        let now = Timestamp::from_millis(1_800_000_000_000);
        Self(Arc::new(Mutex::new(Time { now, timers: Vec::new() })))
    }
}

impl Clock {
    pub(crate) fn now(&self) -> Timestamp {
        self.0.lock().unwrap().now
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut time = self.0.lock().unwrap();
        time.now = time.now + by;
        let now = time.now;
        time.timers.extract_if(.., |(at, _)| *at <= now).for_each(|(_, waker)| waker.wake());
    }

    pub(crate) fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let (clock, until) = (self.clone(), self.now() + duration);
        poll_fn(move |cx| {
            let mut time = clock.0.lock().unwrap();
            if time.now >= until {
                return Poll::Ready(());
            }
            time.timers.push((until, cx.waker().clone()));
            Poll::Pending
        })
    }
}

/// What an instance runs on, for one request or one run.
pub(crate) struct Place {
    pub(crate) clock: Clock,
    pub(crate) deadline: Option<Timestamp>,
}

impl Platform for Place {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.clock.sleep(duration))
    }

    fn fill_random(&self, out: &mut [u8]) {
        thread_rng().fill_bytes(out);
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }
}

/// A future that ends before its time: after so many polls it is dropped.
pub(crate) struct Mortal<F> {
    pub(crate) future: Option<Pin<Box<F>>>,
    pub(crate) polls: Option<u64>,
}

impl<F: Future> Future for Mortal<F> {
    /// `None` if it died.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == Some(0) {
            self.future = None;
        }
        self.polls = self.polls.map(|polls| polls.saturating_sub(1));
        match &mut self.future {
            Some(future) => future.as_mut().poll(cx).map(Some),
            None => Poll::Ready(None),
        }
    }
}

/// Here the scheduler may let anybody else go on.
pub(crate) async fn pause() {
    shuttle::future::yield_now().await;
}

/// A random number below a limit; the seed decides it as well.
pub(crate) fn below(limit: u64) -> u64 {
    thread_rng().gen_range(0..limit)
}

pub(crate) fn one_in(chances: u64) -> bool {
    below(chances) == 0
}

/// A random time of less than so many milliseconds.
pub(crate) fn millis(limit: u64) -> Duration {
    Duration::from_millis(below(limit))
}
