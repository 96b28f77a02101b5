//! TASK: calls that outlive their request. Most of it is proven in `tests/tasks` and in the contract.

use mcp_edge::{CompletionRequest, Cx, InProcessFeed, NoArgs};
use mcp_edge_tests::Tokens;

use super::*;

/// Tells whether the call became a task.
async fn background(cx: &Cx) -> String {
    format!("a task: {}", cx.background("Working").await)
}

async fn work(cx: Cx, _: NoArgs) -> String {
    background(&cx).await
}

async fn greet(cx: Cx, _: Text) -> String {
    background(&cx).await
}

#[tokio::test]
async fn task_05_tools_alone_become_tasks() {
    let complete = |cx: Cx, _: CompletionRequest| async move { vec![background(&cx).await] };
    let server = builder()
        .tool("t", "Goes on", work)
        .prompt_with("p", "Goes on", greet, |prompt| prompt.complete("text", complete))
        .resource("test://r", "r", work)
        .anonymous_tasks(true);
    let server = mcp_edge_test::with_tasks(server.build().unwrap());
    let client = Client::in_process(&server).with_tasks();
    let call = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    assert_eq!(call.result().unwrap()["resultType"], "task");
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    for (method, params) in [
        ("prompts/get", json!({ "name": "p", "arguments": { "text": "x" } })),
        ("resources/read", json!({ "uri": "test://r" })),
        (
            "completion/complete",
            json!({ "ref": reference, "argument": { "name": "text", "value": "" } }),
        ),
    ] {
        let reply = client.round(method, params).await.unwrap();
        let result = reply.result().unwrap();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert!(result.to_string().contains("a task: false"), "{result}");
    }
}

#[tokio::test]
async fn task_37_each_request_about_a_task_is_its_owners() {
    let server = builder().tool("t", "Goes on", async |cx: Cx, _: NoArgs| {
        cx.background("Working").await;
        cx.elicit::<Text>("q", "What?").await.required().map(|answer| answer.text)
    });
    let server = server.authenticator(Tokens).public_url("https://mcp.example.com/mcp");
    let server = server.build().unwrap().with_change_feed(InProcessFeed::default());
    let server = mcp_edge_test::with_tasks(server);
    let client = Client::in_process(&server).with_tasks();
    let owner = client.clone().bearer("https://login.example.com/ada@one");
    let task = owner.start("t", json!({})).await.unwrap();
    let params = json!({ "taskId": task.id, "inputResponses": { "q": accepted("x") } });
    let methods = ["tasks/get", "tasks/update", "tasks/cancel"];
    for method in methods {
        let (status, _) = send(&client, client.request(method, params.clone())).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{method}");
    }
    for other in [
        "https://login.example.com/eve@one",
        "https://login.example.com/ada@two",
        "https://login.example.com/ada",
        "https://other.example.com/ada@one",
        "ada@one",
    ] {
        let other = client.clone().bearer(other);
        for method in methods {
            let reply = other.round(method, params.clone()).await.unwrap();
            let error = json!({ "code": -32602, "message": "Unknown task" });
            assert_eq!((reply.status.as_u16(), reply.error()), (200, Some(&error)), "{method}");
        }
        let listening = other.listen(json!({ "taskIds": [task.id] })).await.unwrap();
        assert_eq!(listening.acknowledged(), &json!({}), "TASK-34");
    }
    let listening = owner.listen(json!({ "taskIds": [task.id] })).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({ "taskIds": [task.id] }));
    let owner = owner.answer("q", json!({ "text": "mine" }));
    assert_eq!(owner.follow(&task).await.unwrap().text(), "mine");
}
