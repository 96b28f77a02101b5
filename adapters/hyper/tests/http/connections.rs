//! Time limits and the number of connections; HTTP/2.

use std::time::{Duration, Instant};

use mcp_edge_hyper::ServeOptions;
use tokio::time::sleep;

use crate::support::{HEALTH, LARGE, Probe, Running, builder, call, large_answers, server};

/// Sends a text byte by byte until the server closes the connection.
async fn drip(running: &Running, text: &str) -> Duration {
    let mut client = running.connect().await;
    let begun = Instant::now();
    for byte in text.bytes().cycle() {
        if client.send_all_it_takes(&[byte]).await == 0 || client.is_closed_by_now().await {
            break;
        }
        sleep(Duration::from_millis(10)).await;
        assert!(begun.elapsed() < crate::support::PATIENCE, "it is never cut");
    }
    begun.elapsed()
}

#[tokio::test]
async fn timing_a_slow_head_is_cut() {
    let limit = Duration::from_millis(300);
    let options = ServeOptions::default().header_read_timeout(limit);
    let running = Running::start(server(), options).await;
    for text in ["", "P", "PRI * HTTP/2.0\r\n", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nA: b"] {
        let mut client = running.connect().await;
        let begun = Instant::now();
        client.send(text).await;
        assert!(client.is_closed().await, "{text:?}");
        let took = begun.elapsed();
        assert!(took >= limit && took < limit * 5, "{text:?} {took:?}");
    }
    let took = drip(&running, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nA: b").await;
    assert!(took >= limit && took < limit * 5, "{took:?}");
}

#[tokio::test]
async fn timing_a_slow_head_is_cut_later_too() {
    let limit = Duration::from_millis(300);
    let options = ServeOptions::default().header_read_timeout(limit);
    let running = Running::start(server(), options).await;
    let mut client = running.connect().await;
    client.send(call("hello")).await;
    client.reply().await;
    assert!(client.is_quiet_for(limit * 2).await, "an idle connection is not a slow head");
    client.send(call("hello")).await;
    assert_eq!(client.reply().await.status, 200);
    client.send("POST").await;
    let begun = Instant::now();
    assert!(client.is_closed().await);
    let took = begun.elapsed();
    assert!(took >= limit / 2 && took < limit * 5, "{took:?}");
}

#[tokio::test]
async fn timing_an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let limit = Duration::from_millis(300);
    let (probe, mut seen) = Probe::new();
    let options = ServeOptions::default().idle_timeout(limit).header_read_timeout(limit);
    let running = Running::start(builder(probe.clone()).build().unwrap(), options).await;
    let mut client = running.connect().await;
    client.send(call("waits")).await;
    seen.entered().await;
    sleep(limit * 2).await;
    probe.finish.notify_one();
    assert!(client.reply().await.body.contains("finished"));

    for _ in 0..5 {
        sleep(limit / 3).await;
        client.send(call("hello")).await;
        assert_eq!(client.reply().await.status, 200);
    }
    let begun = Instant::now();
    assert!(client.is_closed().await);
    let took = begun.elapsed();
    assert!(took >= limit / 2 && took < limit * 5, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn timing_a_client_that_does_not_read_on_is_cut_and_a_slow_one_is_not() {
    let limit = Duration::from_millis(300);
    let server = builder(Probe::new().0).limits(large_answers()).build().unwrap();
    let running = Running::start(server, ServeOptions::default().idle_timeout(limit)).await;
    let mut client = running.connect().await;
    client.send(call("large")).await;
    client.read_until("\r\n\r\n").await;
    sleep(limit * 5).await;
    assert!(client.rest().await.len() < LARGE);

    let mut client = running.connect().await;
    client.send(call("large")).await;
    client.read_until("\r\n\r\n").await;
    for _ in 0..16 {
        sleep(limit / 3).await;
        client.read_at_least(LARGE / 16).await;
    }
    client.read_until(r#""resultType":"complete""#).await;
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_their_turn() {
    let options = ServeOptions::default().max_connections(2);
    let running = Running::start(server(), options).await;
    let mut first = running.connect().await;
    let mut second = running.connect().await;
    for client in [&mut first, &mut second] {
        client.send(HEALTH).await;
        assert_eq!(client.reply().await.status, 200);
    }
    let mut third = running.connect().await;
    third.send(HEALTH).await;
    assert!(third.is_quiet_for(Duration::from_millis(100)).await);
    drop(first);
    assert_eq!(third.reply().await.status, 200);
}

#[tokio::test]
async fn a_panicking_handler_harms_no_other_request() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    client.send(call("panics")).await;
    let reply = client.reply().await;
    assert!(reply.body.contains("-32603"), "{}", reply.body);
    assert!(!reply.body.contains("as it should"), "{}", reply.body);
    client.send(call("hello")).await;
    assert!(client.reply().await.body.contains("Hello!"));
}
