//! What clients see on real loopback sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod body;
mod connections;
mod disconnect;
mod headers;
mod http2;
mod mounted;
mod pipelining;
mod process;
mod refusals;
mod shutdown;
mod support;
