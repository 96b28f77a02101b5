//! The server under test.

mod tasks;

use std::time::Duration;

use mcp_edge::{
    BuildError, CacheHints, Change, CompletionRequest, Cx, Json, KeyRing, Limits, List, NoArgs,
    RawArgs, RequestError, Server, ToolError, Vars,
    protocol::{LogLevel, PromptMessage, SampleParams, ToolResult},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A server that has one of everything that the contract speaks of. Whoever serves it gives it a
/// store and a driver for its tasks.
///
/// # Errors
/// None, unless a definition is wrong.
pub fn server() -> Result<Server, BuildError> {
    let mut limits = Limits::default();
    limits.body_bytes = 64 << 10;
    limits.page_size = 3;
    limits.stream_after = Duration::from_millis(100);
    limits.poll_interval = Duration::from_millis(100);
    let server = Server::builder("contract", "1.0.0")
        .instructions("For tests.")
        .logging()
        .limits(limits)
        .sealer(KeyRing::new(1, &[7; 32]))
        .cache(List::Tools, CacheHints::public(Duration::from_secs(60)))
        .cache_discover(CacheHints::public(Duration::from_secs(600)))
        .tool("add", "Adds two numbers", add)
        .tool("ask", "Asks for a name and a colour", ask)
        .tool("emit", "Sends progress and logs", emit)
        .tool("fail", "Fails as it is told", fail)
        .tool("quiet", "Takes a while in silence", quiet)
        .tool("touch", "Announces changes", touch)
        .tool_with("mirror", "Has mirrored arguments", mirror, |tool| {
            tool.input_schema(json!({
                "type": "object",
                "properties": {
                    "region": { "type": "string", "x-mcp-header": "Region" },
                    "count": { "type": "integer", "x-mcp-header": "Count" },
                    "options": { "type": "object", "properties": {
                        "dry": { "type": "boolean", "x-mcp-header": "Dry-Run" },
                    } },
                },
            }))
        })
        .tool("sample", "Asks the client's model", sample)
        .prompt_with("greet", "Greets somebody", greet, |prompt| {
            prompt.complete_values("name", ["Ada", "Alan", "Grace"]).complete(
                "style",
                |asked: CompletionRequest| async move {
                    vec![format!("{} for {}", asked.value, asked.arguments.len())]
                },
            )
        })
        .resource_with(
            "test://text",
            "text",
            |_: NoArgs| async { "some text" },
            |resource| {
                resource.mime_type("text/plain").cache(CacheHints::public(Duration::from_secs(5)))
            },
        )
        .resource("test://bytes", "bytes", |_: NoArgs| async { vec![0_u8, 1, 2] })
        .resource("test://asks", "asks", |cx: Cx, _: NoArgs| async move {
            let name = cx.elicit::<Name>("name", "Who reads?").await.required()?;
            Ok::<_, ToolError>(name.name)
        })
        .template_with("test://notes/{id}", "notes", note, |template| {
            template.complete_values("id", ["1", "12", "2"])
        });
    let server = tasks::add(server).build()?;
    #[cfg(not(target_arch = "wasm32"))]
    let server = server.with_change_feed(mcp_edge::InProcessFeed::default());
    Ok(server)
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

async fn add(args: Add) -> Json<Sum> {
    Json(Sum { sum: args.a + args.b })
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Colour {
    colour: String,
}

async fn ask(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let name = cx.elicit::<Name>("name", "What is your name?").await.required()?.name;
    let question = format!("Which colour, {name}?");
    let colour = cx.elicit::<Colour>("colour", question).await.required()?.colour;
    Ok(format!("{name} likes {colour}"))
}

async fn emit(cx: Cx, _: NoArgs) -> &'static str {
    for done in 1..=3 {
        cx.progress(f64::from(done), 3.0, "working");
        cx.log(LogLevel::Info, json!({ "done": done }));
        cx.sleep(format!("pause {done}"), Duration::from_millis(60)).await;
    }
    "emitted"
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Fail {
    how: String,
}

async fn fail(cx: Cx, args: Fail) -> Result<String, ToolError> {
    match args.how.as_str() {
        "tool" => Err(ToolError::new("Try tomorrow")),
        "hidden" => Err("x".parse::<u8>().unwrap_err().into()),
        "public" => Err(ToolError::from("x".parse::<u8>().unwrap_err()).public()),
        "protocol" => Err(RequestError::application(7, "Out of paper").into()),
        "panic" => panic!("a secret"),
        "late" => {
            cx.progress(1.0, None, "");
            cx.log(LogLevel::Error, "soon");
            cx.sleep("a moment", Duration::from_millis(5)).await;
            Err(RequestError::application(7, "Out of paper").into())
        }
        how => Ok(how.to_owned()),
    }
}

async fn quiet(cx: Cx, _: NoArgs) -> &'static str {
    cx.sleep("quiet", Duration::from_millis(300)).await;
    "quiet"
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Touch {
    what: String,
}

async fn touch(cx: Cx, args: Touch) -> Result<(), ToolError> {
    let change = match args.what.as_str() {
        "tools" => Change::Tools,
        "prompts" => Change::Prompts,
        "resources" => Change::Resources,
        uri => Change::resource(uri),
    };
    Ok(cx.publisher().publish(change).await?)
}

async fn mirror(args: RawArgs) -> ToolResult {
    ToolResult::text(args.get())
}

async fn sample(cx: Cx, _: NoArgs) -> String {
    let result = cx.sample("model", SampleParams::new(10).user("Say hi")).await;
    result.as_text().unwrap_or_default().to_owned()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
    style: Option<String>,
}

async fn greet(args: Greet) -> PromptMessage {
    let style = args.style.unwrap_or_else(|| "plain".to_owned());
    PromptMessage::user(format!("Greet {} in {style} style", args.name))
}

#[derive(Debug, Deserialize)]
struct Note {
    id: u32,
}

async fn note(cx: Cx, Vars(note): Vars<Note>) -> Result<String, RequestError> {
    let _ = cx.principal();
    match note.id {
        0 => Err(RequestError::not_found("test://notes/0")),
        id => Ok(format!("note {id}")),
    }
}
