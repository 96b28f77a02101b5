//! Tools that go on as tasks.

use std::time::Duration;

use futures_util::join;
use mcp_edge::{Cx, NoArgs, RequestError, ServerBuilder, ToolError, protocol::LogLevel};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Colour, Name};

pub(super) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool("work", "Goes on as a task, and ends as it is told", work)
        .tool("survey", "Asks two questions at once, as a task", survey)
        .tool("enrol", "Asks before its task, and in it", enrol)
        .tool_with("nightly", "Is a task or nothing", nightly, |tool| tool.requires_task())
        .anonymous_tasks(true)
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Work {
    how: String,
}

async fn work(cx: Cx, args: Work) -> Result<String, ToolError> {
    cx.background("Working").await;
    match args.how.as_str() {
        "tool" => Err(ToolError::new("Try tomorrow")),
        "protocol" => {
            let error = RequestError::application(7, "Out of paper");
            Err(error.with_data(json!({ "tray": 2 })).into())
        }
        "panic" => panic!("a secret"),
        "rest" => {
            cx.sleep("rest", Duration::from_secs(3600)).await;
            Ok("rested".to_owned())
        }
        "tell" => {
            cx.progress(1.0, 2.0, "Half-way");
            cx.log(LogLevel::Error, "half-way");
            Ok(cx.elicit::<Name>("name", "What is your name?").await.required()?.name)
        }
        how => Ok(how.to_owned()),
    }
}

async fn survey(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.background("Asking").await;
    let (name, colour) = join!(
        cx.elicit::<Name>("name", "What is your name?"),
        cx.elicit::<Colour>("colour", "Which colour?"),
    );
    Ok(format!("{} likes {}", name.required()?.name, colour.required()?.colour))
}

async fn enrol(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let name = cx.elicit::<Name>("name", "What is your name?").await.required()?.name;
    cx.background(format!("Enrolling {name}")).await;
    let colour = cx.elicit::<Colour>("colour", "Which colour?").await.required()?.colour;
    Ok(format!("{name} likes {colour}"))
}

async fn nightly(cx: Cx, _: NoArgs) -> &'static str {
    cx.background("").await;
    "done"
}
