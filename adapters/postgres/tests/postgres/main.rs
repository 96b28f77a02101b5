//! What a store in PostgreSQL must do, against a server that `MCP_EDGE_POSTGRES_URL` names.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod contract;
mod feed;
mod handoff;
mod loss;
mod migrations;
mod secrets;
mod support;
mod tasks;
