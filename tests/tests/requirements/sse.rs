//! SSE: streamed replies, byte by byte.

use std::time::Duration;

use mcp_edge::{Cx, NoArgs, protocol::LogLevel};

use super::*;

/// Line ends of every kind.
const LINES: &str = "a\nb\r\nc\rd\u{2028}e\n\ndata: f";

async fn lines(cx: Cx, _: NoArgs) -> &'static str {
    for done in 1..=3 {
        cx.progress(f64::from(done), None, LINES);
        cx.log(LogLevel::Info, LINES);
        cx.sleep(format!("pause {done}"), Duration::from_millis(30)).await;
    }
    LINES
}

fn streaming() -> Client {
    let client = client(builder().tool("lines", "Emits", lines).logging());
    client.with_progress().log_level(LogLevel::Debug)
}

#[tokio::test]
async fn sse_04_to_08_one_message_to_an_event_and_nothing_else() {
    let client = streaming();
    let request = client.request("tools/call", json!({ "name": "lines" }));
    let mut response = client.raw(request).await.unwrap();
    assert_eq!(response.headers["content-type"], "text/event-stream");
    assert_eq!(response.headers["x-accel-buffering"], "no");
    let stream = response.text().await.unwrap();
    let events: Vec<_> = stream.strip_suffix("\n\n").unwrap().split("\n\n").collect();
    let messages: Vec<Value> = events
        .iter()
        .map(|event| {
            let data = event.strip_prefix("event: message\ndata: ").expect(event);
            assert!(!data.contains(['\n', '\r']), "one line, no id, no retry: {event}");
            serde_json::from_str(data).unwrap()
        })
        .collect();
    assert_eq!(messages.len(), 7, "three of each, and the response: {stream}");
    let (response, notifications) = messages.split_last().unwrap();
    assert_eq!(response["result"]["content"][0]["text"], LINES);
    for notification in notifications {
        let params = &notification["params"];
        assert_eq!(params.get("message").or_else(|| params.get("data")), Some(&json!(LINES)));
    }
}

#[tokio::test]
async fn sse_10_a_call_whose_stream_was_lost_is_made_anew() {
    let client = streaming();
    let mut lost =
        client.raw(client.request("tools/call", json!({ "name": "lines" }))).await.unwrap();
    lost.next_event().await.unwrap();
    drop(lost);
    let called = client.call("lines", ()).await.unwrap();
    let progress: Vec<_> = called.progress().iter().map(|progress| progress.progress).collect();
    assert_eq!(progress, [1.0, 2.0, 3.0], "from its start");
}
