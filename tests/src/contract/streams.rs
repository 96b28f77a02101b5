//! SSE, progress, logs and news.

use mcp_edge::protocol::LogLevel;
use mcp_edge_test::Framing;

use super::*;

pub async fn sse_12_json_unless_something_was_emitted(client: &Client) {
    let emit = json!({ "name": "emit", "arguments": {} });
    let silent = client.round("tools/call", emit.clone()).await.unwrap();
    assert_eq!(silent.framing, Framing::Sse, "quiet for longer than the setting");
    assert!(silent.notifications.is_empty());
    let add = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let loud = client.clone().with_progress().log_level(LogLevel::Debug);
    assert_eq!(loud.round("tools/call", add).await.unwrap().framing, Framing::Json, "HTTP-20");
    assert_eq!(loud.round("tools/call", emit).await.unwrap().framing, Framing::Sse);
}

pub async fn s7_sse_for_those_who_take_nothing_else(client: &Client) {
    let client = client.clone().accept("text/event-stream");
    for (method, params) in [
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } })),
        ("tools/list", json!({})),
        ("server/discover", json!({})),
    ] {
        let reply = client.round(method, params).await.unwrap();
        assert_eq!(reply.framing, Framing::Sse, "{method}");
        assert_eq!(reply.headers["x-accel-buffering"], "no", "SSE-05");
        assert_eq!(reply.headers["cache-control"], "no-cache", "HTTP-16");
    }
}

pub async fn s9_events_are_dropped_where_only_json_is_taken(client: &Client) {
    let client = client.clone().accept("application/json").with_progress();
    let reply = client.round("tools/call", json!({ "name": "emit" })).await.unwrap();
    assert_eq!(reply.framing, Framing::Json);
    assert_eq!(reply.result().unwrap()["content"][0]["text"], "emitted");
}

pub async fn progress_and_logs_come_before_the_result(client: &Client) {
    let client = client.clone().with_progress().log_level(LogLevel::Info);
    let called = client.call("emit", json!({})).await.unwrap();
    let progress: Vec<_> = called.progress().iter().map(|progress| progress.progress).collect();
    assert_eq!(progress, [1.0, 2.0, 3.0], "PROG-03");
    let logs = called.logs();
    assert_eq!(logs.len(), 3);
    assert_eq!((logs[0].level, &logs[0].data), (LogLevel::Info, &json!({ "done": 1 })), "LOG-07");
    assert_eq!(logs[0].logger.as_deref(), Some("emit"));
    let warnings = client.log_level(LogLevel::Warning).call("emit", json!({})).await.unwrap();
    assert!(warnings.logs().is_empty(), "LOG-04");
}

pub async fn log_03_no_logs_without_a_level(client: &Client) {
    let called = client.call("emit", json!({})).await.unwrap();
    assert!(called.notifications.is_empty());
}

pub async fn sse_13_concurrent_streams_are_independent(client: &Client) {
    let client = client.clone().with_progress();
    let calls = (0..5).map(|_| client.call("emit", json!({})));
    for called in futures_util::future::join_all(calls).await {
        // The client refuses progress for a token that is not the request's own.
        assert_eq!(called.unwrap().progress().len(), 3);
    }
}

pub async fn sub_03_listen_is_acknowledged_first(client: &Client) {
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": false,
        "resourceSubscriptions": ["test://text", "test://notes/7", "test://unknown", "nonsense"],
        "unknown": true });
    let listening = client.listen(filter).await.unwrap();
    let honoured = json!({ "toolsListChanged": true,
        "resourceSubscriptions": ["test://text", "test://notes/7"] });
    assert_eq!(listening.acknowledged(), &honoured, "SUB-04, A-30");
    let nothing = client.listen(json!({})).await.unwrap();
    assert_eq!(nothing.acknowledged(), &json!({}), "SUB-14");
    let refused = client.listen(json!({ "taskIds": [] })).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32021), "SUB-18");
}

pub async fn sub_05_and_06_news_is_filtered_and_tagged(client: &Client) {
    let filter = json!({ "toolsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["test://notes/7"] });
    let mut listening = client.listen(filter).await.unwrap();
    for what in ["prompts", "test://text", "tools", "test://notes/7", "resources"] {
        client.call("touch", json!({ "what": what })).await.unwrap();
    }
    let mut methods = Vec::new();
    while methods.len() < 3 {
        let news = listening.next().await.unwrap();
        methods.push(news["method"].as_str().unwrap().to_owned());
        if news["method"] == "notifications/resources/updated" {
            assert_eq!(news["params"]["uri"], "test://notes/7", "RES-17");
        }
    }
    assert_eq!(
        methods,
        [
            "notifications/tools/list_changed",
            "notifications/resources/updated",
            "notifications/resources/list_changed"
        ]
    );
}

pub async fn sub_01_ill_formed_filters_are_refused(client: &Client) {
    for params in [
        json!({}),
        json!({ "notifications": null }),
        json!({ "notifications": [] }),
        json!({ "notifications": { "toolsListChanged": "yes" } }),
        json!({ "notifications": { "toolsListChanged": null } }),
        json!({ "notifications": { "resourceSubscriptions": null } }),
        json!({ "notifications": { "resourceSubscriptions": [7] } }),
        json!({ "notifications": { "resourceSubscriptions": vec!["test://text"; 300] } }),
    ] {
        let reply = client.round("subscriptions/listen", params.clone()).await.unwrap();
        assert_eq!(reply.error().unwrap()["code"], -32602, "{params}");
        assert_eq!(reply.framing, Framing::Json);
    }
}

pub async fn errors_after_the_first_event_come_as_the_last_one(client: &Client) {
    let client = client.clone().with_progress();
    let params = json!({ "name": "fail", "arguments": { "how": "late" } });
    let reply = client.round("tools/call", params).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.framing), (200, Framing::Sse));
    assert_eq!(reply.notifications.len(), 1);
    assert_eq!(reply.error().unwrap()["code"], 7, "SSE-11");
}
