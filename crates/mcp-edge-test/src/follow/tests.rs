//! Tasks, followed by what a script says of them.

#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::transport::Scripted;

fn state(status: &str, members: Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t", "status": status, "ttlMs": null,
        "createdAt": "2026-07-28T12:00:00Z", "lastUpdatedAt": "2026-07-28T12:00:00Z",
    });
    task.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    task
}

fn created(status: &str, members: Value) -> Value {
    let mut task = state(status, members);
    task["resultType"] = json!("task");
    task
}

fn completed(result: Value) -> Value {
    state("completed", json!({ "result": result }))
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn questions(keys: &[&str]) -> Value {
    let question = |key: &&str| {
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": format!("{key}?"), "requestedSchema": schema});
        ((*key).to_owned(), json!({"method": "elicitation/create", "params": params}))
    };
    keys.iter().map(question).collect()
}

fn asking(keys: &[&str]) -> Value {
    state("input_required", json!({"inputRequests": questions(keys)}))
}

fn acknowledged() -> Value {
    json!({"resultType": "complete"})
}

fn scripted(results: impl IntoIterator<Item = Value>) -> (Client, Scripted) {
    let script = Scripted::new(results);
    (Client::over(script.clone()).with_tasks(), script)
}

fn params(script: &Scripted, index: usize) -> Value {
    let body: Value = serde_json::from_slice(script.requests()[index].body()).unwrap();
    body["params"].clone()
}

#[tokio::test]
async fn each_request_declares_tasks_and_names_its_own() {
    let (client, script) = scripted([
        created("working", json!({})),
        state("working", json!({})),
        acknowledged(),
        acknowledged(),
    ]);
    let client = client.capabilities(json!({"roots": {}}));
    let task = client.start("tool", json!({"a": 1})).await.unwrap();
    client.task(&task.id).await.unwrap();
    client.update_task(&task.id, json!({"k": {"action": "cancel"}})).await.unwrap();
    client.cancel_task(&task.id).await.unwrap();
    assert_eq!(script.methods(), ["tools/call", "tasks/get", "tasks/update", "tasks/cancel"]);
    let declared = json!({"roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    for (index, request) in script.requests().iter().enumerate() {
        assert_eq!(request.headers()["mcp-name"], if index == 0 { "tool" } else { "t" });
        let meta = &params(&script, index)["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], declared);
    }
    assert_eq!(params(&script, 1)["taskId"], "t");
    assert_eq!(params(&script, 2)["inputResponses"], json!({"k": {"action": "cancel"}}));
}

#[tokio::test]
async fn other_extensions_stay_declared() {
    let (client, _) = scripted([]);
    let extensions = json!({"a/b": {}, "io.modelcontextprotocol/tasks": {"c": 1}});
    for (capabilities, declared) in [
        (json!({"extensions": extensions}), json!({"extensions": extensions})),
        (json!([]), json!([])),
        (json!({"extensions": 1}), json!({"extensions": 1})),
    ] {
        let request = client.clone().capabilities(capabilities).request("tools/list", Value::Null);
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let meta = &body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], declared);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_until_its_task_has_ended() {
    let mut result = text("done");
    result["structuredContent"] = json!({"n": 7});
    let (client, script) = scripted([
        created("working", json!({"pollIntervalMs": 200})),
        state("working", json!({"pollIntervalMs": 60_000})),
        state("working", json!({})),
        completed(result.clone()),
    ]);
    let begin = Instant::now();
    let called = client.call("tool", ()).await.unwrap();
    assert_eq!(begin.elapsed(), Duration::from_millis(200 + 5000 + 1000));
    assert_eq!(script.methods(), ["tools/call", "tasks/get", "tasks/get", "tasks/get"]);
    assert_eq!((called.text().as_str(), called.is_error()), ("done", false));
    assert_eq!(called.structured::<Value>().unwrap(), json!({"n": 7}));
    assert_eq!((called.raw, called.polls), (result, 3));
    assert_eq!(called.task_id.as_deref(), Some("t"));
}

#[tokio::test]
async fn a_call_may_be_done_at_once() {
    let mut result = text("done");
    result["resultType"] = json!("complete");
    let (client, _) = scripted([result.clone(), result]);
    let called = client.call("tool", ()).await.unwrap();
    assert_eq!((called.text().as_str(), called.task_id, called.polls), ("done", None, 0));
    let error = client.start("tool", ()).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::NotATask);
}

#[tokio::test(start_paused = true)]
async fn a_task_may_begin_with_its_end() {
    let (client, _) = scripted([created("completed", json!({})), completed(text("done"))]);
    let begin = Instant::now();
    assert_eq!(client.call("tool", ()).await.unwrap().text(), "done");
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_failed_is_a_result_and_a_failed_task_is_an_error() {
    let mut result = text("no");
    result["isError"] = json!(true);
    let (client, _) = scripted([created("working", json!({})), completed(result)]);
    assert!(client.call("tool", ()).await.unwrap().is_error());

    let error = json!({"code": -32603, "message": "It broke", "data": {"a": 1}});
    let failed = state("failed", json!({ "error": error }));
    let (client, _) = scripted([created("working", json!({})), failed]);
    let error = client.call("tool", ()).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32603), "It broke"));
    assert_eq!(error.data(), Some(&json!({"a": 1})));
    assert_eq!(error.status(), Some(StatusCode::OK));
    assert!(error.to_string().contains("> Mcp-Method: tasks/get"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_says_so() {
    for (members, text) in [
        (json!({}), "the task t was cancelled"),
        (json!({"statusMessage": "Too late"}), "the task t was cancelled: Too late"),
    ] {
        let (client, _) = scripted([created("working", json!({})), state("cancelled", members)]);
        let error = client.call("tool", ()).await.unwrap_err();
        assert_eq!((error.fault(), error.message()), (&Fault::Cancelled, text));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_started_can_be_followed_later() {
    let (client, _) = scripted([created("working", json!({})), completed(text("done"))]);
    let task = client.start("tool", ()).await.unwrap();
    assert_eq!(client.follow(&task).await.unwrap().text(), "done");

    let (client, script) = scripted([completed(text("done"))]);
    let task = client.task("t").await.unwrap();
    assert_eq!(client.follow(&task).await.unwrap().polls, 0);
    assert_eq!(script.methods(), ["tasks/get"]);
}

#[tokio::test(start_paused = true)]
async fn task_20_a_question_answered_by_hand_is_not_answered_again() {
    let (client, script) =
        scripted([asking(&["a"]), acknowledged(), asking(&["a"]), completed(text("done"))]);
    let client = client.on_question(|question| panic!("{} was answered by hand", question.key));
    let task = client.task("t").await.unwrap();
    let answers = json!({"a": task.questions[0].decline()});
    client.update_task("t", answers).await.unwrap();
    let called = client.follow(&task).await.unwrap();
    assert_eq!((called.text().as_str(), called.questions().len()), ("done", 0));
    assert_eq!(script.methods(), ["tasks/get", "tasks/update", "tasks/get", "tasks/get"]);
}

#[tokio::test(start_paused = true)]
async fn task_20_each_question_is_answered_once() {
    let (client, script) = scripted([
        created("input_required", json!({})),
        asking(&["a", "b"]),
        acknowledged(),
        asking(&["a", "b"]), // the answers are still on their way (TASK-29)
        asking(&["b", "c"]),
        acknowledged(),
        state("working", json!({})),
        completed(text("done")),
    ]);
    let client = client.answer("a", json!({"x": 1})).decline("b").cancel("c");
    let called = client.call("tool", ()).await.unwrap();
    assert_eq!((called.text().as_str(), called.questions()), ("done", vec!["a", "b", "c"]));
    assert_eq!((called.rounds.len(), called.polls), (2, 5));
    let first = json!({"a": {"action": "accept", "content": {"x": 1}}, "b": {"action": "decline"}});
    assert_eq!(params(&script, 2)["inputResponses"], first);
    assert_eq!(params(&script, 5)["inputResponses"], json!({"c": {"action": "cancel"}}));
}

#[tokio::test(start_paused = true)]
async fn questions_before_the_task_belong_to_the_call() {
    let ask = json!({"resultType": "input_required", "inputRequests": questions(&["a"])});
    let answered = |client: Client| client.decline("a").decline("b");
    let (client, script) = scripted([
        ask.clone(),
        created("working", json!({})),
        asking(&["b"]),
        acknowledged(),
        completed(text("done")),
    ]);
    let called = answered(client).call("tool", ()).await.unwrap();
    assert_eq!(called.questions(), ["a", "b"]);
    assert_eq!(script.methods()[..3], ["tools/call", "tools/call", "tasks/get"]);

    let (client, _) = scripted([ask, created("working", json!({})), asking(&["a"])]);
    let error = answered(client).call("tool", ()).await.unwrap_err();
    assert!(error.is_refusal() && error.message().contains("TASK-11"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn questions_without_an_answer_and_without_an_end_fail() {
    let script = || [created("input_required", json!({})), asking(&["a"])];
    let (client, _) = scripted(script());
    let error = client.call("tool", ()).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Unanswered { key: "a".to_owned() });
    assert!(error.to_string().contains("a?"), "{error}");
    let (client, _) = scripted(script());
    let error = client.decline("a").max_rounds(0).call("tool", ()).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::TooManyRounds);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_is_given_up() {
    let states = std::iter::repeat_n(state("working", json!({})), MAX_POLLS);
    let (client, _) = scripted(std::iter::once(created("working", json!({}))).chain(states));
    let error = client.call("tool", ()).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Unfinished);
    assert!(error.message().contains("still working"), "{error}");
}
