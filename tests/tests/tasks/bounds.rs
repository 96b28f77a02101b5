//! What a task may take, and what happens beyond it.

use std::time::Duration;

use mcp_edge::{Cx, Limits, NoArgs, ToolError};
use mcp_edge_test::{Client, TaskStatus};
use serde_json::json;

use super::{Counter, Text, World, answer, builder, limited, seconds, wait_for};

#[tokio::test(start_paused = true)]
async fn open_tasks_of_one_owner() {
    let world = World::default();
    let few = || limited(|limits| limits.open_tasks = 3);
    let client = world.client(few().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        cx.sleep("rest", Duration::from_secs(60)).await;
    }));
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(client.start("t", json!({})).await.unwrap());
    }
    let refused = client.start("t", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32603));
    assert!(refused.to_string().contains("Too many open tasks"), "{refused}");
    client.cancel_task(&tasks[0].id).await.unwrap();
    client.start("t", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_journal_or_a_result_that_is_too_large_fails_the_task_and_names_the_key_in_the_log_alone()
{
    let world = World::default();
    let small = || limited(|limits| limits.task_bytes = 4096);
    let client = world.client(
        small()
            .tool("journal", "", async |cx: Cx, _: NoArgs| {
                cx.background("").await;
                cx.step("fine", async || Ok::<_, ToolError>(())).await?;
                cx.step("large", async || Ok::<_, ToolError>("x".repeat(4096))).await
            })
            .tool("result", "", async |cx: Cx, _: NoArgs| {
                cx.background("").await;
                "x".repeat(4096)
            })
            .tool("error", "", async |cx: Cx, _: NoArgs| {
                cx.background("").await;
                let error = mcp_edge::RequestError::invalid_params("large ".repeat(1024));
                Err::<(), _>(ToolError::protocol(error))
            })
            .tool("fits", "", async |cx: Cx, _: NoArgs| {
                cx.background("").await;
                "x".repeat(2048)
            }),
    );
    for tool in ["journal", "result", "error"] {
        let refused = client.call(tool, json!({})).await.unwrap_err();
        assert_eq!(refused.code(), Some(-32603), "{tool}");
        assert!(!refused.to_string().contains("large"), "{refused}");
    }
    assert_eq!(client.call("fits", json!({})).await.unwrap().text().len(), 2048);
    for record in world.store.written() {
        assert!(record.to_string().len() <= 4096 + 512);
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_too_large_begin_no_task() {
    let world = World::default();
    let small = || limited(|limits| limits.task_bytes = 4096);
    let client = world.client(small().tool("t", "", async |cx: Cx, _: Text| {
        cx.background("").await;
    }));
    let refused = client.start("t", json!({ "text": "x".repeat(4096) })).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32603));
    assert!(world.store.written().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_is_refused() {
    let world = World::default();
    let small = || limited(|limits| limits.task_bytes = 4096);
    let client = world.client(small().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        cx.elicit::<Text>("q", "?").await.required().map(|answer| answer.text)
    }));
    let task = client.start("t", json!({})).await.unwrap();
    wait_for(&client, &task.id, |task| !task.questions.is_empty()).await;
    let large = json!({ "q": answer(&"x".repeat(4096)) });
    let refused = client.update_task(&task.id, large).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32602));
    client.update_task(&task.id, json!({ "q": answer("fits") })).await.unwrap();
    assert_eq!(client.follow(&task).await.unwrap().text(), "fits");
}

#[tokio::test(start_paused = true)]
async fn attempts_that_get_no_further_fail_the_task() {
    let (world, runs) = (World::default(), Counter::default());
    let make = || {
        let runs = runs.clone();
        limited(|limits| limits.task_attempts = 3).tool("t", "", move |cx: Cx, _: NoArgs| {
            let runs = runs.clone();
            async move {
                cx.background("").await;
                cx.step("works", async || Ok::<_, ToolError>(())).await?;
                cx.step("hangs", async || {
                    runs.bump();
                    seconds(3600).await;
                    Ok::<_, ToolError>(())
                })
                .await
            }
        })
    };
    let server = world.idle(make());
    let client = Client::in_process(&server).with_tasks();
    let task = client.start("t", json!({})).await.unwrap();
    for _ in 0..3 {
        // Each time the instance dies.
        let run = tokio::time::timeout(Duration::from_secs(1), world.advance(&server)).await;
        assert!(run.is_err());
        seconds(11).await;
    }
    // The first attempt got further, by one step: it does not count.
    let run = tokio::time::timeout(Duration::from_secs(1), world.advance(&server)).await;
    assert!(run.is_err());
    seconds(11).await;
    world.advance(&server).await;
    let task = client.task(&task.id).await.unwrap();
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.error.unwrap()["code"], -32603);
    assert_eq!(runs.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn task_38_a_task_lives_as_long_as_its_tool_says_from_its_creation_on() {
    let world = World::default();
    let ttl = Duration::from_secs(600);
    let work = async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        cx.sleep("rest", Duration::from_secs(86_400)).await;
    };
    let server = builder().tool("day", "", work).tool_with("short", "", work, |t| t.task_ttl(ttl));
    let client = world.client(server);
    let day = client.start("day", json!({})).await.unwrap();
    assert_eq!((day.ttl_ms, day.poll_interval_ms), (Some(86_400_000), Some(1000)));
    let short = client.start("short", json!({})).await.unwrap();
    assert_eq!(short.ttl_ms, Some(600_000));
    seconds(599).await;
    client.task(&short.id).await.unwrap();
    seconds(2).await;
    assert_eq!(client.task(&short.id).await.unwrap_err().code(), Some(-32602));
    client.task(&day.id).await.unwrap();
}

#[test]
fn a_life_beyond_the_most_fails_the_build() {
    let ttl = Duration::from_secs(31 * 86_400);
    let work = async |_: NoArgs| "";
    let fault = builder().tool_with("t", "", work, |t| t.task_ttl(ttl)).build().unwrap_err();
    assert!(fault.to_string().contains("`t` has a task_ttl of more than Limits::task_ttl_max"));
    let fault = builder().tool_with("t", "", work, |t| t.task_ttl(Duration::ZERO)).build();
    assert!(fault.unwrap_err().to_string().contains("task_ttl of zero"));
    let fault = limited(|limits| limits.task_ttl = ttl).build().unwrap_err();
    assert!(fault.to_string().contains("Limits::task_ttl must be at most"));
    let most = Limits::default().task_bytes + 1;
    let fault = limited(|limits| limits.task_bytes = most).build().unwrap_err();
    assert!(fault.to_string().contains("Limits::task_bytes must be at most 262144"));
}

#[tokio::test(start_paused = true)]
async fn task_14_the_poll_interval_is_a_setting() {
    let world = World::default();
    let often = || limited(|limits| limits.poll_interval = Duration::from_millis(250));
    let client = world.client(often().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
    }));
    let task = client.start("t", json!({})).await.unwrap();
    assert_eq!(task.poll_interval_ms, Some(250));
}

#[tokio::test(start_paused = true)]
async fn mrtr_29_keys_that_change_with_every_run_fail_the_task_in_the_end() {
    let (world, runs) = (World::default(), Counter::default());
    let seen = runs.clone();
    let few = || limited(|limits| limits.task_questions = 5);
    let client = world.client(few().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            let key = format!("q{}", seen.bump());
            cx.elicit::<Text>(key, "?").await.required().map(|answer| answer.text)
        }
    }));
    let client = client.on_question(|question| Some(question.accept(json!({ "text": "x" }))));
    let refused = client.call("t", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32603), "{refused}");
}
