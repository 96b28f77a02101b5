//! Server processes behind the proxy of a fleet. Needs a Unix.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

mod lifecycle;
mod passing;
mod routing;
mod server;
mod support;
