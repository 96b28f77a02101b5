//! META: the metadata of each request.

use mcp_edge::{Capability, Cx, NoArgs};

use super::*;

/// The request with one more member of `_meta`.
fn with(request: Request<Bytes>, key: &str, value: Value) -> Request<Bytes> {
    edit(request, |body| body["params"]["_meta"][key] = value)
}

#[tokio::test]
async fn meta_06_the_name_of_the_client_changes_nothing() {
    let client = contract();
    let add = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    for (method, params) in [("tools/call", add), ("server/discover", json!({}))] {
        let request = edit(client.request(method, params), |body| body["id"] = json!(1));
        let (_, plain) = send(&client, request.clone()).await;
        for info in [
            json!({ "name": "mcp-inspector", "version": "0.1" }),
            json!({ "name": "claude-ai", "version": "1", "title": "x" }),
            json!("somebody"),
        ] {
            let request = with(request.clone(), "io.modelcontextprotocol/clientInfo", info);
            assert_eq!(send(&client, request).await.1, plain);
        }
    }
}

#[tokio::test]
async fn meta_13_nothing_is_assumed_of_the_values_at_other_reserved_keys() {
    let client = contract();
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    for key in [
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/related-task",
        "io.modelcontextprotocol/serverInfo",
        "io.modelcontextprotocol/subscriptionId",
        "io.modelcontextprotocol/whatever-comes",
        "com.mcp.x/y",
        "progressToken",
        "traceparent",
        "tracestate",
        "baggage",
        "ui",
    ] {
        for value in [json!(null), json!(7.5), json!("\u{0}"), json!([[]]), json!({ "a": {} })] {
            let request = with(client.request("tools/call", params.clone()), key, value.clone());
            let (status, answer) = send(&client, request).await;
            assert_eq!(status, 200, "{key} {value}");
            assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 3 }), "{key} {value}");
        }
    }
}

#[tokio::test]
async fn meta_15_what_a_declaration_means() {
    const ALL: [Capability; 7] = [
        Capability::Elicitation,
        Capability::UrlElicitation,
        Capability::Sampling,
        Capability::SamplingContext,
        Capability::SamplingTools,
        Capability::Roots,
        Capability::Tasks,
    ];
    let can = |cx: Cx, _: NoArgs| async move {
        format!("{:?}", ALL.iter().filter(|what| cx.can(**what)).collect::<Vec<_>>())
    };
    let client = client(builder().tool("can", "Tells what the client can", can));
    for (declared, seen) in [
        (json!({}), "[]"),
        (json!({ "elicitation": {} }), "[Elicitation]"),
        (json!({ "elicitation": { "form": {} } }), "[Elicitation]"),
        (json!({ "elicitation": { "url": {} } }), "[UrlElicitation]"),
        (json!({ "elicitation": { "form": {}, "url": {} } }), "[Elicitation, UrlElicitation]"),
        (json!({ "sampling": {} }), "[Sampling]"),
        (
            json!({ "sampling": { "context": {}, "tools": {} } }),
            "[Sampling, SamplingContext, SamplingTools]",
        ),
        (json!({ "roots": { "listChanged": true } }), "[Roots]"),
        (json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }), "[Tasks]"),
        (json!({ "tasks": { "requests": {} }, "experimental": { "roots": {} } }), "[]"),
    ] {
        let client = client.clone().capabilities(declared.clone());
        assert_eq!(client.call("can", ()).await.unwrap().text(), seen, "{declared}");
    }
}
