//! What no other test proves: one test each, named after the requirement. `requirements.toml` beside
//! this package says where the rest is proven.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod auth;
mod base;
mod cancel;
mod discover;
mod elicit;
mod errors;
mod extensions;
mod headers;
mod lists;
mod logging;
mod meta;
mod mrtr;
mod prompts;
mod resources;
mod sampling;
mod sse;
mod state;
mod subscriptions;
mod tasks;
mod tools;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use mcp_edge::{KeyRing, Server, ServerBuilder};
use mcp_edge_hyper::{ServeOptions, serve_with};
use mcp_edge_test::{Client, Reply};
use mcp_edge_tests::{edit, header};
use serde_json::{Value, json};

#[derive(Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

fn builder() -> ServerBuilder {
    Server::builder("requirements", "1.0.0").sealer(KeyRing::new(1, &[7; 32]))
}

/// A client of what was built.
fn client(builder: ServerBuilder) -> Client {
    Client::in_process(&builder.build().unwrap())
}

/// A client of the contract's server.
fn contract() -> Client {
    Client::in_process(&mcp_edge_tests::server().unwrap())
}

/// Serves on a socket of this machine, and returns where.
async fn serve(server: Server) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_with(server, listener, ServeOptions::default(), std::future::pending()));
    address
}

/// A client of the server behind a socket.
async fn behind_a_socket(server: Server) -> Client {
    Client::url(&format!("http://{}/mcp", serve(server).await))
}

/// Sends a request as it is.
async fn send(client: &Client, request: Request<Bytes>) -> (StatusCode, Value) {
    let mut response = client.raw(request).await.unwrap();
    let bytes = response.bytes().await.unwrap();
    (response.status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Status and code of a refusal.
async fn refusal(client: &Client, request: Request<Bytes>) -> (u16, i64) {
    let (status, answer) = send(client, request).await;
    (status.as_u16(), answer["error"]["code"].as_i64().unwrap_or_default())
}

/// The first text of a tool's result.
fn text(reply: &Reply) -> &str {
    reply.result().and_then(|result| result["content"][0]["text"].as_str()).unwrap_or_default()
}

/// An accepted form that holds one text.
fn accepted(text: &str) -> Value {
    json!({ "action": "accept", "content": { "text": text } })
}
