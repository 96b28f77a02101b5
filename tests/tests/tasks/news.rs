//! `notifications/tasks` on listen streams (TASK-34 to TASK-36).

use std::time::Duration;

use mcp_edge::{Cx, NoArgs, ServerBuilder, ToolError};
use mcp_edge_test::{Client, TaskStatus};
use serde_json::json;

use super::{Text, World, answer, builder, wait_for};

fn asking() -> ServerBuilder {
    builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("beginning").await;
        cx.sleep("rest", Duration::from_secs(5)).await;
        cx.background("asking").await;
        let name = cx.elicit::<Text>("name", "Who?").await.required()?.text;
        Ok::<_, ToolError>(format!("Hello, {name}!"))
    })
}

#[tokio::test(start_paused = true)]
async fn task_34_a_listener_follows_a_task_to_its_end_on_another_instance() {
    let world = World::default();
    let (here, there) = (world.client(asking()), world.client(asking()));
    let task = here.start("t", json!({})).await.unwrap();
    let filter = json!({ "taskIds": [task.id, "nonsense", task.id] });
    let mut listening = there.listen(filter).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({ "taskIds": [task.id] }));

    let mut states = Vec::new();
    loop {
        let news = listening.next_task().await.unwrap();
        assert_eq!(news.id, task.id);
        if news.status == TaskStatus::InputRequired {
            let question = &news.questions[0];
            here.update_task(&task.id, json!({ (&question.key): answer("Ada") })).await.unwrap();
        }
        states.push(news.status);
        if news.status.is_terminal() {
            assert_eq!(news.result.unwrap()["content"][0]["text"], "Hello, Ada!");
            break;
        }
    }
    assert!(states.contains(&TaskStatus::InputRequired), "{states:?}");
    assert_eq!(states.last(), Some(&TaskStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn task_36_a_task_that_has_ended_is_told_at_once() {
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        "done"
    }));
    let task = client.start("t", json!({})).await.unwrap();
    wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    let mut listening = client.listen(json!({ "taskIds": [task.id] })).await.unwrap();
    assert_eq!(listening.next_task().await.unwrap().status, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn task_37_a_listener_hears_of_its_own_tasks_alone() {
    let world = World::default();
    let client = world.client(asking());
    let mine = client.start("t", json!({})).await.unwrap();
    let other = client.start("t", json!({})).await.unwrap();
    let mut listening = client.listen(json!({ "taskIds": [mine.id] })).await.unwrap();
    client.cancel_task(&other.id).await.unwrap();
    client.cancel_task(&mine.id).await.unwrap();
    loop {
        let news = listening.next_task().await.unwrap();
        assert_eq!(news.id, mine.id, "the client refuses others too");
        if news.status == TaskStatus::Cancelled {
            break;
        }
    }
    let _ = wait_for(&client, &other.id, |task| task.status.is_terminal()).await;
}

#[tokio::test(start_paused = true)]
async fn sub_18_task_ids_need_the_declaration_and_sub_15_a_bound() {
    let world = World::default();
    let server = world.instance(asking());
    let refused = Client::in_process(&server).listen(json!({ "taskIds": ["x"] })).await;
    assert_eq!(refused.unwrap_err().code(), Some(-32021));
    let client = Client::in_process(&server).with_tasks();
    let many: Vec<_> = (0..257).map(|number| number.to_string()).collect();
    let refused = client.listen(json!({ "taskIds": many })).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32602));
    for wrong in [json!("x"), json!([7]), json!(null)] {
        let refused = client.listen(json!({ "taskIds": wrong })).await.unwrap_err();
        assert_eq!(refused.code(), Some(-32602), "{wrong}");
    }
    let nothing = client.listen(json!({ "taskIds": ["x"] })).await.unwrap();
    assert_eq!(nothing.acknowledged(), &json!({}));
}
