//! When an answer becomes a stream, what keeps it open, and what ends it.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_edge::{Change, Cx, InProcessFeed, Limits, NoArgs, Server, protocol::LogLevel};
use mcp_edge_test::{Client, Framing, TestPlatform};
use serde_json::{Value, json};

async fn slow(cx: Cx, _: NoArgs) -> &'static str {
    cx.sleep("s", Duration::from_secs(10)).await;
    "done"
}

async fn loud(cx: Cx, _: NoArgs) -> &'static str {
    cx.progress(1.0, 2.0, "half");
    cx.sleep("s", Duration::from_secs(40)).await;
    "done"
}

fn server() -> Server {
    let mut limits = Limits::default();
    limits.inline_sleep = Duration::from_secs(60);
    Server::builder("streams", "1.0.0")
        .tool("slow", "Takes ten seconds", slow)
        .tool("loud", "Emits, then takes forty", loud)
        .logging()
        .limits(limits)
        .build()
        .unwrap()
        .with_change_feed(InProcessFeed::default())
}

fn call(client: &Client, tool: &str) -> http::Request<bytes::Bytes> {
    client.request("tools/call", json!({ "name": tool }))
}

#[tokio::test(start_paused = true)]
async fn silence_for_two_seconds_becomes_sse_with_keep_alives() {
    let client = Client::in_process(&server());
    let began = tokio::time::Instant::now();
    let mut response = client.raw(call(&client, "slow")).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    assert_eq!(response.headers["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    assert!(text.starts_with("event: message\ndata: {\"jsonrpc\""), "{text}");
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn sse_06_a_quiet_stream_is_kept_alive() {
    let client = Client::in_process(&server()).with_progress();
    let mut response = client.raw(call(&client, "loud")).await.unwrap();
    let text = response.text().await.unwrap();
    assert_eq!(text.matches(": keep-alive\n\n").count(), 2, "at 15 and 30 of 40 s: {text}");
    assert_eq!(text.matches("data: ").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_front_door_that_cannot_stream_gets_one_body() {
    let buffered = || Client::in_process(&server()).platform(TestPlatform::new().buffered());
    let reply = buffered().with_progress().round("tools/call", json!({ "name": "loud" })).await;
    let reply = reply.unwrap();
    assert_eq!((reply.framing, reply.notifications.len()), (Framing::Sse, 1));
    let reply = buffered().round("tools/call", json!({ "name": "slow" })).await.unwrap();
    assert_eq!(reply.framing, Framing::Json, "nothing was emitted");
}

#[tokio::test(start_paused = true)]
async fn sub_17_a_buffered_listen_is_acknowledged_and_ends() {
    let client = Client::in_process(&server()).platform(TestPlatform::new().buffered());
    let discover = client.round("server/discover", json!({})).await.unwrap();
    assert_eq!(discover.result().unwrap()["capabilities"]["tools"], json!({}), "DISC-09");
    let mut listening = client.listen(json!({ "toolsListChanged": true })).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({}));
    assert!(listening.next().await.is_none(), "SUB-08");
}

/// Sets a flag when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn endless() -> (Server, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let server = Server::builder("streams", "1.0.0")
        .tool("endless", "Never ends", move |cx: Cx, _: NoArgs| {
            let flag = Flag(Arc::clone(&flag));
            async move {
                let _flag = flag;
                cx.progress(1.0, None, "");
                std::future::pending::<&'static str>().await
            }
        })
        .build()
        .unwrap();
    (server, dropped)
}

#[tokio::test(start_paused = true)]
async fn canc_01_dropping_the_body_drops_the_handler() {
    let (server, dropped) = endless();
    let client = Client::in_process(&server).with_progress();
    let mut response = client.raw(call(&client, "endless")).await.unwrap();
    assert!(response.next_chunk().await.unwrap().is_some());
    assert!(!dropped.load(Ordering::SeqCst));
    drop(response);
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn canc_08_dropping_the_exchange_before_its_answer_drops_the_handler() {
    let (server, dropped) = endless();
    let client = Client::in_process(&server);
    let exchange = client.raw(call(&client, "endless"));
    let _ = tokio::time::timeout(Duration::from_secs(1), exchange).await;
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn prog_07_progress_is_limited_and_the_newest_arrives_while_the_handler_is_silent() {
    let burst = |cx: Cx, _: NoArgs| async move {
        for done in 1..=100 {
            cx.progress(f64::from(done), 100.0, "");
        }
        cx.sleep("s", Duration::from_secs(1)).await;
        "done"
    };
    let server = Server::builder("s", "1").tool("burst", "Bursts", burst).build().unwrap();
    let client = Client::in_process(&server).with_progress();
    let mut response = client.raw(call(&client, "burst")).await.unwrap();
    let began = tokio::time::Instant::now();
    let mut seen = Vec::new();
    while let Some(event) = response.next_event().await.unwrap() {
        let message: Value = serde_json::from_str(&event.data).unwrap();
        if let Some(progress) = message["params"]["progress"].as_u64() {
            seen.push((began.elapsed().as_millis(), progress));
        }
    }
    assert_eq!(seen, [(0, 1), (20, 100)]);
}

#[tokio::test]
async fn events_of_one_poll_with_the_result_still_make_it_sse() {
    let at_once = |cx: Cx, _: NoArgs| async move {
        cx.progress(1.0, 1.0, "all");
        cx.log(LogLevel::Info, "all");
        "done"
    };
    let server = Server::builder("s", "1").tool("t", "At once", at_once).logging().build().unwrap();
    let client = Client::in_process(&server).with_progress().log_level(LogLevel::Debug);
    let called = client.call("t", json!({})).await.unwrap();
    assert_eq!((called.text().as_str(), called.notifications.len()), ("done", 2));
}

#[tokio::test(start_paused = true)]
async fn a_listen_stream_ends_gracefully_when_its_life_is_over() {
    let server = server();
    let client = Client::in_process(&server);
    let mut listening = client.listen(json!({ "toolsListChanged": true })).await.unwrap();
    let began = tokio::time::Instant::now();
    assert!(listening.next().await.is_none());
    assert_eq!(began.elapsed(), Duration::from_secs(3600));
    let platform = TestPlatform::new().with_deadline(Duration::from_secs(28));
    let client = client.platform(platform);
    let mut listening = client.listen(json!({ "toolsListChanged": true })).await.unwrap();
    let began = tokio::time::Instant::now();
    assert!(listening.next().await.is_none(), "L8: before the platform cuts it");
    assert_eq!(began.elapsed(), Duration::from_millis(27_750));
}

#[tokio::test(start_paused = true)]
async fn draining_ends_listen_streams_and_turns_healthz_to_503() {
    let platform = TestPlatform::new();
    let draining = platform.draining();
    let client = Client::in_process(&server()).platform(platform);
    let mut listening = client.listen(json!({ "toolsListChanged": true })).await.unwrap();
    draining.start();
    assert!(listening.next().await.is_none());
    let mut health = client.request("tools/list", json!({}));
    *health.method_mut() = http::Method::GET;
    *health.uri_mut() = "/healthz".parse().unwrap();
    *health.body_mut() = bytes::Bytes::new();
    assert_eq!(client.raw(health).await.unwrap().status, 503);
}

#[tokio::test(start_paused = true)]
async fn sub_12_a_listen_stream_is_acknowledged_at_once_and_kept_alive() {
    let client = Client::in_process(&server());
    let request = client.request("subscriptions/listen", json!({ "notifications": {} }));
    let mut response = client.raw(request).await.unwrap();
    let first = response.next_chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("notifications/subscriptions/acknowledged"));
    let began = tokio::time::Instant::now();
    let second = response.next_chunk().await.unwrap().unwrap();
    assert_eq!((&second[..], began.elapsed().as_secs()), (&b": keep-alive\n\n"[..], 15));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_read_has_one_change_of_each_kind_waiting() {
    let server = server();
    let client = Client::in_process(&server);
    let mut listening = client.listen(json!({ "toolsListChanged": true })).await.unwrap();
    for _ in 0..10_000 {
        server.publisher().publish(Change::Tools).await.unwrap();
    }
    assert!(listening.next().await.is_some());
    let next = tokio::time::timeout(Duration::from_secs(1), listening.next()).await;
    assert!(next.is_err(), "10,000 changes became one");
}

#[tokio::test]
async fn a_publisher_without_a_feed_does_nothing() {
    let server = Server::builder("s", "1").build().unwrap();
    server.publisher().publish(Change::Tools).await.unwrap();
}
