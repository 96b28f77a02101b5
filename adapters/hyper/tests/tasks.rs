//! Who comes back to tasks on hyper.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_edge::{
    BoxFuture, Cx, KeyRing, Limits, MemoryStore, NoArgs, Server, StoreError, TaskDriver,
    TaskStore as _, Timestamp, ToolError,
};
use mcp_edge_hyper::{ServeOptions, Serving, TaskRunner, with_tasks};
use mcp_edge_test::{Client, TaskStatus};
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time::sleep};

/// Counts the steps that ran, and the most that ran side by side.
#[derive(Clone, Default)]
struct Steps {
    ran: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

fn server(steps: &Steps) -> Server {
    let steps = steps.clone();
    let mut limits = Limits::default();
    limits.poll_interval = Duration::from_millis(10);
    limits.task_lease = Duration::from_millis(500);
    limits.task_heartbeat = Duration::from_millis(100);
    let work = move |cx: Cx, _: NoArgs| {
        let steps = steps.clone();
        async move {
            cx.background("working").await;
            for key in ["one", "two", "three"] {
                cx.step(key, async || {
                    let running = steps.running.fetch_add(1, Ordering::SeqCst) + 1;
                    steps.most.fetch_max(running, Ordering::SeqCst);
                    sleep(Duration::from_millis(20)).await;
                    steps.running.fetch_sub(1, Ordering::SeqCst);
                    steps.ran.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, ToolError>(())
                })
                .await?;
                cx.sleep(format!("after {key}"), Duration::from_millis(10)).await;
            }
            Ok::<_, ToolError>("done")
        }
    };
    Server::builder("tasks", "1.0.0")
        .tool("work", "Works", work)
        .limits(limits)
        .anonymous_tasks(true)
        .sealer(KeyRing::new(1, &[7; 32]))
        .build()
        .unwrap()
}

/// Forgets what is scheduled, as a process does that dies.
struct Nobody;

impl TaskDriver for Nobody {
    fn schedule<'a>(&'a self, _: &'a str, _: Timestamp) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A client of a server that listens until the future resolves.
async fn listens(
    serving: impl Into<Serving>,
    until: impl Future<Output = ()> + Send + 'static,
) -> (Client, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = serving.into();
    let options = ServeOptions::default();
    let serves = tokio::spawn(mcp_edge_hyper::serve_with(serving, listener, options, until));
    (Client::url(&url).with_tasks(), serves)
}

async fn serve(serving: impl Into<Serving>) -> Client {
    listens(serving, pending()).await.0
}

#[tokio::test]
async fn a_task_goes_on_by_itself() {
    let client = serve(with_tasks(server(&Steps::default()), MemoryStore::default())).await;
    let called = client.call("work", json!({})).await.unwrap();
    assert_eq!(called.text(), "done");
    assert!(called.task_id.is_some());
}

#[tokio::test]
async fn what_was_left_undone_is_found_at_start() {
    let (store, steps) = (MemoryStore::default(), Steps::default());
    let before = serve(server(&steps).with_tasks(store.clone(), Nobody)).await;
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(before.start("work", json!({})).await.unwrap());
    }
    assert_eq!(steps.ran.load(Ordering::SeqCst), 0);
    let client = serve(with_tasks(server(&steps), store)).await;
    for task in &tasks {
        assert_eq!(client.follow(task).await.unwrap().text(), "done");
    }
    assert_eq!(steps.ran.load(Ordering::SeqCst), 15);
}

#[tokio::test]
async fn what_is_lost_later_is_found_by_a_sweep() {
    let (store, steps) = (MemoryStore::default(), Steps::default());
    let forgetful = serve(server(&steps).with_tasks(store.clone(), Nobody)).await;
    let (runner, scheduler) = TaskRunner::new();
    let runner = runner.sweep_interval(Duration::from_millis(50));
    let client = serve(Serving::new(server(&steps).with_tasks(store, scheduler), runner)).await;
    sleep(Duration::from_millis(100)).await;
    let task = forgetful.start("work", json!({})).await.unwrap();
    assert_eq!(client.follow(&task).await.unwrap().text(), "done");
}

#[tokio::test]
async fn more_than_may_run_at_a_time_wait_their_turn() {
    let steps = Steps::default();
    let (runner, scheduler) = TaskRunner::new();
    let server = server(&steps).with_tasks(MemoryStore::default(), scheduler);
    let client = serve(Serving::new(server, runner.max_running(2))).await;
    let calls = (0..10).map(|_| client.call("work", json!({})));
    for called in futures_util::future::join_all(calls).await {
        assert_eq!(called.unwrap().text(), "done");
    }
    assert_eq!(steps.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn who_has_its_hands_full_leaves_the_rest_to_others() {
    let (store, steps) = (MemoryStore::default(), Steps::default());
    let begun = Arc::clone(&steps.running);
    let hang = Server::builder("tasks", "1.0.0")
        .tool("hang", "Hangs", move |cx: Cx, _: NoArgs| {
            let begun = Arc::clone(&begun);
            async move {
                cx.background("").await;
                begun.fetch_add(1, Ordering::SeqCst);
                cx.once("hangs", async || pending::<()>().await).await;
            }
        })
        .anonymous_tasks(true)
        .sealer(KeyRing::new(1, &[7; 32]));
    let (runner, scheduler) = TaskRunner::new();
    let runner = runner.max_running(1).sweep_interval(Duration::from_millis(10));
    let hanging = hang.build().unwrap().with_tasks(store.clone(), scheduler);
    let full = serve(Serving::new(hanging, runner)).await;
    full.start("hang", json!({})).await.unwrap();
    while steps.running.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let forgetful = serve(server(&steps).with_tasks(store.clone(), Nobody)).await;
    forgetful.start("work", json!({})).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let now = Timestamp::default() + now;
    let due = store.due_index().unwrap().claim_due(now, now, 9).await.unwrap();
    assert_eq!(due.len(), 1, "nobody has claimed it");
}

#[tokio::test]
async fn an_instance_that_stops_leaves_its_tasks_at_their_next_step() {
    let (store, steps) = (MemoryStore::default(), Steps::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let until = async {
        let _ = stopped.await;
    };
    let (first, serves) = listens(with_tasks(server(&steps), store.clone()), until).await;
    let task = first.start("work", json!({})).await.unwrap();
    while steps.running.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    stop.send(()).unwrap();
    serves.await.unwrap();
    assert_eq!(steps.ran.load(Ordering::SeqCst), 1, "the step that ran was finished, and no more");

    let second = serve(with_tasks(server(&steps), store)).await;
    assert_eq!(second.task(&task.id).await.unwrap().status, TaskStatus::Working);
    assert_eq!(second.follow(&task).await.unwrap().text(), "done");
    assert_eq!(steps.ran.load(Ordering::SeqCst), 3, "no step ran twice");
}
