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
