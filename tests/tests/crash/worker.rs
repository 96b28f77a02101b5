//! An instance: this program again, told to run the ignored test here.

use std::{
    env,
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use mcp_edge::{
    BoxFuture, Cx, Json, Limits, Server, ServerBuilder, StoreError, TaskDriver, Timestamp,
    ToolError,
};
use mcp_edge_hyper::{Scheduler, Serving, SqliteStore, TaskRunner, serve_on};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::point::{Point, follow_plan, pass};

/// Names the folder that all instances share.
pub(crate) const FOLDER: &str = "CRASH_TEST_FOLDER";

/// The file to which each effect appends a line.
pub(crate) const EFFECTS: &str = "effects";

pub(crate) const STEPS: usize = 20;

/// The steps after which a question is asked.
pub(crate) const QUESTIONS: [usize; 3] = [3, 8, 13];

const SLEEPS: [usize; 2] = [5, 15];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Text {
    pub(crate) text: String,
}

/// What a task returns.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Outcome {
    pub(crate) total: usize,
    pub(crate) effects: Vec<String>,
    pub(crate) answers: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn work(folder: PathBuf, cx: Cx) -> Result<Json<Outcome>, ToolError> {
    cx.background("working").await;
    let mut outcome = Outcome { total: 0, effects: Vec::new(), answers: Vec::new() };
    for number in 0..STEPS {
        let step = format!("step {number}");
        let key = cx.idempotency_key(&step);
        outcome.total += cx
            .step(&step, async || {
                pass(Point::InStep);
                tokio::time::sleep(Duration::from_millis(2)).await;
                happen(&folder, &key)?;
                pass(Point::AfterEffect);
                Ok::<_, ToolError>(number)
            })
            .await?;
        outcome.effects.push(key);
        if QUESTIONS.contains(&number) {
            let question = cx.elicit::<Text>(format!("question {number}"), "What next?");
            outcome.answers.push(question.await.required()?.text);
        }
        if SLEEPS.contains(&number) {
            cx.sleep(format!("sleep {number}"), Duration::from_millis(30)).await;
        }
    }
    Ok(Json(outcome))
}

/// The effect that is not to be lost.
fn happen(folder: &Path, key: &str) -> Result<(), std::io::Error> {
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join(EFFECTS))?;
    file.write_all(format!("{key}\n").as_bytes())
}

fn server(folder: PathBuf) -> ServerBuilder {
    let mut limits = Limits::default();
    limits.task_lease = Duration::from_millis(300);
    limits.task_heartbeat = Duration::from_millis(100);
    limits.task_attempts = 100;
    limits.poll_interval = Duration::from_millis(20);
    limits.open_tasks = 100_000;
    let work = move |cx: Cx, _: Nothing| work(folder.clone(), cx);
    Server::builder("crash", "1.0.0")
        .tool("work", "Works", work)
        .limits(limits)
        .anonymous_tasks(true)
}

/// Where a process may be held between a write and what follows it.
struct Held(Scheduler);

impl TaskDriver for Held {
    fn schedule<'a>(
        &'a self,
        key: &'a str,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        pass(Point::BeforeSchedule);
        self.0.schedule(key, at)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "not a test of its own: the fleet runs it in processes"]
async fn serves() {
    let folder = PathBuf::from(env::var_os(FOLDER).unwrap());
    follow_plan(&folder);
    let store = SqliteStore::open(folder.join("tasks.sqlite")).unwrap();
    let (runner, scheduler) = TaskRunner::new();
    // One at a time, so that a kill interrupts one step.
    let runner = runner.max_running(1).sweep_interval(Duration::from_millis(50));
    let server = server(folder).build().unwrap().with_tasks(store, Held(scheduler));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    serve_on(Serving::new(server, runner), listener).await.unwrap();
}
