//! Any token where a sealed one belongs: refused, or the very one that was given out.
//!
//! The first byte says what the rest is: a cursor or a state as it stands, changes to a genuine one
//! (position, what, byte), or answers that come along with a genuine state.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mcp_edge_fuzz::{BODY_BYTES, SERVER, checked, message, post, token_result};
use serde_json::{Value, json};

/// Sends a request; the result, or `None` for the one refusal that there may be.
fn send(method: &str, params: Value) -> Option<Value> {
    let message = message(method, params);
    let too_large = message.len() > BODY_BYTES;
    let answer = checked(&SERVER, post(message));
    if too_large {
        assert_eq!(answer.status, 413);
        return None;
    }
    token_result(&answer)
}

fn list(cursor: &str) -> Option<Value> {
    send("tools/list", json!({ "cursor": cursor }))
}

fn ask(state: &str, answers: Option<Value>) -> Option<Value> {
    let mut params = json!({ "name": "ask", "arguments": {}, "requestState": state });
    if let Some(answers) = answers {
        params["inputResponses"] = answers;
    }
    send("tools/call", params)
}

/// A genuine token, and what it is answered with.
struct Genuine {
    token: String,
    answer: Value,
}

static CURSOR: LazyLock<Genuine> = LazyLock::new(|| {
    let page = send("tools/list", json!({})).expect("a page");
    let token = page["nextCursor"].as_str().expect("a cursor").to_owned();
    Genuine { answer: list(&token).expect("the next page"), token }
});

static STATE: LazyLock<Genuine> = LazyLock::new(|| {
    let round = send("tools/call", json!({ "name": "ask", "arguments": {} })).expect("a round");
    let token = round["requestState"].as_str().expect("a state").to_owned();
    Genuine { answer: ask(&token, None).expect("the same round"), token }
});

fn changed(token: &str, changes: &[u8]) -> String {
    let mut token = token.as_bytes().to_vec();
    for change in changes.chunks_exact(4).take(64) {
        let [high, low, what, byte] = change else { continue };
        let at = usize::from(u16::from_be_bytes([*high, *low])) % (token.len() + 1);
        match what % 5 {
            0 => token.insert(at, *byte),
            1 => token.truncate(at),
            2 if at < token.len() => drop(token.remove(at)),
            3 if at < token.len() => token[at] ^= byte,
            4 if at < token.len() => token[at] = *byte,
            _ => {}
        }
    }
    String::from_utf8_lossy(&token).into_owned()
}

fn judge(token: &str, answer: Option<Value>, genuine: &Genuine) {
    match answer {
        None => assert_ne!(token, genuine.token, "a genuine token was refused"),
        Some(answer) => {
            assert_eq!(token, genuine.token, "a token was opened that was never given out");
            // A state is sealed anew in each round.
            assert_eq!(answer["resultType"], genuine.answer["resultType"]);
            assert_eq!(answer["tools"], genuine.answer["tools"]);
            assert_eq!(answer["inputRequests"], genuine.answer["inputRequests"]);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((what, rest)) = data.split_first() else { return };
    if rest.len() > 8 << 10 {
        return;
    }
    match what % 5 {
        0 => {
            let token = String::from_utf8_lossy(rest);
            judge(&token, list(&token), &CURSOR);
        }
        1 => {
            let token = String::from_utf8_lossy(rest);
            judge(&token, ask(&token, None), &STATE);
        }
        2 => {
            let token = changed(&CURSOR.token, rest);
            judge(&token, list(&token), &CURSOR);
        }
        3 => {
            let token = changed(&STATE.token, rest);
            judge(&token, ask(&token, None), &STATE);
        }
        _ => {
            let Ok(answers) = serde_json::from_slice::<Value>(rest) else { return };
            // Deeper than a body may be, and it is no matter of the token.
            if rest.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() < 50 {
                ask(&STATE.token, Some(answers));
            }
        }
    }
});
