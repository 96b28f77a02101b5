//! Handlers that change while calls are under way (MRTR-23).

use mcp_edge::{Cx, NoArgs, ToolError};
use serde_json::json;

use super::*;

async fn asks(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    Ok(cx.elicit::<Text>("a", "?").await.required()?.text)
}

fn version(version: u32) -> Server {
    server_with(asks, |tool| tool.version(version))
}

fn answer() -> serde_json::Value {
    json!({ "a": { "action": "accept", "content": { "text": "x" } } })
}

#[tokio::test]
async fn an_instance_gives_the_work_of_a_newer_version_back_with_its_answers() {
    // The question comes from the new instance, the answer meets the old one, the retry the new one.
    let client = Client::fleet([version(2), version(1), version(2)]);
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let back = client.retry(&first, answer()).await.unwrap();
    assert_eq!(back.result().unwrap()["resultType"], "input_required");
    assert!(back.input_requests().is_empty(), "MRTR-23: nothing but a state");
    let last = client.retry(&back, json!({})).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "x");
}

#[tokio::test]
async fn giving_back_counts_as_a_round() {
    let first = Client::in_process(&version(2));
    let mut reply = first.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let old = Client::in_process(&version(1));
    for _ in 0..15 {
        reply = old.retry(&reply, json!({})).await.unwrap();
        assert!(reply.request_state().is_some());
    }
    let over = old.retry(&reply, json!({})).await.unwrap();
    assert_eq!(over.error().unwrap()["code"], -32603);
}

#[tokio::test]
async fn an_older_version_that_is_not_accepted_fails_and_says_so() {
    let client = Client::fleet([version(1), version(2)]);
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let last = client.retry(&first, answer()).await.unwrap();
    let error = last.error().unwrap();
    assert_eq!(error["code"], -32602);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("(version 1 is no longer accepted); call it anew"), "{message}");
}

#[tokio::test]
async fn an_older_version_that_is_accepted_goes_on() {
    let new = server_with(asks, |tool| tool.version(2).accepts(1..=2));
    let client = Client::fleet([version(1), new]);
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let last = client.retry(&first, answer()).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "x");
}

#[tokio::test(start_paused = true)]
async fn mrtr_14_a_state_that_expires_while_it_is_given_back_is_refused_by_both() {
    let (old, new) = (client(&version(1)), client(&version(2)));
    let hour = |seconds| tokio::time::advance(std::time::Duration::from_secs(seconds));
    let refusal = json!({ "code": -32602, "message": "Invalid requestState" });
    let first = new.round("tools/call", json!({ "name": "t" })).await.unwrap();
    hour(3599).await;
    // Given back in time it is as good as a new one, with the answer that came along.
    let back = old.retry(&first, answer()).await.unwrap();
    hour(1).await;
    for client in [&old, &new] {
        let late = client.retry(&first, answer()).await.unwrap();
        assert_eq!(late.error(), Some(&refusal), "the first one has expired");
    }
    hour(3598).await;
    let last = new.retry(&back, json!({})).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "x");
    hour(1).await;
    for client in [&old, &new] {
        let late = client.retry(&back, answer()).await.unwrap();
        assert_eq!(late.error(), Some(&refusal), "and so has the second");
    }
}

#[tokio::test]
async fn answers_that_cannot_be_given_back_are_an_error_and_the_state_stays_good() {
    let (old, new) = (client(&version(1)), client(&version(2)));
    let first = new.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let text = "x".repeat(40 << 10);
    let large = json!({ "a": { "action": "accept", "content": { "text": text } } });
    let refused = old.retry(&first, large.clone()).await.unwrap();
    assert_eq!(refused.code(), Some(-32603));
    // The one that the answer is for need not seal it.
    let last = new.retry(&first, large).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"].as_str().unwrap().len(), text.len());
    let back = old.retry(&first, answer()).await.unwrap();
    let last = new.retry(&back, json!({})).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "x");
}

#[tokio::test]
async fn mrtr_20_what_is_given_back_carries_no_unknown_keys() {
    let (old, new) = (client(&version(1)), client(&version(2)));
    let first = new.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let few = old.retry(&first, answer()).await.unwrap();
    let mut answers = answer();
    for number in 0..10_000 {
        answers[format!("x{number}")] = json!(number);
    }
    let many = old.retry(&first, answers).await.unwrap();
    let length = |reply: &mcp_edge_test::Reply| reply.request_state().unwrap().len();
    assert_eq!(length(&many), length(&few));
    let last = new.retry(&many, json!({})).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "x");
}
