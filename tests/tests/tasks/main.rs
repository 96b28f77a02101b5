//! Calls that outlive their request, over the public API.
//!
//! A [`World`] is what the instances of a fleet share: a key, a store and a change feed. Each test
//! decides what time it is.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

mod bounds;
mod clients;
mod hostile;
mod ids;
mod jobs;
mod news;
mod runs;
mod single_use;
mod versions;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_edge::{
    BoxFuture, Created, DueIndex, InProcessFeed, KeyRing, Limits, MemoryStore, Server,
    ServerBuilder, StoreError, TaskDriver, TaskRecord, TaskStore, Timestamp,
};
use mcp_edge_test::{Client, Task, TestPlatform};
use mcp_edge_tests::Counter;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the instances of a fleet share.
#[derive(Clone, Default)]
struct World {
    store: Spy,
    feed: InProcessFeed,
}

impl World {
    /// An instance of a server, which comes back to the tasks that are scheduled on it.
    fn instance(&self, server: ServerBuilder) -> Server {
        mcp_edge_test::with_store(self.bare(server), self.store.clone())
    }

    /// An instance that comes back to nothing by itself.
    fn idle(&self, server: ServerBuilder) -> Server {
        self.bare(server).with_tasks(self.store.clone(), Nobody)
    }

    /// Advances the task that was created last, once, on an instance.
    async fn advance(&self, server: &Server) {
        self.advance_on(server, TestPlatform::new()).await;
    }

    async fn advance_on(&self, server: &Server, platform: TestPlatform) {
        let key = self.store.keys.lock().unwrap().last().unwrap().clone();
        server.advance(&key, Arc::new(platform)).await.unwrap();
    }

    /// An instance without tasks.
    fn bare(&self, server: ServerBuilder) -> Server {
        server.sealer(KeyRing::new(1, &[7; 32])).change_feed(self.feed.clone()).build().unwrap()
    }

    /// A client that holds tasks, of one instance.
    fn client(&self, server: ServerBuilder) -> Client {
        Client::in_process(&self.instance(server)).with_tasks()
    }
}

fn builder() -> ServerBuilder {
    Server::builder("tasks", "1.0.0").anonymous_tasks(true)
}

fn limited(change: impl FnOnce(&mut Limits)) -> ServerBuilder {
    let mut limits = Limits::default();
    change(&mut limits);
    builder().limits(limits)
}

/// What questions ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// Forgets what is scheduled.
struct Nobody;

impl TaskDriver for Nobody {
    fn schedule<'a>(&'a self, _: &'a str, _: Timestamp) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A store that counts what it is asked for, and keeps what was written.
#[derive(Clone, Default)]
struct Spy {
    store: MemoryStore,
    reads: Arc<AtomicUsize>,
    written: Arc<Mutex<Vec<Value>>>,
    /// Of the tasks that were created, in order.
    keys: Arc<Mutex<Vec<String>>>,
    /// How many of the next reads and updates fail.
    failures: Arc<AtomicUsize>,
}

impl Spy {
    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// The bodies of all records that were written, in order.
    fn written(&self) -> Vec<Value> {
        self.written.lock().unwrap().clone()
    }

    fn check(&self) -> Result<(), StoreError> {
        let left = |failures: usize| failures.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
            Ok(_) => Err(StoreError::new("it is out of order")),
            Err(_) => Ok(()),
        }
    }

    fn note(&self, record: &TaskRecord) {
        self.written.lock().unwrap().push(serde_json::from_slice(&record.body).unwrap());
    }
}

impl TaskStore for Spy {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        match self.check() {
            Ok(()) => self.store.get(key, now),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            let created = self.store.create(record, max_open, now).await?;
            if created == Created::Created {
                self.note(record);
                self.keys.lock().unwrap().push(record.key.clone());
            }
            Ok(created)
        })
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let done = self.store.update(record, now).await?;
            if done {
                self.note(record);
            }
            Ok(done)
        })
    }

    fn due_index(&self) -> Option<&dyn DueIndex> {
        self.store.due_index()
    }
}

/// Looks at a task until it is as `what` says; an hour on the clock of the test is the limit.
async fn wait_for(client: &Client, id: &str, what: impl Fn(&Task) -> bool) -> Task {
    for _ in 0..36_000 {
        let task = client.task(id).await.unwrap();
        if what(&task) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the task never came there: {:?}", client.task(id).await.unwrap());
}

/// Returns after some time on the clock of the test.
async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn answer(text: &str) -> Value {
    json!({ "action": "accept", "content": { "text": text } })
}
