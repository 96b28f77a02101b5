//! MRTR: questions over several requests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mcp_edge::{Cx, NoArgs, ToolError};

use super::*;

#[tokio::test]
async fn mrtr_03_the_shape_of_a_question_round() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let (text, roots) = futures_util::join!(cx.elicit::<Text>("q", "Why?"), cx.roots("r"));
        Ok::<_, ToolError>(format!("{}{}", text.required()?.text, roots.len()))
    };
    let client = client(builder().tool("t", "Asks", tool).without_server_info());
    let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let mut result = reply.result().unwrap().clone();
    let state = result.as_object_mut().unwrap().remove("requestState").unwrap();
    assert!(state.as_str().is_some_and(|state| !state.is_empty()));
    assert_eq!(
        result,
        json!({ "resultType": "input_required", "inputRequests": {
            "q": { "method": "elicitation/create", "params": {
                "mode": "form", "message": "Why?", "requestedSchema": { "type": "object",
                    "properties": { "text": { "type": "string" } }, "required": ["text"] } } },
            "r": { "method": "roots/list" },
        } })
    );
}

#[tokio::test]
async fn mrtr_16_a_state_tells_the_client_nothing() {
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.step("quote", async || Ok::<_, ToolError>("plain-secret".to_owned())).await?;
        Ok::<_, ToolError>(cx.elicit::<Text>("question", "?").await.required()?.text)
    };
    let client = client(builder().tool("t", "Asks", tool));
    let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let state = URL_SAFE_NO_PAD.decode(reply.request_state().unwrap()).unwrap();
    for hidden in ["plain-secret", "quote", "question", "tools/call"] {
        let found = state.windows(hidden.len()).any(|window| window == hidden.as_bytes());
        assert!(!found, "{hidden}");
    }
}

#[tokio::test]
async fn mrtr_22_nothing_is_held_for_a_client_that_may_never_answer() {
    struct Held(Arc<AtomicUsize>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let held = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&held);
    let tool = move |cx: Cx, _: NoArgs| {
        counted.fetch_add(1, Ordering::SeqCst);
        let held = Held(Arc::clone(&counted));
        async move {
            let _held = held;
            let (text, _) = futures_util::join!(cx.elicit::<Text>("q", "?"), cx.roots("r"));
            Ok::<_, ToolError>(text.required()?.text)
        }
    };
    let client = client(builder().tool("t", "Asks", tool));
    for _ in 0..10 {
        let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
        assert!(reply.is_input_required());
        assert_eq!(held.load(Ordering::SeqCst), 0, "the handler is gone with the response");
    }
}

#[tokio::test]
async fn mrtr_30_a_retry_passes_every_check_again() {
    let client = contract();
    let mut params = json!({ "name": "ask", "arguments": {} });
    let first = client.round("tools/call", params.clone()).await.unwrap();
    params["requestState"] = json!(first.request_state());
    params["inputResponses"] =
        json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let retry = || client.request("tools/call", params.clone());
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    for (request, expected) in [
        (retry(), (200, 0)),
        (header::<str>(retry(), "mcp-name", None), (400, -32020)),
        (header(retry(), "mcp-method", Some("tools/list")), (400, -32020)),
        (header::<str>(retry(), "mcp-protocol-version", None), (400, -32020)),
        (header(retry(), "origin", Some("https://evil.example")), (403, -32600)),
        (header(retry(), "accept", Some("text/html")), (406, -32600)),
        (
            edit(retry(), |body| {
                body["params"]["_meta"].as_object_mut().unwrap().remove(capabilities);
            }),
            (400, -32602),
        ),
        // It asks a second time, which this client can no longer answer.
        (edit(retry(), |body| body["params"]["_meta"][capabilities] = json!({})), (400, -32021)),
    ] {
        assert_eq!(refusal(&client, request).await, expected);
    }
}
