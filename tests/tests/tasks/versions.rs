//! Fleets of which some instances have a newer version of a tool than others (rule 7).

use mcp_edge::{Cx, NoArgs, Server, ServerBuilder, ToolError};
use mcp_edge_test::{Client, TaskStatus};
use serde_json::json;

use super::{Text, World, answer, builder, seconds, wait_for};

/// The tool in a version. The second one accepts what the first one began.
fn version(version: u32) -> ServerBuilder {
    builder().tool_with(
        "t",
        "",
        move |cx: Cx, _: NoArgs| async move {
            cx.background("").await;
            let one = cx.step("one", async || Ok::<_, ToolError>(version)).await?;
            let name = cx.elicit::<Text>("name", "Who?").await.required()?.text;
            let two = cx.step("two", async || Ok::<_, ToolError>(version)).await?;
            Ok::<_, ToolError>(format!("{name} {one} {two}"))
        },
        |tool| if version == 1 { tool } else { tool.version(version).accepts(1..=version) },
    )
}

async fn asked(client: &Client) -> mcp_edge_test::Task {
    let task = client.start("t", json!({})).await.unwrap();
    wait_for(client, &task.id, |task| !task.questions.is_empty()).await
}

#[tokio::test(start_paused = true)]
async fn a_newer_version_finishes_what_it_accepts() {
    let world = World::default();
    let old = world.client(version(1));
    let task = asked(&old).await;
    let new = world.idle(version(2));
    let client = Client::in_process(&new).with_tasks();
    client.update_task(&task.id, json!({ "name": answer("Ada") })).await.unwrap();
    world.advance(&new).await;
    assert_eq!(client.follow(&task).await.unwrap().text(), "Ada 1 2");
}

#[tokio::test(start_paused = true)]
async fn an_older_version_gives_back_what_a_newer_one_began() {
    let world = World::default();
    let (old, new) = (world.idle(version(1)), world.idle(version(2)));
    let client = Client::in_process(&new).with_tasks();
    let task = client.start("t", json!({})).await.unwrap();
    world.advance(&new).await;
    let through_old = Client::in_process(&old).with_tasks();
    through_old.update_task(&task.id, json!({ "name": answer("Ada") })).await.unwrap();
    let writes = world.store.written().len();
    for _ in 0..10 {
        world.advance(&old).await; // it rests in between
    }
    assert_eq!(world.store.written().len(), writes + 1);
    for _ in 0..20 {
        world.advance(&old).await;
        seconds(2).await;
    }
    assert_eq!(through_old.task(&task.id).await.unwrap().status, TaskStatus::Working);
    seconds(2).await;
    world.advance(&new).await;
    assert_eq!(through_old.follow(&task).await.unwrap().text(), "Ada 2 2");
}

#[tokio::test(start_paused = true)]
async fn both_side_by_side_finish_every_task() {
    let world = World::default();
    let (old, new): (Server, Server) = (world.instance(version(1)), world.instance(version(2)));
    for (begins, answers) in [(&old, &new), (&new, &old), (&old, &old), (&new, &new)] {
        let begins = Client::in_process(begins).with_tasks();
        let answers = Client::in_process(answers).with_tasks();
        let task = asked(&begins).await;
        answers.update_task(&task.id, json!({ "name": answer("Ada") })).await.unwrap();
        // What the older one gives back, a sweep of the newer one finds.
        let task = loop {
            seconds(1).await;
            for key in new.sweep_tasks(&mcp_edge_test::TestPlatform::new()).await.unwrap() {
                let platform = std::sync::Arc::new(mcp_edge_test::TestPlatform::new());
                new.advance(&key, platform).await.unwrap();
            }
            let task = answers.task(&task.id).await.unwrap();
            if task.status.is_terminal() {
                break task;
            }
        };
        let text = task.result.unwrap()["content"][0]["text"].clone();
        assert!(["Ada 1 1", "Ada 1 2", "Ada 2 2"].iter().any(|known| text == **known), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_journal_that_is_not_accepted_fails_with_the_remedy() {
    let world = World::default();
    let old = world.client(version(1));
    let task = asked(&old).await;
    let new =
        world.idle(builder().tool_with("t", "", async |_: NoArgs| "new", |tool| tool.version(3)));
    let client = Client::in_process(&new).with_tasks();
    client.update_task(&task.id, json!({ "name": answer("Ada") })).await.unwrap();
    world.advance(&new).await;
    let task = wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(task.status, TaskStatus::Failed);
    let error = task.error.unwrap();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("call it anew"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_the_tool_gives_the_task_back() {
    let world = World::default();
    let client = Client::in_process(&world.idle(version(1))).with_tasks();
    let task = client.start("t", json!({})).await.unwrap();
    let without = world.idle(builder());
    for _ in 0..10 {
        world.advance(&without).await;
        seconds(2).await;
    }
    assert_eq!(client.task(&task.id).await.unwrap().status, TaskStatus::Working);
    let with = world.idle(version(1));
    world.advance(&with).await;
    let asked = client.task(&task.id).await.unwrap();
    assert_eq!(asked.questions.len(), 1);
}
