//! Stateless remote MCP servers: one handler, any lifetime, any edge.
//!
//! A server is an immutable value. It keeps nothing between two requests, so any number of
//! instances answer any request: what must live on travels as opaque, sealed identifiers.
//!
//! ```
//! use mcp_edge::{BuildError, Server};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Hello {
//!     /// Whom to greet.
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
//! # assert!(server().is_ok());
//! ```
//!
//! A handler that takes a [`Cx`] may ask its user. It is then run again from its start when the answer
//! comes, on any instance: what it did through `Cx` under a key is not repeated, and all else is.
//!
//! From [`Cx::background`] on, a call goes on as a durable task, where the client can hold one and the
//! server has a [`TaskStore`]: steps, questions and sleeps survive crashes and deployments.
//!
//! The core speaks `http` types and owns no I/O: adapter crates serve it on each platform through
//! [`Server::gate`], [`Admission::handle`] and a [`Platform`].

mod admission;
mod body;
mod builder;
mod call;
mod canonical;
mod catalogue;
mod cx;
mod define;
mod dispatch;
mod elicit_schema;
mod envelope;
mod error;
mod execution;
mod feed;
mod gate;
mod handler;
mod headers;
mod invoke;
mod journal;
mod json_log;
mod limits;
mod listen;
mod method;
mod names;
mod observe;
mod options;
mod origin;
mod outbox;
mod param_headers;
mod platform;
mod principal;
pub mod protocol;
mod provider;
mod rejection;
mod respond;
mod scan;
mod schema;
mod seal;
mod server;
mod strings;
mod target;
mod task;
mod token;
mod uri;

#[cfg(not(target_arch = "wasm32"))]
pub use feed::InProcessFeed;
pub use {
    admission::Admission,
    body::Body,
    builder::ServerBuilder,
    call::Capability,
    catalogue::{CacheHints, CacheScope, List},
    cx::{Answer, Cx},
    error::{BuildError, RequestError, ToolError},
    feed::{Change, ChangeFeed, FeedError, Publisher, Topics},
    handler::{
        CompletionOutput, CompletionRequest, Handler, Json, NoArgs, PromptArgs, PromptOutput,
        RawArgs, ReadArgs, ReadOutput, ResourceUri, ToolArgs, ToolOutput, Vars,
    },
    json_log::JsonLog,
    limits::Limits,
    observe::{CallHook, CallInfo, CallOutcome, TraceContext},
    options::{PromptOptions, ResourceOptions, TemplateOptions, ToolOptions},
    platform::{Fetch, FetchError, Platform, Timestamp},
    principal::{Anonymous, Authenticator, Challenge, Principal},
    provider::{DynamicPrompt, DynamicResource, DynamicTool, Page, Provider},
    rejection::{HeaderFault, Rejection},
    seal::{KeyRing, KeyRingError, OpenError, SealError, Sealer},
    server::Server,
    target::{BoxFuture, BoxStream, MaybeSend, MaybeSync},
    task::{
        job::{Job, JobStatus},
        memory::MemoryStore,
        store::{
            Created, DueIndex, Mailbox, RECORD_BYTES, ReplayGuard, StoreError, TaskDriver,
            TaskRecord, TaskStore,
        },
    },
};

#[doc(hidden)]
pub use {handler::ToolReply, headers::encode_mirrored};

/// The revisions that are served with metadata in each request (VER-06).
pub(crate) const MODERN_VERSIONS: &[&str] = &["2026-07-28"];

/// base64url without padding.
fn encode(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

/// The inverse of [`encode`]; `None` for anything it would not have made.
fn decode(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).ok()
}
