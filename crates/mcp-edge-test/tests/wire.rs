//! What the client sends, and how it reads what comes back.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mcp_edge::{
    Change, Cx, InProcessFeed, KeyRing, Limits, NoArgs, RawArgs, Rejection, Server,
    protocol::{LogLevel, PromptMessage},
};
use mcp_edge_test::{Client, Fault, Framing, TestPlatform};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

/// Reports progress and logs, and takes its time.
async fn work(cx: Cx, _: NoArgs) -> &'static str {
    for step in 1..=3_i32 {
        cx.progress(f64::from(step), 3.0, "working");
        cx.log(LogLevel::Info, json!({"step": step}));
        cx.read(async || tokio::time::sleep(Duration::from_millis(50)).await).await;
    }
    "done"
}

fn server() -> Server {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Review {
        language: String,
    }
    async fn review(args: Review) -> PromptMessage {
        PromptMessage::user(format!("Review this {}", args.language))
    }
    async fn note(uri: mcp_edge::ResourceUri) -> String {
        uri.0
    }
    async fn query(args: RawArgs) -> String {
        args.get().to_owned()
    }
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
    }});
    let mut limits = Limits::default();
    limits.page_size = 2;
    Server::builder("everything", "1.2.3")
        .logging()
        .limits(limits)
        .tool("work", "Works", work)
        .tool("first", "Does nothing", async |_: NoArgs| "")
        .tool_with("query", "Queries", query, |tool| tool.input_schema(schema))
        .prompt_with("review", "Reviews", review, |prompt| {
            prompt.complete_values("language", ["ruby", "rust", "go"])
        })
        .template("note://{name}", "Notes", note)
        .resource("note://a/b", "A note", note)
        .build()
        .unwrap()
        .with_sealer(KeyRing::new(1, &[7; 32]))
        .with_change_feed(InProcessFeed::default())
}

#[tokio::test]
async fn requests_carry_what_a_conforming_client_sends() {
    let client = Client::in_process(&server())
        .with_progress()
        .log_level(LogLevel::Notice)
        .bearer("secret")
        .header("Origin", "http://localhost")
        .capabilities(json!({"roots": {}}));
    let request =
        client.request("tools/call", json!({"name": " a", "_meta": {"traceparent": "x"}}));
    let headers = request.headers();
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?IGE=?="),
        ("authorization", "Bearer secret"),
        ("origin", "http://localhost"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    assert_eq!((request.method(), request.uri().path()), (&http::Method::POST, "/mcp"));
    let body: Value = serde_json::from_slice(request.body()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": " a", "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "mcp-edge-test", "version": version},
            "io.modelcontextprotocol/logLevel": "notice",
            "progressToken": "progress-1",
            "traceparent": "x",
        }},
    });
    assert_eq!(body, expected);
    let again: Value =
        serde_json::from_slice(client.request("server/discover", Value::Null).body()).unwrap();
    assert_eq!(again["id"], 2);
}

#[tokio::test]
async fn names_and_uris_are_mirrored_where_they_are_due() {
    let client = Client::in_process(&server());
    let name = |method: &str, params: Value| {
        client.request(method, params).headers().get("mcp-name").cloned()
    };
    assert_eq!(name("resources/read", json!({"uri": "note://a"})).unwrap(), "note://a");
    assert_eq!(name("prompts/get", json!({"name": "p"})).unwrap(), "p");
    assert_eq!(name("tasks/get", json!({"taskId": "t"})).unwrap(), "t");
    assert_eq!(name("completion/complete", json!({"name": "p"})), None);
    assert_eq!(name("tools/call", json!({"name": 1})), None);
    assert_eq!(name("tools/call", json!({})), None);
}

#[tokio::test]
async fn param_headers_are_sent_once_the_tools_are_known() {
    let client = Client::in_process(&server());
    let arguments = json!({"region": "zürich", "limit": 3});
    let error = client.call("query", &arguments).await.unwrap_err();
    assert_eq!(error.code(), Some(-32020));
    assert!(error.to_string().contains("learn_tools"), "{error}");
    client.learn_tools().await.unwrap();
    assert_eq!(client.call("query", &arguments).await.unwrap().text(), arguments.to_string());
    assert_eq!(client.clone().call("query", json!({})).await.unwrap().raw["isError"], Value::Null);
}

#[tokio::test]
async fn lists_are_followed_to_their_end() {
    let client = Client::in_process(&server());
    let tools: Vec<_> = client.list_tools().await.unwrap().into_iter().map(|t| t.name).collect();
    assert_eq!(tools, ["work", "first", "query"]);
    assert_eq!(client.list_prompts().await.unwrap()[0].name, "review");
    assert_eq!(client.list_resources().await.unwrap()[0].uri, "note://a/b");
    assert_eq!(client.list_templates().await.unwrap()[0].uri_template, "note://{name}");
    let discovered = client.discover().await.unwrap();
    assert_eq!(discovered.supported_versions, ["2026-07-28"]);
    assert_eq!(discovered.capabilities["tools"], json!({"listChanged": true}));
    let info = discovered.server_info().unwrap();
    assert_eq!((info.name.as_str(), info.version.as_str()), ("everything", "1.2.3"));
}

#[tokio::test]
async fn prompts_resources_and_completions() {
    let client = Client::in_process(&server());
    let prompt = client.get_prompt("review", json!({"language": "Rust"})).await.unwrap();
    assert_eq!(prompt.result.messages, [PromptMessage::user("Review this Rust")]);
    let read = client.read("note://x").await.unwrap();
    assert_eq!((read.text().as_str(), read.result.ttl_ms), ("note://x", 0));
    let completion = client.complete_prompt("review", "language", "ru").await.unwrap();
    assert_eq!(completion.values(), ["ruby", "rust"]);
    assert_eq!(
        client.complete_template("note://{name}", "name", "").await.unwrap().values(),
        [""; 0]
    );
    let error = client.read("note://x/y/z").await.unwrap_err();
    assert_eq!((error.code(), error.data()), (Some(-32602), Some(&json!({"uri": "note://x/y/z"}))));
}

#[tokio::test(start_paused = true)]
async fn notifications_come_with_the_result() {
    let client = Client::in_process(&server());
    let reply = client.round("tools/call", json!({"name": "work"})).await.unwrap();
    assert_eq!((reply.framing, reply.notifications.len()), (Framing::Json, 0));

    let client = client.with_progress().log_level(LogLevel::Info);
    let reply = client.round("tools/call", json!({"name": "work"})).await.unwrap();
    assert_eq!((reply.framing, reply.notifications.len()), (Framing::Sse, 6));
    let called = client.call("work", ()).await.unwrap();
    assert_eq!(called.text(), "done");
    let progress: Vec<_> = called.progress().iter().map(ToString::to_string).collect();
    assert_eq!(progress, ["1/3 working", "2/3 working", "3/3 working"]);
    assert_eq!(called.logs()[2].data, json!({"step": 3}));
}

#[tokio::test(start_paused = true)]
async fn a_buffered_front_door_delivers_the_same_in_one_piece() {
    let client = Client::in_process(&server())
        .platform(TestPlatform::new().buffered())
        .with_progress()
        .accept("text/event-stream, application/json");
    assert_eq!(client.call("work", ()).await.unwrap().progress().len(), 3);
    let mut response =
        client.raw(client.request("tools/call", json!({"name": "work"}))).await.unwrap();
    assert!(response.next_chunk().await.unwrap().unwrap().ends_with(b"}\n\n"));
    assert_eq!(response.next_chunk().await.unwrap(), None);
    let discovered = client.discover().await.unwrap();
    assert_eq!(discovered.capabilities["tools"], json!({}), "nobody can listen here");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_reaches_the_handler_and_ends_the_call() {
    async fn wait(cx: Cx, _: NoArgs) -> String {
        let left = cx.deadline().unwrap().since(cx.started_at());
        cx.read(async || tokio::time::sleep(Duration::from_secs(5)).await).await;
        format!("{left:?}")
    }
    let server = Server::builder("s", "1").tool("wait", "Waits", wait).build().unwrap();
    let within = |seconds| {
        let platform = TestPlatform::new().with_deadline(Duration::from_secs(seconds));
        Client::in_process(&server).platform(platform)
    };
    let patient = within(9);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(patient.call("wait", ()).await.unwrap().text(), "9s");
    assert_eq!(within(3).call("wait", ()).await.unwrap_err().code(), Some(-32603));
}

#[tokio::test(start_paused = true)]
async fn raw_responses_are_read_as_they_come() {
    let client = Client::in_process(&server()).with_progress();
    let request = client.request("tools/call", json!({"name": "work"}));
    let mut response = client.raw(request).await.unwrap();
    let first = response.next_event().await.unwrap().unwrap();
    assert_eq!(first.event, "message");
    assert!(first.data.contains(r#""progress":1"#));
    let rest = response.text().await.unwrap();
    assert_eq!(rest.matches("event: message").count(), 3);

    let mut wrong = client.request("tools/list", Value::Null);
    *wrong.body_mut() = Bytes::from_static(b"[");
    let mut response = client.raw(wrong).await.unwrap();
    assert_eq!(response.status, 400);
    assert!(matches!(response.rejection(), Some(Rejection::Unreadable { .. })));
    assert_eq!(response.json().await.unwrap()["error"]["code"], -32700);
}

#[tokio::test]
async fn dropping_a_response_cancels_the_call() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let dropped = Arc::new(Notify::new());
    let tell = Arc::clone(&dropped);
    let wait = move |cx: Cx, _: NoArgs| {
        let guard = Dropped(Arc::clone(&tell));
        async move {
            cx.progress(1.0, None, "");
            std::future::pending::<()>().await;
            drop(guard);
            ""
        }
    };
    let server = Server::builder("s", "1").tool("wait", "Waits", wait).build().unwrap();
    let client = Client::in_process(&server).with_progress();
    let mut response =
        client.raw(client.request("tools/call", json!({"name": "wait"}))).await.unwrap();
    response.next_event().await.unwrap().unwrap();
    drop(response);
    dropped.notified().await;
}

#[tokio::test]
async fn listening_goes_on_until_the_instance_drains() {
    let server = server();
    let platform = TestPlatform::new();
    let client = Client::in_process(&server).platform(platform.clone());
    let mut filter = json!({"toolsListChanged": true, "promptsListChanged": false});
    filter["resourceSubscriptions"] = json!(["note://a/b", "unknown://a"]);
    let mut listening = client.listen(filter).await.unwrap();
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["note://a/b"]});
    assert_eq!(listening.acknowledged(), &honoured);
    server.publisher().publish(Change::Prompts).await.unwrap();
    server.publisher().publish(Change::resource("note://a/b")).await.unwrap();
    let news = listening.next().await.unwrap();
    assert_eq!(
        (&news["method"], &news["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("note://a/b"))
    );
    platform.draining().start();
    assert_eq!(listening.next().await, None);
    assert!(listening.ended_gracefully());
    assert_eq!(listening.result().unwrap()["resultType"], "complete");
    let error = client.listen(json!(null)).await.unwrap_err();
    assert_eq!(error.code(), Some(-32602));
}

/// Serves `server` on a loopback port, without any of the care that an adapter takes.
async fn serve(server: Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let server = server.clone();
            tokio::spawn(http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let server = server.clone();
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let request = http::Request::from_parts(head, body);
                        let platform = Arc::new(TestPlatform::new());
                        Ok::<_, Infallible>(server.respond(request, platform).await)
                    }
                }),
            ));
        }
    });
    format!("http://{address}/mcp")
}

#[tokio::test]
async fn a_server_behind_a_url_is_the_same() {
    let server = server();
    let client = Client::url(&serve(server.clone()).await).with_progress();
    assert_eq!(client.call("work", ()).await.unwrap().progress().len(), 3);
    assert_eq!(client.list_tools().await.unwrap().len(), 3);
    let error = client.call("nothing", ()).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32602), "Unknown tool"));

    let mut by_hand = client.request("tools/list", Value::Null);
    *by_hand.uri_mut() = "/elsewhere".parse().unwrap();
    assert_eq!(client.raw(by_hand).await.unwrap().status, 404);

    let mut listening = client.listen(json!({"toolsListChanged": true})).await.unwrap();
    server.publisher().publish(Change::Tools).await.unwrap();
    assert_eq!(listening.next().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn what_cannot_be_done_is_an_error_of_its_own() {
    for (client, part) in [
        (Client::url("localhost"), "http://host:port/path"),
        (Client::url("https://localhost/mcp"), "http://host:port/path"),
        (Client::url("http://127.0.0.1:1/mcp").platform(TestPlatform::new()), "in this process"),
        (Client::in_process(&server()).header("a b", ""), "`a b`"),
        (Client::in_process(&server()).header("a", "\n"), "header a"),
        (Client::in_process(&server()).accept("\n"), "Accept"),
    ] {
        let error = client.discover().await.unwrap_err();
        assert_eq!(*error.fault(), Fault::Misuse);
        assert!(error.message().contains(part), "{error}");
    }
    let keyed_by_pairs = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = Client::in_process(&server()).call("work", keyed_by_pairs).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Misuse);
    let error = Client::url("http://127.0.0.1:1/mcp").discover().await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Transport);
    let error = Client::fleet([]).discover().await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Transport);
}

#[tokio::test(start_paused = true)]
async fn whoever_could_take_a_task_takes_a_result_as_well() {
    let client = Client::fleet([server(), server()]).strict().with_tasks().with_progress();
    let spawned = client.clone();
    let called = tokio::spawn(async move { spawned.call("work", ()).await });
    let called = called.await.unwrap().unwrap();
    assert_eq!((called.text().as_str(), called.progress().len()), ("done", 3));
    assert_eq!((called.task_id, called.polls), (None, 0));
    assert_eq!(*client.start("first", ()).await.unwrap_err().fault(), Fault::NotATask);
}
