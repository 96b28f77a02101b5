//! What the fuzz targets share: a server, and what must hold of every answer.

mod answer;
mod tasks;

use std::{sync::LazyLock, time::Duration};

use mcp_edge::{
    Cx, InProcessFeed, Json, KeyRing, Limits, NoArgs, RawArgs, Server, ToolError, Vars,
    protocol::{LogLevel, PromptMessage, SampleParams, ToolResult},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use answer::{Answer, HEADERS, checked, head_for, header, message, post, token_result};
pub use tasks::{Instance, TASKS};

/// The limit of the server, small enough to be reached by an input.
pub const BODY_BYTES: usize = 4 << 10;

/// A server with one of everything, made once; an [`Instance`] of it has tasks. Nothing in it panics, as the contract's server does on
/// purpose: the fuzzer aborts at any panic, also at one that the core catches.
pub static SERVER: LazyLock<Server> = LazyLock::new(server);

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Greet {
    name: String,
    style: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Note {
    id: u32,
}

async fn add(args: Add) -> Json<Sum> {
    Json(Sum { sum: args.a.wrapping_add(args.b) })
}

async fn ask(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let name = cx.elicit::<Name>("name", "What is your name?").await.required()?.name;
    let other = cx.elicit::<Name>("other", format!("And not {name}?")).await.required()?.name;
    Ok(format!("{name}, not {other}"))
}

async fn emit(cx: Cx, _: NoArgs) -> &'static str {
    for done in 1..=2 {
        cx.progress(f64::from(done), 2.0, "working");
        cx.log(LogLevel::Info, json!({ "done": done }));
        cx.sleep(format!("pause {done}"), Duration::from_millis(60)).await;
    }
    "emitted"
}

async fn sample(cx: Cx, _: NoArgs) -> String {
    let result = cx.sample("model", SampleParams::new(10).user("Say hi")).await;
    result.as_text().unwrap_or_default().to_owned()
}

async fn greet(args: Greet) -> PromptMessage {
    PromptMessage::user(format!("Greet {} ({:?})", args.name, args.style))
}

async fn note(_: Cx, Vars(note): Vars<Note>) -> String {
    format!("note {}", note.id)
}

fn server() -> Server {
    let mut limits = Limits::default();
    limits.body_bytes = BODY_BYTES;
    limits.header_count = 24;
    limits.page_size = 2;
    limits.task_questions = 8;
    Server::builder("fuzzed", "1.0.0")
        .logging()
        .limits(limits)
        .sealer(KeyRing::new(1, &[7; 32]))
        .tool("add", "Adds", add)
        .tool("ask", "Asks", ask)
        .tool("emit", "Emits", emit)
        .tool("sample", "Asks the model", sample)
        .tool("work", "Goes on as a task", tasks::work)
        .tool("survey", "Asks in a task", tasks::survey)
        .job("build", "Runs elsewhere", tasks::Builds)
        .anonymous_tasks(true)
        .tool_with(
            "mirror",
            "Mirrors",
            async |args: RawArgs| ToolResult::text(args.get()),
            |tool| {
                tool.input_schema(json!({ "type": "object", "properties": {
                    "region": { "type": "string", "x-mcp-header": "Region" },
                    "count": { "type": "integer", "x-mcp-header": "Count" },
                } }))
            },
        )
        .prompt_with("greet", "Greets", greet, |prompt| {
            prompt.complete_values("name", ["Ada", "Alan", "Grace"])
        })
        .resource("test://text", "text", async |_: NoArgs| "some text")
        .resource("test://asks", "asks", async |cx: Cx, _: NoArgs| {
            let name = cx.elicit::<Name>("name", "Who reads?").await.required()?;
            Ok::<_, ToolError>(name.name)
        })
        .template_with("test://notes/{id}", "notes", note, |template| {
            template.complete_values("id", ["1", "12", "2"])
        })
        .build()
        .expect("the definitions are sound")
        .with_change_feed(InProcessFeed::default())
}
