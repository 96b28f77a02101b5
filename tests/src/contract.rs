//! The contract: what a client sees must be the same on every platform.
//!
//! - [`exchange`]: HTTP, before any JSON is read.
//! - [`ladder`]: the checks of a request.
//! - [`features`]: what the methods answer.
//! - [`streams`]: SSE, progress, logs and news.
//! - [`tasks`]: calls that outlive their request.

pub mod exchange;
pub mod features;
pub mod fixtures;
pub mod ladder;
pub mod streams;
pub mod tasks;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use mcp_edge_test::Client;
use serde_json::{Value, json};

use crate::{edit, header};

/// A raw answer.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("not JSON ({error}): {}", String::from_utf8_lossy(&self.body))
        })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status and JSON-RPC code of a refusal.
    fn refusal(&self) -> (u16, i64) {
        let error = self.json()["error"].clone();
        assert!(error["message"].is_string(), "BASE-11: {error}");
        (self.status.as_u16(), error["code"].as_i64().unwrap())
    }
}

async fn send(client: &Client, request: Request<Bytes>) -> Answer {
    let mut response = client.raw(request).await.unwrap();
    let (status, headers) = (response.status, response.headers.clone());
    Answer { status, headers, body: response.bytes().await.unwrap() }
}

/// The request of a conforming client that calls `add`.
fn add(client: &Client) -> Request<Bytes> {
    client.request("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }))
}

/// Sends the `add` request with another body, and returns status and code of the refusal.
async fn with_body(client: &Client, body: impl Into<Bytes>) -> Answer {
    let mut request = add(client);
    *request.body_mut() = body.into();
    send(client, request).await
}
