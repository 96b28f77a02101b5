//! What a handler may do around questions, case by case.
//!
//! Every case runs over the public API, each round on a server value of its own that shares
//! nothing but the key with the others.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

mod answers;
mod effects;
mod replay;
mod rules;
mod time;
mod versions;

use mcp_edge::{Handler, KeyRing, MaybeSend, Server, ToolArgs, ToolOptions, ToolOutput};
use mcp_edge_test::Client;
use mcp_edge_tests::Counter;
use serde::{Deserialize, Serialize};

/// What questions ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Yes {
    yes: bool,
}

/// A server with one tool, `t`.
fn server<M, H>(handler: H) -> Server
where
    M: 'static,
    H: Handler<M>,
    H::Args: ToolArgs,
    H::Out: ToolOutput,
    H::Future: MaybeSend,
{
    server_with(handler, |options| options)
}

fn server_with<M, H>(handler: H, options: impl FnOnce(ToolOptions) -> ToolOptions) -> Server
where
    M: 'static,
    H: Handler<M>,
    H::Args: ToolArgs,
    H::Out: ToolOutput,
    H::Future: MaybeSend,
{
    Server::builder("journal", "1.0.0")
        .tool_with("t", "The tool under test", handler, options)
        .sealer(KeyRing::new(1, &[7; 32]))
        .logging()
        .build()
        .unwrap()
}

fn client(server: &Server) -> Client {
    Client::in_process(server)
}
