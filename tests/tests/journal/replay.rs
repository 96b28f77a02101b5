//! Order: rule F, and what wakes the engine.

use std::{future::Future, pin::Pin, task::Poll, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use mcp_edge::{Cx, NoArgs, ToolError};
use serde_json::json;

use super::*;

const X: &str = "x";

fn answered(server: &Server) -> Client {
    client(server).answer("a", json!({ "text": X })).answer("b", json!({ "text": X }))
}

#[tokio::test]
async fn rule_f_a_random_select_replays_the_branch_it_took() {
    for _ in 0..50 {
        let (left, right) = (Counter::default(), Counter::default());
        let counted = (left.clone(), right.clone());
        let tool = move |cx: Cx, _: NoArgs| {
            let (left, right) = counted.clone();
            async move {
                let took = tokio::select! {
                    n = cx.step("left", async || Ok::<_, ToolError>(left.bump())) => ("left", n?),
                    n = cx.step("right", async || Ok::<_, ToolError>(right.bump())) => ("right", n?),
                };
                let before = format!("{took:?}");
                let seen = cx.once("seen", async || before.clone()).await;
                cx.elicit::<Text>("a", "?").await.required()?;
                assert_eq!(seen, before, "the replay took the other branch");
                Ok::<_, ToolError>(before)
            }
        };
        answered(&server(tool)).call("t", json!({})).await.unwrap();
        assert_eq!(left.get() + right.get(), 1, "the loser's effect started on replay");
    }
}

#[tokio::test]
async fn rule_f_futures_unordered_replays_in_the_order_in_which_it_ran() {
    for plain_first in [false, true] {
        let orders = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = orders.clone();
        let tool = move |cx: Cx, _: NoArgs| {
            let orders = seen.clone();
            async move {
                if plain_first {
                    tokio::task::yield_now().await;
                }
                let delays = [("a1", 30), ("b1", 10), ("c1", 20)];
                let mut all: FuturesUnordered<_> = delays
                    .into_iter()
                    .map(|(key, delay)| {
                        let cx = cx.clone();
                        async move {
                            let body = async || {
                                tokio::time::sleep(Duration::from_millis(delay)).await;
                                Ok::<_, ToolError>(key.to_owned())
                            };
                            cx.step(key, body).await
                        }
                    })
                    .collect();
                let mut order = String::new();
                while let Some(key) = all.next().await {
                    order.push_str(&key?);
                }
                orders.lock().unwrap().push(order.clone());
                cx.elicit::<Text>("a", "?").await.required()?;
                Ok::<_, ToolError>(order)
            }
        };
        answered(&server(tool)).call("t", json!({})).await.unwrap();
        let orders = orders.lock().unwrap().clone();
        assert!(orders.len() > 1);
        assert!(orders.iter().all(|order| order == "b1c1a1"), "{orders:?}");
    }
}

#[tokio::test]
async fn entries_that_one_round_does_not_read_are_kept_for_the_next() {
    let runs = Counter::default();
    let counted = runs.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = counted.clone();
        async move {
            let a = cx.elicit::<Text>("a", "?");
            let work = cx.step("work", async || Ok::<_, ToolError>(runs.bump()));
            let (a, work) = futures_util::join!(a, work);
            work?;
            a.required()?;
            cx.elicit::<Text>("b", "?").await.required()?;
            Ok::<_, ToolError>(runs.get().to_string())
        }
    };
    assert_eq!(answered(&server(tool)).call("t", json!({})).await.unwrap().text(), "1");
}

#[tokio::test]
async fn a_different_order_of_the_same_keys_is_harmless() {
    let flip = Counter::default();
    let flipped = flip.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let odd = flipped.bump() % 2 == 1;
        async move {
            let (first, second) = if odd { ("a", "b") } else { ("b", "a") };
            let (one, two) =
                futures_util::join!(cx.elicit::<Text>(first, "?"), cx.elicit::<Text>(second, "?"));
            Ok::<_, ToolError>(one.required()?.text + &two.required()?.text)
        }
    };
    assert_eq!(answered(&server(tool)).call("t", json!({})).await.unwrap().text(), "xx");
}

#[tokio::test]
async fn a_hundred_spurious_polls_start_a_step_once_and_ask_once() {
    let runs = Counter::default();
    let counted = runs.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let runs = counted.clone();
        async move {
            let spurious = async {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            };
            let body = async || {
                runs.bump();
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<_, ToolError>(())
            };
            let (answer, done, ()) =
                futures_util::join!(cx.elicit::<Text>("a", "?"), cx.step("s", body), spurious);
            done?;
            Ok::<_, ToolError>(answer.required()?.text)
        }
    };
    let called = answered(&server(tool)).call("t", json!({})).await.unwrap();
    assert_eq!((called.rounds.len(), called.rounds[0].len(), runs.get()), (1, 1, 1));
}

#[tokio::test]
async fn rule_e_questions_of_spawned_tasks_go_out() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let mut tasks = tokio::task::JoinSet::new();
        for key in ["a", "b"] {
            let cx = cx.clone();
            tasks.spawn(async move { cx.elicit::<Text>(key, "?").await.accepted() });
        }
        let mut count = 0;
        while let Some(Ok(Some(_))) = tasks.join_next().await {
            count += 1;
        }
        count.to_string()
    };
    assert_eq!(answered(&server(tool)).call("t", json!({})).await.unwrap().text(), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_spawned_tasks_on_two_threads_lose_nothing() {
    for _ in 0..50 {
        let runs = Counter::default();
        let counted = runs.clone();
        let tool = move |cx: Cx, _: NoArgs| {
            let runs = counted.clone();
            async move {
                let mut tasks = tokio::task::JoinSet::new();
                for child in 0..2 {
                    let (cx, runs) = (cx.clone(), runs.clone());
                    tasks.spawn(async move {
                        for n in 0..3 {
                            let body = async || Ok::<_, ToolError>(runs.bump());
                            if cx.step(format!("{child} {n}"), body).await.is_err() {
                                return false;
                            }
                            tokio::task::yield_now().await;
                        }
                        true
                    });
                }
                let answer = cx.elicit::<Text>("a", "?").await.required()?.text;
                while let Some(done) = tasks.join_next().await {
                    assert!(done?);
                }
                Ok::<_, ToolError>(answer)
            }
        };
        assert_eq!(answered(&server(tool)).call("t", json!({})).await.unwrap().text(), X);
        assert!(runs.get() >= 6, "six steps, some perhaps twice: a round may end between them");
    }
}

/// Pending once, having woken itself in the poll.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[tokio::test]
async fn rule_h_a_question_behind_a_future_that_wakes_itself_joins_the_round() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let late = async {
            Yield(false).await;
            cx.elicit::<Text>("b", "?").await
        };
        let (a, b) = futures_util::join!(cx.elicit::<Text>("a", "?"), late);
        Ok::<_, ToolError>(a.required()?.text + &b.required()?.text)
    };
    let called = answered(&server(tool)).call("t", json!({})).await.unwrap();
    assert_eq!((called.text().as_str(), called.rounds.len()), ("xx", 1));
}

#[tokio::test]
async fn a_question_behind_plain_io_beside_another_takes_a_round_of_its_own() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let late = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            cx.elicit::<Text>("b", "?").await
        };
        let (a, b) = futures_util::join!(cx.elicit::<Text>("a", "?"), late);
        Ok::<_, ToolError>(a.required()?.text + &b.required()?.text)
    };
    let called = answered(&server(tool)).call("t", json!({})).await.unwrap();
    assert_eq!((called.text().as_str(), called.rounds.len()), ("xx", 2));
}

#[tokio::test]
async fn rule_j_progress_and_logs_are_muted_until_the_journal_is_used_up() {
    use mcp_edge::protocol::LogLevel;
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.progress(1.0, 3.0, "before");
        cx.log(LogLevel::Info, "before");
        cx.elicit::<Text>("a", "?").await.required()?;
        cx.progress(2.0, 3.0, "after");
        cx.log(LogLevel::Info, "after");
        Ok::<_, ToolError>("done")
    };
    let client = answered(&server(tool)).with_progress().log_level(LogLevel::Debug);
    let called = client.call("t", json!({})).await.unwrap();
    let texts: Vec<_> = called
        .notifications
        .iter()
        .map(|n| n["params"].get("message").or_else(|| n["params"].get("data")).unwrap().clone())
        .collect();
    assert_eq!(texts, ["before", "before", "after", "after"]);
}
