//! What a tool may tell besides its answer: progress and logs to its caller, changes to everybody
//! who listens.

use std::time::Duration;

use mcp_edge::{Change, Cx, NoArgs, ServerBuilder, ToolError, protocol::LogLevel};
use serde_json::json;

use crate::resources::WATCHED;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool("test_tool_with_progress", "Works for a moment and says how far it is", progress)
        .tool("test_logging_tool", "Sends log messages while it works", logging)
        .tool("test_trigger_tool_change", "Says that the list of tools changed", tools_changed)
        .tool(
            "test_trigger_prompt_change",
            "Says that the list of prompts changed",
            prompts_changed,
        )
        .tool(
            "test_touch_watched_resource",
            "Says that test://watched-resource changed",
            resource_changed,
        )
}

/// Only a client that sent a progress token is told. Sleeps have keys too: their deadlines hold
/// over questions.
async fn progress(cx: Cx, _: NoArgs) -> &'static str {
    cx.progress(0.0, 100.0, "Starting");
    cx.sleep("first half", Duration::from_millis(50)).await;
    cx.progress(50.0, 100.0, "Half-way");
    cx.sleep("second half", Duration::from_millis(50)).await;
    cx.progress(100.0, 100.0, "Done");
    "The work is done."
}

/// Only a client that asked for a level gets messages, and only from that level on. For the logs of
/// the server itself use `tracing`.
async fn logging(cx: Cx, _: NoArgs) -> &'static str {
    cx.log(LogLevel::Debug, "Looking for work");
    cx.log(LogLevel::Info, json!({ "found": 1 }));
    cx.log(LogLevel::Warning, "That was all of it");
    "The work is done."
}

// The lists of this server never really change: these only say so, for clients to be tested with.

async fn tools_changed(cx: Cx, _: NoArgs) -> Result<&'static str, ToolError> {
    cx.publisher().publish(Change::Tools).await?;
    Ok("Listeners were told that the list of tools changed.")
}

async fn prompts_changed(cx: Cx, _: NoArgs) -> Result<&'static str, ToolError> {
    cx.publisher().publish(Change::Prompts).await?;
    Ok("Listeners were told that the list of prompts changed.")
}

async fn resource_changed(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.publisher().publish(Change::resource(WATCHED)).await?;
    Ok(format!("Listeners were told that {WATCHED} changed."))
}
