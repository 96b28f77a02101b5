//! Calls that outlive their request.

use std::time::Duration;

use mcp_edge::protocol::LogLevel;
use mcp_edge_test::{Fault, Framing, Task, TaskStatus};

use super::*;

const METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

/// Begins `work` as a task.
async fn begin(client: &Client, how: &str) -> Task {
    client.start("work", json!({ "how": how })).await.unwrap()
}

/// Looks at a task until it is as `what` says.
pub(super) async fn until(client: &Client, id: &str, what: impl Fn(&Task) -> bool) -> Task {
    for _ in 0..500 {
        let task = client.task(id).await.unwrap();
        if what(&task) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the task never came there: {:?}", client.task(id).await.unwrap());
}

/// A task that a call has come to the end of.
async fn ended(client: &Client, how: &str) -> Task {
    let task = begin(client, how).await;
    until(client, &task.id, |task| task.status.is_terminal()).await
}

/// A task that waits for both answers.
async fn asking(client: &Client) -> Task {
    let task = client.start("survey", json!({})).await.unwrap();
    until(client, &task.id, |task| task.questions.len() == 2).await
}

/// Makes a task in a state, by the name of the state.
pub(super) async fn in_state(client: &Client, status: &str) -> String {
    let client = client.clone().with_tasks();
    let task = match status {
        "working" => begin(&client, "rest").await,
        "input_required" => asking(&client).await,
        "completed" => ended(&client, "done").await,
        "failed" => ended(&client, "protocol").await,
        "cancelled" => {
            let task = begin(&client, "rest").await;
            client.cancel_task(&task.id).await.unwrap();
            until(&client, &task.id, |task| task.status.is_terminal()).await
        }
        _ => panic!("{status} is not the status of a task"),
    };
    assert_eq!(task.status.as_str(), status);
    task.id
}

fn about(id: &str) -> Value {
    json!({ "taskId": id, "inputResponses": {} })
}

fn name(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

fn colour(colour: &str) -> Value {
    json!({ "action": "accept", "content": { "colour": colour } })
}

fn keys(task: &Task) -> Vec<&str> {
    task.questions.iter().map(|question| question.key.as_str()).collect()
}

/// The members of an object, sorted.
fn members(value: &Value) -> Vec<&str> {
    let mut members: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    members
}

async fn result(client: &Client, method: &str, params: Value) -> Value {
    let reply = client.round(method, params).await.unwrap();
    reply.result().unwrap_or_else(|| panic!("no result: {reply}")).clone()
}

/// What a client is told that did not declare tasks.
fn undeclared() -> Value {
    json!({ "requiredCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } })
}

pub async fn task_01_and_06_tasks_are_advertised_as_an_extension_alone(client: &Client) {
    let found = result(client, "server/discover", json!({})).await;
    let capabilities = &found["capabilities"];
    assert_eq!(capabilities["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    assert!(capabilities.get("tasks").is_none(), "TASK-06: {capabilities}");
}

pub async fn task_02_no_task_without_the_declaration_of_this_request(client: &Client) {
    let call = json!({ "name": "work", "arguments": { "how": "done" } });
    let with = client.clone().with_tasks();
    for declared in [
        json!({}),
        json!({ "elicitation": {}, "extensions": {} }),
        json!({ "extensions": { "com.example/tasks": {} } }),
        // TASK-06: the slot of an earlier revision.
        json!({ "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } }),
        json!({ "experimental": { "io.modelcontextprotocol/tasks": {} } }),
    ] {
        assert_eq!(result(&with, "tools/call", call.clone()).await["resultType"], "task");
        let client = client.clone().capabilities(declared.clone());
        let done = result(&client, "tools/call", call.clone()).await;
        assert_eq!(done["resultType"], "complete", "{declared}");
        assert_eq!(done["content"][0]["text"], "done");
        assert!(done.get("taskId").is_none(), "{done}");
        let params = json!({ "name": "nightly", "arguments": {} });
        let refused = client.round("tools/call", params).await.unwrap();
        assert_eq!(refused.code(), Some(-32021), "{declared}");
    }
}

pub async fn task_04_a_tool_that_requires_a_task_is_refused_without_the_declaration(
    client: &Client,
) {
    let call = json!({ "name": "nightly", "arguments": {} });
    let refused = client.round("tools/call", call).await.unwrap();
    assert_eq!((refused.status.as_u16(), refused.code()), (400, Some(-32021)));
    assert_eq!(refused.error().unwrap()["data"], undeclared());
    let called = client.clone().with_tasks().call("nightly", json!({})).await.unwrap();
    assert_eq!(called.text(), "done");
    assert!(called.task_id.is_some());
}

pub async fn task_06_a_legacy_task_member_is_ignored(client: &Client) {
    let with = client.clone().with_tasks();
    for task in [json!({ "ttl": 60_000, "pollInterval": 7 }), json!({}), json!(null), json!(7)] {
        let call = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments, "task": task });
        let added = call("add", json!({ "a": 1, "b": 2 }));
        let added = result(&with, "tools/call", added).await;
        assert_eq!((&added["resultType"], added.get("taskId")), (&json!("complete"), None));
        let work = call("work", json!({ "how": "done" }));
        let done = result(client, "tools/call", work.clone()).await;
        assert_eq!(done["resultType"], "complete");
        let begun = result(&with, "tools/call", work).await;
        assert_eq!(begun["resultType"], "task");
        let times = (&begun["ttlMs"], &begun["pollIntervalMs"]);
        assert_eq!(times, (&json!(86_400_000), &json!(100)), "what the server says");
    }
}

pub async fn task_09_and_13_a_task_begins_flat_and_working(client: &Client) {
    let client = client.clone().with_tasks();
    let work = json!({ "name": "work", "arguments": { "how": "rest" } });
    let reply = client.round("tools/call", work).await.unwrap();
    assert_eq!(reply.framing, Framing::Json);
    let begun = reply.result().unwrap();
    let all = [
        "_meta",
        "createdAt",
        "lastUpdatedAt",
        "pollIntervalMs",
        "resultType",
        "status",
        "statusMessage",
        "taskId",
        "ttlMs",
    ];
    assert_eq!(members(begun), all);
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")));
    assert_eq!(begun["statusMessage"], "Working");
    assert_eq!((&begun["ttlMs"], &begun["pollIntervalMs"]), (&json!(86_400_000), &json!(100)));
    let is_moment = |moment: &Value| {
        let shape: String = moment.as_str().unwrap().chars().map(digit_as_0).collect();
        shape == "0000-00-00T00:00:00.000Z"
    };
    assert!(is_moment(&begun["createdAt"]) && begun["createdAt"] == begun["lastUpdatedAt"]);
    let id = begun["taskId"].as_str().unwrap();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    assert!(id.len() >= 22 && id.bytes().all(is_plain), "TASK-12: {id}");
}

const fn digit_as_0(letter: char) -> char {
    if letter.is_ascii_digit() { '0' } else { letter }
}

pub async fn task_10_a_task_is_there_at_once(client: &Client) {
    let client = client.clone().with_tasks();
    for _ in 0..10 {
        let begun = begin(&client, "rest").await;
        let found = client.task(&begun.id).await.unwrap();
        assert_eq!((found.id, found.created_at), (begun.id, begun.created_at));
    }
}

pub async fn task_11_questions_before_a_task_are_not_those_of_the_task(client: &Client) {
    let client = client.clone().with_tasks();
    let call = json!({ "name": "enrol", "arguments": {} });
    let first = client.round("tools/call", call).await.unwrap();
    assert!(first.is_input_required() && first.request_state().is_some());
    assert!(first.result().unwrap().get("taskId").is_none());
    let second = client.retry(&first, json!({ "name": name("Ada") })).await.unwrap();
    let begun = second.result().unwrap();
    assert_eq!(
        (&begun["resultType"], &begun["statusMessage"]),
        (&json!("task"), &json!("Enrolling Ada"))
    );
    assert!(begun.get("requestState").is_none() && begun.get("inputRequests").is_none());
    let task = second.task().unwrap();
    let asked = until(&client, &task.id, |task| !task.questions.is_empty()).await;
    assert_eq!(keys(&asked), ["colour"]);
    client.update_task(&task.id, json!({ "colour": colour("green") })).await.unwrap();
    let ended = until(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(ended.result.unwrap()["content"][0]["text"], "Ada likes green");
}

pub async fn task_15_to_22_a_task_shows_what_belongs_to_its_state(client: &Client) {
    let client = client.clone().with_tasks();
    let completed = ended(&client, "done").await;
    assert_eq!(completed.status, TaskStatus::Completed);
    let result = completed.result.as_ref().unwrap();
    assert_eq!(result["content"], json!([{ "type": "text", "text": "done" }]));
    assert_eq!((&result["resultType"], result.get("isError")), (&json!("complete"), None));
    assert!(completed.last_updated_at >= completed.created_at, "TASK-22");

    let unlucky = ended(&client, "tool").await;
    assert_eq!(unlucky.status, TaskStatus::Completed, "TASK-18");
    let result = unlucky.result.unwrap();
    let content = (&result["isError"], &result["content"][0]["text"]);
    assert_eq!(content, (&json!(true), &json!("Try tomorrow")), "TASK-16");

    let failed = ended(&client, "protocol").await;
    assert_eq!((failed.status, failed.result), (TaskStatus::Failed, None));
    let error = json!({ "code": 7, "message": "Out of paper", "data": { "tray": 2 } });
    assert_eq!(failed.error.unwrap(), error);
    assert_eq!(failed.status_message.unwrap(), "Out of paper", "TASK-17");

    let panicked = ended(&client, "panic").await;
    let error = json!({ "code": -32603, "message": "Internal error" });
    assert_eq!((panicked.status, panicked.error), (TaskStatus::Failed, Some(error)), "ERR-08");

    // An end is an end.
    let again = client.task(&completed.id).await.unwrap();
    client.cancel_task(&completed.id).await.unwrap();
    let and_again = client.task(&completed.id).await.unwrap();
    assert_eq!((&again, &again), (&completed, &and_again), "TASK-15");
}

pub async fn task_19_and_30_questions_are_answered_one_by_one(client: &Client) {
    let client = client.clone().with_tasks();
    let task = asking(&client).await;
    assert_eq!((task.status, keys(&task)), (TaskStatus::InputRequired, vec!["colour", "name"]));
    let question = &task.questions[1];
    assert_eq!(question.method, "elicitation/create");
    assert_eq!(question.message(), "What is your name?");
    let answers = json!({ "name": name("Ada"), "unknown": 7, "other": name("Eve") });
    client.update_task(&task.id, answers).await.unwrap();
    let half = client.task(&task.id).await.unwrap();
    assert_eq!((half.status, keys(&half)), (TaskStatus::InputRequired, vec!["colour"]));
    // What was answered stays so.
    client.update_task(&task.id, json!({ "name": name("Eve") })).await.unwrap();
    client.update_task(&task.id, json!({ "colour": colour("green") })).await.unwrap();
    let ended = until(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(ended.result.unwrap()["content"][0]["text"], "Ada likes green");
}

pub async fn task_25_one_answer_to_every_id_that_names_nothing(client: &Client) {
    let client = client.clone().with_tasks();
    let id = begin(&client, "rest").await.id;
    let other = if id.ends_with('A') { "B" } else { "A" };
    for wrong in [
        format!("{}{other}", &id[..id.len() - 1]),
        id[..id.len() - 1].to_owned(),
        id[1..].to_owned(),
        format!("{id}A"),
        id.to_ascii_lowercase(),
        "tsk_9QmY3v0bX2c8".to_owned(),
        "../../etc/passwd".to_owned(),
        "x".repeat(5000),
        String::new(),
    ] {
        for method in METHODS {
            let reply = client.round(method, about(&wrong)).await.unwrap();
            let error = json!({ "code": -32602, "message": "Unknown task" });
            assert_eq!((reply.status.as_u16(), reply.error()), (200, Some(&error)), "{wrong}");
        }
    }
    for method in METHODS {
        for params in [json!({}), json!({ "taskId": 7 }), json!({ "taskId": null })] {
            let request = header(client.request(method, params), "mcp-name", Some(b"x"));
            assert_eq!(send(&client, request).await.refusal(), (200, -32602), "{method}");
        }
    }
    assert_eq!(client.task(&id).await.unwrap().status, TaskStatus::Working);
}

pub async fn task_28_and_31_answers_that_are_none_are_refused(client: &Client) {
    let client = client.clone().with_tasks();
    let id = asking(&client).await.id;
    for answers in [
        json!(null),
        json!([]),
        json!("yes"),
        json!({ "name": 7 }),
        json!({ "name": { "action": "perhaps" } }),
        json!({ "name": { "action": "accept", "content": { "name": 7 } } }),
        json!({ "name": { "action": "accept" } }),
        json!({ "name": name("Ada"), "colour": null }),
    ] {
        let params = json!({ "taskId": id, "inputResponses": answers });
        let reply = client.round("tasks/update", params).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.code()), (200, Some(-32602)), "{answers}");
    }
    let reply = client.round("tasks/update", json!({ "taskId": id })).await.unwrap();
    assert_eq!(reply.code(), Some(-32602), "inputResponses is required");
    assert_eq!(client.task(&id).await.unwrap().questions.len(), 2, "nothing of it was taken");
    for answers in [json!({}), json!({ "name": { "action": "decline" } })] {
        let params = json!({ "taskId": id, "inputResponses": answers });
        let taken = result(&client, "tasks/update", params).await;
        assert_eq!(members(&taken), ["_meta", "resultType"], "{taken}");
        assert_eq!(taken["resultType"], "complete");
    }
    client.update_task(&id, json!({ "colour": { "action": "cancel" } })).await.unwrap();
    let ended = until(&client, &id, |task| task.status.is_terminal()).await;
    assert_eq!(ended.result.unwrap()["isError"], true, "MRTR-27");
}

pub async fn task_32_cancelling_is_acknowledged_whatever_the_state(client: &Client) {
    let client = client.clone().with_tasks();
    let resting = begin(&client, "rest").await;
    // Not so: this is for requests (CANC-05).
    let notification = edit(client.request("notifications/cancelled", json!({})), |body| {
        body.as_object_mut().unwrap().remove("id");
        body["params"]["requestId"] = json!(resting.id);
        body["params"]["taskId"] = json!(resting.id);
    });
    assert_eq!(send(&client, notification).await.status, 202);
    assert_eq!(client.task(&resting.id).await.unwrap().status, TaskStatus::Working);
    for (task, status) in [
        (resting, TaskStatus::Cancelled),
        (asking(&client).await, TaskStatus::Cancelled),
        (ended(&client, "done").await, TaskStatus::Completed),
        (ended(&client, "protocol").await, TaskStatus::Failed),
    ] {
        for _ in 0..2 {
            let taken = result(&client, "tasks/cancel", json!({ "taskId": task.id })).await;
            assert_eq!(members(&taken), ["_meta", "resultType"], "{taken}");
            assert_eq!(taken["resultType"], "complete");
        }
        let task = until(&client, &task.id, |task| task.status.is_terminal()).await;
        assert_eq!(task.status, status);
        if status == TaskStatus::Cancelled {
            assert_eq!((&task.result, &task.error), (&None, &None), "TASK-21");
            let refused = client.follow(&task).await.unwrap_err();
            assert!(matches!(refused.fault(), Fault::Cancelled), "{refused}");
            // Answers that come too late change nothing.
            client.update_task(&task.id, json!({ "name": name("Ada") })).await.unwrap();
            assert_eq!(client.task(&task.id).await.unwrap(), task);
        }
    }
}

pub async fn task_33_the_declaration_is_asked_for_before_the_id_is_looked_up(client: &Client) {
    let id = asking(&client.clone().with_tasks()).await.id;
    for method in METHODS {
        let mut answers = Vec::new();
        for id in [id.as_str(), "unknown"] {
            let reply = client.round(method, about(id)).await.unwrap();
            answers.push((reply.status.as_u16(), reply.error().unwrap().clone()));
        }
        assert_eq!(answers[0], answers[1], "{method}");
        let (status, error) = &answers[0];
        assert_eq!((*status, &error["code"], &error["data"]), (400, &json!(-32021), &undeclared()));
        // Nor is it asked for.
        let request = client.request(method, json!({}));
        let request = header(request, "mcp-name", Some(b"x"));
        assert_eq!(send(client, request).await.refusal(), (400, -32021), "{method}");
    }
    for ids in [json!([id]), json!(["unknown"]), json!([])] {
        let refused = client.listen(json!({ "taskIds": ids })).await.unwrap_err();
        assert_eq!(refused.code(), Some(-32021), "SUB-18");
        assert_eq!(refused.data(), Some(&undeclared()));
    }
    let with = client.clone().with_tasks();
    assert_eq!(with.task(&id).await.unwrap().status, TaskStatus::InputRequired);
}

pub async fn task_34_to_36_a_stream_tells_of_the_tasks_that_it_asks_for(client: &Client) {
    let client = client.clone().with_tasks();
    let (mine, over, other) =
        (asking(&client).await, ended(&client, "done").await, begin(&client, "rest").await);
    let filter = json!({ "taskIds": [mine.id, "unknown", over.id, mine.id] });
    let mut listening = client.listen(filter).await.unwrap();
    // The client refuses news of others, and what carries another id than its own.
    assert_eq!(listening.acknowledged(), &json!({ "taskIds": [mine.id, over.id] }));
    client.cancel_task(&other.id).await.unwrap();
    client.update_task(&mine.id, json!({ "name": name("Ada") })).await.unwrap();
    client.update_task(&mine.id, json!({ "colour": colour("green") })).await.unwrap();
    let (mut told, mut last) = (false, None);
    while !told || last.is_none() {
        let task = listening.next_task().await.unwrap();
        if task.id == over.id {
            assert_eq!(task, over, "TASK-36: as `tasks/get` gives it");
            told = true;
        } else if task.status.is_terminal() {
            last = Some(task);
        }
    }
    let last = last.unwrap();
    assert_eq!(last.result.as_ref().unwrap()["content"][0]["text"], "Ada likes green");
    assert_eq!(client.task(&mine.id).await.unwrap(), last, "TASK-34");

    for wrong in [json!("x"), json!([7]), json!(null), json!({})] {
        let refused = client.listen(json!({ "taskIds": wrong })).await.unwrap_err();
        assert_eq!(refused.code(), Some(-32602), "SUB-01: {wrong}");
    }
    let nothing = client.listen(json!({ "taskIds": ["unknown"] })).await.unwrap();
    assert_eq!(nothing.acknowledged(), &json!({}), "SUB-14");
}

pub async fn task_35_no_progress_and_no_logs_of_tasks(client: &Client) {
    let client = client.clone().with_tasks().with_progress().log_level(LogLevel::Debug);
    let call = json!({ "name": "work", "arguments": { "how": "tell" } });
    let begun = client.round("tools/call", call).await.unwrap();
    assert!(begun.notifications.is_empty() && begun.framing == Framing::Json, "{begun}");
    let task = begun.task().unwrap();
    let mut listening = client.listen(json!({ "taskIds": [task.id] })).await.unwrap();
    loop {
        let news = listening.next().await.unwrap();
        assert_eq!(news["method"], "notifications/tasks");
        let task = &news["params"];
        assert!(task.get("resultType").is_none(), "TASK-34");
        match task["status"].as_str().unwrap() {
            "input_required" => {
                assert_eq!(task["statusMessage"], "Half-way");
                let answers = json!({ "name": name("Ada") });
                client.update_task(task["taskId"].as_str().unwrap(), answers).await.unwrap();
            }
            "completed" => break,
            _ => {}
        }
    }
    let called = client.follow(&task).await.unwrap();
    assert_eq!((called.text().as_str(), called.notifications.len()), ("Ada", 0));
}

pub async fn task_39_removed_methods_are_unknown(client: &Client) {
    for client in [client.clone(), client.clone().with_tasks()] {
        let id = ended(&client.clone().with_tasks(), "done").await.id;
        for method in
            ["tasks/list", "tasks/result", "tasks/", "tasks/delete", "notifications/tasks"]
        {
            let reply = client.round(method, json!({ "taskId": id })).await.unwrap();
            assert_eq!((reply.status.as_u16(), reply.code()), (404, Some(-32601)), "{method}");
        }
    }
}

pub async fn task_40_and_hdr_06_the_header_names_the_task(client: &Client) {
    let client = client.clone().with_tasks();
    let (task, other) = (asking(&client).await, begin(&client, "rest").await);
    let id = task.id.as_str();
    let (padded, upper) = (format!(" {id}\t"), id.to_ascii_uppercase());
    for method in METHODS {
        let mut params = about(id);
        params["inputResponses"] = json!({ "name": name("Ada"), "colour": colour("green") });
        for wrong in [None, Some(""), Some("x"), Some(upper.as_str()), Some(other.id.as_str())] {
            let request = client.request(method, params.clone());
            let request = header(request, "mcp-name", wrong.map(str::as_bytes));
            let answer = send(&client, request).await;
            assert_eq!(answer.refusal(), (400, -32020), "{method}: {wrong:?}");
            assert!(answer.json().get("id").is_some(), "HDR-17");
        }
        let mut twice = client.request(method, params);
        let value = twice.headers()["mcp-name"].clone();
        assert_eq!(value, id, "it needs no encoding");
        twice.headers_mut().append("mcp-name", value);
        assert_eq!(send(&client, twice).await.refusal(), (400, -32020), "HDR-14");
    }
    // Nothing of it was done.
    assert_eq!(client.task(id).await.unwrap(), task);
    let request = client.request("tasks/get", about(id));
    assert_eq!(send(&client, header(request, "mcp-name", Some(&padded))).await.status, 200);
}

pub async fn task_42_and_26_nothing_is_stored_and_nothing_said_of_caches(client: &Client) {
    let client = client.clone().with_tasks();
    let mut requests = vec![client.request("tools/call", json!({ "name": "nightly" }))];
    for status in ["working", "input_required", "completed", "failed", "cancelled"] {
        let id = in_state(&client, status).await;
        requests.push(client.request("tasks/get", json!({ "taskId": id })));
    }
    let id = in_state(&client, "working").await;
    requests.push(client.request("tasks/update", about(&id)));
    requests.push(client.request("tasks/cancel", about(&id)));
    requests.push(client.request("tasks/get", about("unknown")));
    for request in requests {
        let about = String::from_utf8_lossy(request.body()).into_owned();
        let answer = send(&client, request).await;
        assert_eq!(answer.header("cache-control"), "no-store", "{about}");
        assert_eq!(answer.header("content-type"), "application/json", "{about}");
        let text = answer.json().to_string();
        for legacy in ["cacheScope", "related-task", "\"ttl\"", "\"pollInterval\"", "\"task\":"] {
            assert!(!text.contains(legacy), "{legacy}: {text}");
        }
    }
}

pub async fn canc_09_a_task_outlives_its_connections(client: &Client) {
    let client = client.clone().with_tasks();
    let id = {
        let request = client.request("tools/call", json!({ "name": "survey" }));
        let request = header(request, "accept", Some("text/event-stream"));
        let mut response = client.raw(request).await.unwrap();
        let event = response.next_event().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&event.data).unwrap();
        message["result"]["taskId"].as_str().unwrap().to_owned()
    };
    drop(client.listen(json!({ "taskIds": [id] })).await.unwrap());
    until(&client, &id, |task| task.questions.len() == 2).await;
    let answers = json!({ "name": name("Ada"), "colour": colour("green") });
    client.update_task(&id, answers).await.unwrap();
    let ended = until(&client, &id, |task| task.status.is_terminal()).await;
    assert_eq!(ended.status, TaskStatus::Completed);
}
