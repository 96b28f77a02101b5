//! Any token where a sealed one belongs: refused, or the very one that was given out.
//!
//! The first byte says what the rest is: a cursor, a state or a task id as it stands, changes to a
//! genuine one (position, what, byte), answers that come along with a genuine state, or which genuine
//! token is to be presented as which.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mcp_edge_fuzz::{BODY_BYTES, Instance, TASKS, message, post, token_result};
use serde_json::{Value, json};

/// Sends a request; the result, or `None` for the one refusal that there may be.
fn send(method: &str, params: Value) -> Option<Value> {
    let message = message(method, params);
    let too_large = message.len() > BODY_BYTES;
    let instance = Instance::default();
    let answer = instance.checked(post(message));
    if too_large {
        assert_eq!(answer.status, 413);
        return None;
    }
    let result = token_result(&answer);
    if result.is_none() {
        assert_eq!(instance.reads(), 0, "what was never given out was looked up");
    }
    result
}

fn task(id: &str) -> Option<Value> {
    send("tasks/get", json!({ "taskId": id }))
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

static TASK: LazyLock<Genuine> = LazyLock::new(|| {
    let token = TASKS.asking.clone();
    Genuine { answer: task(&token).expect("the task"), token }
});

static JOB: LazyLock<Genuine> = LazyLock::new(|| {
    let token = TASKS.job.clone();
    Genuine { answer: task(&token).expect("the job"), token }
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
            assert_eq!(answer["taskId"], genuine.answer["taskId"]);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((what, rest)) = data.split_first() else { return };
    if rest.len() > 8 << 10 {
        return;
    }
    match what % 9 {
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
        5 => {
            let id = String::from_utf8_lossy(rest);
            let genuine = if *id == *JOB.token { &JOB } else { &TASK };
            judge(&id, task(&id), genuine);
        }
        6 => {
            let id = changed(&TASK.token, rest);
            judge(&id, task(&id), &TASK);
        }
        7 => {
            let id = changed(&JOB.token, rest);
            judge(&id, task(&id), &JOB);
        }
        8 => {
            let all = [&*CURSOR, &*STATE, &*TASK, &*JOB];
            let [from, to, ..] = rest else { return };
            let token = &all[usize::from(from % 4)].token;
            let (answer, genuine) = match to % 4 {
                0 => (list(token), &CURSOR),
                1 => (ask(token, None), &STATE),
                _ if *token == JOB.token => (task(token), &JOB),
                _ => (task(token), &TASK),
            };
            judge(token, answer, genuine);
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
