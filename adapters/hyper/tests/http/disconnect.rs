//! A client that goes away cancels its call (CANC-01, SSE-09).

use std::time::{Duration, Instant};

use crate::support::{Client, Probe, Running, Seen, builder, call};

const BOUND: Duration = Duration::from_millis(100);

async fn latency(client: Client, seen: &mut Seen) -> Duration {
    // Quiet: the server waits for nothing but the client.
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(seen.nothing_dropped());
    let gone = Instant::now();
    drop(client);
    seen.dropped().await.saturating_duration_since(gone)
}

fn report(what: &str, mut latencies: Vec<Duration>) {
    latencies.sort();
    eprintln!("{what}: median {:?}, worst {:?}", latencies[latencies.len() / 2], latencies.last());
    assert!(latencies.iter().all(|latency| *latency < BOUND), "{what}: {latencies:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn timing_a_disconnect_drops_a_silent_handler() {
    let (probe, mut seen) = Probe::new();
    let running = Running::with_defaults(builder(probe).build().unwrap()).await;
    let mut latencies = Vec::new();
    for _ in 0..7 {
        let mut client = running.connect().await;
        client.send(call("waits")).await;
        seen.entered().await;
        latencies.push(latency(client, &mut seen).await);
    }
    report("before the first byte", latencies);
}

#[tokio::test(flavor = "multi_thread")]
async fn timing_a_disconnect_drops_a_streaming_handler() {
    let (probe, mut seen) = Probe::new();
    let running = Running::with_defaults(builder(probe).build().unwrap()).await;
    let mut latencies = Vec::new();
    for _ in 0..7 {
        let mut client = running.connect().await;
        client.send(call("streams")).await;
        seen.entered().await;
        client.read_until("notifications/progress").await;
        latencies.push(latency(client, &mut seen).await);
    }
    report("in a stream", latencies);
}
