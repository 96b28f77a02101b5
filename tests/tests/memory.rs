//! Limits first: what a hostile peer sends is refused before it costs memory (HTTP-17).
//!
//! This binary counts what is allocated; its tests run one after another.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::{sync::Mutex, time::Duration};

use bytes::Bytes;
use mcp_edge::{Cx, KeyRing, Limits, NoArgs, RawArgs, Server, protocol::LogLevel};
use mcp_edge_test::Client;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn server(limits: impl FnOnce(&mut Limits)) -> Server {
    let mut all = Limits::default();
    limits(&mut all);
    Server::builder("memory", "1.0.0")
        .tool("ask", "Asks", |cx: Cx, _: NoArgs| async move {
            cx.elicit_schema("q", "?", json!({ "type": "object", "properties": {} })).await;
        })
        .tool("flood", "Logs without end", |cx: Cx, _: NoArgs| async move {
            for _ in 0..100_000 {
                cx.log(LogLevel::Info, "x".repeat(1000));
            }
        })
        .tool("large", "Answers at length", |_: NoArgs| async { "x".repeat(2 * MIB) })
        .tool_with(
            "raw",
            "Takes anything",
            |_: RawArgs| async { "" },
            |tool| tool.input_schema(json!({ "type": "object" })),
        )
        .logging()
        .sealer(KeyRing::new(1, &[7; 32]))
        .limits(all)
        .build()
        .unwrap()
}

/// Sends a request and returns status and code, and how many bytes were held at once meanwhile.
fn measured(client: &Client, request: http::Request<Bytes>) -> (u16, Value, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        let mut response = client.raw(request).await.unwrap();
        let held = ALLOCATOR.peak_usage() - before;
        let body = response.bytes().await.unwrap();
        let code = serde_json::from_slice::<Value>(&body)
            .map_or(Value::Null, |body| body["error"]["code"].clone());
        (response.status.as_u16(), code, held)
    })
}

fn with_body(client: &Client, body: impl Into<Bytes>) -> http::Request<Bytes> {
    let mut request = client.request("tools/call", json!({ "name": "raw" }));
    *request.body_mut() = body.into();
    request
}

#[test]
fn deep_nesting_costs_nothing() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|_| {}));
    for body in ["[".repeat(3 * MIB), "{\"a\":".repeat(MIB / 2), "[{\"a\":".repeat(MIB / 2)] {
        let (status, code, held) = measured(&client, with_body(&client, body));
        assert_eq!((status, code), (400, json!(-32700)));
        assert!(held < 64 * KIB, "{held}");
    }
}

#[test]
fn a_body_over_its_limit_is_not_read() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|limits| limits.body_bytes = 64 * KIB));
    let (status, _, held) = measured(&client, with_body(&client, "x".repeat(65 * KIB)));
    assert_eq!(status, 413);
    assert!(held < 64 * KIB, "{held}");
}

#[test]
fn many_members_cost_no_more_than_they_are_long() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|_| {}));
    let members: Vec<String> = (0..100_000).map(|n| format!("\"m{n}\":1")).collect();
    let body = format!("{{{}}}", members.join(","));
    let size = body.len();
    let (status, code, held) = measured(&client, with_body(&client, body));
    assert_eq!((status, code), (400, json!(-32600)));
    assert!(held < 16 * size, "{held} for {size}");
}

#[test]
fn headers_are_counted_before_they_are_decoded() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|_| {}));
    let mut request = client.request("tools/call", json!({ "name": "raw" }));
    for n in 0..1000 {
        let name = http::HeaderName::try_from(format!("mcp-param-{n}")).unwrap();
        let value = http::HeaderValue::from_static("=?base64?AAAAAAAAAAAAAAAA?=");
        request.headers_mut().insert(name, value);
    }
    let (status, _, held) = measured(&client, request);
    assert_eq!(status, 431);
    assert!(held < 256 * KIB, "the client's own copy of the request included: {held}");
}

#[test]
fn a_token_is_measured_before_it_is_decoded() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|_| {}));
    let token = "A".repeat(3 * MIB);
    let params = json!({ "name": "ask", "requestState": token });
    let (status, code, held) = measured(&client, client.request("tools/call", params));
    assert_eq!((status, code), (200, json!(-32602)));
    assert!(held < 256 * KIB, "{held}");
    let request = client.request("tools/list", json!({ "cursor": "A".repeat(3 * MIB) }));
    let (status, code, held) = measured(&client, request);
    assert_eq!((status, code), (200, json!(-32602)));
    assert!(held < 256 * KIB, "{held}");
}

#[test]
fn an_answer_over_its_limit_is_an_error() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|limits| limits.response_bytes = MIB));
    let request = client.request("tools/call", json!({ "name": "large" }));
    let (status, code, held) = measured(&client, request);
    assert_eq!((status, code), (200, json!(-32603)));
    assert!(held < 12 * MIB, "{held}");
}

#[test]
fn a_flood_of_logs_is_bounded() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|_| {})).log_level(LogLevel::Debug);
    let request = client.request("tools/call", json!({ "name": "flood" }));
    let (status, _, held) = measured(&client, request);
    assert_eq!(status, 200);
    assert!(held < 2 * MIB, "100 MiB were logged: {held}");
}

#[test]
fn rounds_hold_nothing_here() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let client = Client::in_process(&server(|_| {}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let ask = || async {
            client.round("tools/call", json!({ "name": "ask" })).await.unwrap();
        };
        ask().await;
        let before = ALLOCATOR.current_usage();
        for _ in 0..1000 {
            ask().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let kept = ALLOCATOR.current_usage().saturating_sub(before);
        assert!(kept < 64 * KIB, "MRTR-22: a thousand questions are open, and {kept} bytes kept");
    });
}
