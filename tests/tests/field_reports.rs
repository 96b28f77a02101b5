//! What people ran into with other servers, as far as it is about statelessness, eras and clients, or
//! about work that outlives its request. What is about one platform is tested with its adapter.
//!
//! | report | test |
//! |---|---|
//! | W12 | `s04_whatever_one_instance_gives_out_the_next_one_opens`, and for ids of tasks `l09_and_l10_...` |
//! | L7 | `l07_an_answer_or_a_task_comes_before_the_platform_cuts_the_call` |
//! | L9, L10 | `l09_and_l10_begun_on_one_instance_done_on_another_and_read_on_a_third` |
//! | L11 | `l11_an_id_of_a_task_cannot_be_guessed_and_is_of_no_use_to_others` |
//! | S1 | `s01_a_server_answers_again_and_again_and_several_at_once` |
//! | S2 | `s02_get_and_delete_are_405_at_once_and_no_page` |
//! | S3 | `s03_a_dead_session_id_is_ignored`; with the earlier revisions, also in their exchanges |
//! | S4 | `s04_whatever_one_instance_gives_out_the_next_one_opens` |
//! | S5 | waits for the earlier revisions: a `ping` of theirs is a method of none of ours |
//! | S6 | waits for the earlier revisions: there is no handshake to go on from |
//! | S7 | `contract::streams::s7_sse_for_those_who_take_nothing_else`, and `s07_half_an_accept_is_enough` |
//! | S8 | `s08_an_answer_is_plain_json_unless_something_was_emitted` |
//! | S9 | `contract::streams::s9_events_are_dropped_where_only_json_is_taken`, and `s09_progress_arrives_where_both_are_taken` |
//! | S10 | `s10_a_host_that_is_not_allowed_is_told_how_it_would_be`; the word at start is the adapter's |
//! | S11 | `s11_every_configuration_answers_discover_and_errors_in_json_rpc` |
//! | S12 | `s12_altered_and_invented_states_are_refused_and_an_absent_one_is_missed`, and `s12_a_state_for_single_use_counts_once` |
//! | S13 | `s13_the_header_names_one_tool_and_the_body_another` |
//! | S14 | `s14_what_was_sealed_for_another_audience_is_refused`; audiences of tokens wait for authorization |
//! | S15 | `providers::s15_a_keyset_cursor_neither_repeats_nor_hides_what_comes_and_goes`, and `s15_a_cursor_belongs_to_its_list` |

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use mcp_edge::{
    BoxFuture, Cx, KeyRing, Limits, MemoryStore, NoArgs, Server, ServerBuilder, StoreError,
    TaskDriver, Timestamp, ToolError,
};
use mcp_edge_test::{Client, Framing, Reply, TaskStatus, TestPlatform, with_store, with_tasks};
use mcp_edge_tests::Tokens;
use serde_json::{Value, json};

fn builder() -> ServerBuilder {
    Server::builder("reports", "1.0.0")
        .tool("ask", "Asks", ask)
        .tool("work", "Tells how far it is", work)
        .tool("hello", "Greets", async |_: NoArgs| "Hello!")
        .tool_with("pay", "Asks", ask, |tool| tool.answers_need_state())
}

fn server() -> Server {
    builder().sealer(KeyRing::new(1, &[7; 32])).build().unwrap()
}

fn client() -> Client {
    Client::in_process(&server())
}

async fn ask(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.elicit_schema("sure", "Sure?", form()).await.required()?;
    Ok("done".to_owned())
}

fn form() -> Value {
    json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } })
}

async fn work(cx: Cx, _: NoArgs) -> &'static str {
    cx.progress(1.0, 2.0, "half");
    "worked"
}

fn hello(client: &Client) -> Request<Bytes> {
    client.request("tools/call", json!({ "name": "hello" }))
}

/// The retry of a call of `ask`, with its answer.
fn retry(state: &Value) -> Value {
    json!({ "name": "ask", "inputResponses": { "sure": yes() }, "requestState": state })
}

fn yes() -> Value {
    json!({ "action": "accept", "content": { "yes": true } })
}

fn is_refused(reply: &Reply) -> bool {
    reply.error() == Some(&json!({ "code": -32602, "message": "Invalid requestState" }))
}

#[tokio::test]
async fn s01_a_server_answers_again_and_again_and_several_at_once() {
    let client = client();
    for _ in 0..3 {
        assert_eq!(client.call("hello", json!({})).await.unwrap().text(), "Hello!");
    }
    let calls = (0..20).map(|_| client.call("hello", json!({})));
    for called in futures_util::future::join_all(calls).await {
        assert_eq!(called.unwrap().text(), "Hello!");
    }
}

#[tokio::test]
async fn s02_get_and_delete_are_405_at_once_and_no_page() {
    let client = client();
    for method in ["GET", "DELETE"] {
        for accept in ["text/event-stream", "text/html", "*/*"] {
            let mut request = hello(&client);
            *request.method_mut() = method.parse().unwrap();
            *request.body_mut() = Bytes::new();
            request.headers_mut().insert("accept", HeaderValue::from_static(accept));
            let mut response = client.raw(request).await.unwrap();
            assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
            assert_eq!(response.headers["allow"], "POST");
            assert_eq!(response.headers["content-type"], "application/json", "{accept}");
            response.json().await.unwrap();
        }
    }
}

#[tokio::test]
async fn s03_a_dead_session_id_is_ignored() {
    let client = client().header("mcp-session-id", "long-dead");
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "hello" })),
    ] {
        let reply = client.round(method, params).await.unwrap();
        assert!(reply.result().is_some(), "{reply}");
        assert!(!reply.headers.contains_key("mcp-session-id"), "{reply}");
    }
}

#[tokio::test]
async fn s04_whatever_one_instance_gives_out_the_next_one_opens() {
    let limits = || {
        let mut limits = Limits::default();
        limits.page_size = 1;
        limits
    };
    let instance = || builder().limits(limits()).sealer(KeyRing::new(1, &[7; 32])).build().unwrap();
    let fleet = Client::fleet([instance(), instance(), instance()])
        .on_question(|question| Some(question.accept(json!({ "yes": true }))));
    assert_eq!(fleet.call("ask", json!({})).await.unwrap().text(), "done");
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let page = fleet.round("tools/list", params).await.unwrap();
        assert!(!page.headers.contains_key("mcp-session-id"), "{page}");
        names.push(page.result().unwrap()["tools"][0]["name"].clone());
        match page.result().unwrap().get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!(names, ["ask", "work", "hello", "pay"]);
}

#[tokio::test]
async fn s07_half_an_accept_is_enough() {
    for (accept, framing) in
        [("application/json", Framing::Json), ("text/event-stream", Framing::Sse)]
    {
        let client = client().accept(accept);
        let reply = client.round("tools/call", json!({ "name": "hello" })).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.framing), (200, framing), "{accept}");
    }
}

#[tokio::test]
async fn s08_an_answer_is_plain_json_unless_something_was_emitted() {
    let client = client().with_progress();
    for (name, framing) in
        [("hello", Framing::Json), ("ask", Framing::Json), ("work", Framing::Sse)]
    {
        let reply = client.round("tools/call", json!({ "name": name })).await.unwrap();
        assert_eq!(reply.framing, framing, "{reply}");
    }
    let list = client.round("tools/list", json!({})).await.unwrap();
    assert_eq!(list.framing, Framing::Json);
}

#[tokio::test]
async fn s09_progress_arrives_where_both_are_taken() {
    let called = client().with_progress().call("work", json!({})).await.unwrap();
    assert_eq!((called.progress().len(), called.text().as_str()), (1, "worked"));
}

#[tokio::test]
async fn s10_a_host_that_is_not_allowed_is_told_how_it_would_be() {
    let from = async |server: &Server| {
        let client = Client::in_process(server);
        let mut request = hello(&client);
        request.headers_mut().insert("host", HeaderValue::from_static("mcp.example.com"));
        let mut response = client.raw(request).await.unwrap();
        (response.status.as_u16(), response.text().await.unwrap())
    };
    let (status, text) = from(&builder().build().unwrap()).await;
    assert_eq!(status, 403);
    assert!(text.contains("Host"), "it says what is wrong: {text}");
    let listed = builder().allow_hosts(["mcp.example.com"]).build().unwrap();
    assert_eq!(from(&listed).await.0, 200);
    let elsewhere = builder().allow_hosts(["other.example.com"]).build().unwrap();
    assert_eq!(from(&elsewhere).await.0, 403, "a list is a list");
}

#[tokio::test]
async fn s11_every_configuration_answers_discover_and_errors_in_json_rpc() {
    let nothing = || Server::builder("nothing", "1.0.0");
    for server in [
        nothing().build().unwrap(),
        nothing().without_server_info().build().unwrap(),
        nothing().logging().build().unwrap(),
        nothing().prompt("p", "P", |_: NoArgs| async { "p" }).build().unwrap(),
        nothing().resource("a:b", "r", |_: NoArgs| async { "r" }).build().unwrap(),
        server(),
    ] {
        let client = Client::in_process(&server);
        let found = client.round("server/discover", json!({})).await.unwrap();
        assert_eq!(found.result().unwrap()["supportedVersions"], json!(["2026-07-28"]));
        // What a client of another revision sends first.
        for (method, version, status, code) in [
            ("server/discover", "2027-01-15", 400, -32022),
            ("initialize", "2026-07-28", 404, -32601),
            ("unknown/method", "2026-07-28", 404, -32601),
        ] {
            let meta = json!({ "io.modelcontextprotocol/protocolVersion": version });
            let mut request = client.request(method, json!({ "_meta": meta }));
            let value = HeaderValue::from_static(version);
            request.headers_mut().insert("mcp-protocol-version", value);
            let mut response = client.raw(request).await.unwrap();
            let body = response.json().await.unwrap();
            assert_eq!((response.status.as_u16(), &body["error"]["code"]), (status, &json!(code)));
        }
    }
}

#[tokio::test]
async fn s12_altered_and_invented_states_are_refused_and_an_absent_one_is_missed() {
    let client = client().capabilities(json!({ "elicitation": {} }));
    let asked = client.round("tools/call", json!({ "name": "ask" })).await.unwrap();
    let state = asked.request_state().unwrap();
    let mut altered = state.to_owned();
    let last = if altered.pop() == Some('A') { 'B' } else { 'A' };
    altered.insert(altered.len() / 2, last);
    for wrong in [altered.as_str(), "", "invented", &state[..state.len() / 2]] {
        let reply = client.round("tools/call", retry(&json!(wrong))).await.unwrap();
        assert!(is_refused(&reply), "{reply}");
    }
    // Answers to no question: a tool may refuse to run on them, and asks anew.
    let absent = json!({ "name": "pay", "inputResponses": { "sure": yes() } });
    let reply = client.round("tools/call", absent).await.unwrap();
    assert!(reply.is_input_required(), "{reply}");
    let reply = client.round("tools/call", retry(&json!(state))).await.unwrap();
    assert_eq!(reply.result().unwrap()["content"][0]["text"], "done");
}

#[tokio::test]
async fn s12_a_state_for_single_use_counts_once() {
    let charged = Arc::new(AtomicUsize::new(0));
    let guard = MemoryStore::default();
    let instance = || {
        let charged = Arc::clone(&charged);
        let charge = move |cx: Cx, _: NoArgs| {
            let charged = Arc::clone(&charged);
            async move {
                cx.elicit_schema("sure", "Sure?", form()).await.required()?;
                let step = async || Ok::<_, ToolError>(charged.fetch_add(1, Ordering::Relaxed));
                cx.step("charge", step).await?;
                Ok::<_, ToolError>("charged")
            }
        };
        let server = builder().tool_with("charge", "Charges", charge, |tool| tool.single_use());
        let server = server.sealer(KeyRing::new(1, &[7; 32])).build().unwrap();
        server.with_replay_guard(guard.clone())
    };
    let client = Client::fleet([instance(), instance()]);
    let asked = client.round("tools/call", json!({ "name": "charge" })).await.unwrap();
    let retried = client.retry(&asked, json!({ "sure": yes() })).await.unwrap();
    assert_eq!(retried.result().unwrap()["content"][0]["text"], "charged");
    for _ in 0..3 {
        let replayed = client.retry(&asked, json!({ "sure": yes() })).await.unwrap();
        assert!(is_refused(&replayed), "{replayed}");
    }
    assert_eq!(charged.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn s13_the_header_names_one_tool_and_the_body_another() {
    let ran = Arc::new(AtomicUsize::new(0));
    let tool = |ran: &Arc<AtomicUsize>| {
        let ran = Arc::clone(ran);
        move |_: NoArgs| {
            ran.fetch_add(1, Ordering::Relaxed);
            async { "ran" }
        }
    };
    let server = Server::builder("two", "1.0.0")
        .tool("read", "Harmless", tool(&ran))
        .tool("delete", "Not so", tool(&ran))
        .build()
        .unwrap();
    let client = Client::in_process(&server);
    let mut request = client.request("tools/call", json!({ "name": "delete" }));
    request.headers_mut().insert("mcp-name", HeaderValue::from_static("read"));
    let mut response = client.raw(request).await.unwrap();
    let body = response.json().await.unwrap();
    assert_eq!((response.status.as_u16(), &body["error"]["code"]), (400, &json!(-32020)));
    assert_eq!(ran.load(Ordering::Relaxed), 0, "neither ran");
    client.call("delete", json!({})).await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn s14_what_was_sealed_for_another_audience_is_refused() {
    let of = |url: &str| {
        let server = builder().sealer(KeyRing::new(1, &[7; 32])).public_url(url);
        Client::in_process(&server.build().unwrap())
    };
    let here = of("https://a.example.com/mcp");
    let params = json!({ "name": "ask" });
    let capable = |client: Client| client.capabilities(json!({ "elicitation": {} }));
    let asked = capable(here.clone()).round("tools/call", params).await.unwrap();
    let retry = retry(&json!(asked.request_state()));
    let elsewhere = capable(of("https://b.example.com/mcp"));
    assert!(is_refused(&elsewhere.round("tools/call", retry.clone()).await.unwrap()));
    // The URL is what was set, whatever host the request came by.
    let inner = capable(here).header("host", "127.0.0.1:9000");
    let reply = inner.round("tools/call", retry).await.unwrap();
    assert!(reply.result().is_some(), "{reply}");
}

#[tokio::test]
async fn s15_a_cursor_belongs_to_its_list() {
    let mut limits = Limits::default();
    limits.page_size = 1;
    let server = builder()
        .prompt("p", "P", |_: NoArgs| async { "p" })
        .prompt("q", "Q", |_: NoArgs| async { "q" })
        .sealer(KeyRing::new(1, &[7; 32]))
        .limits(limits);
    let client = Client::in_process(&server.build().unwrap());
    let page = client.round("tools/list", json!({})).await.unwrap();
    let cursor = json!({ "cursor": page.result().unwrap()["nextCursor"] });
    let refused = client.round("prompts/list", cursor.clone()).await.unwrap();
    assert_eq!(refused.code(), Some(-32602));
    let next = client.round("tools/list", cursor).await.unwrap();
    assert_eq!(next.result().unwrap()["tools"][0]["name"], "work");
}

// Work that outlives its request.

/// A server whose `report` takes a minute, as a task where its client can hold one.
fn reporting() -> ServerBuilder {
    Server::builder("reports", "1.0.0")
        .tool("report", "Takes a minute", async |cx: Cx, _: NoArgs| {
            cx.background("Reporting").await;
            let work = async || {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok::<_, ToolError>("a report".to_owned())
            };
            cx.step("work", work).await
        })
        .sealer(KeyRing::new(1, &[7; 32]))
}

#[tokio::test(start_paused = true)]
async fn l07_an_answer_or_a_task_comes_before_the_platform_cuts_the_call() {
    let limit = Duration::from_secs(29);
    let server = with_tasks(reporting().anonymous_tasks(true).build().unwrap());
    let client =
        |limit| Client::in_process(&server).platform(TestPlatform::new().with_deadline(limit));
    let began = tokio::time::Instant::now();
    let reply = client(limit).round("tools/call", json!({ "name": "report" })).await.unwrap();
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
    assert!(reply.error().is_some(), "it says that it failed: {reply}");

    let began = tokio::time::Instant::now();
    let task = client(limit).with_tasks().start("report", json!({})).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(client(limit).with_tasks().follow(&task).await.unwrap().text(), "a report");
}

/// An instance that is frozen as soon as a request is over: it comes back to nothing.
struct Frozen;

impl TaskDriver for Frozen {
    fn schedule<'a>(&'a self, _: &'a str, _: Timestamp) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test(start_paused = true)]
async fn l09_and_l10_begun_on_one_instance_done_on_another_and_read_on_a_third() {
    let store = MemoryStore::default();
    let instance = || {
        let server = reporting().anonymous_tasks(true).build().unwrap();
        server.with_tasks(store.clone(), Frozen)
    };
    let client = |server: &Server| Client::in_process(server).with_tasks();
    let here = instance();
    let task = client(&here).start("report", json!({})).await.unwrap();
    drop(here);
    let read = client(&instance()).task(&task.id).await.unwrap();
    assert_eq!(read.status, TaskStatus::Working, "nobody goes on with it");

    let there = instance();
    let due = there.sweep_tasks(&TestPlatform::new()).await.unwrap();
    assert_eq!(due.len(), 1);
    there.advance(&due[0], Arc::new(TestPlatform::new())).await.unwrap();
    let read = client(&instance()).task(&task.id).await.unwrap();
    assert_eq!(read.status, TaskStatus::Completed);
    assert_eq!(read.result.unwrap()["content"][0]["text"], "a report");
}

#[tokio::test(start_paused = true)]
async fn l11_an_id_of_a_task_cannot_be_guessed_and_is_of_no_use_to_others() {
    let server = reporting().authenticator(Tokens).public_url("https://mcp.example.com/mcp");
    let server = with_store(server.build().unwrap(), MemoryStore::default());
    let client = |name: &str| Client::in_process(&server).with_tasks().bearer(name);
    let (ada, eve) = (client("ada"), client("eve"));
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(ada.start("report", json!({})).await.unwrap().id);
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let unknown = eve.round("tasks/get", json!({ "taskId": "invented" })).await.unwrap();
    let told = |reply: &Reply| (reply.status, reply.error().cloned());
    for id in &ids {
        assert_eq!(ada.task(id).await.unwrap().status, TaskStatus::Completed);
        let foreign = eve.round("tasks/get", json!({ "taskId": id })).await.unwrap();
        assert_eq!(told(&foreign), told(&unknown), "the same as for what never was");
    }
    // Whatever place of an id is altered, the owner reads nothing by it either.
    let id = &ids[0];
    for place in 0..id.len() {
        let other = if &id[place..=place] == "A" { "B" } else { "A" };
        let altered = format!("{}{other}{}", &id[..place], &id[place + 1..]);
        let reply = ada.round("tasks/get", json!({ "taskId": altered })).await.unwrap();
        assert_eq!(told(&reply), told(&unknown), "{altered}");
    }
    // One id says nothing of the next: they agree in no more places than chance will have it.
    let pairs = ids.windows(2).map(|pair| pair[0].bytes().zip(pair[1].bytes()));
    let differ: Vec<_> = pairs.map(|pair| pair.filter(|(a, b)| a != b).count()).collect();
    assert!(differ.iter().all(|places| *places >= 30), "{differ:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}
