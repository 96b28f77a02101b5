//! The server that is measured.

use std::sync::Arc;

use constant_time_eq::constant_time_eq;
use http::{HeaderValue, header, request::Parts};
use mcp_edge::{
    Authenticator, BoxFuture, Challenge, Cx, Json, KeyRing, Platform, Principal, Server, ToolError,
    ToolOptions,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Result, reference};

#[derive(Deserialize, JsonSchema)]
struct Terms {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

async fn add(terms: Terms) -> Json<Sum> {
    Json(Sum { sum: terms.a + terms.b })
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

async fn length(args: Text) -> Json<Sum> {
    Json(Sum { sum: args.text.len() as i64 })
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    steps: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    approved: bool,
}

/// The keys of the steps: writing them is not what is measured.
struct Keys(Vec<String>);

/// Takes the steps, then asks.
async fn ask_after(cx: Cx, args: Steps) -> std::result::Result<String, ToolError> {
    let mut sum = 0;
    for (index, key) in cx.state::<Keys>().0.iter().take(args.steps).enumerate() {
        sum += cx.step(key, async || Ok::<_, ToolError>(index)).await?;
    }
    let answer = cx.elicit::<Approval>("approve", "Go on?").await.required()?;
    Ok(format!("{sum} {}", answer.approved))
}

/// A server with a number of tools, which knows the token of the reference request. Its arguments are
/// validated only if that is what is measured: the budget has a line of its own for it.
pub(crate) fn server(tools: usize, validates: bool) -> Result<Server> {
    let judged = |tool: ToolOptions| if validates { tool } else { tool.without_validation() };
    let mut builder = Server::builder("adder", "1.0.0")
        .public_url("https://mcp.example.com/mcp")
        .allow_hosts(["mcp.example.com"])
        .allow_origins(["https://app.example.com"])
        .authenticator(StaticToken::new()?)
        .sealer(KeyRing::new(1, &[7; 32]))
        .state(Keys((0..100).map(|index| format!("step-{index}")).collect()))
        .tool_with("add", "Adds two numbers", add, judged)
        .tool_with("length", "Counts the bytes of a text", length, judged)
        .tool("ask_after", "Takes steps, then asks", ask_after);
    for index in 3..tools {
        builder = builder.tool(format!("tool_{index}"), "Adds two numbers, too", add);
    }
    Ok(builder.build()?)
}

/// Knows one token and whose it is.
struct StaticToken {
    credentials: &'static [u8],
    principal: Arc<Principal>,
}

impl StaticToken {
    fn new() -> Result<Self> {
        let mut headers = reference::headers();
        let (_, credentials) =
            headers.find(|(name, _)| *name == "authorization").ok_or("no reference token")?;
        let principal = Arc::new(Principal::new("reference"));
        Ok(Self { credentials: credentials.as_bytes(), principal })
    }
}

impl Authenticator for StaticToken {
    fn authenticate<'a>(
        &'a self,
        parts: &'a Parts,
        _platform: &'a dyn Platform,
    ) -> BoxFuture<'a, std::result::Result<Arc<Principal>, Challenge>> {
        let given = parts.headers.get(header::AUTHORIZATION).map_or(&b""[..], |v| v.as_bytes());
        let verdict = if constant_time_eq(given, self.credentials) {
            Ok(Arc::clone(&self.principal))
        } else {
            Err(Challenge::unauthorized(HeaderValue::from_static("Bearer")))
        };
        Box::pin(std::future::ready(verdict))
    }
}
