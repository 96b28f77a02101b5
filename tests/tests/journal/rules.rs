//! Misuse, lints and limits.

use std::time::Duration;

use mcp_edge::{Cx, Limits, NoArgs, ToolError};
use serde_json::json;

use super::*;

async fn refused(server: &Server) -> (Option<i64>, String) {
    let client = client(server).answer("a", json!({ "text": "x" }));
    let error = client.call("t", json!({})).await.unwrap_err();
    (error.code(), error.message().to_owned())
}

/// What misuse looks like on the wire: neutral; the log names the key.
fn neutral() -> (Option<i64>, String) {
    (Some(-32603), "Internal error".to_owned())
}

#[tokio::test]
async fn rule_a_a_question_inside_a_step_is_misuse_and_no_hang() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let body = async || cx.elicit::<Text>("a", "?").await.required();
        let text = cx.step("s", body).await?;
        Ok::<_, ToolError>(text.text)
    };
    assert_eq!(refused(&server(tool)).await, neutral());
}

#[tokio::test]
async fn rule_a_a_step_inside_a_step_is_misuse() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let inner = async || cx.step("inner", async || Ok::<_, ToolError>(1)).await;
        cx.step("outer", inner).await.map(|n| n.to_string())
    };
    assert_eq!(refused(&server(tool)).await, neutral());
}

#[tokio::test]
async fn progress_logs_and_idempotency_keys_are_allowed_inside_a_step() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let body = async || {
            cx.progress(1.0, None, "");
            cx.log(mcp_edge::protocol::LogLevel::Info, "x");
            Ok::<_, ToolError>(cx.idempotency_key("s").len())
        };
        cx.step("s", body).await.map(|n| n.to_string())
    };
    assert_eq!(client(&server(tool)).call("t", json!({})).await.unwrap().text(), "32");
}

#[tokio::test]
async fn a_step_may_call_another_server_that_runs_steps() {
    let inner = server(|cx: Cx, _: NoArgs| async move {
        cx.step("s", async || Ok::<_, ToolError>("inner".to_owned())).await
    });
    let tool = move |cx: Cx, _: NoArgs| {
        let inner = inner.clone();
        async move {
            let body = async || {
                let called = client(&inner).call("t", json!({})).await;
                called
                    .map(|called| called.text())
                    .map_err(|error| ToolError::new(error.to_string()))
            };
            cx.step("s", body).await
        }
    };
    assert_eq!(client(&server(tool)).call("t", json!({})).await.unwrap().text(), "inner");
}

#[tokio::test]
async fn misuse_cannot_be_swallowed() {
    use futures_util::FutureExt as _;
    let tool = |cx: Cx, _: NoArgs| async move {
        let _ = cx.step("s", async || Ok::<_, ToolError>(1)).await;
        let again = cx.step("s", async || Ok::<_, ToolError>(2)).fuse();
        let mut again = std::pin::pin!(again);
        futures_util::select! {
            _ = again => "swallowed",
            () = std::future::ready(()).fuse() => "swallowed too",
        }
    };
    assert_eq!(refused(&server(tool)).await, neutral());
}

#[tokio::test]
async fn rule_l_two_uses_of_a_key_are_misuse_whether_alive_or_resolved() {
    let resolved = |cx: Cx, _: NoArgs| async move {
        cx.elicit::<Text>("a", "?").await.required()?;
        cx.elicit::<Text>("a", "?").await.required()?;
        Ok::<_, ToolError>("")
    };
    assert_eq!(refused(&server(resolved)).await, neutral());
    let alive = |cx: Cx, _: NoArgs| async move {
        let _ = futures_util::join!(cx.elicit::<Text>("a", "?"), cx.elicit::<Text>("a", "?"));
        ""
    };
    assert_eq!(refused(&server(alive)).await, neutral());
}

#[tokio::test]
async fn a_kind_that_differs_is_a_changed_handler() {
    let runs = Counter::default();
    let tool = move |cx: Cx, _: NoArgs| {
        let first = runs.bump() == 1;
        async move {
            if first {
                cx.step("s", async || Ok::<_, ToolError>(1)).await?;
            } else {
                cx.once("s", async || 1).await;
            }
            cx.elicit::<Text>("a", "?").await.required()?;
            Ok::<_, ToolError>("")
        }
    };
    assert_eq!(refused(&server(tool)).await, neutral());
}

#[tokio::test]
async fn mrtr_29_the_seventeenth_round_is_refused() {
    let tool = |cx: Cx, _: NoArgs| async move {
        for n in 0..20 {
            cx.elicit::<Text>(format!("q{n}"), "?").await.required()?;
        }
        Ok::<_, ToolError>("")
    };
    let rounds = Counter::default();
    let counted = rounds.clone();
    let client = client(&server(tool)).max_rounds(100).on_question(move |_| {
        counted.bump();
        Some(json!({ "action": "accept", "content": { "text": "x" } }))
    });
    let error = client.call("t", json!({})).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32603), "Internal error"));
    assert_eq!(rounds.get(), 16);
}

#[tokio::test]
async fn keys_that_change_every_round_end_at_the_round_limit_and_strict_mode_says_why() {
    let runs = Counter::default();
    let tool = move |cx: Cx, _: NoArgs| {
        let n = runs.bump();
        async move {
            cx.elicit::<Text>(format!("q{n}"), "?").await.required()?;
            Ok::<_, ToolError>("")
        }
    };
    let server = server(tool);
    let ask = |_: &mcp_edge_test::Question| {
        Some(json!({ "action": "accept", "content": { "text": "x" } }))
    };
    let lax = client(&server).max_rounds(100).on_question(ask);
    assert_eq!(lax.call("t", json!({})).await.unwrap_err().code(), Some(-32603));
    let strict = client(&server).strict().on_question(ask);
    let error = strict.call("t", json!({})).await.unwrap_err().to_string();
    assert!(error.contains('q'), "{error}");
}

#[tokio::test]
async fn rule_g_a_plain_await_before_a_question_is_an_error_in_strict_mode() {
    let effects = Counter::default();
    let counted = effects.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let effects = counted.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            effects.bump();
            cx.elicit::<Text>("a", "?").await.required()?;
            cx.elicit::<Text>("b", "?").await.required()?;
            Ok::<_, ToolError>("")
        }
    };
    let server = server(tool);
    let answers = |client: Client| {
        client.answer("a", json!({ "text": "x" })).answer("b", json!({ "text": "x" }))
    };
    answers(client(&server)).call("t", json!({})).await.unwrap();
    assert_eq!(effects.get(), 3, "it runs again in every round");
    let error = answers(client(&server).strict()).call("t", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("plain await came before question `a`"), "{error}");
}

#[tokio::test]
async fn rule_g_a_read_is_meant_to_run_again() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let n = cx
            .read(async || {
                tokio::time::sleep(Duration::from_millis(1)).await;
                7
            })
            .await;
        cx.elicit::<Text>("a", "?").await.required()?;
        Ok::<_, ToolError>(n.to_string())
    };
    let client = client(&server(tool)).strict().answer("a", json!({ "text": "x" }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "7");
}

#[tokio::test]
async fn rule_h_plain_io_beside_a_question_is_an_error_in_strict_mode() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let io = tokio::time::sleep(Duration::from_secs(5));
        let (answer, ()) = futures_util::join!(cx.elicit::<Text>("a", "?"), io);
        Ok::<_, ToolError>(answer.required()?.text)
    };
    let client = client(&server(tool)).strict().answer("a", json!({ "text": "x" }));
    let error = client.call("t", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("pending when a round ended"), "{error}");
}

#[tokio::test]
async fn a_sound_handler_passes_strict_mode() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let n = cx
            .step("n", async || {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok::<_, ToolError>(1)
            })
            .await?;
        let (a, b) = futures_util::join!(cx.elicit::<Text>("a", "?"), cx.roots("r"));
        Ok::<_, ToolError>(format!("{n}{}{}", a.required()?.text, b.len()))
    };
    let client = client(&server(tool))
        .strict()
        .answer("a", json!({ "text": "x" }))
        .answer("r", json!({ "roots": [] }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "1x0");
}

#[tokio::test]
async fn questions_that_wait_for_the_replay_are_no_plain_awaits() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let (a, b, c) = futures_util::join!(
            cx.elicit::<Text>("a", "?"),
            cx.elicit::<Text>("b", "?"),
            cx.roots("c"),
        );
        Ok::<_, ToolError>(format!("{}{}{}", a.required()?.text, b.required()?.text, c.len()))
    };
    let server = server(tool).with_replay_lints_denied();
    let client = client(&server);
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let second = client.retry(&first, json!({ "c": { "roots": [] } })).await.unwrap();
    assert_eq!(second.code(), None, "{:?}", second.message);
    assert_eq!(second.input_requests().len(), 2);
}

#[tokio::test]
async fn a_panic_answers_minus_32603_and_harms_no_other_call() {
    let tool = |_: Cx, ask: Yes| async move {
        assert!(!ask.yes, "a secret text");
        "fine"
    };
    let client = client(&server(tool));
    let error = client.call("t", json!({ "yes": true })).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32603), "Internal error"));
    assert_eq!(client.call("t", json!({ "yes": false })).await.unwrap().text(), "fine");
}

#[tokio::test]
async fn mrtr_02_a_completion_cannot_ask() {
    use mcp_edge::{CompletionRequest, protocol::SampleParams};
    let completer = |cx: Cx, _: CompletionRequest| async move {
        cx.sample("q", SampleParams::new(1).user("x")).await;
        Vec::<String>::new()
    };
    let server = Server::builder("s", "1")
        .prompt_with("p", "A prompt", |_: Text| async { "x" }, |p| p.complete("text", completer))
        .sealer(KeyRing::new(1, &[7; 32]))
        .build()
        .unwrap();
    let error = client(&server).complete_prompt("p", "text", "").await.unwrap_err();
    assert_eq!(error.code(), Some(-32603));
}

#[tokio::test]
async fn canc_07_a_call_that_never_ends_is_cut_by_its_time_limit() {
    let server = server_with(
        |_: NoArgs| async { std::future::pending::<&'static str>().await },
        |tool| tool.timeout(Duration::from_millis(50)),
    );
    let error = client(&server).call("t", json!({})).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32603), "The call took too long"));
}

#[tokio::test]
async fn without_a_key_a_question_is_refused() {
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.elicit::<Text>("a", "?").await;
    };
    let server = Server::builder("s", "1").tool("t", "Asks", tool).build().unwrap();
    let request = client(&server).request("tools/call", json!({ "name": "t" }));
    let platform = std::sync::Arc::new(mcp_edge_test::TestPlatform::new());
    let response = server.respond(request, platform).await;
    let body: serde_json::Value =
        serde_json::from_slice(response.body().as_bytes().unwrap()).unwrap();
    assert_eq!(body["error"], json!({ "code": -32603, "message": "Internal error" }));
}

#[tokio::test]
async fn limits_are_settings() {
    let mut limits = Limits::default();
    limits.rounds = 1;
    let tool = |cx: Cx, _: NoArgs| async move {
        cx.elicit::<Text>("a", "?").await.required()?;
        cx.elicit::<Text>("b", "?").await.required()?;
        Ok::<_, ToolError>("")
    };
    let server = Server::builder("s", "1")
        .tool("t", "Asks twice", tool)
        .sealer(KeyRing::new(1, &[7; 32]))
        .limits(limits)
        .build()
        .unwrap();
    assert_eq!(refused(&server).await, neutral());
}
