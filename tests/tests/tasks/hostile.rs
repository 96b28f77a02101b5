//! Clients that send what nobody should, records that nobody can read, and stores that fail at the
//! worst moment.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::join;
use mcp_edge::{
    BoxFuture, BoxStream, Change, ChangeFeed, Created, Cx, DueIndex, FeedError, JsonLog, NoArgs,
    Server, ServerBuilder, StoreError, TaskRecord, TaskStore, Timestamp, ToolError, Topics,
};
use mcp_edge_test::{Client, Reply, Task, TaskStatus, TestPlatform};
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber as _;

use super::{Counter, Nobody, Spy, Text, World, answer, builder, limited, seconds, wait_for};

fn asking() -> ServerBuilder {
    builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
        cx.elicit::<Text>("q", "Who?").await.required().map(|answer| answer.text)
    })
}

/// A task that has asked its question, and its client.
async fn asked(world: &World) -> (Client, Task) {
    let client = world.client(asking());
    let task = client.start("t", json!({})).await.unwrap();
    let task = wait_for(&client, &task.id, |task| !task.questions.is_empty()).await;
    (client, task)
}

/// What a task ends with.
async fn end(client: &Client, task: &Task) -> String {
    let task = wait_for(client, &task.id, |task| task.status.is_terminal()).await;
    task.result.unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

/// `tasks/update` with answers as they are written; the status and the code.
async fn update(client: &Client, id: &str, answers: &str) -> (u16, i64) {
    let params = json!({ "taskId": id, "inputResponses": "@" });
    let mut request = client.request("tasks/update", params);
    let body = String::from_utf8(request.body().to_vec()).unwrap();
    *request.body_mut() = body.replace("\"@\"", answers).into();
    let mut response = client.raw(request).await.unwrap();
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    (response.status.as_u16(), body["error"]["code"].as_i64().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn task_28_of_an_answer_that_is_repeated_the_last_one_is_judged_and_counts() {
    let world = World::default();
    let (client, task) = asked(&world).await;
    let written = world.store.written().len();
    let (bad, good) = (json!(7), answer("Ada"));
    let last_is_bad = format!(r#"{{"q":{good},"q":{bad}}}"#);
    assert_eq!(update(&client, &task.id, &last_is_bad).await, (200, -32602));
    assert_eq!(world.store.written().len(), written, "nothing is stored");
    let last_is_good = format!(r#"{{"q":{bad},"q":{},"q":{good}}}"#, answer("Eve"));
    assert_eq!(update(&client, &task.id, &last_is_good).await, (200, 0));
    assert_eq!(end(&client, &task).await, "Ada");
}

#[tokio::test(start_paused = true)]
async fn task_31_an_answer_that_says_two_things_is_refused() {
    let world = World::default();
    let (client, task) = asked(&world).await;
    let written = world.store.written().len();
    for twice in [
        r#"{"action":"decline","action":"accept","content":{"text":"a"}}"#,
        r#"{"action":"accept","content":{"text":"a"},"content":{"text":"b"}}"#,
    ] {
        let answers = format!(r#"{{"q":{twice}}}"#);
        assert_eq!(update(&client, &task.id, &answers).await, (200, -32602), "{twice}");
    }
    assert_eq!(world.store.written().len(), written);
}

#[tokio::test(start_paused = true)]
async fn task_30_ten_thousand_unknown_keys_are_ignored_and_stored_nowhere() {
    let world = World::default();
    let (client, task) = asked(&world).await;
    let written = world.store.written().len();
    let mut answers: serde_json::Map<_, _> =
        (0..10_000).map(|number| (format!("x{number}"), answer("x"))).collect();
    let many = Value::Object(answers.clone()).to_string();
    assert_eq!(update(&client, &task.id, &many).await, (200, 0));
    assert_eq!(world.store.written().len(), written, "nothing came of it");
    answers.insert("q".to_owned(), answer("Ada"));
    let many = Value::Object(answers).to_string();
    assert_eq!(update(&client, &task.id, &many).await, (200, 0));
    let record = world.store.written()[written].to_string();
    assert!(record.len() < 4096 && !record.contains("x77"), "{record}");
    assert_eq!(end(&client, &task).await, "Ada");
}

#[tokio::test(start_paused = true)]
async fn http_17_answers_are_nested_as_deep_as_a_body_may_be() {
    let world = World::default();
    let (client, task) = asked(&world).await;
    let written = world.store.written().len();
    // The body, its params and the answers are three.
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth - 3), "]".repeat(depth - 3));
    for (key, depth, expected) in [
        ("x", 64, (200, 0)),
        ("x", 65, (400, -32700)),
        ("q", 64, (200, -32602)),
        ("q", 65, (400, -32700)),
    ] {
        let answers = format!(r#"{{"{key}":{}}}"#, nested(depth));
        assert_eq!(update(&client, &task.id, &answers).await, expected, "{key} {depth}");
    }
    let content = format!(r#"{{"q":{{"action":"accept","content":{{"text":{}}}}}}}"#, nested(62));
    assert_eq!(update(&client, &task.id, &content).await, (200, -32602));
    assert_eq!(world.store.written().len(), written);
}

#[tokio::test(start_paused = true)]
async fn task_28_answers_that_are_no_object_are_refused() {
    let world = World::default();
    let (client, task) = asked(&world).await;
    let written = world.store.written().len();
    for wrong in ["null", "7", "\"x\"", "[]", "[{\"q\":1}]", "true"] {
        assert_eq!(update(&client, &task.id, wrong).await, (200, -32602), "{wrong}");
    }
    let without = json!({ "taskId": task.id });
    let refused = client.round("tasks/update", without).await.unwrap();
    assert_eq!(refused.code(), Some(-32602));
    assert_eq!(world.store.written().len(), written);
}

/// What becomes of the body of a record.
type Garbage = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// Writes a body into the record of the task that was created last.
async fn overwrite(world: &World, change: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let key = world.store.keys.lock().unwrap().last().unwrap().clone();
    let store = &world.store.store;
    let mut record = store.get(&key, Timestamp::default()).await.unwrap().unwrap();
    record.body = change(&record.body).into();
    assert!(store.update(&record, Timestamp::default()).await.unwrap());
    key
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_is_left_as_it_is() {
    let world = World::default();
    let server = world.idle(asking());
    let client = Client::in_process(&server).with_tasks();
    let changed = |change: fn(&mut Value)| {
        move |body: &[u8]| {
            let mut body: Value = serde_json::from_slice(body).unwrap();
            change(&mut body);
            body.to_string().into_bytes()
        }
    };
    let garbage: Vec<Garbage> = vec![
        Box::new(|_| Vec::new()),
        Box::new(|_| b"null".to_vec()),
        Box::new(|_| b"[]".to_vec()),
        Box::new(|_| b"{}".to_vec()),
        Box::new(|_| vec![0xff; 100]),
        Box::new(|_| b"[".repeat(200_000)),
        Box::new(|body| body[..body.len() - 1].to_vec()),
        // Of a version that knows more.
        Box::new(changed(|body| body["status"] = json!("paused"))),
        Box::new(changed(|body| body["journal"] = json!({ "of": "another version" }))),
        Box::new(changed(|body| body["created_at"] = json!("yesterday"))),
        Box::new(changed(|body| body["principal"] = json!(null))),
    ];
    for (number, garbage) in garbage.iter().enumerate() {
        let task = client.start("t", json!({})).await.unwrap();
        let key = overwrite(&world, garbage).await;
        let before = world.store.store.get(&key, Timestamp::default()).await.unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let log = JsonLog::new(tracing::Level::ERROR, Timestamp::default, move |line| {
            seen.lock().unwrap().push(line.to_owned());
        });
        world.advance(&server).with_subscriber(log).await;
        let said = lines.lock().unwrap().concat();
        assert!(
            said.contains("the record of a task cannot be read") && said.contains(&key),
            "{said}"
        );
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": task.id, "inputResponses": {} });
            let reply = client.round(method, params).await.unwrap();
            let neutral = json!({ "code": -32603, "message": "Internal error" });
            assert_eq!(reply.error(), Some(&neutral), "{number} {method}");
        }
        let listening = client.listen(json!({ "taskIds": [task.id] })).await.unwrap();
        assert_eq!(listening.acknowledged(), &json!({}));
        let after = world.store.store.get(&key, Timestamp::default()).await.unwrap();
        assert_eq!(after, before, "{number}: it is left for those who can read it");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_newer_version_added_to_a_record_does_not_stop_an_older_one() {
    let world = World::default();
    let server = world.idle(asking());
    let client = Client::in_process(&server).with_tasks();
    let task = client.start("t", json!({})).await.unwrap();
    overwrite(&world, |body| {
        let mut body: Value = serde_json::from_slice(body).unwrap();
        body["colour"] = json!({ "of": "the future" });
        body.to_string().into_bytes()
    })
    .await;
    world.advance(&server).await;
    client.update_task(&task.id, json!({ "q": answer("Ada") })).await.unwrap();
    world.advance(&server).await;
    assert_eq!(client.follow(&task).await.unwrap().text(), "Ada");
}

#[tokio::test(start_paused = true)]
async fn numbers_without_measure_in_a_record_are_no_panic() {
    let world = World::default();
    let server = world.idle(asking());
    let client = Client::in_process(&server).with_tasks();
    let most = json!(u64::MAX);
    for (name, value) in [
        ("created_at", most.clone()),
        ("updated_at", most.clone()),
        ("ttl_ms", most.clone()),
        ("attempts", json!(u32::MAX)),
        ("wakes_at", most.clone()),
        ("lease", json!({ "holder": "", "until": most })),
        ("lease", json!({ "holder": "", "until": 0 })),
    ] {
        let task = client.start("t", json!({})).await.unwrap();
        overwrite(&world, |body| {
            let mut body: Value = serde_json::from_slice(body).unwrap();
            body[name] = value;
            body.to_string().into_bytes()
        })
        .await;
        for method in ["tasks/get", "tasks/cancel", "tasks/get"] {
            // No client takes a date so late; what counts is that it is answered.
            let request = client.request(method, json!({ "taskId": task.id }));
            let mut response = client.raw(request).await.unwrap();
            let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            assert_eq!(body["result"]["resultType"], "complete", "{name}: {body}");
            world.advance(&server).await;
        }
    }
}

/// What becomes of one call of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Fails,
    /// What was asked for is done, and nobody learns of it.
    FailsAfterwards,
    Hangs,
    /// It takes longer than a lease lasts.
    IsLate,
}

/// A store of which one call, by its number, goes wrong.
#[derive(Clone)]
struct Faulty {
    store: Spy,
    calls: Counter,
    at: usize,
    how: How,
}

impl Faulty {
    async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let failed = || StoreError::new("a secret");
        if self.calls.bump() != self.at {
            return call.await;
        }
        match self.how {
            How::Fails => Err(failed()),
            How::FailsAfterwards => call.await.and(Err(failed())),
            How::Hangs => std::future::pending().await,
            How::IsLate => {
                seconds(11).await;
                call.await
            }
        }
    }
}

impl TaskStore for Faulty {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        // What is late is asked for late.
        Box::pin(self.call(async move { self.store.get(key, now).await }))
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(self.call(async move { self.store.create(record, max_open, now).await }))
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.call(async move { self.store.update(record, now).await }))
    }

    fn due_index(&self) -> Option<&dyn DueIndex> {
        self.store.due_index()
    }
}

/// Waits as long as a client does: nothing if it gave up, or was told of a fault of the server that
/// says no more than that.
async fn patiently<T>(
    asked: impl Future<Output = Result<T, mcp_edge_test::CallError>>,
) -> Option<T> {
    match tokio::time::timeout(Duration::from_secs(15), asked).await {
        Err(_) => None,
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(refused)) => {
            assert_eq!(refused.code(), Some(-32603), "{refused}");
            assert!(!refused.to_string().contains("secret"), "{refused}");
            None
        }
    }
}

/// The life of a task on two instances, of which one call of the store goes wrong: how many there
/// were, and how often each of its two steps ran.
async fn life(at: usize, how: How) -> (usize, [usize; 2]) {
    let (one, two) = (Counter::default(), Counter::default());
    let make = || {
        let (one, two) = (one.clone(), two.clone());
        builder().tool("t", "", move |cx: Cx, _: NoArgs| {
            let (one, two) = (one.clone(), two.clone());
            async move {
                let who = cx.elicit::<Text>("who", "Who?").await.required()?.text;
                cx.background("").await;
                let first = cx.step("one", async || Ok::<_, ToolError>(one.bump()));
                first.await?;
                let (name, second) = join!(
                    cx.elicit::<Text>("name", "And then?"),
                    cx.step("two", async || {
                        two.bump();
                        seconds(4).await;
                        Ok::<_, ToolError>(())
                    }),
                );
                second?;
                Ok::<_, ToolError>(format!("{who} {}", name.required()?.text))
            }
        })
    };
    let world = World::default();
    let calls = Counter::default();
    let store = Faulty { store: world.store.clone(), calls: calls.clone(), at, how };
    let fleet = [(); 2].map(|()| world.bare(make()).with_tasks(store.clone(), Nobody));
    let client = Client::fleet(fleet.clone()).with_tasks();

    let asked = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let begin = async || {
        let begun: Reply = client.retry(&asked, json!({ "who": answer("Ada") })).await?;
        assert!(begun.task().is_some() || begun.code() == Some(-32603), "{begun}");
        Ok(begun.task())
    };
    let task = loop {
        match patiently(begin()).await.flatten() {
            Some(task) => break task,
            None => seconds(1).await,
        }
    };
    let sweeping = fleet.map(|server: Server| {
        tokio::spawn(async move {
            loop {
                let due = server.sweep_tasks(&TestPlatform::new()).await.unwrap();
                for key in due {
                    let server = server.clone();
                    tokio::spawn(async move {
                        let platform = Arc::new(TestPlatform::new());
                        let advance = server.advance(&key, platform);
                        // An instance that hangs is ended.
                        let _ = tokio::time::timeout(Duration::from_secs(60), advance).await;
                    });
                }
                seconds(1).await;
            }
        })
    });
    let mut seen = None;
    for _ in 0..200 {
        seen = patiently(client.task(&task.id)).await.or(seen);
        let Some(now) = &seen else { continue };
        if now.status.is_terminal() {
            break;
        }
        if !now.questions.is_empty() {
            patiently(client.update_task(&task.id, json!({ "name": answer("Lovelace") }))).await;
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    sweeping.iter().for_each(tokio::task::JoinHandle::abort);
    let ended = seen.unwrap();
    assert_eq!(ended.status, TaskStatus::Completed, "{how:?} at {at}: {ended:?}");
    assert_eq!(ended.result.unwrap()["content"][0]["text"], "Ada Lovelace", "{how:?} at {at}");
    let ids: BTreeSet<_> = world.store.keys.lock().unwrap().iter().cloned().collect();
    assert_eq!(ids.len(), 1, "{how:?} at {at}: the call began once");
    (calls.get(), [one.get(), two.get()])
}

async fn every_call_once(how: How) {
    let (calls, steps) = life(usize::MAX, how).await;
    assert!(calls > 15 && steps == [1, 1], "{calls} {steps:?}");
    let mut again = 0;
    for at in 1..=calls {
        let (made, steps) = life(at, how).await;
        assert!(made >= at, "{how:?} at {at}: it was never called");
        assert!(steps.iter().all(|times| (1..=2).contains(times)), "{how:?} at {at}: {steps:?}");
        again += usize::from(steps != [1, 1]);
    }
    // A store that fails is asked again, so nothing runs twice for it; one that does not answer is left.
    let is_left = matches!(how, How::Hangs | How::IsLate);
    assert_eq!(again > 0, is_left, "{how:?}: a step ran twice for {again} of the faults");
}

#[tokio::test(start_paused = true)]
async fn any_call_of_the_store_may_fail_once() {
    every_call_once(How::Fails).await;
}

#[tokio::test(start_paused = true)]
async fn any_call_of_the_store_may_fail_once_after_it_was_done() {
    every_call_once(How::FailsAfterwards).await;
}

#[tokio::test(start_paused = true)]
async fn any_call_of_the_store_may_hang_once() {
    every_call_once(How::Hangs).await;
}

#[tokio::test(start_paused = true)]
async fn any_call_of_the_store_may_take_so_long_that_the_lease_is_lost() {
    every_call_once(How::IsLate).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_moment_at_which_a_lease_is_lost_is_kept() {
    // Before the lease is over, at that moment, and after it.
    for after in [9_900, 9_999, 10_000, 10_001, 10_100] {
        let world = World::default();
        let make = || {
            builder().tool("t", "", async |cx: Cx, _: NoArgs| {
                cx.background("").await;
                let (name, rest) = join!(
                    cx.elicit::<Text>("q", "Who?"),
                    cx.step("long", async || {
                        seconds(60).await;
                        Ok::<_, ToolError>(())
                    }),
                );
                rest?;
                Ok::<_, ToolError>(name.required()?.text)
            })
        };
        let (here, there) = (world.idle(make()), world.idle(make()));
        let client = Client::in_process(&there).with_tasks();
        let task = client.start("t", json!({})).await.unwrap();
        // The one who has it dies after its first write.
        let run = world.advance(&here);
        assert!(tokio::time::timeout(Duration::from_millis(500), run).await.is_err());
        assert_eq!(client.task(&task.id).await.unwrap().questions.len(), 1);
        let take_over = async {
            tokio::time::sleep(Duration::from_millis(9_500)).await;
            for _ in 0..12 {
                world.advance(&there).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let give = async {
            tokio::time::sleep(Duration::from_millis(after - 500)).await;
            client.update_task(&task.id, json!({ "q": answer("Ada") })).await.unwrap();
        };
        join!(take_over, give);
        for _ in 0..3 {
            world.advance(&there).await;
            seconds(11).await;
        }
        assert_eq!(client.follow(&task).await.unwrap().text(), "Ada", "{after}");
    }
}

#[tokio::test(start_paused = true)]
async fn task_34_of_many_ids_in_a_filter_those_of_the_caller_are_honoured_once() {
    let world = World::default();
    let server = world.idle(asking());
    let client = Client::in_process(&server).with_tasks();
    let task = client.start("t", json!({})).await.unwrap();
    let invented = |number: usize| {
        let last = if task.id.ends_with('A') { "B" } else { "A" };
        match number % 3 {
            0 => format!("{}{last}", &task.id[..task.id.len() - 1]),
            1 => format!("{}{number}", task.id),
            _ => format!("{number:0>90}"),
        }
    };
    let mut ids: Vec<_> = (0..255).map(invented).collect();
    ids.push(task.id.clone());
    let reads = world.store.reads();
    let mut listening = client.listen(json!({ "taskIds": ids })).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({ "taskIds": [task.id] }));
    assert_eq!(world.store.reads(), reads + 1, "the others cost no read");
    assert_eq!(listening.next_task().await.unwrap().id, task.id);
    drop(listening);

    let reads = world.store.reads();
    let same = vec![task.id.clone(); 256];
    let mut listening = client.listen(json!({ "taskIds": same })).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({ "taskIds": [task.id] }));
    assert_eq!(world.store.reads(), reads + 1);
    assert_eq!(listening.next_task().await.unwrap().status, TaskStatus::Working);
    client.cancel_task(&task.id).await.unwrap();
    assert_eq!(listening.next_task().await.unwrap().status, TaskStatus::Cancelled, "once each");
}

#[tokio::test(start_paused = true)]
async fn sub_15_a_subscription_that_fails_gives_its_place_back() {
    /// Takes nobody, the first few times.
    struct Full(mcp_edge::InProcessFeed, Counter);
    impl ChangeFeed for Full {
        fn publish<'a>(
            &'a self,
            tenant: Option<&'a str>,
            change: Change,
        ) -> BoxFuture<'a, Result<(), FeedError>> {
            self.0.publish(tenant, change)
        }

        fn subscribe(
            &self,
            topics: Topics,
        ) -> BoxFuture<'_, Result<BoxStream<'static, Change>, FeedError>> {
            if self.1.bump() > 3 {
                return self.0.subscribe(topics);
            }
            Box::pin(std::future::ready(Err(FeedError::new("a secret"))))
        }
    }
    let full = Full(Default::default(), Counter::default());
    let one = limited(|limits| limits.listeners = 1).tool("t", "", async |_: NoArgs| "");
    let client = Client::in_process(&one.change_feed(full).build().unwrap());
    let filter = json!({ "toolsListChanged": true });
    for _ in 0..3 {
        let refused = client.listen(filter.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Some(-32603), "{refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
    let listening = client.listen(filter.clone()).await.unwrap();
    let refused = client.listen(filter.clone()).await.unwrap_err();
    assert_eq!(refused.status().map(|status| status.as_u16()), Some(503));
    drop(listening);
    client.listen(filter).await.unwrap();
}
