//! Keys rotate in four steps without a state being lost, while instances of two steps stand side by
//! side; and whatever is wrong with a state looks and takes the same.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::time::{Duration, Instant};

use mcp_edge::{Cx, KeyRing, NoArgs, Server, ToolError};
use mcp_edge_test::Client;
use serde_json::json;

async fn ask(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let form = json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } });
    for key in ["a", "b", "c"] {
        cx.elicit_schema(key, "Sure?", form.clone()).await.required()?;
    }
    Ok("done".to_owned())
}

fn server(ring: KeyRing) -> Server {
    Server::builder("rotation", "1.0.0").tool("ask", "Asks", ask).sealer(ring).build().unwrap()
}

const OLD: (u8, [u8; 32]) = (1, [1; 32]);
const NEW: (u8, [u8; 32]) = (2, [2; 32]);

fn ring(seals: (u8, [u8; 32]), opens: Option<(u8, [u8; 32])>) -> KeyRing {
    let ring = KeyRing::new(seals.0, &seals.1);
    match opens {
        Some((id, key)) => ring.with_old(id, &key).unwrap(),
        None => ring,
    }
}

/// The rings of an instance after each step: as it was, added, promoted, retired.
fn steps() -> [KeyRing; 4] {
    [ring(OLD, None), ring(OLD, Some(NEW)), ring(NEW, Some(OLD)), ring(NEW, None)]
}

#[tokio::test]
async fn neighbouring_steps_stand_side_by_side_and_every_round_may_meet_either() {
    // The last step waits for the longest ttl; the next test takes it.
    for step in 0..2 {
        let mut instances = steps().into_iter().skip(step).map(server);
        let (before, after) = (instances.next().unwrap(), instances.next().unwrap());
        for fleet in [[before.clone(), after.clone()], [after, before]] {
            let client = Client::fleet(fleet)
                .on_question(|question| Some(question.accept(json!({ "yes": true }))));
            let called = client.call("ask", json!({})).await.unwrap();
            assert_eq!((called.text().as_str(), called.rounds.len()), ("done", 3), "step {step}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_key_retires_once_nothing_that_it_sealed_is_valid() {
    let [_, added, promoted, retired] = steps().map(server);
    let accept = json!({ "a": { "action": "accept", "content": { "yes": true } } });
    let params = json!({ "name": "ask" });
    let early = Client::in_process(&added).round("tools/call", params.clone()).await.unwrap();
    let late = Client::in_process(&promoted).round("tools/call", params).await.unwrap();
    let last = Client::in_process(&retired);
    assert!(last.retry(&late, accept.clone()).await.unwrap().is_input_required());
    assert_eq!(last.retry(&early, accept.clone()).await.unwrap().code(), Some(-32602));
    tokio::time::advance(Duration::from_secs(3600)).await;
    let waited = Client::in_process(&promoted).retry(&early, accept).await.unwrap();
    assert_eq!(waited.code(), Some(-32602), "expired before its key retired");
}

#[test]
fn timing_every_refusal_of_a_state_looks_and_takes_the_same() {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let client = Client::in_process(&server(ring(OLD, Some(NEW))));
        let foreign = Client::in_process(&server(ring((1, [9; 32]), None)));
        let unknown = Client::in_process(&server(ring((9, [9; 32]), None)));
        let params = json!({ "name": "ask" });
        let state = async |client: &Client| {
            let reply = client.round("tools/call", params.clone()).await.unwrap();
            reply.request_state().unwrap().to_owned()
        };
        let good = state(&client).await;
        let mut sealed = engine.decode(&good).unwrap();
        *sealed.last_mut().unwrap() ^= 1;
        let flipped_tag = engine.encode(&sealed);
        sealed[20] ^= 1;
        let flipped_text = engine.encode(&sealed);
        let states = [
            flipped_tag,
            flipped_text,
            state(&foreign).await,
            state(&unknown).await,
            good[..good.len() - 8].to_owned(),
        ];
        let mut medians = Vec::new();
        for state in &states {
            let mut params = params.clone();
            params["requestState"] = json!(state);
            let mut times = Vec::new();
            for _ in 0..200 {
                let request = client.request("tools/call", params.clone());
                let began = Instant::now();
                let mut response = client.raw(request).await.unwrap();
                times.push(began.elapsed());
                assert_eq!(response.status, 200);
                let error = json!({ "code": -32602, "message": "Invalid requestState" });
                assert_eq!(response.json().await.unwrap()["error"], error);
            }
            times.sort_unstable();
            medians.push(times[times.len() / 2]);
        }
        let (low, high) = (medians.iter().min().unwrap(), medians.iter().max().unwrap());
        assert!(*high < *low * 5, "{medians:?}");
    });
}
