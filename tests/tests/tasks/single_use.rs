//! States for single use (rule 4).

use mcp_edge::{
    BoxFuture, Cx, MemoryStore, NoArgs, ReplayGuard, Server, ServerBuilder, StoreError, Timestamp,
    ToolError,
};
use mcp_edge_test::Client;
use serde_json::json;

use super::{Counter, Text, World, answer, builder};

fn charging(charges: &Counter) -> ServerBuilder {
    let charges = charges.clone();
    builder().tool_with(
        "t",
        "",
        move |cx: Cx, _: NoArgs| {
            let charges = charges.clone();
            async move {
                cx.step("quote", async || Ok::<_, ToolError>(7)).await?;
                cx.elicit::<Text>("approve", "Sure?").await.required()?;
                let (one, two) = futures_util::join!(
                    cx.step("charge", async || Ok::<_, ToolError>(charges.bump())),
                    cx.step("note", async || Ok::<_, ToolError>(())),
                );
                two?;
                cx.elicit::<Text>("thanks", "Fine?").await.required()?;
                Ok::<_, ToolError>(one?.to_string())
            }
        },
        |tool| tool.single_use(),
    )
}

fn guarded(server: Server) -> Server {
    server.with_replay_guard(MemoryStore::default())
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_used_before_the_first_new_step_is_refused() {
    let charges = Counter::default();
    let server = guarded(World::default().bare(charging(&charges)));
    let client = Client::in_process(&server);
    let call = json!({ "name": "t", "arguments": {} });
    let first = client.round("tools/call", call).await.unwrap();
    let approve = json!({ "approve": answer("yes") });
    // An answer that does not come is no use.
    let asked_again = client.retry(&first, json!({})).await.unwrap();
    assert!(asked_again.request_state().is_some());

    let second = client.retry(&first, approve.clone()).await.unwrap();
    assert_eq!(charges.get(), 1);
    // All states from before the step are one, also that of a round in which nothing ran.
    for older in [&first, &asked_again] {
        let refused = client.retry(older, approve.clone()).await.unwrap();
        let refused = (refused.code(), refused.message.unwrap()["error"]["message"].clone());
        assert_eq!(refused, (Some(-32602), json!("Invalid requestState")));
    }
    assert_eq!(charges.get(), 1);
    let third = client.retry(&second, json!({ "thanks": answer("yes") })).await.unwrap();
    assert_eq!(third.result().unwrap()["content"][0]["text"], "1");
    // Nothing new happens after that, so the last state may be presented again.
    let again = client.retry(&second, json!({ "thanks": answer("yes") })).await.unwrap();
    assert!(again.result().is_some());
}

#[tokio::test(start_paused = true)]
async fn b_a_step_that_a_round_did_not_wait_for_runs_again_in_the_next() {
    let begun = Counter::default();
    let seen = begun.clone();
    let server = builder().tool_with(
        "t",
        "",
        move |cx: Cx, _: NoArgs| {
            let seen = seen.clone();
            async move {
                cx.elicit::<Text>("first", "?").await.required()?;
                let (step, answer) = futures_util::join!(
                    cx.step("slow", async || {
                        if seen.bump() == 1 {
                            std::future::pending::<()>().await;
                        }
                        Ok::<_, ToolError>(())
                    }),
                    cx.elicit::<Text>("second", "?"),
                );
                step?;
                answer.required().map(|answer| answer.text)
            }
        },
        |tool| tool.single_use(),
    );
    let client = Client::in_process(&guarded(World::default().bare(server)));
    let text = || json!({ "text": "x" });
    let client = client.answer("first", text()).answer("second", text());
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "x");
    assert_eq!(begun.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn of_two_retries_at_once_one_charges() {
    let charges = Counter::default();
    let guard = MemoryStore::default();
    let instance = || World::default().bare(charging(&charges)).with_replay_guard(guard.clone());
    let client = Client::fleet([instance(), instance(), instance()]);
    let call = json!({ "name": "t", "arguments": {} });
    let first = client.round("tools/call", call).await.unwrap();
    let approve = json!({ "approve": answer("yes") });
    let retries = (0..9).map(|_| client.retry(&first, approve.clone()));
    let retries = futures_util::future::join_all(retries).await;
    let codes: Vec<_> = retries.into_iter().map(|reply| reply.unwrap().code()).collect();
    assert_eq!(codes.iter().filter(|code| code.is_none()).count(), 1, "{codes:?}");
    assert_eq!(charges.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_working_guard_no_new_step_runs() {
    struct Broken;
    impl ReplayGuard for Broken {
        fn spend<'a>(
            &'a self,
            _: &'a str,
            _: Timestamp,
            _: Timestamp,
        ) -> BoxFuture<'a, Result<bool, StoreError>> {
            Box::pin(std::future::ready(Err(StoreError::new("a secret"))))
        }
    }
    let charges = Counter::default();
    let bare = World::default().bare(charging(&charges));
    for server in [bare.clone(), bare.with_replay_guard(Broken)] {
        let client = Client::in_process(&server).answer("approve", json!({ "text": "yes" }));
        let refused = client.call("t", json!({})).await.unwrap_err();
        assert_eq!(refused.code(), Some(-32603));
        assert!(!refused.to_string().contains("secret"));
    }
    assert_eq!(charges.get(), 0);
}
