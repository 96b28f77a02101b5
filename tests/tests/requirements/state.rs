//! STATE: nothing is kept between two requests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mcp_edge::{Cx, NoArgs, ToolError, protocol::LogLevel};

use super::*;

#[tokio::test]
async fn state_01_nothing_of_an_earlier_request_counts() {
    for client in [contract(), behind_a_socket(mcp_edge_tests::server().unwrap()).await] {
        let rich = client.clone().log_level(LogLevel::Debug).with_progress();
        let bare = client.clone().capabilities(json!({}));
        let version = "io.modelcontextprotocol/protocolVersion";
        for _ in 0..2 {
            let asked = rich.round("tools/call", json!({ "name": "ask" })).await.unwrap();
            assert!(asked.is_input_required());
            let refused = bare.round("tools/call", json!({ "name": "ask" })).await.unwrap();
            assert_eq!(refused.code(), Some(-32021), "META-08");
            let loud = rich.round("tools/call", json!({ "name": "emit" })).await.unwrap();
            assert_eq!(loud.notifications.len(), 6);
            let silent = bare.round("tools/call", json!({ "name": "emit" })).await.unwrap();
            assert!(silent.notifications.is_empty());
            let other = json!({ "_meta": { (version): "1999-01-01" } });
            let other = client.request("tools/list", other);
            let other = header(other, "mcp-protocol-version", Some("1999-01-01"));
            assert_eq!(refusal(&client, other).await, (400, -32022), "VER-05");
        }
    }
}

#[tokio::test]
async fn state_04_what_a_call_did_is_known_to_its_own_state_alone() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = Arc::clone(&counted);
        async move {
            let n = cx.once("n", async || runs.fetch_add(1, Ordering::SeqCst) + 1).await;
            cx.elicit::<Text>("q", "?").await.required()?;
            Ok::<_, ToolError>(n.to_string())
        }
    };
    let client = client(builder().tool("t", "Counts, then asks", tool));
    let ask = || client.round("tools/call", json!({ "name": "t" }));
    let (first, second) = (ask().await.unwrap(), ask().await.unwrap());
    let answer = json!({ "q": accepted("x") });
    assert_eq!(text(&client.retry(&second, answer.clone()).await.unwrap()), "2");
    assert_eq!(text(&client.retry(&first, answer.clone()).await.unwrap()), "1");
    let without = json!({ "name": "t", "inputResponses": answer });
    let without = client.round("tools/call", without).await.unwrap();
    assert_eq!(text(&without), "3", "without its state it is a new call");
}

#[tokio::test]
async fn state_05_lists_are_the_same_for_every_connection_and_after_anything() {
    async fn lists(client: &Client) -> Value {
        json!([
            client.list_tools().await.unwrap(),
            client.list_prompts().await.unwrap(),
            client.list_resources().await.unwrap(),
            client.list_templates().await.unwrap(),
        ])
    }
    let server = mcp_edge_tests::server().unwrap();
    let (client, other) = (Client::in_process(&server), behind_a_socket(server).await);
    let before = lists(&client).await;
    for what in ["tools", "prompts", "resources", "test://text"] {
        client.call("touch", json!({ "what": what })).await.unwrap();
    }
    client.round("tools/call", json!({ "name": "ask" })).await.unwrap();
    let _ = client.call("fail", json!({ "how": "panic" })).await;
    assert_eq!(lists(&client).await, before);
    assert_eq!(lists(&other).await, before);
    assert_eq!(lists(&contract()).await, before, "TOOL-04: on another instance too");
}
