//! Cleartext HTTP/2 with prior knowledge.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_edge_hyper::ServeOptions;
use tokio::net::TcpStream;

use crate::support::{Probe, Running, builder, call_body, server, small_bodies, soon};

type Sender = http2::SendRequest<BoxBody<Bytes, Infallible>>;

async fn connect(running: &Running) -> Sender {
    let stream = TcpStream::connect(running.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(
    running: &Running,
    tool: &str,
    body: BoxBody<Bytes, Infallible>,
) -> Request<BoxBody<Bytes, Infallible>> {
    Request::post(format!("http://{}/mcp", running.address))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(body)
        .unwrap()
}

fn whole(tool: &str) -> BoxBody<Bytes, Infallible> {
    Full::new(Bytes::from(call_body(tool))).boxed()
}

/// A body that never ends.
fn endless() -> BoxBody<Bytes, Infallible> {
    let frame = || Ok(Frame::data(Bytes::from_static(&[b'x'; 4096])));
    StreamBody::new(futures_util::stream::repeat_with(frame)).boxed()
}

async fn text(response: Response<Incoming>) -> String {
    let bytes = soon(response.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn calls_share_a_connection() {
    let (probe, mut seen) = Probe::new();
    let running = Running::with_defaults(builder(probe.clone()).build().unwrap()).await;
    let mut sender = connect(&running).await;
    let waits = sender.send_request(request(&running, "waits", whole("waits")));
    seen.entered().await;
    let hello = sender.send_request(request(&running, "hello", whole("hello")));
    let hello = soon(hello).await.unwrap();
    assert_eq!(hello.status(), StatusCode::OK);
    assert!(text(hello).await.contains("Hello!"));
    probe.finish.notify_one();
    assert!(text(soon(waits).await.unwrap()).await.contains("finished"));
}

#[tokio::test]
async fn a_body_that_outgrows_the_limit_is_413() {
    let server = builder(Probe::new().0).limits(small_bodies(10_000)).build().unwrap();
    let running = Running::with_defaults(server).await;
    let mut sender = connect(&running).await;
    let sent = sender.send_request(request(&running, "hello", endless()));
    assert_eq!(soon(sent).await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    let sent = sender.send_request(request(&running, "hello", whole("hello")));
    assert_eq!(soon(sent).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn timing_a_slow_body_resets_its_own_stream_alone() {
    let limit = Duration::from_millis(300);
    let options = ServeOptions::default().body_read_timeout(limit);
    let running = Running::start(server(), options).await;
    let mut sender = connect(&running).await;
    let never = StreamBody::new(futures_util::stream::pending()).boxed();
    let begun = Instant::now();
    let sent = sender.send_request(request(&running, "hello", never));
    assert!(soon(sent).await.is_err());
    let took = begun.elapsed();
    assert!(took >= limit && took < limit * 5, "{took:?}");
    let sent = sender.send_request(request(&running, "hello", whole("hello")));
    assert_eq!(soon(sent).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn timing_a_reset_or_a_disconnect_drops_the_handler() {
    let (probe, mut seen) = Probe::new();
    let running = Running::with_defaults(builder(probe).build().unwrap()).await;
    let mut latencies = Vec::new();
    for _ in 0..7 {
        // A silent handler; its stream is reset.
        let mut sender = connect(&running).await;
        let sent = sender.send_request(request(&running, "waits", whole("waits")));
        let sent = tokio::spawn(sent);
        seen.entered().await;
        let gone = Instant::now();
        sent.abort();
        latencies.push(seen.dropped().await.saturating_duration_since(gone));
        // A handler that streams; its body is dropped.
        let sent = sender.send_request(request(&running, "streams", whole("streams")));
        seen.entered().await;
        let mut response = soon(sent).await.unwrap();
        soon(response.frame()).await.unwrap().unwrap();
        let gone = Instant::now();
        drop(response);
        latencies.push(seen.dropped().await.saturating_duration_since(gone));
    }
    latencies.sort();
    eprintln!("http/2: median {:?}, worst {:?}", latencies[7], latencies[13]);
    assert!(latencies[13] < Duration::from_millis(100), "{latencies:?}");
}

#[tokio::test]
async fn a_shutdown_lets_calls_finish() {
    let (probe, mut seen) = Probe::new();
    let mut running = Running::with_defaults(builder(probe.clone()).build().unwrap()).await;
    let mut sender = connect(&running).await;
    let waits = sender.send_request(request(&running, "waits", whole("waits")));
    let waits = tokio::spawn(waits);
    seen.entered().await;
    running.stop();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!running.has_ended());

    // Who comes late asks once.
    let mut late = connect(&running).await;
    let sent = late.send_request(request(&running, "hello", whole("hello")));
    assert_eq!(soon(sent).await.unwrap().status(), StatusCode::OK);
    soon(async {
        while !late.is_closed() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;

    probe.finish.notify_one();
    let response = soon(waits).await.unwrap().unwrap();
    assert!(text(response).await.contains("finished"));
    running.ended().await;
}

#[tokio::test]
async fn what_is_left_after_the_grace_period_is_dropped() {
    let (probe, mut seen) = Probe::new();
    let options = ServeOptions::default().grace(Duration::from_millis(50));
    let mut running = Running::start(builder(probe).build().unwrap(), options).await;
    let mut sender = connect(&running).await;
    let waits = tokio::spawn(sender.send_request(request(&running, "waits", whole("waits"))));
    seen.entered().await;
    running.stop();
    running.ended().await;
    seen.dropped().await;
    assert!(soon(waits).await.unwrap().is_err());
}
