//! The tasks of the server. Each input finds the same ones, whatever the inputs before it did.

use std::{
    pin::pin,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use mcp_edge::{
    BoxFuture, Created, Cx, DueIndex, Job, JobStatus, MemoryStore, NoArgs, RequestError, Server,
    StoreError, TaskDriver, TaskRecord, TaskStore, Timestamp, ToolError,
};
use serde_json::{Value, json};

use crate::{
    Answer, Name, SERVER,
    answer::{Clock, answer, checked, message, post, token_result},
};

pub(crate) async fn work(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.background("Working").await;
    cx.sleep("rest", Duration::from_secs(3600)).await;
    Ok("done".to_owned())
}

/// Asks for everything that can be asked for.
pub(crate) async fn survey(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.background("Asking").await;
    let name = cx.elicit::<Name>("name", "What is your name?").await.required()?.name;
    let roots = cx.roots("roots").await.len();
    Ok(format!("{name} {roots}"))
}

/// A system that does jobs at once.
pub(crate) struct Builds;

impl Job for Builds {
    type Args = NoArgs;
    type Out = String;

    async fn start(&self, _: Cx, _: NoArgs) -> Result<String, ToolError> {
        Ok("7".to_owned())
    }

    async fn poll(&self, handle: &str) -> Result<JobStatus<String>, RequestError> {
        assert_eq!(handle, "7", "a handle that was never given out");
        Ok(JobStatus::Done("built".to_owned()))
    }

    async fn cancel(&self, handle: &str) -> Result<(), RequestError> {
        assert_eq!(handle, "7", "a handle that was never given out");
        Ok(())
    }
}

/// What every input finds. Their ids are always the same, since the clock and what is random are.
pub struct Tasks {
    /// A task that asks for a name.
    pub asking: String,
    /// A job elsewhere.
    pub job: String,
    records: Vec<TaskRecord>,
}

pub static TASKS: LazyLock<Tasks> = LazyLock::new(|| {
    let nothing = Instance::with(&[]);
    let start = |tool: &str| {
        // Other than what is random later, so that a call begins a task of its own.
        let body = message("tools/call", json!({ "name": tool }));
        let clock = Clock::with_random(u8::try_from(tool.len()).expect("a short name"));
        let task = token_result(&answer(&nothing.server, post(body), clock)).expect("a task");
        task["taskId"].as_str().expect("an id").to_owned()
    };
    let (job, asking) = (start("build"), start("survey"));
    nothing.go_on();
    let shown = message("tasks/get", json!({ "taskId": asking }));
    let shown = token_result(&nothing.checked(post(shown))).expect("the task");
    assert!(shown["inputRequests"]["name"].is_object(), "{shown}");
    let keys = nothing.store.keys.lock().expect("no panic");
    let records = keys.iter().map(|key| {
        let record = now(nothing.store.tasks.get(key, Timestamp::default()));
        record.expect("a store").expect("a record")
    });
    Tasks { asking, job, records: records.collect() }
});

impl Tasks {
    /// Puts the ids in the place of `@asking` and `@job`, which are more easily come by.
    #[must_use]
    pub fn named(&self, data: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(data) else { return data.to_vec() };
        text.replace("@asking", &self.asking).replace("@job", &self.job).into_bytes()
    }
}

/// The server with a store of its own, and whoever goes on with what is scheduled at once.
pub struct Instance {
    server: Server,
    store: Store,
}

impl Default for Instance {
    fn default() -> Self {
        Self::with(&TASKS.records)
    }
}

impl Instance {
    fn with(records: &[TaskRecord]) -> Self {
        let store = Store::default();
        for record in records {
            let created = now(store.tasks.create(record, u32::MAX, Timestamp::default()));
            assert_eq!(created.expect("a store"), Created::Created);
        }
        let server = SERVER.clone().with_tasks(store.clone(), store.clone());
        Self { server, store }
    }

    /// Sends a request, goes on with the tasks that are due after it, and checks the answer.
    pub fn checked(&self, request: Request<Bytes>) -> Answer {
        let answer = checked(&self.server, request);
        self.go_on();
        answer
    }

    fn go_on(&self) {
        // What is scheduled meanwhile is due later.
        let keys = std::mem::take(&mut *self.store.scheduled.lock().expect("no panic"));
        for key in keys {
            now(self.server.advance(&key, Arc::new(Clock::default()))).expect("a store");
        }
    }

    /// Checks that tasks can be looked at, whatever was done to them.
    pub fn look(&self) -> Value {
        let body = message("tasks/get", json!({ "taskId": TASKS.asking }));
        token_result(&self.checked(post(body))).expect("the task")
    }

    /// How many records were read.
    #[must_use]
    pub fn reads(&self) -> usize {
        self.store.reads.load(Ordering::Relaxed)
    }
}

/// Nothing waits for anything here.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
    panic!("it never ends");
}

/// A store that counts what is read, and its own driver.
#[derive(Clone, Default)]
struct Store {
    tasks: MemoryStore,
    reads: Arc<AtomicUsize>,
    keys: Arc<Mutex<Vec<String>>>,
    scheduled: Arc<Mutex<Vec<String>>>,
}

impl TaskStore for Store {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.tasks.get(key, now)
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        self.keys.lock().expect("no panic").push(record.key.clone());
        self.tasks.create(record, max_open, now)
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.tasks.update(record, now)
    }

    fn due_index(&self) -> Option<&dyn DueIndex> {
        self.tasks.due_index()
    }
}

impl TaskDriver for Store {
    fn schedule<'a>(&'a self, key: &'a str, _: Timestamp) -> BoxFuture<'a, Result<(), StoreError>> {
        self.scheduled.lock().expect("no panic").push(key.to_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}
