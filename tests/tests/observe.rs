//! What is seen from outside: spans, log lines, hooks, and the trace context.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_edge::{
    CallInfo, CallOutcome, Cx, JsonLog, KeyRing, RequestError, Server, Timestamp, ToolError,
};
use mcp_edge_test::Client;
use mcp_edge_tests::edit;
use serde::Deserialize;
use serde_json::{Value, json};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-aaf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[derive(Deserialize, schemars::JsonSchema)]
struct Args {
    how: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Answer {
    #[allow(dead_code)]
    secret_answer: String,
}

async fn tool(cx: Cx, args: Args) -> Result<String, ToolError> {
    match args.how.as_str() {
        "tool_error" => Err(ToolError::new("no")),
        "error" => Err(RequestError::application(7, "no").into()),
        "ask" => Ok(cx.elicit::<Answer>("q", "?").await.required().map(|_| String::new())?),
        "endless" => std::future::pending().await,
        "trace" => Ok(cx.trace_context().map_or("none", |trace| trace.trace_id()).to_owned()),
        how => Ok(how.to_owned()),
    }
}

type Seen = Arc<Mutex<Vec<String>>>;

fn server() -> (Server, Seen) {
    let seen = Seen::default();
    let hook = Arc::clone(&seen);
    let server = Server::builder("observed", "1.0.0")
        .tool("t", "The tool under test", tool)
        .sealer(KeyRing::new(1, &[7; 32]))
        .around_call(move |call: &CallInfo<'_>, outcome: CallOutcome, took: Duration| {
            let line = format!("{} {} {outcome} {}", call.method, call.name, took.as_millis());
            hook.lock().unwrap().push(line);
        })
        .build()
        .unwrap();
    (server, seen)
}

fn params(how: &str) -> Value {
    json!({ "name": "t", "arguments": { "how": how } })
}

#[tokio::test(start_paused = true)]
async fn a_hook_sees_how_each_call_ended() {
    let (server, seen) = server();
    let client = Client::in_process(&server);
    for how in ["fine", "tool_error", "error", "ask"] {
        client.round("tools/call", params(how)).await.unwrap();
    }
    let endless = client.round("tools/call", params("endless"));
    let _ = tokio::time::timeout(Duration::from_millis(1500), endless).await;
    client.round("tools/list", json!({})).await.unwrap();
    client.round("tools/call", json!({ "name": "unknown" })).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "tools/call t complete 0",
            "tools/call t tool_error 0",
            "tools/call t error 7 0",
            "tools/call t input_required 0",
            "tools/call t cancelled 1500",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_sees_calls_that_end_on_a_stream() {
    let (server, seen) = server();
    let client = Client::in_process(&server);
    let mut response = client.raw(client.request("tools/call", params("endless"))).await.unwrap();
    assert!(seen.lock().unwrap().is_empty(), "it goes on");
    response.bytes().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["tools/call t error -32603 60000"], "cut by its limit");
    let response = client.raw(client.request("tools/call", params("endless"))).await.unwrap();
    drop(response);
    assert_eq!(seen.lock().unwrap()[1], "tools/call t cancelled 2000");
}

#[tokio::test]
async fn trace_02_the_context_in_meta_wins_and_an_ill_formed_one_is_ignored() {
    let (server, _) = server();
    for (meta, header, seen) in [
        (Some(json!(PARENT)), Some(OTHER), "4bf92f3577b34da6a3ce929d0e0e4736"),
        (None, Some(OTHER), "aaf92f3577b34da6a3ce929d0e0e4736"),
        (Some(json!("nonsense")), Some(OTHER), "none"),
        (Some(json!(7)), None, "none"),
        (None, Some("nonsense"), "none"),
        (None, None, "none"),
    ] {
        let mut client = Client::in_process(&server);
        if let Some(header) = header {
            client = client.header("traceparent", header);
        }
        let mut params = params("trace");
        if let Some(meta) = meta {
            params["_meta"] = json!({ "traceparent": meta });
        }
        let reply = client.round("tools/call", params).await.unwrap();
        assert_eq!(reply.result().unwrap()["content"][0]["text"], seen);
    }
}

/// Runs something with a log at level info, and returns the lines.
async fn logged(run: impl Future<Output = ()>) -> Vec<Value> {
    use tracing::instrument::WithSubscriber as _;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&lines);
    let log = JsonLog::new(
        tracing::Level::INFO,
        || Timestamp::from_millis(7),
        move |line| {
            written.lock().unwrap().push(serde_json::from_str(line).unwrap());
        },
    );
    run.with_subscriber(log).await;
    lines.lock().unwrap().clone()
}

#[tokio::test]
async fn a_request_is_one_line_with_method_name_outcome_duration_and_trace() {
    let (server, _) = server();
    let client = Client::in_process(&server).header("traceparent", PARENT);
    let lines = logged(async {
        client.round("tools/call", params("fine")).await.unwrap();
        client.round("tools/list", json!({})).await.unwrap();
        client.round("unknown", json!({})).await.unwrap();
    })
    .await;
    let spans: Vec<&Value> = lines.iter().map(|line| &line["spans"][0]).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0]["message"], "answered");
    let call = json!({ "span": "request", "name": "t", "method": "tools/call", "outcome": "complete",
        "duration_ms": 0, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "parent_id": "00f067aa0ba902b7" });
    assert_eq!(spans[0].as_object().unwrap().len(), 7);
    for (field, value) in call.as_object().unwrap() {
        assert_eq!(spans[0][field], *value, "{field}");
    }
    assert_eq!(
        (&spans[1]["method"], &spans[1]["outcome"]),
        (&json!("tools/list"), &json!("complete"))
    );
    assert_eq!(spans[2]["outcome"], "error -32601");
}

#[tokio::test]
async fn a_method_that_the_client_made_up_is_cut_before_it_is_logged() {
    let (server, _) = server();
    let client = Client::in_process(&server);
    let lines = logged(async {
        let method = format!("a{}", "é".repeat(1000));
        let request = edit(client.request("tools/list", json!({})), |body| {
            body["method"] = json!(method);
        });
        client.raw(request).await.unwrap();
    })
    .await;
    assert_eq!(lines[0]["spans"][0]["method"], json!(format!("a{}", "é".repeat(31))));
    assert!(lines[0].to_string().len() < 1000, "{lines:?}");
}

#[tokio::test]
async fn log_08_no_secret_argument_or_answer_is_in_a_log_at_info() {
    let (server, _) = server();
    let client = Client::in_process(&server).bearer("secret-token");
    let lines = logged(async {
        let first = client.round("tools/call", params("ask")).await.unwrap();
        let answer = json!({ "action": "accept", "content": { "secret_answer": "secret-answer" } });
        client.retry(&first, json!({ "q": answer })).await.unwrap();
        client.round("tools/call", params("secret-argument")).await.unwrap();
        let mut altered = params("ask");
        altered["requestState"] = json!("secret-state");
        client.round("tools/call", altered).await.unwrap();
    })
    .await;
    assert!(lines.len() >= 4);
    let text = format!("{lines:?}");
    for secret in ["secret-token", "secret-answer", "secret-argument", "secret-state"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
