//! Tools whose work outlives the request: tasks.
//!
//! From `background` on a call goes on without its client, who looks in when it likes. A client that
//! cannot hold a task gets the same answer inside the request, unless the tool requires a task. What
//! runs again after a crash, or on another machine, is what was not awaited through `cx`.

use std::time::Duration;

use futures_util::join;
use mcp_edge::{Cx, NoArgs, RequestError, ServerBuilder, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool("greet", "Greets at once, without a task", greet)
        .tool("slow_compute", "Takes as many seconds as it is told", slow_compute)
        .tool_with("failing_job", "Fails as a tool does", failing_job, |tool| tool.requires_task())
        .tool("protocol_error_job", "Fails with an error of the protocol", protocol_error_job)
        .tool("confirm_delete", "Asks before it deletes, as a task", confirm_delete)
        .tool("multi_input", "Asks two questions at once, as a task", multi_input)
        .tool("test_tool_with_task", "Asks first, and greets as a task", ask_then_task)
        // Nobody has to log in to this server.
        .anonymous_tasks(true)
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct SlowCompute {
    /// How long it takes.
    seconds: u32,
    /// What the result is called.
    label: String,
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    confirm: bool,
}

async fn greet(args: Greet) -> String {
    format!("Hello, {}!", args.name)
}

/// While a task sleeps, nothing of it is held anywhere but its record. Inside a request the server
/// waits, though not for long.
async fn slow_compute(cx: Cx, args: SlowCompute) -> String {
    cx.background(format!("Computing {}", args.label)).await;
    cx.sleep("compute", Duration::from_secs(args.seconds.into())).await;
    format!("{} took {} s.", args.label, args.seconds)
}

/// An error that the model reads completes the task, which `requires_task` keeps from beginning at
/// a client that cannot hold it.
async fn failing_job(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.background("About to fail").await;
    Err(ToolError::new("The job failed."))
}

/// An error of the protocol fails the task.
async fn protocol_error_job(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.background("About to fail").await;
    Err(ToolError::protocol(RequestError::internal("this job always fails")))
}

async fn confirm_delete(cx: Cx, args: Delete) -> Result<String, ToolError> {
    cx.background("Waiting for a confirmation").await;
    let question = format!("Delete {}?", args.filename);
    let answer = cx.elicit::<Confirmation>("confirm", question).await.required()?;
    let done = if answer.confirm { "was deleted" } else { "is still there" };
    Ok(format!("{} {done}.", args.filename))
}

async fn multi_input(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.background("Waiting for two answers").await;
    let (name, confirmation) = join!(
        cx.elicit::<Name>("name", "What is your name?"),
        cx.elicit::<Confirmation>("confirm", "Are you sure?"),
    );
    let sure = if confirmation.required()?.confirm { "sure" } else { "not sure" };
    Ok(format!("{} is {sure}.", name.required()?.name))
}

/// The question comes before the task, so it is answered by calling the tool again.
async fn ask_then_task(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("user_name", "What is your name?").await.required()?;
    cx.background("Greeting").await;
    Ok(format!("Hello, {name}!"))
}
