//! Sleeps, deadlines and the settle limit: rules B, C and K.

use std::time::Duration;

use futures_util::FutureExt as _;
use mcp_edge::{Cx, Limits, NoArgs, ToolError};
use mcp_edge_test::TestPlatform;
use serde_json::json;
use tokio::time::Instant;

use super::*;

fn accept() -> serde_json::Value {
    json!({ "a": { "action": "accept", "content": { "text": "x" } } })
}

#[tokio::test(start_paused = true)]
async fn rule_b_a_step_that_waits_for_what_the_answer_triggers_is_a_delay_and_no_deadlock() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let (send, receive) = tokio::sync::oneshot::channel();
        let asks = async {
            let answer = cx.elicit::<Text>("a", "?").await.required()?;
            let _ = send.send(answer.text);
            Ok::<_, ToolError>(())
        };
        let waits = cx.step("waits", async || Ok::<_, ToolError>(receive.await?));
        let (asked, waited) = futures_util::join!(asks, waits);
        asked?;
        waited
    };
    let began = Instant::now();
    let client = client(&server(tool)).answer("a", json!({ "text": "x" }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "x");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(20) && took < Duration::from_secs(21), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn rule_b_the_settle_limit_stays_two_seconds_before_the_deadline() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let never =
            cx.step("never", async || std::future::pending::<Result<(), ToolError>>().await);
        let (answer, _) = futures_util::join!(cx.elicit::<Text>("a", "?"), never);
        Ok::<_, ToolError>(answer.required()?.text)
    };
    let platform = TestPlatform::new().with_deadline(Duration::from_secs(8));
    let began = Instant::now();
    let client = client(&server(tool)).platform(platform);
    let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    assert!(reply.is_input_required());
    assert_eq!(began.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn rule_c_a_sleep_beside_a_step_fires_at_its_deadline() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let body = async || {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok::<_, ToolError>(())
        };
        let (sleep, step) =
            (cx.sleep("t", Duration::from_millis(20)).fuse(), cx.step("s", body).fuse());
        let (mut sleep, mut step) = (std::pin::pin!(sleep), std::pin::pin!(step));
        futures_util::select! { () = sleep => "slept", _ = step => "stepped" }
    };
    let began = Instant::now();
    assert_eq!(client(&server(tool)).call("t", json!({})).await.unwrap().text(), "slept");
    assert_eq!(began.elapsed().as_millis(), 20);
}

async fn ask_with_timeout(cx: Cx, _: NoArgs) -> String {
    let ask = cx.elicit::<Text>("a", "?").fuse();
    let timeout = cx.sleep("timeout", Duration::from_secs(3600)).fuse();
    let (mut ask, mut timeout) = (std::pin::pin!(ask), std::pin::pin!(timeout));
    futures_util::select! {
        answer = ask => answer.accepted().map_or_else(|| "no".to_owned(), |a| a.text),
        () = timeout => "too late".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleep_beside_a_question_is_a_timeout_that_survives_the_round() {
    let mut limits = Limits::default();
    limits.state_ttl = Duration::from_secs(7200);
    let server = Server::builder("s", "1")
        .tool("t", "Asks", ask_with_timeout)
        .sealer(KeyRing::new(1, &[7; 32]))
        .limits(limits)
        .build()
        .unwrap();
    let client = client(&server);
    let text = |reply: &mcp_edge_test::Reply| reply.result().unwrap()["content"][0]["text"].clone();
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    tokio::time::advance(Duration::from_secs(3000)).await;
    // Asked again after 3,000 s: the deadline is the one of the first round.
    let second = client.retry(&first, json!({})).await.unwrap();
    tokio::time::advance(Duration::from_secs(700)).await;
    let late = client.retry(&second, json!({})).await.unwrap();
    assert_eq!(text(&late), "too late");
    // An answer that has arrived beats a deadline that has passed.
    let answered = client.retry(&second, accept()).await.unwrap();
    assert_eq!(text(&answered), "x");
}

#[tokio::test(start_paused = true)]
async fn a_short_sleep_is_waited_for_and_not_repeated_on_replay() {
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.sleep("s", Duration::from_secs(5)).await;
        cx.elicit::<Text>("a", "?").await.required()?;
        Ok::<_, ToolError>("done")
    };
    let began = Instant::now();
    client(&server(tool)).answer("a", json!({ "text": "x" })).call("t", json!({})).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn rule_k_a_long_sleep_inside_a_request_is_refused_at_once() {
    let tool = |cx: Cx, _: NoArgs| async move {
        if cx.background("going on").await {
            return "a task";
        }
        cx.sleep("long", Duration::from_secs(3600)).await;
        "slept"
    };
    let server = server(tool);
    let began = Instant::now();
    let reply = client(&server).round("tools/call", json!({ "name": "t" })).await.unwrap();
    let error = reply.error().unwrap();
    assert_eq!((reply.status.as_u16(), &error["code"]), (400, &json!(-32021)));
    let required = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    assert_eq!(error["data"]["requiredCapabilities"], required);
    let with_tasks = client(&server).capabilities(required);
    let reply = with_tasks.round("tools/call", json!({ "name": "t" })).await.unwrap();
    assert_eq!(reply.error().unwrap()["code"], -32603);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn rule_k_a_sleep_beyond_the_deadline_of_the_request_is_refused() {
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.sleep("s", Duration::from_secs(10)).await;
        "slept"
    };
    let platform = TestPlatform::new().with_deadline(Duration::from_secs(8));
    let client = client(&server(tool)).platform(platform);
    assert_eq!(client.call("t", json!({})).await.unwrap_err().code(), Some(-32021));
}

#[tokio::test(start_paused = true)]
async fn a_plain_timer_around_a_question_does_nothing() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let ask = cx.elicit::<Text>("a", "?");
        match tokio::time::timeout(Duration::from_millis(1), ask).await {
            Ok(_) => "answered",
            Err(_) => "timed out",
        }
    };
    let client = client(&server(tool));
    let mut reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    for _ in 0..6 {
        tokio::time::advance(Duration::from_secs(60)).await;
        reply = client.retry(&reply, json!({})).await.unwrap();
        assert!(reply.is_input_required(), "documented: use cx.sleep in a select");
    }
}

#[tokio::test(start_paused = true)]
async fn started_at_is_that_of_the_first_run_and_deadlines_are_each_rounds_own() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let (started, deadline) = (cx.started_at(), cx.deadline());
        cx.elicit::<Text>("a", "?").await.required()?;
        let left = deadline.map(|deadline| deadline.since(started).as_secs());
        Ok::<_, ToolError>(format!("{left:?}"))
    };
    let platform = TestPlatform::new().with_deadline(Duration::from_secs(8));
    let client = client(&server(tool)).platform(platform);
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    tokio::time::advance(Duration::from_secs(100)).await;
    let last = client.retry(&first, accept()).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "Some(108)");
}

#[tokio::test(start_paused = true)]
async fn l7_the_answer_comes_before_the_platforms_deadline() {
    let tool = |_: NoArgs| async { std::future::pending::<&'static str>().await };
    let platform = TestPlatform::new().with_deadline(Duration::from_secs(8));
    let began = Instant::now();
    let error = client(&server(tool)).platform(platform).call("t", json!({})).await.unwrap_err();
    assert_eq!(error.message(), "The call took too long");
    assert!(began.elapsed() < Duration::from_secs(8));
}
