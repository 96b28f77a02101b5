//! Serves an mcp-edge server with hyper: on this machine, and on instances of your own.
//!
//! ```no_run
//! use mcp_edge::Server;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let hello = async |_: mcp_edge::NoArgs| "Hello!";
//!     let server = Server::builder("greeter", "1.0.0").tool("hello", "Greets", hello).build()?;
//!     mcp_edge_hyper::serve(server, "127.0.0.1:8080").await?;
//!     Ok(())
//! }
//! ```
//!
//! - [`serve()`] is the paved path: keys from the environment, until the process is told to stop.
//! - [`serve_on`] takes a listener, and [`serve_on_with`] [`ServeOptions`] as well.
//! - [`serve_with`] leaves keys, listener and shutdown to the caller.
//! - [`with_tasks`] gives a server a store for tasks, and comes back to them.
//! - [`McpService`] mounts inside an axum or tower application.
//!
//! All speak HTTP/1.1 and cleartext HTTP/2 with prior knowledge; TLS is the business of whatever
//! stands before them. A client that disconnects cancels its call, and one that merely shuts its
//! sending side counts as such.
//!
//! With the feature `sqlite` there is `SqliteStore`, which keeps tasks and carries changes for all
//! processes of a host.
//!
//! Nothing is decided here: this crate asks the core whether to read a body and how much of it, and
//! sends what the core answers.

mod connection;
mod log;
mod options;
mod platform;
mod serve;
mod service;
mod socket;
#[cfg(feature = "sqlite")]
mod sqlite;
mod tasks;
mod watch;

#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteError, SqliteStore};
pub use {
    log::json_log,
    options::ServeOptions,
    platform::HyperPlatform,
    serve::{ServeError, serve, serve_on, serve_on_with, serve_with},
    service::McpService,
    tasks::{Scheduler, Serving, TaskRunner, with_tasks},
};
