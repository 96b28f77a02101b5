//! ELIC: questions to the user.

use mcp_edge::{Answer, Cx, NoArgs, ToolError};

use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    url: String,
}

async fn open(cx: Cx, page: Page) -> &'static str {
    match cx.elicit_url("page", "Please sign in", page.url).await {
        Answer::Accepted(()) => "agreed to open it",
        Answer::Declined => "declined",
        Answer::Cancelled => "cancelled",
    }
}

#[tokio::test]
async fn elic_07_and_11_a_page_is_opened_by_its_url() {
    let client = client(builder().tool("open", "Opens a page", open));
    for url in ["https://example.com/connect/7f3c", "http://127.0.0.1:3000/x"] {
        let params = json!({ "name": "open", "arguments": { "url": url } });
        let reply = client.round("tools/call", params).await.unwrap();
        assert_eq!(
            reply.result().unwrap()["inputRequests"],
            json!({ "page": { "method": "elicitation/create",
                "params": { "mode": "url", "message": "Please sign in", "url": url } } })
        );
        for (action, text_of_it) in
            [("accept", "agreed to open it"), ("decline", "declined"), ("cancel", "cancelled")]
        {
            let answer = json!({ "page": { "action": action } });
            assert_eq!(text(&client.retry(&reply, answer).await.unwrap()), text_of_it);
        }
    }
}

#[tokio::test]
async fn elic_09_a_page_is_https_or_on_this_machine() {
    let client = client(builder().tool("open", "Opens a page", open));
    for url in ["http://example.com/x", "ftp://example.com", "javascript:alert(1)", "/x", ""] {
        let params = json!({ "name": "open", "arguments": { "url": url } });
        assert_eq!(client.round("tools/call", params).await.unwrap().code(), Some(-32603), "{url}");
    }
}

#[tokio::test]
async fn elic_10_answers_hold_text_numbers_flags_and_lists() {
    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    enum Colour {
        Red,
        Blue,
    }
    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Form {
        text: String,
        ratio: f64,
        count: u8,
        yes: bool,
        colours: Vec<Colour>,
    }
    let tool = |cx: Cx, _: NoArgs| async move {
        Ok::<_, ToolError>(format!("{:?}", cx.elicit::<Form>("q", "?").await.required()?))
    };
    let client = client(builder().tool("t", "Asks", tool));
    for (ratio, written) in [(json!(0.5), "0.5"), (json!(2), "2.0")] {
        let content = json!({ "text": "t", "ratio": ratio, "count": 3, "yes": true,
            "colours": ["Red", "Blue"] });
        let called = client.clone().answer("q", content).call("t", ()).await.unwrap();
        let form = format!(
            "Form {{ text: \"t\", ratio: {written}, count: 3, yes: true, colours: [Red, Blue] }}"
        );
        assert_eq!(called.text(), form);
    }
}
