//! BASE: JSON-RPC and results.

use std::time::Duration;

use futures_util::future::join_all;
use mcp_edge::Cx;

use super::*;

/// A request of each method, and the type of its result.
fn each_method() -> Vec<(&'static str, Value, &'static str)> {
    let prompt = json!({ "type": "ref/prompt", "name": "greet" });
    vec![
        ("server/discover", json!({}), "complete"),
        ("tools/list", json!({}), "complete"),
        ("prompts/list", json!({}), "complete"),
        ("resources/list", json!({}), "complete"),
        ("resources/templates/list", json!({}), "complete"),
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }), "complete"),
        ("tools/call", json!({ "name": "add" }), "complete"),
        ("tools/call", json!({ "name": "ask" }), "input_required"),
        ("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } }), "complete"),
        ("resources/read", json!({ "uri": "test://bytes" }), "complete"),
        ("resources/read", json!({ "uri": "test://asks" }), "input_required"),
        (
            "completion/complete",
            json!({ "ref": prompt, "argument": { "name": "name", "value": "" } }),
            "complete",
        ),
    ]
}

#[tokio::test]
async fn base_07_callers_may_use_one_id_at_once() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Which {
        n: u8,
    }
    let late = |cx: Cx, which: Which| async move {
        cx.sleep("a moment", Duration::from_millis(20)).await;
        which.n.to_string()
    };
    let client = client(builder().tool("late", "Answers late", late));
    let calls = (0..8).map(|n| {
        let params = json!({ "name": "late", "arguments": { "n": n } });
        send(&client, edit(client.request("tools/call", params), |body| body["id"] = json!(1)))
    });
    for (n, (_, answer)) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["result"]["content"][0]["text"], n.to_string());
    }
}

#[tokio::test]
async fn base_09_and_10_and_meta_07_each_result_has_its_type_and_the_servers_name() {
    // A client that could hold tasks gets none from a server that advertises none.
    let capabilities = json!({ "elicitation": {},
        "extensions": { "io.modelcontextprotocol/tasks": {}, "com.example/x": {} } });
    for client in [contract(), contract().capabilities(capabilities)] {
        for (method, params, result_type) in each_method() {
            let reply = client.round(method, params.clone()).await.unwrap();
            let result = reply.result().unwrap();
            assert_eq!(result["resultType"], result_type, "{method} {params}");
            let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(info, &json!({ "name": "contract", "version": "1.0.0" }), "{method}");
        }
    }
}

#[tokio::test]
async fn base_12_messages_are_one_short_sentence() {
    let client = contract();
    let long = "x".repeat(10_000);
    let mut requests = vec![
        client.request(&long, json!({})),
        client.request("tools/list", json!({ "cursor": long })),
        client.request("tools/call", json!({ "name": long })),
        client.request("tools/call", json!({ "name": "ask", "requestState": long })),
        client.request("prompts/get", json!({ "name": long })),
        client.request("resources/read", json!({ "uri": format!("test://{long}") })),
        client.request("completion/complete", json!({ "ref": { "type": long } })),
        client.request("tools/list", json!({ "_meta": { (VERSION): long } })),
        client.request("tools/list", json!({ "_meta": { (LEVEL): long } })),
        header(client.request("tools/list", json!({})), "mcp-method", Some(&long)),
        header(client.request("tools/list", json!({})), "content-type", Some(&long)),
    ];
    for body in [format!("{{\"{long}"), format!("\"{long}\""), format!("{{\"{long}\":1}}")] {
        let mut request = client.request("tools/list", json!({}));
        *request.body_mut() = body.into();
        requests.push(request);
    }
    for request in requests {
        let (_, answer) = send(&client, request).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!((1..=200).contains(&message.len()) && !message.contains('\n'), "{message}");
    }
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

#[tokio::test]
async fn base_15_a_server_with_nothing_still_speaks_the_base_protocol() {
    let client = client(Server::builder("empty", "1.0.0"));
    assert_eq!(client.discover().await.unwrap().capabilities, json!({}));
    let listening = client.listen(json!({ "toolsListChanged": true })).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({}));
}
