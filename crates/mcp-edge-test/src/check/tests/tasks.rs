//! What is refused of tasks. A state is sound, but for the members that a case puts into it.

use super::*;
use crate::{TaskStatus, transport::Scripted};

const CREATED_AT: &str = "2026-07-28T12:00:00Z";

/// The members of a sound task, and of `members`; those that are null there are left out.
fn task(members: Value) -> Value {
    let mut task = json!({
        "taskId": "t", "status": "working", "createdAt": CREATED_AT, "lastUpdatedAt": CREATED_AT,
        "ttlMs": 60_000, "pollIntervalMs": 500,
    });
    for (name, value) in members.as_object().unwrap() {
        task[name] = value.clone();
    }
    task.as_object_mut().unwrap().retain(|name, value| name == "ttlMs" || !value.is_null());
    task
}

fn created(members: Value) -> Value {
    let mut task = task(members);
    task["resultType"] = json!("task");
    task
}

fn shown(members: Value) -> Value {
    let mut task = task(members);
    task["resultType"] = json!("complete");
    task
}

fn asking(requests: Value) -> Value {
    shown(json!({"status": "input_required", "inputRequests": requests}))
}

fn completed(result: Value) -> Value {
    shown(json!({"status": "completed", "result": result}))
}

fn failed(error: Value) -> Value {
    shown(json!({"status": "failed", "error": error}))
}

fn question() -> Value {
    form(json!({}))
}

fn scripted(results: impl IntoIterator<Item = Value>) -> Client {
    Client::over(Scripted::new(results)).with_tasks()
}

async fn start(result: Value) -> Result<crate::Task, CallError> {
    scripted([result]).start("tool", ()).await
}

async fn get(result: Value) -> Result<crate::Task, CallError> {
    scripted([result]).task("t").await
}

/// Asks for the same task again and again; returns what the last answer gave.
async fn gets(results: impl IntoIterator<Item = Value>) -> Result<crate::Task, CallError> {
    let results: Vec<_> = results.into_iter().collect();
    let (client, polls) = (scripted(results.clone()), results.len());
    for _ in 1..polls {
        client.task("t").await.unwrap();
    }
    client.task("t").await
}

#[tokio::test]
async fn task_02_no_task_without_the_declaration() {
    let client = Client::over(Scripted::new([created(json!({}))]));
    assert_refused(client.call("tool", ()).await, "TASK-02");
    let client = scripted([created(json!({}))]);
    assert_refused(round(&client, "prompts/get").await, "TASK-05");
    start(created(json!({}))).await.unwrap();
}

#[tokio::test]
async fn task_09_a_new_task_is_flat_and_has_all_members() {
    for (members, part) in [
        (json!({"task": {}}), "TASK-09"),
        (json!({"status": "completed", "result": {"content": []}}), "TASK-09"),
        (json!({"status": "failed", "error": {"code": 1, "message": ""}}), "TASK-09"),
        (json!({"status": "input_required", "inputRequests": question()}), "TASK-09"),
        (json!({"requestState": "s"}), "TASK-09"),
        (json!({"ttl": 1}), "TASK-09"),
        (json!({"pollInterval": 1}), "TASK-09"),
        (json!({"taskId": null}), "TASK-09"),
        (json!({"taskId": 7}), "TASK-09"),
        (json!({"createdAt": null}), "TASK-09"),
        (json!({"lastUpdatedAt": null}), "TASK-09"),
        (json!({"statusMessage": 1}), "statusMessage"),
    ] {
        assert_refused(start(created(members)).await, part);
    }
    let mut endless = created(json!({}));
    endless.as_object_mut().unwrap().remove("ttlMs");
    assert_refused(start(endless).await, "TASK-09");
    let members = json!({"ttlMs": null, "pollIntervalMs": null, "statusMessage": "Begins"});
    let task = start(created(members)).await.unwrap();
    assert_eq!((task.id.as_str(), task.status), ("t", TaskStatus::Working));
    assert_eq!((task.ttl_ms, task.poll_interval_ms), (None, None));
    assert_eq!(task.status_message.as_deref(), Some("Begins"));
    assert_eq!((task.created_at.as_str(), task.last_updated_at.as_str()), (CREATED_AT, CREATED_AT));
}

#[tokio::test]
async fn task_09_times_are_iso_8601_and_in_order() {
    for (created_at, updated_at) in [
        (json!(1_785_196_800), json!(CREATED_AT)),
        (json!("yesterday"), json!(CREATED_AT)),
        (json!(CREATED_AT), json!("2026-07-28T12:00:00")),
        (json!(CREATED_AT), json!("2026-07-28T11:59:59.999Z")),
        (json!(CREATED_AT), json!("2026-07-28T13:59:59+02:00")),
    ] {
        let members = json!({"createdAt": created_at, "lastUpdatedAt": updated_at});
        assert_refused(start(created(members.clone())).await, "TASK-09");
        assert_refused(get(shown(members)).await, "TASK-09");
    }
    let later = json!({"lastUpdatedAt": "2026-07-28T14:00:00.001+02:00"});
    start(created(later.clone())).await.unwrap();
    get(shown(later)).await.unwrap();
}

#[tokio::test]
async fn task_12_ids_fit_in_a_header_as_they_are() {
    for id in ["", "a b", "é", "a\n", &"x".repeat(513)] {
        assert_refused(start(created(json!({"taskId": id}))).await, "TASK-12");
    }
    start(created(json!({"taskId": "x".repeat(512)}))).await.unwrap();
}

#[tokio::test]
async fn task_14_intervals_are_above_zero() {
    for (name, value) in [
        ("ttlMs", json!(0)),
        ("ttlMs", json!(-1)),
        ("ttlMs", json!(0.5)),
        ("ttlMs", json!("60000")),
        ("ttlMs", json!(1_u64 << 53)),
        ("pollIntervalMs", json!(0)),
        ("pollIntervalMs", json!(-1)),
        ("pollIntervalMs", json!("1")),
    ] {
        let members = json!({ name: value });
        assert_refused(start(created(members.clone())).await, "TASK-14");
        assert_refused(get(shown(members)).await, "TASK-14");
    }
    for name in ["ttl", "pollInterval"] {
        assert_refused(get(shown(json!({ name: 1 }))).await, "TASK-14");
    }
}

#[tokio::test]
async fn task_15_there_are_five_statuses() {
    for status in [json!(null), json!("submitted"), json!("Working"), json!(1)] {
        assert_refused(start(created(json!({"status": status}))).await, "TASK-15");
        assert_refused(get(shown(json!({"status": status}))).await, "TASK-15");
    }
    for status in ["working", "input_required", "completed", "failed", "cancelled"] {
        let task = start(created(json!({"status": status}))).await.unwrap();
        assert_eq!(task.status.to_string(), status);
    }
}

#[tokio::test]
async fn task_15_an_end_never_changes() {
    let done = || completed(json!({"content": []}));
    let cancelled = || shown(json!({"status": "cancelled"}));
    for later in [
        shown(json!({})),
        asking(question()),
        cancelled(),
        failed(json!({"code": 1, "message": "m"})),
        completed(json!({"content": [], "isError": true})),
    ] {
        assert_refused(gets([done(), later]).await, "TASK-15");
    }
    assert_refused(gets([cancelled(), done()]).await, "TASK-15");
    let failed_with = |message: &str| failed(json!({"code": 1, "message": message}));
    assert_refused(gets([failed_with("a"), failed_with("b")]).await, "TASK-15");

    let client = scripted([created(json!({"status": "completed"})), shown(json!({}))]);
    client.start("tool", ()).await.unwrap();
    assert_refused(client.clone().task("t").await, "TASK-15");

    let mut later = done();
    later["statusMessage"] = json!("Kept for a while");
    later["ttlMs"] = json!(1);
    later["lastUpdatedAt"] = json!("2026-07-28T12:30:00Z");
    gets([shown(json!({})), asking(question()), shown(json!({})), done(), later]).await.unwrap();
}

#[tokio::test]
async fn task_16_a_completed_task_has_what_the_call_would_have_returned() {
    for (result, part) in [
        (json!(null), "TASK-16"),
        (json!("done"), "TASK-16"),
        (json!({}), "content"),
        (json!({"content": [{"type": "x"}]}), "TOOL-16"),
        (json!({"content": [], "isError": 1}), "isError"),
        (json!({"content": [], "_meta": 1}), "_meta"),
        (json!({"content": [], "resultType": "input_required"}), "TASK-16"),
        (json!({"content": [], "resultType": "task"}), "TASK-08"),
    ] {
        assert_refused(get(completed(result)).await, part);
    }
    for result in [
        json!({"content": []}),
        json!({"content": [], "resultType": "complete", "_meta": {"a.b/c": 1}}),
        json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
    ] {
        assert_eq!(get(completed(result.clone())).await.unwrap().result, Some(result));
    }
}

#[tokio::test]
async fn task_17_a_failed_task_has_its_error() {
    for error in [
        json!(null),
        json!("failed"),
        json!({"message": "m"}),
        json!({"code": "-32603", "message": "m"}),
        json!({"code": -32603}),
        json!({"code": -32000, "message": "m"}),
    ] {
        assert_refused(get(failed(error)).await, "TASK-17");
    }
    let error = json!({"code": -32603, "message": "m", "data": [1]});
    assert_eq!(get(failed(error.clone())).await.unwrap().error, Some(error));
}

#[tokio::test]
async fn task_18_result_and_error_are_never_together() {
    let (result, error) = (json!({"content": []}), json!({"code": 1, "message": "m"}));
    for status in ["completed", "failed"] {
        let members = json!({"status": status, "result": result, "error": error});
        assert_refused(get(shown(members)).await, "TASK-18");
    }
    let members = json!({"status": "completed", "result": result, "inputRequests": {}});
    assert_refused(get(shown(members)).await, "TASK-18");
}

#[tokio::test]
async fn task_19_a_task_that_asks_lists_its_questions() {
    for (requests, part) in [
        (json!(null), "TASK-19"),
        (json!([]), "TASK-19"),
        (json!({}), "TASK-19"),
        (json!({"k": {"method": "ping"}}), "MRTR-05"),
        (json!({"k": {"method": "roots/list", "id": 1}}), "MRTR-03"),
        (form(json!({"message": null})), "ELIC-01"),
    ] {
        assert_refused(get(asking(requests)).await, part);
    }
    let mut both = asking(question());
    both["result"] = json!({"content": []});
    assert_refused(get(both).await, "TASK-19");
    let task = get(asking(question())).await.unwrap();
    assert_eq!(task.status, TaskStatus::InputRequired);
    assert_eq!((task.questions[0].key.as_str(), task.questions[0].message()), ("k", "m"));
}

#[tokio::test]
async fn task_20_a_key_stands_for_one_question() {
    let other = asking(form(json!({"message": "another"})));
    assert_refused(gets([asking(question()), shown(json!({})), other]).await, "TASK-20");
    // Until the answer has arrived everywhere, the question may still be there (TASK-29).
    gets([asking(question()), asking(question())]).await.unwrap();
}

#[tokio::test]
async fn task_21_other_states_carry_nothing() {
    for status in ["working", "cancelled"] {
        for (name, value) in [
            ("result", json!({"content": []})),
            ("error", json!({"code": 1, "message": "m"})),
            ("inputRequests", question()),
        ] {
            assert_refused(get(shown(json!({"status": status, name: value}))).await, "TASK-21");
        }
        get(shown(json!({"status": status}))).await.unwrap();
    }
    assert_refused(get(shown(json!({"requestState": "s"}))).await, "TASK-11");
}

#[tokio::test]
async fn task_22_the_beginning_does_not_change() {
    let earlier = shown(json!({"createdAt": "2026-07-28T11:00:00Z"}));
    assert_refused(gets([shown(json!({})), earlier]).await, "TASK-22");
}

#[tokio::test]
async fn task_23_the_creating_request_says_what_may_be_asked() {
    let client = || scripted([created(json!({})), asking(question())]);
    let modest = client().capabilities(json!({"roots": {}}));
    modest.start("tool", ()).await.unwrap();
    let able = modest.capabilities(json!({"elicitation": {}}));
    assert_refused(able.task("t").await, "TASK-23");

    let able = client().capabilities(json!({"elicitation": {}}));
    able.start("tool", ()).await.unwrap();
    able.capabilities(json!({})).task("t").await.unwrap();
    // Who did not create it cannot know.
    scripted([asking(question())]).capabilities(json!({})).task("t").await.unwrap();
}

#[tokio::test]
async fn task_24_the_task_is_the_one_asked_for() {
    for id in [json!("T"), json!("other"), json!(null)] {
        assert_refused(get(shown(json!({"taskId": id}))).await, "TASK-24");
    }
    assert_refused(get(created(json!({}))).await, "TASK-05");
    let mut unmarked = task(json!({}));
    assert_refused(get(unmarked.clone()).await, "BASE-09");
    unmarked["resultType"] = json!("input_required");
    assert_refused(get(unmarked).await, "MRTR-02");
}

#[tokio::test]
async fn task_26_the_result_does_not_name_its_task() {
    let meta = json!({"io.modelcontextprotocol/related-task": {"taskId": "t"}});
    assert_refused(get(completed(json!({"content": [], "_meta": meta}))).await, "TASK-26");
}

#[tokio::test]
async fn task_28_and_32_acknowledgements_are_empty() {
    let update = async |result| scripted([result]).update_task("t", json!({})).await;
    let cancel = async |result| scripted([result]).cancel_task("t").await;
    for (name, value) in [("taskId", json!("t")), ("status", json!("working")), ("x", json!(1))] {
        let result = json!({"resultType": "complete", name: value});
        assert_refused(update(result.clone()).await, "TASK-28");
        assert_refused(cancel(result).await, "TASK-32");
    }
    assert_refused(update(json!({})).await, "BASE-09");
    assert_refused(cancel(json!({})).await, "BASE-09");
    let info = json!({"name": "s", "version": "1"});
    let meta = json!({"io.modelcontextprotocol/serverInfo": info});
    for result in
        [json!({"resultType": "complete"}), json!({"resultType": "complete", "_meta": meta})]
    {
        update(result.clone()).await.unwrap();
        cancel(result).await.unwrap();
    }
}

#[tokio::test]
async fn task_35_no_progress_and_no_log_of_tasks() {
    let progress = notification(
        "notifications/progress",
        json!({"progressToken": "progress-1", "progress": 1}),
    );
    let log = notification("notifications/message", json!({"level": "error", "data": 1}));
    for message in [progress, log] {
        let client = client([events(&[message, result(shown(json!({})))])]);
        let client = client.with_tasks().with_progress().log_level(LogLevel::Debug);
        assert_refused(client.task("t").await, "TASK-35");
    }
    client([events(&[result(shown(json!({})))])]).task("t").await.unwrap();
}

#[tokio::test]
async fn task_42_tasks_carry_no_caching_fields() {
    assert_refused(get(shown(json!({"cacheScope": "private"}))).await, "TASK-42");
}

/// A stream that listens to the tasks `t` and `u`, and the first of which is acknowledged.
async fn listen(client: &Client) -> crate::Listening {
    client.listen(json!({"taskIds": ["t", "u"], "toolsListChanged": true})).await.unwrap()
}

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn stream(messages: &[(&str, Value)]) -> Client {
    let acknowledged = json!({"notifications": {"taskIds": ["t"], "toolsListChanged": true}});
    let acknowledged = [("subscriptions/acknowledged", acknowledged)];
    let messages = acknowledged.iter().chain(messages).map(|(method, params)| {
        let mut params = params.clone();
        params["_meta"] = json!({ TAG: 1 });
        notification(&format!("notifications/{method}"), params)
    });
    client([events(&messages.collect::<Vec<_>>())]).with_tasks()
}

#[tokio::test]
async fn sub_05_only_tasks_that_were_asked_for_are_acknowledged() {
    let acknowledged = json!({"taskIds": ["t", "x"]});
    let acknowledged = json!({"notifications": acknowledged, "_meta": {TAG: 1}});
    let stream = events(&[notification("notifications/subscriptions/acknowledged", acknowledged)]);
    let outcome = client([stream]).with_tasks().listen(json!({"taskIds": ["t", "u"]})).await;
    assert_refused(outcome, "SUB-05");
}

#[tokio::test]
async fn task_34_a_stream_tells_of_tasks_as_they_are() {
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    let done = task(json!({"status": "completed", "result": result}));
    for (params, part) in [
        (task(json!({"taskId": "u"})), "SUB-05"),
        (task(json!({"taskId": null})), "SUB-05"),
        (shown(json!({})), "TASK-34"),
        (task(json!({"status": "completed"})), "TASK-16"),
        (task(json!({"ttl": 1})), "TASK-14"),
        (task(json!({"cacheScope": "public"})), "TASK-42"),
    ] {
        let mut listening = listen(&stream(&[("tasks", params)])).await;
        assert_refused(listening.try_next_task().await, part);
    }
    for method in ["progress", "message"] {
        let mut listening = listen(&stream(&[(method, json!({}))])).await;
        assert_refused(listening.try_next_task().await, "SUB-11");
    }
    let again = [("tasks", done.clone()), ("tasks", task(json!({})))];
    let mut listening = listen(&stream(&again)).await;
    listening.next_task().await.unwrap();
    assert_refused(listening.try_next_task().await, "TASK-15");

    let news = [("tools/list_changed", json!({})), ("tasks", task(json!({}))), ("tasks", done)];
    let mut listening = listen(&stream(&news)).await;
    assert_eq!(listening.next_task().await.unwrap().status, TaskStatus::Working);
    let ended = listening.next_task().await.unwrap();
    assert!(ended.status.is_terminal());
    assert_eq!(ended.result, Some(result));
    assert_eq!(listening.next_task().await, None);
}

#[tokio::test]
async fn a_stream_and_polls_tell_of_the_same_task() {
    let stale = task(json!({}));
    let cancelled = task(json!({"status": "cancelled"}));
    let done = completed(json!({"content": []}));
    let news = stream(&[("tasks", stale), ("tasks", cancelled)]);
    let mut listening = listen(&news).await;
    let polling = Client { door: scripted([done]).door, ..news.clone() };
    polling.task("t").await.unwrap();
    // It was sent before the task ended.
    assert_eq!(listening.next_task().await.unwrap().status, TaskStatus::Working);
    assert_refused(listening.try_next_task().await, "TASK-15");
}
