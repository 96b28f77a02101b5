//! What a tool may take, and how its schemas come about.

use mcp_edge::{Json, RawArgs, ServerBuilder, ToolError, protocol::ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    let read_only = ToolAnnotations::new().with_read_only_hint(true).with_open_world_hint(false);
    server
        .tool("hello", "Greets somebody", hello)
        .tool_with("add", "Adds two whole numbers", add_numbers, |tool| {
            tool.title("Addition").annotations(read_only)
        })
        .tool("test_x_mcp_header", "Takes an argument that is mirrored into a header", mirrored)
        .tool_with(
            "json_schema_2020_12_tool",
            "Takes arguments that are described by a JSON Schema written by hand",
            raw,
            |tool| tool.input_schema(contact_schema()),
        )
}

// Doc comments of fields become their descriptions in the schema.

#[derive(Deserialize, JsonSchema)]
struct Hello {
    /// Whom to greet.
    name: String,
}

async fn hello(args: Hello) -> String {
    format!("Hello, {}!", args.name)
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// Both numbers together.
    sum: i64,
}

/// `Json` makes a structured result: clients get the schema of `Sum` with the tool, and the value
/// both as JSON and as text.
async fn add_numbers(Add { a, b }: Add) -> Result<Json<Sum>, ToolError> {
    let sum = a.checked_add(b).ok_or_else(|| ToolError::new("The sum is too large."))?;
    Ok(Json(Sum { sum }))
}

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    /// Where the call is to be handled.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// Clients send the region as the header `Mcp-Param-Region` too, so that a gateway can route the
/// call without reading its body. A call whose header and body differ never gets here.
async fn mirrored(args: Mirrored) -> String {
    format!("The region is {}.", args.region)
}

/// With a schema of one's own the arguments come as they are. `args.parse::<T>()` reads them.
async fn raw(args: RawArgs) -> String {
    format!("JSON Schema 2020-12 tool called with: {}", args.get())
}

/// Clients see every keyword of it, also those that no Rust type would lead to.
fn contact_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
