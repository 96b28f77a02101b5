//! SUB: streams of news.

use std::time::Duration;

use mcp_edge::{Change, Cx, InProcessFeed, Limits, NoArgs, ToolError, protocol::LogLevel};
use mcp_edge_test::TestPlatform;
use mcp_edge_tests::Tokens;

use super::*;

async fn emit(cx: Cx, _: NoArgs) -> &'static str {
    cx.progress(1.0, None, "half");
    cx.log(LogLevel::Emergency, "fire");
    "done"
}

/// A server that can hold one stream.
fn server() -> Server {
    with_limits(|limits| limits.listeners = 1)
}

fn with_limits(change: impl FnOnce(&mut Limits)) -> Server {
    let mut limits = Limits::default();
    change(&mut limits);
    let server = builder()
        .tool("emit", "Emits", emit)
        .resource("test://a", "a", async |_: NoArgs| "a")
        .logging()
        .limits(limits)
        .build()
        .unwrap();
    server.with_change_feed(InProcessFeed::default())
}

fn tools() -> Value {
    json!({ "toolsListChanged": true })
}

#[tokio::test]
async fn sub_06_messages_carry_the_id_as_it_was_written() {
    for id in [json!(0), json!(""), json!("0"), json!("a\"b"), json!(-7)] {
        let (server, platform) = (server(), TestPlatform::new());
        let draining = platform.draining();
        let client = Client::in_process(&server).platform(platform);
        let request = client.request("subscriptions/listen", json!({ "notifications": tools() }));
        let mut response = client.raw(edit(request, |body| body["id"] = id.clone())).await.unwrap();
        for (change, of) in [(false, "params"), (true, "params"), (false, "result")] {
            if change {
                server.publisher().publish(Change::Tools).await.unwrap();
            } else if of == "result" {
                draining.start();
            }
            let event = response.next_event().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&event.data).unwrap();
            let tag = &message[of]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(tag, &id, "{message}");
        }
        assert!(response.next_event().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn sub_06_ids_that_no_number_type_holds_stay_as_they_were_written() {
    for id in ["123456789012345678901234567890", "-0", &"7".repeat(400), r#""\u0061""#] {
        let server = server();
        let client = Client::in_process(&server);
        let request = client.request("subscriptions/listen", json!({ "notifications": tools() }));
        let mut request = edit(request, |body| body["id"] = json!("ID"));
        let body = String::from_utf8(request.body().to_vec()).unwrap().replace("\"ID\"", id);
        *request.body_mut() = body.into();
        let mut response = client.raw(request).await.unwrap();
        let tag = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
        let acknowledged = response.next_event().await.unwrap().unwrap().data;
        assert!(acknowledged.contains(&tag), "{acknowledged}");
        server.publisher().publish(Change::Tools).await.unwrap();
        let news = response.next_event().await.unwrap().unwrap().data;
        assert!(news.contains(&tag), "{news}");
    }
}

#[tokio::test]
async fn sub_08_a_stream_that_the_server_ends_has_a_result() {
    let platform = TestPlatform::new();
    let draining = platform.draining();
    let client = Client::in_process(&server()).platform(platform);
    let mut listening = client.listen(tools()).await.unwrap();
    draining.start();
    assert!(listening.next().await.is_none());
    let result = listening.result().expect("ended gracefully");
    assert_eq!(result["resultType"], "complete");
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(info, "requirements", "META-07");
    assert!(result.get("ttlMs").is_none(), "CACHE-10");
}

#[tokio::test]
async fn sub_05_news_of_one_tenant_is_not_told_to_another() {
    let publish =
        async |cx: Cx, _: NoArgs| Ok::<_, ToolError>(cx.publisher().publish(Change::Tools).await?);
    let server = builder()
        .tool("publish", "Publishes", publish)
        .authenticator(Tokens)
        .public_url("https://mcp.example.com/mcp")
        .build()
        .unwrap()
        .with_change_feed(InProcessFeed::default());
    let client = |token: &str| Client::in_process(&server).bearer(token);
    let mut own = client("ada@one").listen(tools()).await.unwrap();
    let mut other = client("ada@two").listen(tools()).await.unwrap();
    client("alan@one").call("publish", ()).await.unwrap();
    assert_eq!(own.next().await.unwrap()["method"], "notifications/tools/list_changed");
    let next = tokio::time::timeout(Duration::from_millis(50), other.next()).await;
    assert!(next.is_err(), "another tenant's");
}

#[tokio::test]
async fn sub_15_listen_streams_are_counted_and_given_back() {
    let client = Client::in_process(&with_limits(|limits| limits.listeners = 2));
    let filter = json!({ "toolsListChanged": true });
    let first = client.listen(filter.clone()).await.unwrap();
    let _second = client.listen(filter.clone()).await.unwrap();
    let params = json!({ "notifications": filter });
    let refused = client.round("subscriptions/listen", params).await.unwrap();
    assert_eq!((refused.status.as_u16(), refused.code()), (503, Some(-32603)));
    drop(first);
    client.listen(filter).await.unwrap();
}

#[tokio::test]
async fn sub_15_what_a_listen_stream_keeps_is_bounded() {
    let client = Client::in_process(&with_limits(|limits| limits.listen_bytes = 1000));
    let filter = |uri: &str| json!({ "resourceSubscriptions": [format!("test://{uri}")] });
    client.listen(filter("short")).await.unwrap();
    let long = "x".repeat(1000);
    for (id, uri) in [("short", &*long), (&*long, "short")] {
        let params = json!({ "notifications": filter(uri) });
        let request = client.request("subscriptions/listen", params);
        let request = edit(request, |body| body["id"] = json!(id));
        let refused = client.raw(request).await.unwrap().json().await.unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("params.notifications") && message.contains("1000"), "{message}");
    }
}

#[tokio::test]
async fn sub_15_a_filter_has_so_many_uris_and_counts_each_once() {
    let client = Client::in_process(&with_limits(|limits| limits.listen_uris = 3));
    let filter = |uris: usize| json!({ "resourceSubscriptions": vec!["test://a"; uris] });
    let listening = client.listen(filter(3)).await.unwrap();
    assert_eq!(listening.acknowledged(), &json!({ "resourceSubscriptions": ["test://a"] }));
    assert_eq!(client.listen(filter(4)).await.unwrap_err().code(), Some(-32602));
}

#[tokio::test]
async fn sub_09_and_10_a_client_leaves_by_closing_and_hears_nothing_of_before() {
    let server = server();
    let client = Client::in_process(&server);
    let mut first = client.listen(tools()).await.unwrap();
    server.publisher().publish(Change::Tools).await.unwrap();
    assert!(first.next().await.is_some());
    assert!(client.listen(tools()).await.is_err(), "the one place is taken");
    server.publisher().publish(Change::Tools).await.unwrap();
    drop(first);
    let mut second = client.listen(tools()).await.unwrap();
    let next = tokio::time::timeout(Duration::from_millis(50), second.next()).await;
    assert!(next.is_err(), "that was before");
}

#[tokio::test]
async fn sub_11_and_log_05_and_prog_08_a_stream_of_news_has_news_alone() {
    let server = server();
    let client = Client::in_process(&server).with_progress().log_level(LogLevel::Debug);
    let mut listening = client.listen(tools()).await.unwrap();
    let called = client.call("emit", ()).await.unwrap();
    assert_eq!(called.notifications.len(), 2);
    server.publisher().publish(Change::Tools).await.unwrap();
    let news = listening.next().await.unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed", "and nothing before it");
    let next = tokio::time::timeout(Duration::from_millis(50), listening.next()).await;
    assert!(next.is_err(), "nor behind it");
}
