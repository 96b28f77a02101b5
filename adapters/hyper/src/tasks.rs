//! Comes back to tasks: by a timer to those that were scheduled here, and by a sweep to those that
//! nobody looks after.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use mcp_edge::{BoxFuture, Platform as _, Server, StoreError, TaskDriver, TaskStore, Timestamp};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{self, JoinError, JoinSet},
    time::{Sleep, sleep},
};

use crate::platform::HyperPlatform;

/// Gives a server a store for tasks, and makes the runner that advances them.
///
/// Any number of instances may share the store: whatever one of them leaves undone, another finds.
///
/// ```no_run
/// # async fn example(server: mcp_edge::Server, store: impl mcp_edge::TaskStore) -> Result<(), Box<dyn std::error::Error>> {
/// let server = mcp_edge_hyper::with_tasks(server, store);
/// mcp_edge_hyper::serve(server, "127.0.0.1:8080").await?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn with_tasks(server: Server, store: impl TaskStore) -> Serving {
    let (runner, scheduler) = TaskRunner::new();
    Serving::new(server.with_tasks(store, scheduler), runner)
}

/// A server, and what comes back to its tasks if it has any; made [`From`] a [`Server`] or by
/// [`with_tasks`].
#[derive(Debug)]
pub struct Serving {
    pub(crate) server: Server,
    pub(crate) runner: Option<TaskRunner>,
}

impl Serving {
    /// Puts a server together with the runner of its tasks, for a runner that is set up by hand.
    #[must_use]
    pub const fn new(server: Server, runner: TaskRunner) -> Self {
        Self { server, runner: Some(runner) }
    }

    /// Changes the server, as in `serving.map(|server| server.with_change_feed(feed))`.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Server) -> Server) -> Self {
        Self { server: change(self.server), ..self }
    }

    /// Takes it apart, to mount the server and to [run](TaskRunner::run) its tasks.
    #[must_use]
    pub fn into_parts(self) -> (Server, Option<TaskRunner>) {
        (self.server, self.runner)
    }
}

impl From<Server> for Serving {
    fn from(server: Server) -> Self {
        Self { server, runner: None }
    }
}

/// Advances the tasks of a server.
pub struct TaskRunner {
    scheduled: UnboundedReceiver<(String, Timestamp)>,
    sweep: Duration,
    max_running: usize,
}

impl TaskRunner {
    /// Makes a runner, and the driver that tells it what is due.
    #[must_use]
    pub fn new() -> (Self, Scheduler) {
        let (sender, scheduled) = unbounded_channel();
        let runner = Self { scheduled, sweep: Duration::from_millis(500), max_running: 256 };
        (runner, Scheduler(sender))
    }

    /// How often the store is searched for tasks that nobody looks after; 500 ms by default.
    #[must_use]
    pub const fn sweep_interval(mut self, interval: Duration) -> Self {
        self.sweep = interval;
        self
    }

    /// Most tasks that are advanced at a time; the others wait. 256 by default.
    #[must_use]
    pub const fn max_running(mut self, tasks: usize) -> Self {
        self.max_running = tasks;
        self
    }

    /// Advances tasks until `stop` resolves; then takes on no more, and returns when those under way
    /// have come to their next step or their end.
    pub async fn run(self, server: Server, stop: impl Future<Output = ()>) {
        let platform = Arc::new(HyperPlatform::new());
        let mut running = Running {
            due: Due::default(),
            busy: HashMap::new(),
            jobs: JoinSet::new(),
            advancing: HashMap::new(),
            is_sweeping: false,
            next_sweep: Box::pin(sleep(Duration::ZERO)),
            next_due: None,
            server,
            platform: Arc::clone(&platform),
            options: self,
        };
        let mut stop = pin!(stop);
        poll_fn(|cx| {
            running.poll(cx);
            stop.as_mut().poll(cx)
        })
        .await;
        platform.drain();
        while running.jobs.join_next().await.is_some() {}
    }
}

impl fmt::Debug for TaskRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRunner")
            .field("sweep", &self.sweep)
            .field("max_running", &self.max_running)
            .finish_non_exhaustive()
    }
}

/// Hands what is scheduled to the [runner](TaskRunner) of the same process.
#[derive(Clone, Debug)]
pub struct Scheduler(UnboundedSender<(String, Timestamp)>);

impl TaskDriver for Scheduler {
    fn schedule<'a>(
        &'a self,
        key: &'a str,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let sent = self.0.send((key.to_owned(), at));
        let sent = sent.map_err(|_| StoreError::new("the runner of its tasks has stopped"));
        Box::pin(std::future::ready(sent))
    }
}

struct Running {
    due: Due,
    /// The tasks that are being advanced, each with the moment at which it is to be again.
    busy: HashMap<Arc<str>, Option<Timestamp>>,
    /// Each brings back what it found: nothing, unless it is a sweep.
    jobs: JoinSet<Vec<String>>,
    /// Which of the jobs advances which task.
    advancing: HashMap<task::Id, Arc<str>>,
    is_sweeping: bool,
    next_sweep: Pin<Box<Sleep>>,
    next_due: Option<(Timestamp, Pin<Box<Sleep>>)>,
    server: Server,
    platform: Arc<HyperPlatform>,
    options: TaskRunner,
}

impl Running {
    fn poll(&mut self, cx: &mut Context<'_>) {
        loop {
            while let Poll::Ready(Some((key, at))) = self.options.scheduled.poll_recv(cx) {
                self.schedule(key.into(), at);
            }
            while let Poll::Ready(Some(ended)) = self.jobs.poll_join_next_with_id(cx) {
                self.ended(ended);
            }
            if !self.start_due(cx) && !self.start_sweep(cx) {
                return; // what was started wakes this when it ends, once it was polled for
            }
        }
    }

    fn ended(&mut self, ended: Result<(task::Id, Vec<String>), JoinError>) {
        let (id, found) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!("a task could not be advanced: {error}");
                (error.id(), Vec::new())
            }
        };
        let now = self.platform.now();
        found.into_iter().for_each(|key| self.schedule(key.into(), now));
        match self.advancing.remove(&id) {
            None => self.is_sweeping = false,
            Some(key) => {
                if let Some(Some(at)) = self.busy.remove(&key) {
                    self.schedule(key, at);
                }
            }
        }
    }

    /// Starts a sweep if it is time; whether it did. What cannot be advanced here is left to others.
    fn start_sweep(&mut self, cx: &mut Context<'_>) -> bool {
        let is_full = self.busy.len() >= self.options.max_running;
        if is_full || self.is_sweeping || self.next_sweep.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.next_sweep = Box::pin(sleep(self.options.sweep));
        self.is_sweeping = true;
        let (server, platform) = (self.server.clone(), Arc::clone(&self.platform));
        self.jobs.spawn(async move {
            server.sweep_tasks(platform.as_ref()).await.unwrap_or_else(|error| {
                tracing::warn!("tasks could not be searched: {error}");
                Vec::new()
            })
        });
        true
    }

    /// Starts what is due, as far as there is room; whether it did.
    fn start_due(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while self.busy.len() < self.options.max_running {
            let now = self.platform.now();
            if let Some(key) = self.due.pop(now) {
                self.advance(key);
                any = true;
                continue;
            }
            let Some(at) = self.due.first() else { break };
            if self.next_due.as_ref().is_none_or(|(known, _)| *known != at) {
                self.next_due = Some((at, Box::pin(sleep(at.since(now)))));
            }
            if let Some((_, timer)) = &mut self.next_due
                && timer.as_mut().poll(cx).is_pending()
            {
                break;
            }
            self.next_due = None; // early by its resolution, perhaps
        }
        any
    }

    fn schedule(&mut self, key: Arc<str>, at: Timestamp) {
        match self.busy.entry(key) {
            Entry::Occupied(mut busy) => {
                let again = busy.get_mut();
                *again = Some(again.map_or(at, |known| known.min(at)));
            }
            Entry::Vacant(free) => self.due.insert(free.into_key(), at),
        }
    }

    fn advance(&mut self, key: Arc<str>) {
        self.busy.insert(Arc::clone(&key), None);
        let (server, platform) = (self.server.clone(), Arc::clone(&self.platform));
        let name = Arc::clone(&key);
        let job = self.jobs.spawn(async move {
            if let Err(error) = server.advance(&name, platform).await {
                tracing::warn!("a task could not be advanced, a sweep will find it: {error}");
            }
            Vec::new()
        });
        self.advancing.insert(job.id(), key);
    }
}

/// When which task is due, each once.
#[derive(Default)]
struct Due {
    by_time: BTreeSet<(Timestamp, Arc<str>)>,
    by_key: HashMap<Arc<str>, Timestamp>,
}

impl Due {
    /// The earlier moment counts.
    fn insert(&mut self, key: Arc<str>, at: Timestamp) {
        if let Some(known) = self.by_key.get(&key) {
            if *known <= at {
                return;
            }
            self.by_time.remove(&(*known, Arc::clone(&key)));
        }
        self.by_key.insert(Arc::clone(&key), at);
        self.by_time.insert((at, key));
    }

    fn first(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes the first that is due.
    fn pop(&mut self, now: Timestamp) -> Option<Arc<str>> {
        self.first().filter(|at| *at <= now)?;
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }
}
