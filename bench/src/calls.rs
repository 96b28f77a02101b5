//! Requests to the core, without any I/O.

use std::{hint::black_box, sync::Arc};

use bytes::Bytes;
use mcp_edge::{Platform, Server};
use serde_json::{Value, json};

use crate::{
    Result, now,
    platform::Still,
    reference::{self, Call},
    server::server,
};

/// The reference request, to a server with some number of tools, which may validate its arguments.
pub(crate) fn plain(times: usize, tools: usize, validates: bool) -> Result {
    let answer = repeat(times, &server(tools, validates)?, &Call::reference()?)?;
    if answer != reference::ANSWER {
        return Err(format!("the answer is not that of answer.json:\n{answer:?}").into());
    }
    Ok(())
}

/// A string argument of `length` bytes.
pub(crate) fn long_argument(times: usize, length: usize) -> Result {
    let call = Call::of_tool("length", json!({ "text": "x".repeat(length) }))?;
    let answer = repeat(times, &server(20, false)?, &call)?;
    expect(&answer, "structuredContent", &json!({ "sum": length }))
}

/// The answer to a question that a handler asked after some steps, which are then replayed.
pub(crate) fn replay(times: usize, steps: usize) -> Result {
    let server = server(20, false)?;
    let first = Call::of_tool("ask_after", json!({ "steps": steps }))?;
    let asked: Value = serde_json::from_slice(&repeat(1, &server, &first)?)?;
    let answer = json!({ "approve": { "action": "accept", "content": { "approved": true } } });
    let state = asked["result"]["requestState"].clone();
    let retry = first.with_params([("requestState", state), ("inputResponses", answer)])?;
    let sum: usize = (0..steps).sum();
    let text = json!([{ "type": "text", "text": format!("{sum} true") }]);
    expect(&repeat(times, &server, &retry)?, "content", &text)
}

/// Makes the same call a number of times; the last answer.
fn repeat(times: usize, server: &Server, call: &Call) -> Result<Bytes> {
    let platform: Arc<dyn Platform> = Arc::new(Still);
    let mut last = Bytes::new();
    for _ in 0..times {
        let (platform, body) = (Arc::clone(&platform), call.body.clone());
        let response = now(async {
            match server.gate(black_box(&call.parts), platform).await {
                Ok(admission) => admission.handle(body).await,
                Err(response) => response,
            }
        })?;
        last = response.into_body().as_bytes().ok_or("the answer is a stream")?.clone();
    }
    Ok(last)
}

fn expect(answer: &[u8], member: &str, value: &Value) -> Result {
    let message: Value = serde_json::from_slice(answer)?;
    if message["result"][member] != *value {
        return Err(format!("unexpected answer: {message}").into());
    }
    Ok(())
}
