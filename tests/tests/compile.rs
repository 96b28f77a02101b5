//! Handlers as the documentation writes them compile, and typical mistakes give compiler errors
//! that say what to do.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::time::Duration;

use mcp_edge::{Cx, Json, NoArgs, Server, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Hello {
    name: String,
}

async fn hello(args: Hello) -> String {
    format!("Hello, {}!", args.name)
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    order: String,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    yes: bool,
}

#[derive(Serialize, Deserialize)]
struct Quote {
    total: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Receipt {
    reference: String,
}

const LIMIT: u32 = 100;

mod ledger {
    pub(super) async fn quote(args: &super::Refund) -> Result<super::Quote, std::fmt::Error> {
        let length = u32::try_from(args.order.len()).map_err(|_| std::fmt::Error)?;
        Ok(super::Quote { total: length * 100 })
    }
}

mod bank {
    pub(super) async fn settle(
        quote: &super::Quote,
        idempotency_key: String,
    ) -> Result<super::Receipt, std::fmt::Error> {
        Ok(super::Receipt { reference: format!("{} {idempotency_key}", quote.total) })
    }
}

async fn refund(cx: Cx, args: Refund) -> Result<Json<Receipt>, ToolError> {
    let quote: Quote = cx.step("quote", || ledger::quote(&args)).await?;
    if quote.total > LIMIT && !approved(&cx, &args, quote.total).await? {
        return Err(ToolError::new("the refund was not approved"));
    }
    cx.background("settling with the bank").await;
    cx.sleep("cool-off", Duration::from_secs(3600)).await;
    let receipt = cx.step("settle", || bank::settle(&quote, cx.idempotency_key("settle"))).await?;
    Ok(Json(receipt))
}

async fn approved(cx: &Cx, args: &Refund, total: u32) -> Result<bool, ToolError> {
    let form = cx.elicit::<Approval>("approve", format!("Refund {total} for {}?", args.order));
    Ok(form.await.required()?.yes)
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    colour: String,
}

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

async fn multi_round(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let name = cx.elicit::<Name>("step1", "What is your name?").await.required()?.name;
    let (colour, city) = futures_util::join!(
        cx.elicit::<Colour>("step2", "Favourite colour?"),
        cx.elicit::<City>("city", format!("Where do you live, {name}?")),
    );
    Ok(format!("{name} likes {} in {}", colour.required()?.colour, city.required()?.city))
}

#[test]
fn handlers_compile_as_the_documentation_writes_them() {
    let prefix = "captured ".to_owned();
    let server = Server::builder("desk", "1.0")
        .tool("hello", "Greets", hello)
        .tool("multi", "Asks three things", multi_round)
        .tool("closure", "Captures state", move |args: Hello| {
            let text = format!("{prefix}{}", args.name);
            async move { text }
        })
        .tool("async closure", "Not a good name", async |_: NoArgs| "x")
        .tool_with("refund", "Refunds an order", refund, |t| t.requires_task().answers_need_state())
        .build();
    let fault = server.unwrap_err();
    assert_eq!(fault.faults().count(), 1, "the name with a blank alone: {fault}");
}

#[tokio::test]
async fn a_46_a_tool_that_requires_a_task_is_refused_before_anything_of_it_runs() {
    let server = Server::builder("desk", "1.0")
        .tool_with("refund", "Refunds an order", refund, |t| t.requires_task())
        .build()
        .unwrap();
    let client = mcp_edge_test::Client::in_process(&server);
    let params = serde_json::json!({ "name": "refund", "arguments": { "order": "A7" } });
    let reply = client.round("tools/call", params).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.code()), (400, Some(-32021)));
}

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
