//! LOG, PROG: notifications beside an answer.

use std::time::Duration;

use mcp_edge::{Cx, NoArgs, protocol::LogLevel};

use super::*;

#[tokio::test]
async fn log_02_a_server_without_logging_sends_no_messages() {
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.log(LogLevel::Emergency, "fire");
        "done"
    };
    let with = builder().tool("t", "Logs", tool).logging();
    let without = builder().tool("t", "Logs", tool);
    for (server, count) in [(with, 1), (without, 0)] {
        let client = client(server).log_level(LogLevel::Debug);
        assert_eq!(client.call("t", ()).await.unwrap().logs().len(), count);
    }
}

#[tokio::test]
async fn log_07_a_message_has_level_logger_and_any_data() {
    let tool = |cx: Cx, _: NoArgs| async move {
        for level in LogLevel::ALL {
            cx.log(level, json!({ "level": level.as_str() }));
        }
        "done"
    };
    let client = client(builder().tool("t", "Logs", tool).logging());
    let called = client.log_level(LogLevel::Debug).call("t", ()).await.unwrap();
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    let sent: Vec<_> = called.notifications.iter().map(|sent| sent["params"].clone()).collect();
    let expected =
        levels.map(|level| json!({ "level": level, "logger": "t", "data": { "level": level } }));
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn prog_06_nothing_follows_the_response() {
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.progress(1.0, None, "in time");
        let late = cx.clone();
        tokio::spawn(async move {
            for done in 2..20 {
                tokio::time::sleep(Duration::from_millis(30)).await;
                late.progress(f64::from(done), None, "too late");
                late.log(LogLevel::Emergency, "too late");
            }
        });
        cx.sleep("a moment", Duration::from_millis(20)).await; // so that it is a stream by now
        "done"
    };
    let client = client(builder().tool("t", "Leaves a task behind", tool).logging());
    let client = client.with_progress().log_level(LogLevel::Debug);
    let request = client.request("tools/call", json!({ "name": "t" }));
    let text = client.raw(request).await.unwrap().text().await.unwrap();
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.contains(r#""text":"done""#), "{text}");
}
