//! How a task goes on. Letters and numbers name the rules of the journal.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use futures_util::{future::Either, join, pin_mut};
use mcp_edge::{Cx, NoArgs, ToolError};
use mcp_edge_test::{Client, TaskStatus, TestPlatform};
use serde_json::{Value, json};

use super::{Counter, Text, World, answer, builder, limited, seconds, wait_for};

fn client(server: &mcp_edge::Server) -> Client {
    Client::in_process(server).with_tasks()
}

/// The keys that the journal of a record holds.
fn keys(record: &Value) -> Vec<&str> {
    let entries = record["journal"]["j"].as_array();
    let keys = entries.into_iter().flatten().map(|entry| entry["k"].as_str().unwrap());
    keys.filter(|key| !key.starts_with('\0')).collect()
}

#[tokio::test(start_paused = true)]
async fn m_each_step_is_durable_before_the_next_thing_happens() {
    let world = World::default();
    let store = world.store.clone();
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let store = store.clone();
        async move {
            cx.background("").await;
            let durable = || store.written().last().map(|last| keys(last).len()).unwrap_or(0);
            let mut seen = Vec::new();
            for key in ["a", "b", "c"] {
                cx.step(key, async || Ok::<_, ToolError>(())).await?;
                seen.push(durable());
            }
            Ok::<_, ToolError>(format!("{seen:?}"))
        }
    }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "[1, 2, 3]");
}

#[tokio::test(start_paused = true)]
async fn a_crash_inside_a_step_repeats_that_step_alone() {
    let (world, first, second) = (World::default(), Counter::default(), Counter::default());
    let make = || {
        let (first, second) = (first.clone(), second.clone());
        builder().tool("t", "", move |cx: Cx, _: NoArgs| {
            let (first, second) = (first.clone(), second.clone());
            async move {
                cx.background("").await;
                let one = cx.step("a", async || Ok::<_, ToolError>(first.bump())).await?;
                let two = cx.step("b", async || {
                    let times = second.bump();
                    seconds(5).await;
                    Ok::<_, ToolError>(times)
                });
                Ok::<_, ToolError>(format!("{one} {}", two.await?))
            }
        })
    };
    let (here, there) = (world.idle(make()), world.idle(make()));
    let task = client(&here).start("t", json!({})).await.unwrap();
    // The first instance dies in the middle of the second step.
    let crashed = tokio::time::timeout(Duration::from_secs(2), world.advance(&here)).await;
    assert!(crashed.is_err());
    // The lease keeps others away until it is over.
    world.advance(&there).await;
    assert_eq!((first.get(), second.get()), (1, 1));
    seconds(10).await;
    world.advance(&there).await;
    assert_eq!(client(&there).follow(&task).await.unwrap().text(), "1 2");
    assert_eq!((first.get(), second.get()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn of_two_that_advance_one_task_one_runs_it() {
    let (world, runs) = (World::default(), Counter::default());
    let make = || {
        let runs = runs.clone();
        builder().tool("t", "", move |cx: Cx, _: NoArgs| {
            let runs = runs.clone();
            async move {
                cx.background("").await;
                runs.bump();
                cx.step("a", async || {
                    seconds(60).await; // the heartbeat keeps the lease
                    Ok::<_, ToolError>(())
                })
                .await?;
                Ok::<_, ToolError>("done")
            }
        })
    };
    let (here, there) = (world.idle(make()), world.idle(make()));
    let task = client(&here).start("t", json!({})).await.unwrap();
    let again = async {
        for _ in 0..30 {
            seconds(1).await;
            world.advance(&there).await;
        }
    };
    join!(world.advance(&here), world.advance(&there), again);
    assert_eq!(client(&here).follow(&task).await.unwrap().text(), "done");
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_shown_at_once_and_answered_while_a_step_is_in_flight() {
    let (world, runs) = (World::default(), Counter::default());
    let seen = runs.clone();
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            let (name, done) = join!(
                async {
                    let name = cx.elicit::<Text>("name", "Who?").await.required()?.text;
                    cx.step("greet", async || Ok::<_, ToolError>(format!("Hello, {name}"))).await
                },
                cx.step("long", async || {
                    let times = seen.bump();
                    seconds(60).await;
                    Ok::<_, ToolError>(times)
                }),
            );
            Ok::<_, ToolError>(format!("{} {}", name?, done?))
        }
    }));
    let task = client.start("t", json!({})).await.unwrap();
    let shown = wait_for(&client, &task.id, |task| !task.questions.is_empty()).await;
    assert_eq!(shown.status, TaskStatus::InputRequired);
    let asked_at = tokio::time::Instant::now();
    client.update_task(&task.id, json!({ "name": answer("Ada") })).await.unwrap();
    let greeted = || world.store.written().iter().any(|record| keys(record).contains(&"greet"));
    while !greeted() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(asked_at.elapsed() < Duration::from_secs(1), "the run took the answer in");
    assert_eq!(client.follow(&task).await.unwrap().text(), "Hello, Ada 1");
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn c_a_deadline_beside_a_step_fires_when_it_is_over() {
    let client = World::default().client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let sleep = cx.sleep("deadline", Duration::from_secs(20));
        let step = cx.step("slow", async || {
            seconds(200).await;
            Ok::<_, ToolError>(())
        });
        pin_mut!(sleep, step);
        match futures_util::future::select(sleep, step).await {
            Either::Left(_) => "deadline",
            Either::Right(_) => "step",
        }
    }));
    let began = tokio::time::Instant::now();
    let task = client.start("t", json!({})).await.unwrap();
    let task = wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(task.result.unwrap()["content"][0]["text"], "deadline");
    assert!(began.elapsed() < Duration::from_secs(22), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn rule_9_a_sleep_beside_a_question_is_a_durable_timeout() {
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let sleep = cx.sleep("deadline", Duration::from_secs(3600));
        let question = cx.elicit::<Text>("q", "In time?");
        pin_mut!(sleep, question);
        match futures_util::future::select(sleep, question).await {
            Either::Left(_) => "too late".to_owned(),
            Either::Right((answer, _)) => answer.accepted().unwrap().text,
        }
    }));
    let late = client.start("t", json!({})).await.unwrap();
    let timely = client.start("t", json!({})).await.unwrap();
    for task in [&late, &timely] {
        let asked = wait_for(&client, &task.id, |task| !task.questions.is_empty()).await;
        assert_eq!(asked.status, TaskStatus::InputRequired);
    }
    let held = world.store.written().last().unwrap().clone();
    assert!(held["lease"].is_null() && held["wakes_at"].is_u64(), "nothing is held meanwhile");
    seconds(1800).await;
    client.update_task(&timely.id, json!({ "q": answer("yes") })).await.unwrap();
    assert_eq!(client.follow(&timely).await.unwrap().text(), "yes");
    seconds(1801).await;
    let late = wait_for(&client, &late.id, |task| task.status.is_terminal()).await;
    assert_eq!(late.result.unwrap()["content"][0]["text"], "too late");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_after_days_on_another_instance() {
    let (world, runs) = (World::default(), Counter::default());
    let make = || {
        let runs = runs.clone();
        limited(|limits| limits.task_ttl = Duration::from_secs(7 * 86_400)).tool(
            "t",
            "",
            move |cx: Cx, _: NoArgs| {
                let runs = runs.clone();
                async move {
                    cx.background("").await;
                    runs.bump();
                    cx.sleep("rest", Duration::from_secs(2 * 86_400)).await;
                    "rested"
                }
            },
        )
    };
    let (here, there) = (world.idle(make()), world.idle(make()));
    let task = client(&here).start("t", json!({})).await.unwrap();
    world.advance(&here).await;
    seconds(86_400).await;
    world.advance(&there).await;
    assert_eq!(client(&there).task(&task.id).await.unwrap().status, TaskStatus::Working);
    assert_eq!(runs.get(), 1, "too early is no attempt");
    seconds(86_401).await;
    world.advance(&there).await;
    assert_eq!(client(&here).follow(&task).await.unwrap().text(), "rested");
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn retry_after_comes_back_later_and_is_not_remembered() {
    let (world, attempts) = (World::default(), Counter::default());
    let seen = attempts.clone();
    let server = world.instance(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            let task = cx.background("").await;
            let made = cx.step("flaky", async || match seen.bump() {
                4 => Ok("made".to_owned()),
                _ => Err(ToolError::retry_after("not yet", Duration::from_secs(600))),
            });
            let made = made.await?;
            Ok::<_, ToolError>(format!("{made} {task}"))
        }
    }));
    // Inside a request it is an error like others.
    let inline = Client::in_process(&server).call("t", json!({})).await.unwrap();
    assert_eq!((inline.is_error(), inline.text()), (true, "not yet".into()));

    let began = tokio::time::Instant::now();
    let client = client(&server);
    let task = client.start("t", json!({})).await.unwrap();
    let task = wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(task.result.unwrap()["content"][0]["text"], "made true");
    assert_eq!(attempts.get(), 4);
    let took = began.elapsed();
    assert!((1200..1210).contains(&took.as_secs()), "{took:?}");
}

/// A step that always wants to be tried again later.
async fn flaky(cx: &Cx, key: &str, times: &Counter, seconds: u64) -> Result<(), ToolError> {
    cx.step(key, async || {
        times.bump();
        Err::<(), _>(ToolError::retry_after("not yet", Duration::from_secs(seconds)))
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn each_step_is_tried_again_in_its_own_time_whatever_else_comes_earlier() {
    let (world, slow, quick) = (World::default(), Counter::default(), Counter::default());
    let (one, two) = (slow.clone(), quick.clone());
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let (slow, quick) = (one.clone(), two.clone());
        async move {
            cx.background("").await;
            let (one, _, two) = join!(
                flaky(&cx, "slow", &slow, 600),
                cx.elicit::<Text>("q", "?"),
                flaky(&cx, "quick", &quick, 100),
            );
            one.and(two)
        }
    }));
    let task = client.start("t", json!({})).await.unwrap();
    seconds(50).await;
    client.update_task(&task.id, json!({ "q": answer("x") })).await.unwrap();
    seconds(510).await;
    assert_eq!((slow.get(), quick.get()), (1, 6));
    seconds(60).await;
    assert_eq!((slow.get(), quick.get()), (2, 7));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_nobody_awaits_any_more_is_not_tried_again() {
    let world = World::default();
    let make = || {
        builder().tool("t", "", async |cx: Cx, _: NoArgs| {
            cx.background("").await;
            let times = Counter::default();
            {
                let flaky = flaky(&cx, "flaky", &times, 600);
                let other = cx.step("other", async || {
                    seconds(1).await;
                    Ok::<_, ToolError>(())
                });
                pin_mut!(flaky, other);
                futures_util::future::select(flaky, other).await;
            }
            cx.read(async || seconds(5).await).await;
            "done"
        })
    };
    let client = world.client(make());
    let task = client.start("t", json!({})).await.unwrap();
    seconds(10).await;
    assert_eq!(client.task(&task.id).await.unwrap().status, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn task_35_progress_becomes_the_status() {
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("beginning").await;
        cx.step("a", async || {
            cx.progress(1.0, 2.0, "half-way");
            seconds(30).await;
            Ok::<_, ToolError>(())
        })
        .await?;
        cx.background("finishing").await;
        cx.sleep("rest", Duration::from_secs(30)).await;
        Ok::<_, ToolError>("done")
    }));
    let client = client.with_progress();
    let task = client.start("t", json!({})).await.unwrap();
    assert_eq!(task.status_message.as_deref(), Some("beginning"));
    for message in ["half-way", "finishing"] {
        let told = |task: &mcp_edge_test::Task| task.status_message.as_deref() == Some(message);
        let task = wait_for(&client, &task.id, told).await;
        assert_eq!(task.status, TaskStatus::Working);
    }
    let called = client.follow(&task).await.unwrap();
    assert_eq!((called.text(), called.progress().len()), ("done".into(), 0));
}

#[tokio::test(start_paused = true)]
async fn task_32_a_wish_to_cancel_reaches_a_running_handler() {
    struct Guard(Counter);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.bump();
        }
    }
    let (world, dropped) = (World::default(), Counter::default());
    let seen = dropped.clone();
    let here = world.instance(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            let _guard = Guard(seen);
            cx.step("long", async || {
                seconds(3600).await;
                Ok::<_, ToolError>(())
            })
            .await
        }
    }));
    let there = client(&world.idle(builder()));
    let task = client(&here).start("t", json!({})).await.unwrap();
    seconds(5).await;
    assert_eq!(dropped.get(), 0);
    there.cancel_task(&task.id).await.unwrap();
    let began = tokio::time::Instant::now();
    wait_for(&there, &task.id, |task| task.status == TaskStatus::Cancelled).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(dropped.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn rule_3_a_changed_question_is_asked_again_under_another_key() {
    let (world, runs) = (World::default(), Counter::default());
    let seen = runs.clone();
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            let total = if seen.bump() == 1 { 900 } else { 9000 };
            let answer = cx.elicit::<Text>("approve", format!("Refund {total}?")).await;
            Ok::<_, ToolError>(format!("{} for {total}", answer.required()?.text))
        }
    }));
    let task = client.start("t", json!({})).await.unwrap();
    let first = wait_for(&client, &task.id, |task| !task.questions.is_empty()).await;
    assert_eq!(first.questions[0].key, "approve");
    client.update_task(&task.id, json!({ "approve": answer("yes") })).await.unwrap();
    let second = wait_for(&client, &task.id, |task| {
        task.questions.first().is_some_and(|question| question.key != "approve")
    })
    .await;
    assert_eq!(second.questions[0].key, "approve#2");
    client.update_task(&task.id, json!({ "approve#2": answer("no") })).await.unwrap();
    let task = wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(task.result.unwrap()["content"][0]["text"], "no for 9000");
}

#[tokio::test(start_paused = true)]
async fn elic_13_an_answer_that_its_type_cannot_take_is_asked_for_again() {
    /// More than its schema says.
    #[derive(serde::Deserialize)]
    #[serde(try_from = "Text")]
    struct Even(u32);
    impl TryFrom<Text> for Even {
        type Error = String;

        fn try_from(text: Text) -> Result<Self, String> {
            let number: u32 = text.text.parse().map_err(|_| "not a number".to_owned())?;
            if number.is_multiple_of(2) { Ok(Self(number)) } else { Err("odd".to_owned()) }
        }
    }
    impl schemars::JsonSchema for Even {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            Text::schema_name()
        }

        fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
            Text::json_schema(generator)
        }
    }
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let number = cx.elicit::<Even>("number", "An even number?").await.required()?;
        Ok::<_, ToolError>(number.0.to_string())
    }));
    let task = client.start("t", json!({})).await.unwrap();
    for (key, text) in [("number", "3"), ("number#2", "x"), ("number#3", "4")] {
        let asked = wait_for(&client, &task.id, |task| !task.questions.is_empty()).await;
        assert_eq!(asked.questions[0].key, key);
        client.update_task(&task.id, json!({ (key): answer(text) })).await.unwrap();
    }
    let task = wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    assert_eq!(task.result.unwrap()["content"][0]["text"], "4");
}

#[tokio::test(start_paused = true)]
async fn misuse_fails_the_task_with_a_neutral_text() {
    let client = World::default().client(builder().tool("twice", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let step = || cx.step("secret key", async || Ok::<_, ToolError>(()));
        step().await?;
        step().await
    }));
    let refused = client.call("twice", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32603));
    assert!(!refused.to_string().contains("secret key"));
}

#[tokio::test(start_paused = true)]
async fn task_23_a_question_that_the_client_cannot_be_asked_fails_the_task() {
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        cx.elicit::<Text>("q", "Who?").await.required().map(|answer| answer.text)
    }));
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    let silent = client.clone().capabilities(json!({ "extensions": extensions }));
    let refused = silent.call("t", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32021), "{refused}");
    // what counts is what was declared when the task began.
    let task = client.start("t", json!({})).await.unwrap();
    let shown = wait_for(&client, &task.id, |task| !task.questions.is_empty()).await;
    let polled = silent.task(&shown.id).await.unwrap();
    assert_eq!(polled.questions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_stops_leaves_a_task_at_its_next_step() {
    let (world, steps) = (World::default(), Counter::default());
    let make = || {
        let steps = steps.clone();
        builder().tool("t", "", move |cx: Cx, _: NoArgs| {
            let steps = steps.clone();
            async move {
                cx.background("").await;
                for key in ["a", "b", "c"] {
                    cx.step(key, async || {
                        steps.bump();
                        seconds(5).await;
                        Ok::<_, ToolError>(())
                    })
                    .await?;
                }
                Ok::<_, ToolError>("done")
            }
        })
    };
    let (here, there) = (world.idle(make()), world.idle(make()));
    let task = client(&here).start("t", json!({})).await.unwrap();
    let platform = TestPlatform::new();
    let draining = platform.draining();
    let stop = async {
        seconds(2).await;
        draining.start();
    };
    let began = tokio::time::Instant::now();
    join!(world.advance_on(&here, platform), stop);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(steps.get(), 1);
    world.advance(&there).await;
    assert_eq!(client(&there).follow(&task).await.unwrap().text(), "done");
    assert_eq!(steps.get(), 3, "no step ran twice");
}

#[tokio::test(start_paused = true)]
async fn an_invocation_that_is_cut_off_leaves_the_task_in_time() {
    let world = World::default();
    let make = || {
        builder().tool("t", "", async |cx: Cx, _: NoArgs| {
            cx.background("").await;
            for key in ["a", "b", "c", "d"] {
                cx.step(key, async || {
                    seconds(4).await;
                    Ok::<_, ToolError>(())
                })
                .await?;
            }
            Ok::<_, ToolError>("done")
        })
    };
    let server = world.idle(make());
    let client = client(&server);
    let task = client.start("t", json!({})).await.unwrap();
    for _ in 0..4 {
        let began = tokio::time::Instant::now();
        let platform = TestPlatform::new().with_deadline(Duration::from_secs(10));
        world.advance_on(&server, platform).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let last = world.store.written().last().unwrap().clone();
        assert!(last["lease"].is_null(), "the next one need not wait");
    }
    assert_eq!(client.follow(&task).await.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn an_invocation_that_is_cut_off_begins_no_step_that_it_cannot_end() {
    let (world, begun) = (World::default(), Counter::default());
    let seen = begun.clone();
    let server = world.idle(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            for number in 0..30 {
                cx.step(format!("{number}"), async || {
                    seen.bump();
                    tokio::time::advance(Duration::from_secs(1)).await; // busy
                    Ok::<_, ToolError>(())
                })
                .await?;
            }
            Ok::<_, ToolError>("done")
        }
    }));
    let client = client(&server);
    let task = client.start("t", json!({})).await.unwrap();
    while !client.task(&task.id).await.unwrap().status.is_terminal() {
        let platform = TestPlatform::new().with_deadline(Duration::from_secs(10));
        world.advance_on(&server, platform).await;
    }
    assert_eq!(begun.get(), 30);
}

#[tokio::test(start_paused = true)]
async fn an_invocation_without_time_is_no_attempt() {
    let (world, begun) = (World::default(), Counter::default());
    let seen = begun.clone();
    let server = world.idle(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            cx.step("a", async || {
                seen.bump();
                seconds(1).await;
                Ok::<_, ToolError>("done".to_owned())
            })
            .await
        }
    }));
    let task = client(&server).start("t", json!({})).await.unwrap();
    for _ in 0..10 {
        let platform = TestPlatform::new().with_deadline(Duration::ZERO);
        world.advance_on(&server, platform).await;
    }
    assert_eq!(begun.get(), 0);
    world.advance(&server).await;
    assert_eq!(client(&server).follow(&task).await.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn f_a_race_between_steps_replays_as_it_ran() {
    let world = World::default();
    let make = || {
        builder().tool("t", "", async |cx: Cx, _: NoArgs| {
            cx.background("").await;
            let slow = cx.step("slow", async || {
                seconds(9).await;
                Ok::<_, ToolError>("slow".to_owned())
            });
            let quick = cx.step("quick", async || {
                seconds(1).await;
                Ok::<_, ToolError>("quick".to_owned())
            });
            let first = {
                pin_mut!(slow, quick);
                futures_util::future::select(slow, quick).await.factor_first().0?
            };
            cx.sleep("rest", Duration::from_secs(60)).await;
            Ok::<_, ToolError>(first)
        })
    };
    let (here, there) = (world.idle(make()), world.idle(make()));
    let task = client(&here).start("t", json!({})).await.unwrap();
    world.advance(&here).await;
    seconds(61).await;
    world.advance(&there).await;
    assert_eq!(client(&here).follow(&task).await.unwrap().text(), "quick");
}

/// Resolves as the first of two does, and looks at them in turns.
async fn fair<T>(one: impl Future<Output = T>, two: impl Future<Output = T>) -> T {
    pin_mut!(one, two);
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        let (first, second): (Pin<&mut dyn Future<Output = T>>, Pin<&mut dyn Future<Output = T>>) =
            match polls % 2 {
                0 => (two.as_mut(), one.as_mut()),
                _ => (one.as_mut(), two.as_mut()),
            };
        match first.poll(cx) {
            Poll::Pending => second.poll(cx),
            ready @ Poll::Ready(_) => ready,
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn f_of_two_steps_that_end_at_once_the_first_in_the_journal_wins_in_every_run() {
    let (world, winners) = (World::default(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&winners);
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = Arc::clone(&seen);
        async move {
            cx.background("").await;
            let step =
                async |key: &str| cx.step(key, async || Ok::<_, ToolError>(key.to_owned())).await;
            let winner = fair(step("a"), step("b")).await?;
            seen.lock().unwrap().push(winner);
            cx.sleep("rest", Duration::from_secs(60)).await;
            Ok::<_, ToolError>("done")
        }
    }));
    client.call("t", json!({})).await.unwrap();
    assert_eq!(*winners.lock().unwrap(), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn l_a_step_that_ended_unseen_gives_its_result_to_the_next_one_of_its_key() {
    let (world, times) = (World::default(), Counter::default());
    let seen = times.clone();
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            let step =
                async |key: &str| cx.step(key, async || Ok::<_, ToolError>(seen.bump())).await;
            fair(step("a"), step("b")).await?;
            step("b").await.map(|times| times.to_string())
        }
    }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "2");
    assert_eq!(times.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn j_the_loser_of_a_race_does_not_mute_the_rest_of_the_task() {
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let step = async |key: &str| cx.step(key, async || Ok::<_, ToolError>(())).await;
        fair(step("a"), step("b")).await?;
        cx.sleep("rest", Duration::from_secs(60)).await;
        cx.step("c", async || Ok::<_, ToolError>(())).await?;
        cx.progress(1.0, 2.0, "half-way");
        cx.sleep("more", Duration::from_secs(60)).await;
        Ok::<_, ToolError>("done")
    }));
    let task = client.start("t", json!({})).await.unwrap();
    seconds(62).await;
    let task = client.task(&task.id).await.unwrap();
    assert_eq!(task.status_message.as_deref(), Some("half-way"));
    seconds(62).await;
    assert_eq!(client.task(&task.id).await.unwrap().status, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn f_an_entry_that_nobody_polls_for_holds_no_other_back() {
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let a = cx.step("a", async || Ok::<_, ToolError>(1));
        pin_mut!(a);
        assert!(futures_util::poll!(a.as_mut()).is_pending(), "it is not durable yet");
        cx.step("b", async || Ok::<_, ToolError>("b".to_owned())).await
    }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_moment_repeats_no_step() {
    let (world, times) = (World::default(), Counter::default());
    let seen = times.clone();
    let server = world.idle(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = seen.clone();
        async move {
            cx.background("").await;
            cx.step("long", async || {
                let times = seen.bump();
                seconds(5).await;
                Ok::<_, ToolError>(times.to_string())
            })
            .await
        }
    }));
    let task = client(&server).start("t", json!({})).await.unwrap();
    let fail = |failures| world.store.failures.store(failures, std::sync::atomic::Ordering::SeqCst);
    let failing = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        fail(1); // while the step is in flight
        tokio::time::sleep(Duration::from_millis(3100)).await;
        fail(3); // as it ends
    };
    join!(world.advance(&server), failing);
    assert_eq!(client(&server).follow(&task).await.unwrap().text(), "1");
    assert_eq!(times.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_ends_the_run_with_its_lease() {
    let world = World::default();
    let server = world.idle(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        cx.once("long", async || seconds(60).await).await;
    }));
    client(&server).start("t", json!({})).await.unwrap();
    let key = world.store.keys.lock().unwrap().last().unwrap().clone();
    let began = tokio::time::Instant::now();
    let failing = async {
        seconds(1).await;
        world.store.failures.store(usize::MAX, std::sync::atomic::Ordering::SeqCst);
    };
    let (advanced, ()) = join!(server.advance(&key, Arc::new(TestPlatform::new())), failing);
    advanced.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn idempotency_keys_are_the_same_in_every_run() {
    let (world, keys) = (World::default(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&keys);
    let client = world.client(builder().tool("t", "", move |cx: Cx, _: NoArgs| {
        let seen = Arc::clone(&seen);
        async move {
            cx.elicit::<Text>("before", "?").await.required()?;
            seen.lock().unwrap().push(cx.idempotency_key("pay"));
            cx.background("").await;
            cx.sleep("rest", Duration::from_secs(1)).await;
            cx.elicit::<Text>("after", "?").await.required()?;
            Ok::<_, ToolError>(())
        }
    }));
    let text = || json!({ "text": "x" });
    let client = client.answer("before", text()).answer("after", text());
    client.call("t", json!({})).await.unwrap();
    let keys = keys.lock().unwrap();
    assert!(keys.len() >= 4, "{keys:?}");
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[tokio::test(start_paused = true)]
async fn strict_mode_reaches_into_tasks() {
    let make = || {
        builder().tool("t", "", async |cx: Cx, _: NoArgs| {
            cx.background("").await;
            seconds(1).await; // a plain await before a question
            cx.elicit::<Text>("q", "?").await.required().map(|answer| answer.text)
        })
    };
    let world = World::default();
    let lenient = world.client(make()).answer("q", json!({ "text": "x" }));
    assert_eq!(lenient.call("t", json!({})).await.unwrap().text(), "x");
    let strict = world.bare(make()).with_replay_lints_denied();
    let strict = mcp_edge_test::with_store(strict, world.store.clone());
    let strict = client(&strict).answer("q", json!({ "text": "x" }));
    let refused = strict.call("t", json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("a plain await came before question `q`"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_40_the_inlined_result_leaves_it_to_the_outer_one_to_say_whose_it_is() {
    let world = World::default();
    let client = world.client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        "done"
    }));
    let task = client.start("t", json!({})).await.unwrap();
    let task = wait_for(&client, &task.id, |task| task.status.is_terminal()).await;
    let result = task.result.unwrap();
    assert_eq!(result["resultType"], "complete");
    assert!(result["_meta"].is_null(), "{result}");
}

#[tokio::test(start_paused = true)]
async fn strict_mode_has_nothing_against_questions_of_a_task() {
    let world = World::default();
    let strict = world.bare(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let (one, two) = join!(cx.elicit::<Text>("one", "?"), cx.elicit::<Text>("two", "?"));
        Ok::<_, ToolError>(one.required()?.text + &two.required()?.text)
    }));
    let strict = strict.with_replay_lints_denied();
    let strict = mcp_edge_test::with_store(strict, world.store.clone());
    let client = client(&strict).answer("one", json!({ "text": "a" }));
    let client = client.answer("two", json!({ "text": "b" }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "ab");
}

#[tokio::test(start_paused = true)]
async fn strict_mode_finds_plain_io_beside_a_question_of_a_task() {
    let world = World::default();
    let strict = world.bare(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        let (answer, ()) = join!(cx.elicit::<Text>("q", "?"), seconds(60));
        answer.required().map(|answer| answer.text)
    }));
    let strict = strict.with_replay_lints_denied();
    let strict = mcp_edge_test::with_store(strict, world.store.clone());
    let client = client(&strict).answer("q", json!({ "text": "a" }));
    let refused = client.call("t", json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("may have been pending"), "{refused}");
}
