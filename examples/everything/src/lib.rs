//! A server with every feature: what the official conformance suite asks for, and a little more.
//!
//! Look here for how something is written. One module holds one subject, and each has an `add`
//! that puts its part into the server; [`server`] is the whole. It says nothing about where it
//! runs: `examples/everything-local` serves it on your machine.

mod arguments;
mod content;
mod events;
mod prompts;
mod questions;
mod resources;
mod tasks;

use std::time::Duration;

use mcp_edge::{BuildError, CacheHints, List, Server};

/// What the server has, for whoever announces it.
pub const CONTENTS: &str = "32 tools, 5 prompts, 3 resources and 1 resource template";

/// Makes the server.
///
/// # Errors
/// Never, unless a definition is changed into a wrong one; the error then names it.
pub fn server() -> Result<Server, BuildError> {
    let mut server = Server::builder("everything", env!("CARGO_PKG_VERSION"))
        .title("Everything")
        .description("Every feature of MCP that a server can have, one small example of each")
        .instructions(
            "Call `hello` or `add` to try it out. The other tools each show one feature; their \
             descriptions say which.",
        )
        .logging();
    // The lists are the same for everybody and change with a new release only, so even a cache that
    // many clients share may keep them.
    let release = CacheHints::public(Duration::from_secs(300));
    for list in [List::Tools, List::Prompts, List::Resources, List::ResourceTemplates] {
        server = server.cache(list, release);
    }
    // Lists keep this order.
    let server = content::add(server);
    let server = arguments::add(server);
    let server = questions::add(server);
    let server = events::add(server);
    let server = tasks::add(server);
    let server = prompts::add(server);
    let server = resources::add(server);
    server.cache_discover(release).build()
}
