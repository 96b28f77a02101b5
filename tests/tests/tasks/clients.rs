//! What clients do with tasks, and what they are told.

use mcp_edge::{Cx, NoArgs, RequestError, ServerBuilder, ToolError};
use mcp_edge_test::{Client, Fault, TaskStatus};
use serde_json::json;

use super::{Counter, Text, World, answer, builder, wait_for};

fn asking() -> ServerBuilder {
    builder().tool("t", "Asks as a task", async |cx: Cx, _: NoArgs| {
        cx.background("asking").await;
        let (one, two) = futures_util::join!(
            cx.elicit::<Text>("one", "The first?"),
            cx.elicit::<Text>("two", "The second?"),
        );
        Ok::<_, ToolError>(format!("{} {}", one.required()?.text, two.required()?.text))
    })
}

#[tokio::test(start_paused = true)]
async fn task_01_the_extension_is_advertised_where_there_can_be_tasks() {
    let world = World::default();
    let extensions = async |client: Client| {
        let reply = client.round("server/discover", json!({})).await.unwrap();
        reply.result().unwrap()["capabilities"]["extensions"].clone()
    };
    let advertised = json!({ "io.modelcontextprotocol/tasks": {} });
    assert_eq!(extensions(world.client(builder())).await, advertised);
    assert!(extensions(world.client(builder().anonymous_tasks(false))).await.is_null());
    assert!(extensions(Client::in_process(&world.bare(builder()))).await.is_null());
}

#[tokio::test(start_paused = true)]
async fn task_04_one_tool_gives_one_result_to_clients_with_tasks_and_without() {
    let world = World::default();
    let server = world.instance(asking());
    let answers = |client: Client| {
        let text = |text: &str| json!({ "text": text });
        client.answer("one", text("a")).answer("two", text("b"))
    };
    let with = answers(Client::in_process(&server).with_tasks());
    let with = with.call("t", json!({})).await.unwrap();
    assert!(with.task_id.is_some());
    let without = answers(Client::in_process(&server));
    let without = without.call("t", json!({})).await.unwrap();
    assert_eq!(without.task_id, None);
    let bare = answers(Client::in_process(&world.bare(asking())).with_tasks());
    let bare = bare.call("t", json!({})).await.unwrap();
    assert_eq!(bare.task_id, None);
    for called in [with, without, bare] {
        assert_eq!(called.text(), "a b");
    }
}

#[tokio::test(start_paused = true)]
async fn task_10_a_task_is_there_for_every_instance_at_once() {
    let world = World::default();
    let here = world.client(asking());
    let there = world.client(asking());
    for _ in 0..20 {
        let task = here.start("t", json!({})).await.unwrap();
        let seen = there.task(&task.id).await.unwrap();
        assert_eq!((seen.id, seen.created_at), (task.id, task.created_at));
    }
}

#[tokio::test(start_paused = true)]
async fn task_16_to_18_results_and_failures() {
    let world = World::default();
    let client = world.client(
        builder()
            .tool("tool-error", "", async |cx: Cx, _: NoArgs| {
                cx.background("").await;
                Err::<String, _>(ToolError::new("no luck"))
            })
            .tool("protocol-error", "", async |cx: Cx, _: NoArgs| {
                cx.background("").await;
                let error = RequestError::application(42, "not today");
                Err::<String, _>(ToolError::protocol(error.with_data(json!({ "day": 7 }))))
            })
            .tool("panics", "", async |cx: Cx, _: NoArgs| -> String {
                cx.background("").await;
                panic!("a secret")
            }),
    );
    let called = client.call("tool-error", json!({})).await.unwrap();
    assert_eq!((called.is_error(), called.text()), (true, "no luck".into()));

    let refused = client.call("protocol-error", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(42));
    let task = client.start("protocol-error", json!({})).await.unwrap();
    let task = wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.status_message.as_deref(), Some("not today"));
    let error = json!({ "code": 42, "message": "not today", "data": { "day": 7 } });
    assert_eq!(task.error, Some(error));

    let refused = client.call("panics", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32603));
    assert!(!refused.to_string().contains("secret"), "ERR-08");
}

#[tokio::test(start_paused = true)]
async fn task_19_and_30_answers_may_come_one_by_one_and_other_keys_are_ignored() {
    let world = World::default();
    let client = world.client(asking());
    let task = client.start("t", json!({})).await.unwrap();
    let task = wait_for(&client, &task.id, |task| task.questions.len() == 2).await;
    assert_eq!(task.status, TaskStatus::InputRequired);

    client.update_task(&task.id, json!({ "two": answer("b"), "x": 1 })).await.unwrap();
    let task = client.task(&task.id).await.unwrap();
    let open: Vec<_> = task.questions.iter().map(|question| question.key.as_str()).collect();
    assert_eq!((task.status, open), (TaskStatus::InputRequired, vec!["one"]));

    // An answer that was given stays what it is.
    client.update_task(&task.id, json!({ "two": answer("c") })).await.unwrap();
    client.update_task(&task.id, json!({ "one": answer("a") })).await.unwrap();
    assert_eq!(client.follow(&task).await.unwrap().text(), "a b");
}

#[tokio::test(start_paused = true)]
async fn task_31_an_answer_of_the_wrong_shape_is_refused_and_nothing_is_stored() {
    let world = World::default();
    let client = world.client(asking());
    let task = client.start("t", json!({})).await.unwrap();
    let task = wait_for(&client, &task.id, |task| task.questions.len() == 2).await;
    let written = world.store.written().len();
    let wrong = [
        json!(7),
        json!({ "action": "maybe" }),
        json!({ "action": "accept", "content": { "text": 7 } }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept" }),
    ];
    for wrong in wrong {
        let answers = json!({ "one": answer("a"), "two": wrong });
        let refused = client.update_task(&task.id, answers).await.unwrap_err();
        assert_eq!(refused.code(), Some(-32602), "{wrong}");
        assert!(refused.to_string().contains("two"), "{refused}");
    }
    assert_eq!(world.store.written().len(), written);
    let same = client.task(&task.id).await.unwrap();
    assert_eq!(same.questions.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn task_32_a_task_at_rest_ends_at_once_when_it_is_cancelled() {
    let world = World::default();
    let client = world.client(asking());
    let task = client.start("t", json!({})).await.unwrap();
    wait_for(&client, &task.id, |task| task.questions.len() == 2).await;
    client.cancel_task(&task.id).await.unwrap();
    let ended = client.task(&task.id).await.unwrap();
    assert_eq!((ended.status, ended.status_message), (TaskStatus::Cancelled, None));
    // Once more, and an answer that comes too late.
    client.cancel_task(&task.id).await.unwrap();
    client.update_task(&task.id, json!({ "one": answer("a") })).await.unwrap();
    assert_eq!(client.task(&task.id).await.unwrap().status, TaskStatus::Cancelled);
    let ended = client.follow(&task).await.unwrap_err();
    assert!(matches!(ended.fault(), Fault::Cancelled), "{ended}");
}

#[tokio::test(start_paused = true)]
async fn task_33_methods_need_the_declaration_before_anything_else() {
    let world = World::default();
    let client = Client::in_process(&world.instance(asking()));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": "nonsense", "inputResponses": {} });
        let reply = client.round(method, params).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.code()), (400, Some(-32021)), "{method}");
    }
    for wrong in [json!({ "taskId": 7 }), json!({})] {
        let reply = client.round("tasks/get", wrong).await.unwrap();
        assert_eq!(reply.code(), Some(-32021));
    }
    assert_eq!(world.store.reads(), 0);
}

#[tokio::test(start_paused = true)]
async fn task_39_removed_methods_are_unknown() {
    let client = World::default().client(asking());
    for method in ["tasks/list", "tasks/result"] {
        let reply = client.round(method, json!({ "taskId": "x" })).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.code()), (404, Some(-32601)), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn task_11_questions_before_a_task_are_asked_before_it_and_two_retries_make_one_task() {
    let (world, started) = (World::default(), Counter::default());
    let seen = started.clone();
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            let who = cx.elicit::<Text>("who", "Who?").await.required()?.text;
            cx.background("working").await;
            let times = cx.step("effect", async || Ok::<_, ToolError>(seen.bump())).await?;
            Ok::<_, ToolError>(format!("{who} {times}"))
        }
    }));
    let asked = client.round("tools/call", json!({ "name": "t", "arguments": {} })).await.unwrap();
    let answers = json!({ "who": answer("Ada") });
    let (one, two) = futures_util::join!(
        client.retry(&asked, answers.clone()),
        client.retry(&asked, answers.clone()),
    );
    let (one, two) = (one.unwrap().task().unwrap(), two.unwrap().task().unwrap());
    assert_eq!(one.id, two.id, "the id is sealed once");
    assert_eq!(client.follow(&one).await.unwrap().text(), "Ada 1");
    let late = client.retry(&asked, answers).await.unwrap().task().unwrap();
    assert_eq!((late.id, late.status), (one.id, TaskStatus::Completed));
    assert_eq!(started.get(), 1);
}
