//! Arguments, results and answers are what their schemas say.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use mcp_edge::{
    Cx, Json, KeyRing, NoArgs, RawArgs, Server, ToolError, ToolOptions, protocol::ToolResult,
};
use mcp_edge_test::Client;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Order {
    #[schemars(range(min = 1))]
    #[allow(dead_code)]
    count: u32,
    #[schemars(length(min = 1))]
    #[allow(dead_code)]
    name: String,
}

fn server(result: Value, options: impl FnOnce(ToolOptions) -> ToolOptions) -> Server {
    let result = move |_: RawArgs| {
        let result = result.clone();
        async move { ToolResult::structured(result) }
    };
    Server::builder("validation", "1.0.0")
        .tool("order", "Takes a type", |_: Order| async { "ordered" })
        .tool_with(
            "trusting",
            "Trusts its type",
            |_: Order| async { "ordered" },
            |tool| tool.without_validation(),
        )
        .tool_with(
            "raw",
            "Takes what its schema says",
            |_: RawArgs| async { "fine" },
            |tool| {
                tool.input_schema(json!({
                    "type": "object",
                    "properties": {
                        "items": { "type": "array", "items": { "type": "integer", "minimum": 1 } },
                        "email": { "type": "string", "pattern": "^[^@]+@[^@]+$" },
                    },
                    "required": ["items"],
                    "additionalProperties": false,
                }))
            },
        )
        .tool_with("result", "Gives what it is told to", result, |tool| {
            options(tool.input_schema(json!({ "type": "object" })).output_schema(json!({
                "type": "object",
                "properties": { "sum": { "type": "integer" } },
                "required": ["sum"],
            })))
        })
        .build()
        .unwrap()
}

async fn call(server: &Server, tool: &str, arguments: Value) -> (bool, String) {
    let called = Client::in_process(server).call(tool, arguments).await.unwrap();
    (called.is_error(), called.text())
}

#[tokio::test]
async fn tool_15_the_model_reads_every_fault_with_place_expectation_and_finding() {
    let server = server(json!({}), |tool| tool);
    let (is_error, text) =
        call(&server, "raw", json!({ "items": [1, 0, "two"], "email": "nobody", "more": 1 })).await;
    assert!(is_error);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Invalid arguments:");
    for (place, found) in [("/items/1", "0"), ("/items/2", "\"two\""), ("/email", "nobody")] {
        let line = lines.iter().find(|line| line.starts_with(place));
        assert!(line.is_some_and(|line| line.contains(found)), "{place}: {text}");
    }
    assert!(text.contains("more"), "{text}");
    assert_eq!(call(&server, "raw", json!({ "items": [1] })).await, (false, "fine".to_owned()));
    assert!(call(&server, "raw", json!({})).await.0, "required");
}

#[tokio::test]
async fn what_a_type_does_not_check_its_schema_does() {
    let server = server(json!({}), |tool| tool);
    assert!(!call(&server, "order", json!({ "count": 1, "name": "x" })).await.0);
    let (is_error, text) = call(&server, "order", json!({ "count": 0, "name": "" })).await;
    assert!(is_error && text.contains("/count") && text.contains("/name"), "{text}");
    assert!(!call(&server, "trusting", json!({ "count": 0, "name": "" })).await.0);
    assert!(call(&server, "trusting", json!({ "count": "x", "name": "" })).await.0, "its type");
}

#[tokio::test]
async fn tool_12_a_structured_result_is_what_its_schema_says() {
    let good = server(json!({ "sum": 3 }), |tool| tool);
    assert_eq!(call(&good, "result", json!({})).await, (false, "{\"sum\":3}".to_owned()));
    let bad = server(json!({ "sum": "three" }), |tool| tool);
    let error = Client::in_process(&bad).call("result", json!({})).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32603), "Internal error"));
    let unchecked = server(json!({ "sum": "three" }), |tool| tool.check_output(false));
    assert!(!call(&unchecked, "result", json!({})).await.0);
}

#[tokio::test]
async fn a_47_error_results_need_no_structured_content_and_others_do() {
    let tool = |args: RawArgs| async move {
        if args.get().contains("error") { ToolResult::error("no") } else { ToolResult::text("x") }
    };
    let server = Server::builder("s", "1")
        .tool_with("t", "T", tool, |tool| {
            tool.input_schema(json!({ "type": "object" }))
                .output_schema(json!({ "type": "object" }))
        })
        .build()
        .unwrap();
    assert_eq!(call(&server, "t", json!({ "error": true })).await, (true, "no".to_owned()));
    let missing = Client::in_process(&server).call("t", json!({})).await.unwrap_err();
    assert_eq!(missing.code(), Some(-32603));
}

#[tokio::test]
async fn typed_results_are_checked_in_debug_builds_and_on_request() {
    #[derive(Serialize, JsonSchema)]
    struct Lies {
        #[serde(serialize_with = "lie")]
        count: u32,
    }
    fn lie<S: serde::Serializer>(_: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("not a number")
    }
    let tool = |_: NoArgs| async { Json(Lies { count: 1 }) };
    let server = Server::builder("s", "1")
        .tool_with("checked", "Checked", tool, |tool| tool.check_output(true))
        .tool("default", "Checked in debug builds", tool)
        .build()
        .unwrap();
    let client = Client::in_process(&server);
    assert_eq!(client.call("checked", ()).await.unwrap_err().code(), Some(-32603));
    assert_eq!(client.call("default", ()).await.is_err(), cfg!(debug_assertions));
}

#[tokio::test]
async fn elic_13_answers_are_checked_against_the_form_that_was_shown() {
    #[derive(Deserialize, JsonSchema)]
    struct Age {
        #[schemars(range(min = 18))]
        age: u32,
    }
    let tool = |cx: Cx, _: NoArgs| async move {
        Ok::<_, ToolError>(cx.elicit::<Age>("age", "How old?").await.required()?.age.to_string())
    };
    let server = Server::builder("s", "1")
        .tool("t", "Asks", tool)
        .sealer(KeyRing::new(1, &[7; 32]))
        .build()
        .unwrap();
    let client = Client::in_process(&server);
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    for age in [json!(17), json!("18"), json!(18.5), json!(null)] {
        let answer = json!({ "age": { "action": "accept", "content": { "age": age } } });
        let again = client.retry(&first, answer).await.unwrap();
        assert!(again.is_input_required() || again.code() == Some(-32602), "{age}");
    }
    let answer = json!({ "age": { "action": "accept", "content": { "age": 18 } } });
    let last = client.retry(&first, answer).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "18");
}

#[test]
fn schema_05_and_08_schemas_that_cannot_be_applied_fail_the_build() {
    for (schema, names) in [
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object" }),
            "$schema",
        ),
        (json!({ "type": "object", "$ref": "https://example.com/other" }), "$ref"),
        (json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }), "pattern"),
        (json!({ "type": "object", "required": "a" }), "required"),
    ] {
        let fault = Server::builder("s", "1")
            .tool_with("t", "T", |_: RawArgs| async { "" }, |tool| tool.input_schema(schema))
            .build()
            .unwrap_err()
            .to_string();
        assert!(fault.contains("tool `t`: its input schema") && fault.contains(names), "{fault}");
    }
    let unknown = json!({ "type": "object", "x-vendor": { "anything": [1] } });
    let server = Server::builder("s", "1").tool_with(
        "t",
        "T",
        |_: RawArgs| async { "" },
        |tool| tool.input_schema(unknown),
    );
    assert!(server.build().is_ok(), "unknown keywords pass untouched");
}
