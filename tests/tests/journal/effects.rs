//! Steps: run once, replayed ever after.

use std::collections::HashMap;

use mcp_edge::{Cx, Json, NoArgs, ToolError};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_step_runs_once_over_all_rounds() {
    let runs = Counter::default();
    let counted = runs.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = counted.clone();
        async move {
            let n = cx.step("n", async || Ok::<_, ToolError>(runs.bump())).await?;
            let a = cx.elicit::<Text>("a", "?").await.required()?.text;
            let b = cx.elicit::<Text>("b", "?").await.required()?.text;
            Ok::<_, ToolError>(format!("{n}{a}{b}"))
        }
    };
    let client = client(&server(tool))
        .answer("a", json!({ "text": "x" }))
        .answer("b", json!({ "text": "y" }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "1xy");
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn once_keeps_what_cannot_fail() {
    let runs = Counter::default();
    let counted = runs.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = counted.clone();
        async move {
            let n = cx.once("n", async || runs.bump()).await;
            cx.elicit::<Text>("a", "?").await.required()?;
            Ok::<_, ToolError>(n.to_string())
        }
    };
    let client = client(&server(tool)).answer("a", json!({ "text": "x" }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "1");
}

#[tokio::test]
async fn the_error_of_a_step_is_journalled_too() {
    let runs = Counter::default();
    let counted = runs.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = counted.clone();
        async move {
            let tried = cx
                .step("flaky", async || match runs.bump() {
                    1 => Err(ToolError::new("down")),
                    _ => Ok("up".to_owned()),
                })
                .await;
            cx.elicit::<Text>("a", "?").await.required()?;
            tried
        }
    };
    let called =
        client(&server(tool)).answer("a", json!({ "text": "x" })).call("t", json!({})).await;
    let called = called.unwrap();
    assert!(called.is_error());
    assert_eq!(called.text(), "down", "on replay it would have been up");
}

#[tokio::test]
async fn the_first_run_sees_the_round_tripped_value_as_well() {
    #[derive(Serialize, Deserialize)]
    struct Quote {
        total: u32,
        #[serde(skip)]
        note: String,
    }
    let tool = |cx: Cx, _: NoArgs| async move {
        let quote = cx
            .step("quote", async || Ok::<_, ToolError>(Quote { total: 3, note: "lost".to_owned() }))
            .await?;
        Ok::<_, ToolError>(format!("{}{}", quote.total, quote.note))
    };
    assert_eq!(client(&server(tool)).call("t", json!({})).await.unwrap().text(), "3");
}

#[tokio::test]
async fn steps_in_flight_beside_a_question_finish_first_and_run_once() {
    let runs = Counter::default();
    let counted = runs.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = counted.clone();
        async move {
            let work = async {
                for n in 0..3 {
                    let body = async || {
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        Ok::<_, ToolError>(runs.bump())
                    };
                    cx.step(format!("s{n}"), body).await?;
                }
                Ok::<_, ToolError>(())
            };
            let (answer, done) = futures_util::join!(cx.elicit::<Text>("a", "?"), work);
            done?;
            Ok::<_, ToolError>(answer.required()?.text)
        }
    };
    let called =
        client(&server(tool)).answer("a", json!({ "text": "x" })).call("t", json!({})).await;
    let called = called.unwrap();
    assert_eq!((called.text().as_str(), called.rounds.len(), runs.get()), ("x", 1, 3));
}

#[tokio::test]
async fn a_select_loop_over_a_question_and_a_step_keeps_the_step() {
    use futures_util::FutureExt as _;
    let runs = Counter::default();
    let counted = runs.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = counted.clone();
        async move {
            let mut stepped = 0;
            loop {
                let ask = cx.elicit::<Text>("a", "?").fuse();
                let done = stepped > 0;
                let step = async {
                    if done {
                        return std::future::pending().await;
                    }
                    cx.step("s", async || Ok::<_, ToolError>(runs.bump())).await
                }
                .fuse();
                let (mut ask, mut step) = (std::pin::pin!(ask), std::pin::pin!(step));
                futures_util::select! {
                    n = step => stepped = n?,
                    answer = ask => {
                        break Ok::<_, ToolError>(format!("{}{stepped}", answer.required()?.text));
                    }
                }
            }
        }
    };
    let called =
        client(&server(tool)).answer("a", json!({ "text": "x" })).call("t", json!({})).await;
    let called = called.unwrap();
    assert_eq!((called.text().as_str(), runs.get()), ("x1", 1));
}

#[tokio::test]
async fn helpers_closures_loops_and_borrowed_captures_compile_and_replay() {
    #[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
    struct Order {
        items: Vec<u32>,
    }
    async fn price(cx: &Cx, order: &Order) -> Result<u32, ToolError> {
        let mut total = 0;
        for (n, item) in order.items.iter().enumerate() {
            let tax = async |base: u32| base * 2;
            total +=
                cx.step(format!("item {n}"), async || Ok::<_, ToolError>(tax(*item).await)).await?;
        }
        Ok(total)
    }
    let tool = |cx: Cx, order: Order| async move {
        let total = price(&cx, &order).await?;
        let mut log = Vec::new();
        cx.step("log", async || {
            log.push(total);
            Ok::<_, ToolError>(log.len())
        })
        .await?;
        cx.elicit::<Yes>("sure", format!("{total}?")).await.required()?;
        Ok::<_, ToolError>(total.to_string())
    };
    let client = client(&server(tool)).answer("sure", json!({ "yes": true }));
    let called = client.call("t", json!({ "items": [1, 2, 3] })).await.unwrap();
    assert_eq!(called.text(), "12");
}

#[tokio::test]
async fn map_order_and_floats_replay_as_they_ran() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let map = cx
            .step("map", async || {
                let pairs = [("b", 0.1 + 0.2), ("a", 1e300)];
                Ok::<_, ToolError>(HashMap::from(pairs.map(|(k, v)| (k.to_owned(), v))))
            })
            .await?;
        cx.elicit::<Text>("a", "?").await.required()?;
        Ok::<_, ToolError>(Json(map))
    };
    let called =
        client(&server(tool)).answer("a", json!({ "text": "x" })).call("t", json!({})).await;
    let values: HashMap<String, f64> = called.unwrap().structured().unwrap();
    assert_eq!(values["b"].to_bits(), (0.1_f64 + 0.2).to_bits());
}

#[tokio::test]
async fn rule_i_the_idempotency_key_is_the_same_in_every_retry_of_a_round() {
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.elicit::<Text>("a", "?").await.required()?;
        Ok::<_, ToolError>(format!("{} {}", cx.idempotency_key("x"), cx.idempotency_key("y")))
    };
    let client = client(&server(tool));
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let answer = json!({ "a": { "action": "accept", "content": { "text": "x" } } });
    let text = |reply: &mcp_edge_test::Reply| {
        reply.result().unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let one = text(&client.retry(&first, answer.clone()).await.unwrap());
    let two = text(&client.retry(&first, answer).await.unwrap());
    assert_eq!(one, two);
    let (x, y) = one.split_once(' ').unwrap();
    assert_ne!(x, y);
    let other = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let answer = json!({ "a": { "action": "accept", "content": { "text": "x" } } });
    assert_ne!(one, text(&client.retry(&other, answer).await.unwrap()), "another call");
}

#[tokio::test]
async fn the_journal_limit_counts_at_a_suspension_only() {
    let tool = |cx: Cx, ask: Yes| async move {
        let big = cx.step("big", async || Ok::<_, ToolError>("x".repeat(40 << 10))).await?;
        if ask.yes {
            cx.elicit::<Text>("a", "?").await.required()?;
        }
        Ok::<_, ToolError>(big.len().to_string())
    };
    let client = client(&server(tool));
    let called = client.call("t", json!({ "yes": false })).await.unwrap();
    assert_eq!(called.text(), (40 << 10).to_string());
    let error = client.call("t", json!({ "yes": true })).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32603), "Internal error"));
}
