//! The graceful end.

use std::time::{Duration, Instant};

use mcp_edge_hyper::ServeOptions;

use crate::support::{HEALTH, Probe, Running, builder, call, listen, server};

#[tokio::test]
async fn an_idle_server_ends_at_once() {
    let mut running = Running::with_defaults(server()).await;
    let mut used = running.connect().await;
    used.send(call("hello")).await;
    used.reply().await;
    let mut unused = running.connect().await;
    let begun = Instant::now();
    running.stop();
    running.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "the grace period was waited for");
    assert!(used.is_closed().await && unused.is_closed().await);
}

#[tokio::test]
async fn a_listen_stream_ends_with_its_final_message() {
    let mut running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    client.send(listen()).await;
    client.read_until("notifications/subscriptions/acknowledged").await;
    running.stop();
    let rest = client.rest().await;
    assert!(rest.contains(r#""resultType":"complete""#), "{rest}");
    assert!(rest.contains(r#""id":"L""#), "{rest}");
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "{rest:?}");
    running.ended().await;
}

#[tokio::test]
async fn a_call_under_way_is_waited_for_and_health_is_503_meanwhile() {
    let (probe, mut seen) = Probe::new();
    let mut running = Running::with_defaults(builder(probe.clone()).build().unwrap()).await;
    let mut early = running.connect().await;
    early.send(HEALTH).await;
    assert_eq!(early.reply().await.status, 200);
    let mut silent = running.connect().await;
    silent.send(call("waits")).await;
    seen.entered().await;
    let mut streaming = running.connect().await;
    streaming.send(call("streams")).await;
    seen.entered().await;

    running.stop();
    assert!(early.is_closed().await, "an idle connection is closed");
    let mut late = running.connect().await;
    late.send(HEALTH).await;
    assert_eq!(late.reply().await.status, 503);
    assert!(late.is_closed().await, "who comes while the server drains asks once");
    let mut late = running.connect().await;
    late.send(call("hello")).await;
    assert_eq!(late.reply().await.status, 200);

    assert!(!running.has_ended());
    probe.finish.notify_waiters();
    let reply = silent.reply().await;
    assert!(reply.body.contains("finished"), "{}", reply.body);
    assert!(streaming.rest().await.contains("finished"));
    running.ended().await;
    assert!(seen.nothing_dropped());
}

#[tokio::test]
async fn timing_what_is_left_after_the_grace_period_is_dropped() {
    let grace = Duration::from_millis(300);
    let (probe, mut seen) = Probe::new();
    let server = builder(probe).build().unwrap();
    let mut running = Running::start(server, ServeOptions::default().grace(grace)).await;
    let mut client = running.connect().await;
    client.send(call("waits")).await;
    seen.entered().await;
    let begun = Instant::now();
    running.stop();
    running.ended().await;
    let took = begun.elapsed();
    assert!(took >= grace && took < grace * 5, "{took:?}");
    assert!(!seen.nothing_dropped(), "the handler is gone when serve_with returns");
    assert!(client.is_closed().await);
}
