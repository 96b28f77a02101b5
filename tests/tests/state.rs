//! A `requestState` opens for the same request of the same caller to the same deployment, and for
//! nothing else (MRTR-11 to MRTR-17).

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::time::Duration;

use mcp_edge::{Cx, KeyRing, Limits, Server, ServerBuilder, ToolError};
use mcp_edge_test::{Client, Reply};
use mcp_edge_tests::Tokens;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, schemars::JsonSchema)]
struct Args {
    amount: f64,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Yes {
    yes: bool,
}

async fn ask(cx: Cx, args: Args) -> Result<String, ToolError> {
    let sure = cx.elicit::<Yes>("sure", format!("{}?", args.amount)).await.required()?;
    Ok(format!("{} {}{}", sure.yes, args.amount, args.note))
}

fn builder() -> ServerBuilder {
    Server::builder("state", "1.0.0")
        .tool("ask", "Asks", ask)
        .tool("other", "Asks the same", ask)
        .prompt("ask", "Asks as well", |_: mcp_edge::NoArgs| async { "x" })
}

fn key(byte: u8) -> KeyRing {
    KeyRing::new(1, &[byte; 32])
}

fn client(server: &Server) -> Client {
    Client::in_process(server)
}

fn server() -> Server {
    builder().sealer(key(7)).build().unwrap()
}

fn params() -> Value {
    json!({ "name": "ask", "arguments": { "amount": 1, "note": "n" } })
}

async fn first(client: &Client) -> Reply {
    client.round("tools/call", params()).await.unwrap()
}

/// Presents a state with its answer in a request of any shape.
async fn present(client: &Client, state: &str, mut params: Value) -> Reply {
    params["requestState"] = json!(state);
    params["inputResponses"] =
        json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    client.round("tools/call", params).await.unwrap()
}

fn is_refused(reply: &Reply) -> bool {
    let refusal = json!({ "code": -32602, "message": "Invalid requestState" });
    reply.status == 200 && reply.error() == Some(&refusal)
}

#[tokio::test]
async fn another_server_value_with_the_same_key_opens_it() {
    let asked = first(&client(&server())).await;
    let reply = present(&client(&server()), asked.request_state().unwrap(), params()).await;
    assert_eq!(reply.result().unwrap()["content"][0]["text"], "true 1n");
}

#[tokio::test]
async fn arguments_that_were_serialised_again_are_not_refused() {
    let client = client(&server());
    let asked = first(&client).await;
    for arguments in [
        r#"{"note":"n","amount":1.0}"#,
        r#"{ "amount" : 1e0, "note" : "\u006e" }"#,
        r#"{"amount":10.0e-1,"note":"n"}"#,
    ] {
        let mut params = params();
        params["arguments"] = json!("ARGS");
        params["requestState"] = json!(asked.request_state().unwrap());
        params["inputResponses"] =
            json!({ "sure": { "action": "accept", "content": { "yes": true } } });
        let mut request = client.request("tools/call", params);
        let body = String::from_utf8(request.body().to_vec()).unwrap();
        *request.body_mut() = body.replace("\"ARGS\"", arguments).into();
        let response = client.raw(request).await.unwrap().bytes().await.unwrap();
        let response: Value = serde_json::from_slice(&response).unwrap();
        assert_eq!(response["result"]["content"][0]["text"], "true 1n", "{arguments}");
    }
}

#[tokio::test]
async fn other_arguments_tools_and_methods_are_refused() {
    let client = client(&server());
    let asked = first(&client).await;
    let state = asked.request_state().unwrap();
    for params in [
        json!({ "name": "ask", "arguments": { "amount": 2, "note": "n" } }),
        json!({ "name": "ask", "arguments": { "amount": 1, "note": "m" } }),
        json!({ "name": "ask", "arguments": { "amount": 1 } }),
        json!({ "name": "ask" }),
        json!({ "name": "other", "arguments": { "amount": 1, "note": "n" } }),
    ] {
        assert!(is_refused(&present(&client, state, params.clone()).await), "{params}");
    }
    let prompt = json!({ "name": "ask", "requestState": state });
    assert!(is_refused(&client.round("prompts/get", prompt).await.unwrap()), "another method");
}

#[tokio::test]
async fn another_key_or_audience_is_refused() {
    let asked = first(&client(&server())).await;
    let state = asked.request_state().unwrap();
    let others = [
        builder().sealer(key(8)).build().unwrap(),
        builder().sealer(KeyRing::new(2, &[7; 32])).build().unwrap(),
        builder().sealer(key(7)).audience("another deployment").build().unwrap(),
        builder().sealer(key(7)).public_url("https://mcp.example.com/mcp").build().unwrap(),
        server().with_audience("another deployment"),
        builder().build().unwrap(),
    ];
    for other in &others {
        assert!(is_refused(&present(&client(other), state, params()).await));
    }
}

#[tokio::test]
async fn a_rotated_ring_opens_what_the_old_key_sealed() {
    let asked = first(&client(&server())).await;
    let ring = KeyRing::new(2, &[8; 32]).with_old(1, &[7; 32]).unwrap();
    let rotated = builder().sealer(ring).build().unwrap();
    let reply = present(&client(&rotated), asked.request_state().unwrap(), params()).await;
    assert_eq!(reply.result().unwrap()["content"][0]["text"], "true 1n");
}

fn guarded(limits: Limits) -> Server {
    builder()
        .sealer(key(7))
        .authenticator(Tokens)
        .public_url("https://mcp.example.com/mcp")
        .limits(limits)
        .build()
        .unwrap()
}

#[tokio::test]
async fn another_issuer_or_tenant_is_refused_for_states_and_cursors() {
    let mut limits = Limits::default();
    limits.page_size = 1;
    let server = guarded(limits);
    // Each of these is somebody else, absent and empty parts too.
    let callers =
        ["ada", "ada@", "ada@one", "ada@two", "/ada", "one/ada", "two/ada", "one/ada@one"];
    for owner in callers {
        let client = client(&server).bearer(owner);
        let asked = first(&client).await;
        let page = client.round("tools/list", json!({})).await.unwrap();
        let cursor = json!({ "cursor": page.result().unwrap()["nextCursor"] });
        for caller in callers {
            let client = Client::in_process(&server).bearer(caller);
            let state = present(&client, asked.request_state().unwrap(), params()).await;
            let page = client.round("tools/list", cursor.clone()).await.unwrap();
            if caller == owner {
                assert!(state.result().is_some() && page.result().is_some(), "{owner}");
            } else {
                assert!(is_refused(&state), "{owner}'s state for {caller}");
                let message = &page.error().unwrap()["message"];
                assert_eq!(message, "Invalid cursor", "{owner}'s cursor for {caller}");
            }
        }
    }
}

#[tokio::test]
async fn another_principal_is_refused() {
    let server = guarded(Limits::default());
    let (ada, alan) = (client(&server).bearer("ada"), client(&server).bearer("alan"));
    let asked = first(&ada).await;
    let state = asked.request_state().unwrap();
    assert!(is_refused(&present(&alan, state, params()).await));
    assert!(present(&ada, state, params()).await.result().is_some());
    assert_eq!(client(&server).round("tools/call", params()).await.unwrap().status, 401);
}

#[tokio::test(start_paused = true)]
async fn an_expired_state_is_refused() {
    let client = client(&server());
    let asked = first(&client).await;
    let state = asked.request_state().unwrap();
    tokio::time::advance(Duration::from_secs(3599)).await;
    assert!(present(&client, state, params()).await.result().is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_refused(&present(&client, state, params()).await));
}

#[tokio::test]
async fn a_state_longer_than_any_that_is_given_out_now_is_refused() {
    let asked = first(&client(&server())).await;
    let state = asked.request_state().unwrap();
    let mut limits = Limits::default();
    limits.journal_bytes = state.len();
    let exact = builder().sealer(key(7)).limits(limits.clone()).build().unwrap();
    assert!(present(&client(&exact), state, params()).await.result().is_some());
    limits.journal_bytes -= 1;
    let tight = builder().sealer(key(7)).limits(limits).build().unwrap();
    assert!(is_refused(&present(&client(&tight), state, params()).await));
}

#[tokio::test]
async fn yesterdays_cursor_is_refused_once_the_catalogue_is_another() {
    let mut limits = Limits::default();
    limits.page_size = 1;
    let builder = || builder().sealer(key(7)).limits(limits.clone());
    let before = client(&builder().build().unwrap());
    let page = before.round("tools/list", json!({})).await.unwrap();
    let cursor = json!({ "cursor": page.result().unwrap()["nextCursor"] });
    let after = client(&builder().tool("third", "Asks too", ask).build().unwrap());
    let reply = after.round("tools/list", cursor.clone()).await.unwrap();
    assert_eq!(reply.error().unwrap()["message"], "Invalid cursor");
    assert!(before.round("tools/list", cursor).await.unwrap().result().is_some());
}

#[tokio::test]
async fn any_single_bit_flipped_is_refused() {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let client = client(&server());
    let asked = first(&client).await;
    let sealed = engine.decode(asked.request_state().unwrap()).unwrap();
    for bit in 0..sealed.len() * 8 {
        let mut flipped = sealed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let state = engine.encode(flipped);
        assert!(is_refused(&present(&client, &state, params()).await), "bit {bit}");
    }
}

#[tokio::test]
async fn a_state_is_no_cursor_and_a_cursor_no_state() {
    let mut limits = Limits::default();
    limits.page_size = 1;
    let server = builder().sealer(key(7)).limits(limits).build().unwrap();
    let client = client(&server);
    let asked = first(&client).await;
    let as_cursor = json!({ "cursor": asked.request_state().unwrap() });
    let reply = client.round("tools/list", as_cursor).await.unwrap();
    assert_eq!(reply.error().unwrap()["message"], "Invalid cursor");
    let page = client.round("tools/list", json!({})).await.unwrap();
    let cursor = page.result().unwrap()["nextCursor"].as_str().unwrap();
    assert!(is_refused(&present(&client, cursor, params()).await));
}

#[tokio::test]
async fn a_state_that_nobody_prompted_for_is_still_verified() {
    let reply = present(&client(&server()), "invented", params()).await;
    assert!(is_refused(&reply), "MRTR-11, MRTR-24");
}
