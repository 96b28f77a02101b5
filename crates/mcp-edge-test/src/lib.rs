//! What users of [`mcp_edge`] write their tests with.
//!
//! A [`Client`] talks to a server in the same process, to a [fleet](Client::fleet) of them, or to a
//! URL, for instance that of a [`Fleet`] of processes. It sends exactly what a conforming client of
//! revision 2026-07-28 sends: headers and their encodings, `_meta`, answers to questions. It refuses
//! what a conforming client must refuse, so a test that passes also says that the server kept to the
//! specification; and whatever goes wrong, the error shows the exchange as a person reads it.
//!
//! ```
//! use mcp_edge::{BuildError, Server};
//! use mcp_edge_test::Client;
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Hello {
//!     name: String,
//! }
//!
//! async fn hello(args: Hello) -> String {
//!     format!("Hello, {}!", args.name)
//! }
//!
//! fn server() -> Result<Server, BuildError> {
//!     Server::builder("greeter", "1.0.0").tool("hello", "Greets somebody", hello).build()
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::in_process(&server()?);
//! let called = client.call("hello", json!({"name": "Ada"})).await?;
//! assert_eq!(called.text(), "Hello, Ada!");
//! # Ok(())
//! # }
//! ```
//!
//! There are three levels. [`Client::call`] and its like go all the way, through any number of
//! questions. [`Client::round`] sends one request and gives the reply, checked. [`Client::raw`]
//! sends whatever it is given and checks nothing; [`Client::request`] makes a sound request to start
//! from.
//!
//! Servers in the same process run on a [`TestPlatform`], whose clock is tokio's: a test with
//! `start_paused = true` lets hours pass at once. [`Client::strict`] makes sure that handlers which
//! ask questions replay. [`Client::with_tasks`] lets calls become tasks, and follows them.
//!
//! Those who write a store or a change feed of their own state with [`store_suite!`] and
//! [`feed_suite!`] that it does what the core relies on.

mod answers;
mod called;
mod calls;
mod check;
mod client;
mod drive;
mod error;
mod exchange;
pub mod feed;
mod fleet;
mod follow;
mod listening;
mod mirror;
mod platform;
mod raw;
mod reply;
mod request;
mod round;
mod sse;
pub mod store;
mod strict;
mod task;
mod transport;

pub use {
    answers::Question,
    called::{Called, Discovered, Log, Progress, ReadResult},
    client::Client,
    drive::{with_store, with_tasks},
    error::{CallError, Fault},
    fleet::{Fleet, FleetBuilder, FleetError, Routing},
    listening::Listening,
    platform::{Draining, TestPlatform},
    raw::{RawBody, RawResponse},
    reply::{Framing, Reply},
    sse::Event,
    task::{Task, TaskStatus},
};
