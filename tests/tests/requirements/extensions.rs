//! EXT: extensions.

use mcp_edge::{Cx, NoArgs, protocol::JsonObject};

use super::*;

#[tokio::test]
async fn ext_01_and_03_a_handler_sees_what_this_request_declares() {
    let quota = |cx: Cx, _: NoArgs| async move {
        cx.extension("com.example/quota")
            .map_or_else(|| "none".to_owned(), |raw| raw.get().to_owned())
    };
    let server = builder().tool("quota", "Tells the quota", quota);
    let server = server.extension("com.example/quota", JsonObject::new()).build().unwrap();
    let client = Client::in_process(&server);
    let found = client.discover().await.unwrap();
    assert_eq!(found.capabilities["extensions"], json!({ "com.example/quota": {} }));
    for (declared, seen) in [
        (json!({ "extensions": { "com.example/quota": { "limit": 3 } } }), r#"{"limit":3}"#),
        (json!({ "extensions": { "com.example/quota": {} } }), "{}"),
        (json!({ "extensions": { "com.example/other": { "limit": 3 } } }), "none"),
        (json!({ "extensions": { "com.example/quota": 7 } }), "none"),
        (json!({}), "none"),
    ] {
        let called = client.clone().capabilities(declared.clone()).call("quota", ()).await.unwrap();
        assert_eq!(called.text(), seen, "{declared}");
    }
}

#[tokio::test]
async fn ext_05_where_tasks_are_off_their_methods_are_unknown_and_their_filter_is_ignored() {
    // It has tools that would go on as tasks, and nobody gave it a store.
    let server = mcp_edge_tests::server().unwrap();
    let client = Client::in_process(&server);
    let found = client.discover().await.unwrap();
    assert_eq!(found.capabilities.get("extensions"), None);
    for client in [client.clone(), client.clone().with_tasks()] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": "x", "inputResponses": {} });
            let reply = client.round(method, params).await.unwrap();
            assert_eq!((reply.status.as_u16(), reply.code()), (404, Some(-32601)), "{method}");
        }
        let called = client.call("work", json!({ "how": "done" })).await.unwrap();
        assert_eq!((called.text().as_str(), called.task_id), ("done", None));
    }
    // SUB-18 holds all the same.
    let filter = json!({ "taskIds": ["x"], "toolsListChanged": true });
    let refused = client.listen(filter.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32021));
    let listening = client.with_tasks().listen(filter).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({ "toolsListChanged": true }));
}
