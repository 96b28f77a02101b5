//! Any JSON as the input schema of a tool, and any JSON as arguments to it: two texts with a byte
//! 0xff between them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_edge::{RawArgs, Server};
use mcp_edge_fuzz::{checked, message, post};
use serde_json::{Value, json};

/// More than all that an answer may say about one value.
const ANSWER_BYTES: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    let mut texts = data.splitn(2, |byte| *byte == 0xff);
    let (Some(schema), arguments) = (texts.next(), texts.next()) else { return };
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return };
    let built = Server::builder("fuzzed", "1.0.0")
        .tool_with(
            "t",
            "Takes anything",
            async |_: RawArgs| "done",
            |tool| tool.input_schema(schema),
        )
        .build();
    let server = match built {
        Ok(server) => server,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let listed = checked(&server, post(message("tools/list", json!({}))));
    assert_eq!(listed.status, 200);
    let arguments = arguments.and_then(|text| serde_json::from_slice::<Value>(text).ok());
    let arguments = arguments.unwrap_or_else(|| json!({}));
    let body = message("tools/call", json!({ "name": "t", "arguments": arguments }));
    let answer = checked(&server, post(body));
    assert!(answer.body.len() <= ANSWER_BYTES, "an answer of {} bytes", answer.body.len());
});
