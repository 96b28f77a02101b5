//! Wrong definitions fail in `build()`, with an error that names the definition and the remedy.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use mcp_edge::{
    BuildError, CompletionRequest, Json, Limits, NoArgs, RawArgs, ResourceUri, Server,
    ServerBuilder, Vars, protocol::JsonObject,
};
use mcp_edge_test::Client;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn new() -> ServerBuilder {
    Server::builder("definitions", "1.0.0")
}

fn fault(builder: ServerBuilder) -> String {
    let error: BuildError = builder.build().unwrap_err();
    let faults: Vec<_> = error.faults().collect();
    assert_eq!(faults.len(), 1, "{error}");
    faults[0].to_owned()
}

async fn nothing(_: NoArgs) -> &'static str {
    ""
}

async fn raw(_: RawArgs) -> &'static str {
    ""
}

fn with_schema(schema: Value) -> ServerBuilder {
    new().tool_with("t", "A tool", raw, |tool| tool.input_schema(schema))
}

#[test]
fn duplicates_are_named() {
    let twice = new().tool("t", "One", nothing).tool("t", "Two", nothing);
    assert_eq!(fault(twice), "tool `t` is defined twice; names are unique: rename one");
    let twice = new().prompt("p", "One", nothing).prompt("p", "Two", nothing);
    assert!(fault(twice).starts_with("prompt `p` is defined twice"));
    let twice = new().resource("a:b", "One", nothing).resource("a:b", "Two", nothing);
    assert!(fault(twice).starts_with("resource `a:b` is defined twice"));
    let twice = new().extension("com.example/x", JsonObject::new());
    let twice = twice.extension("com.example/x", JsonObject::new());
    assert_eq!(fault(twice), "extension `com.example/x` is there twice; keep one");
}

#[test]
fn tool_06_names_are_checked() {
    for name in ["", "a b", "a/b", "ä", &"x".repeat(129)] {
        let text = fault(new().tool(name, "A tool", nothing));
        assert!(text.contains("a name has 1 to 128 characters of A-Z a-z 0-9 _ - ."), "{text}");
    }
}

#[test]
fn tool_07_the_root_of_an_input_schema_is_an_object() {
    async fn text(_: String) -> &'static str {
        ""
    }
    let text = fault(new().tool("t", "A tool", text));
    assert!(text.contains("tool `t`: the root of its input schema"), "{text}");
    for schema in [json!(true), json!(null), json!({}), json!({ "type": "array" })] {
        let text = fault(with_schema(schema));
        assert!(text.contains("must have `\"type\": \"object\"`"), "{text}");
    }
    let text = fault(new().tool("t", "A tool", raw));
    assert!(text.contains("give it `.input_schema(..)` in `tool_with`"), "{text}");
}

#[test]
fn param_02_to_08_mirrored_parameters_are_checked() {
    let annotated = |property: Value| json!({ "type": "object", "properties": { "p": property } });
    for (schema, names) in [
        (annotated(json!({ "type": "string", "x-mcp-header": "" })), "p"),
        (annotated(json!({ "type": "string", "x-mcp-header": "a b" })), "p"),
        (annotated(json!({ "type": "number", "x-mcp-header": "N" })), "p"),
        (
            annotated(
                json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "N" } }),
            ),
            "p",
        ),
    ] {
        let text = fault(with_schema(schema));
        assert!(text.contains("tool `t`") && text.contains(names), "{text}");
    }
    let same = json!({ "type": "object", "properties": {
        "a": { "type": "string", "x-mcp-header": "Region" },
        "b": { "type": "string", "x-mcp-header": "region" },
    } });
    assert!(fault(with_schema(same)).contains("egion"), "PARAM-04");
}

#[test]
fn prompts_take_what_can_be_read_from_a_string() {
    #[derive(Deserialize, JsonSchema)]
    struct Wrong {
        #[allow(dead_code)]
        count: Vec<String>,
    }
    let text = fault(new().prompt("p", "A prompt", |_: Wrong| async { "" }));
    assert!(text.contains("prompt `p`: argument `count` must be a string, number"), "{text}");
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    enum Style {
        Plain,
        Fancy,
    }
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Right {
        name: String,
        count: Option<u8>,
        style: Option<Style>,
    }
    assert!(new().prompt("p", "A prompt", |_: Right| async { "" }).build().is_ok());
}

#[test]
fn completions_belong_to_an_argument() {
    let complete = |_: CompletionRequest| async { Vec::<String>::new() };
    let prompt = new().prompt_with("p", "A prompt", nothing, |p| p.complete("x", complete));
    assert_eq!(fault(prompt), "prompt `p` completes `x`, which it does not have; it has: none");
    let template =
        new().template_with("a:{id}", "T", nothing, |t| t.complete_values("x", ["1"]).title("T"));
    let text = fault(template);
    assert_eq!(
        text,
        "resource template `a:{id}` completes `x`, which it does not have; it has: id"
    );
}

#[test]
fn resources_have_absolute_uris_and_templates_expressions_we_know() {
    async fn read(_: ResourceUri) -> &'static str {
        ""
    }
    for uri in ["", "notes", "no spaces:x y"] {
        assert!(fault(new().resource(uri, "R", read)).contains("its URI must be absolute"));
    }
    for template in ["{id}", "a:{?q}", "a:{id", "a:{x}{y}"] {
        let text = fault(new().template(template, "T", read));
        assert!(text.contains(&format!("resource template `{template}`")), "{text}");
    }
}

#[test]
fn meta_12_and_ext_02_reserved_and_ill_formed_keys_are_refused() {
    for key in ["io.modelcontextprotocol/x", "com.mcp.x/y", "-x", "a b"] {
        let text = fault(new().tool_with("t", "A tool", nothing, |t| t.meta(key, 1)));
        assert!(text.contains(&format!("_meta key `{key}`")), "{text}");
    }
    for id in ["x", "com.example", "a b/c"] {
        let text = fault(new().extension(id, JsonObject::new()));
        assert!(text.contains("an id looks like `com.example/name`"), "{text}");
    }
    let tasks = new().extension("io.modelcontextprotocol/tasks", JsonObject::new());
    assert!(fault(tasks).contains("advertised by the library itself"));
}

#[test]
fn settings_of_the_whole_server_are_checked() {
    assert!(fault(new().endpoint("mcp")).contains("must be a path that begins with `/`"));
    assert!(fault(new().endpoint("/mcp?x")).contains("without query"));
    assert!(fault(new().public_url("http://example.com/mcp")).contains("must be an https URL"));
    assert!(new().public_url("http://localhost:3000/mcp").build().is_ok());
    assert!(fault(new().allow_origins(["example.com"])).contains("allow_origins"));
    assert!(fault(new().allow_hosts(["https://example.com"])).contains("allow_hosts"));
    assert!(fault(new().authenticator(mcp_edge::Anonymous)).contains("public_url"));
    let mut limits = Limits::default();
    limits.page_size = 0;
    assert!(fault(new().limits(limits)).contains("page_size"));
    let versions = new().tool_with("t", "A tool", nothing, |t| t.version(3).accepts(1..=2));
    assert_eq!(fault(versions), "tool `t` does not accept its own version 3");
}

#[test]
fn all_faults_come_at_once() {
    let error = new().tool("", "A", nothing).resource("x", "B", nothing).build().unwrap_err();
    assert_eq!(error.faults().count(), 2);
    assert!(error.to_string().starts_with("the server cannot be built, 2 faults:\n  - tool ``"));
}

#[tokio::test]
async fn tool_09_schemas_pass_through_untouched() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/t",
        "type": "object",
        "$defs": { "a": { "$anchor": "a", "type": "string" } },
        "properties": { "z": { "$ref": "#a" }, "a": { "x-vendor": [1] } },
        "allOf": [{ "if": { "required": ["z"] }, "then": {}, "else": false }],
        "additionalProperties": false,
    });
    let server = with_schema(schema.clone()).build().unwrap();
    let tools = Client::in_process(&server).list_tools().await.unwrap();
    assert_eq!(tools[0].input_schema.to_string(), schema.to_string(), "also in this order");
}

#[tokio::test]
async fn typed_tools_publish_the_schemas_of_their_types() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Args {
        /// How many.
        count: u8,
        name: Option<String>,
    }
    #[derive(Serialize, JsonSchema)]
    struct Out {
        done: bool,
    }
    let server = new()
        .tool("typed", "Typed", |_: Args| async { Json(vec![Out { done: true }]) })
        .tool("none", "No arguments", nothing)
        .build()
        .unwrap();
    let tools = Client::in_process(&server).list_tools().await.unwrap();
    let input = &tools[0].input_schema;
    assert_eq!(input["properties"]["count"]["description"], "How many.");
    assert_eq!(input["required"], json!(["count"]));
    let output = tools[0].output_schema.as_ref().unwrap();
    assert_eq!(output["type"], "array", "SCHEMA-10");
    let no_arguments = json!({ "type": "object", "additionalProperties": false });
    assert_eq!(tools[1].input_schema, no_arguments, "TOOL-08");
}

#[tokio::test]
async fn everything_that_a_definition_can_say_is_listed() {
    use mcp_edge::protocol::{Annotations, Icon, Role, ToolAnnotations};
    #[derive(Deserialize)]
    struct Id {
        #[allow(dead_code)]
        id: String,
    }
    let icon = || Icon::new("https://example.com/i.png");
    let server = new()
        .title("Definitions")
        .description("All of them")
        .website_url("https://example.com")
        .icon(icon())
        .extension("com.example/quota", JsonObject::new())
        .tool_with("t", "A tool", nothing, |tool| {
            tool.title("Tool")
                .icon(icon())
                .meta("com.example/x", 7)
                .annotations(ToolAnnotations::new().with_read_only_hint(true))
        })
        .prompt_with("p", "A prompt", nothing, |prompt| {
            prompt.title("Prompt").icon(icon()).meta("ui", json!({}))
        })
        .resource_with("a:b", "r", nothing, |resource| {
            resource
                .title("Resource")
                .description("A resource")
                .mime_type("text/plain")
                .size(3)
                .annotations(Annotations::new().with_audience([Role::User]))
        })
        .template_with(
            "a:x/{id}",
            "t",
            |_: Vars<Id>| async { "" },
            |template| {
                template.title("Template").description("Some").mime_type("text/plain").icon(icon())
            },
        )
        .build()
        .unwrap();
    let client = Client::in_process(&server);
    let tool = serde_json::to_value(&client.list_tools().await.unwrap()[0]).unwrap();
    assert_eq!(
        tool,
        json!({
            "name": "t", "title": "Tool", "description": "A tool",
            "icons": [{ "src": "https://example.com/i.png" }],
            "inputSchema": { "type": "object", "additionalProperties": false },
            "annotations": { "readOnlyHint": true },
            "_meta": { "com.example/x": 7 },
        })
    );
    let prompt = serde_json::to_value(&client.list_prompts().await.unwrap()[0]).unwrap();
    assert_eq!((&prompt["title"], &prompt["_meta"]), (&json!("Prompt"), &json!({ "ui": {} })));
    let resource = serde_json::to_value(&client.list_resources().await.unwrap()[0]).unwrap();
    assert_eq!((&resource["size"], &resource["mimeType"]), (&json!(3), &json!("text/plain")));
    let template = serde_json::to_value(&client.list_templates().await.unwrap()[0]).unwrap();
    assert_eq!(template["uriTemplate"], "a:x/{id}");
    let discover = client.round("server/discover", json!({})).await.unwrap();
    let discover = discover.result().unwrap();
    let info = &discover["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(
        (&info["title"], &info["websiteUrl"]),
        (&json!("Definitions"), &json!("https://example.com"))
    );
    assert_eq!(discover["capabilities"]["extensions"], json!({ "com.example/quota": {} }));
}

#[tokio::test]
async fn disc_08_what_is_not_there_is_not_advertised_and_not_answered() {
    let server = new().tool("t", "A tool", nothing).without_server_info().build().unwrap();
    let client = Client::in_process(&server);
    let discover = client.round("server/discover", json!({})).await.unwrap();
    let discover = discover.result().unwrap();
    assert_eq!(discover["capabilities"], json!({ "tools": {} }));
    assert!(discover.get("_meta").is_none(), "META-07: switched off");
    for method in
        ["prompts/list", "resources/list", "resources/templates/list", "completion/complete"]
    {
        let reply = client.round(method, json!({})).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.code()), (404, Some(-32601)), "{method}");
    }
}

#[tokio::test]
async fn meta_12_a_result_cannot_say_what_the_protocol_says() {
    use mcp_edge::protocol::{JsonObject, ToolResult};
    let meta = json!({
        "io.modelcontextprotocol/serverInfo": { "name": "other", "version": "9" },
        "com.example/own": 7,
    });
    let meta: JsonObject = serde_json::from_value(meta).unwrap();
    let tool = move |_: NoArgs| {
        let result = ToolResult::text("x").with_meta(meta.clone());
        async move { result }
    };
    let server = new().tool("t", "A tool", tool).build().unwrap();
    let client = Client::in_process(&server);
    let mut response =
        client.raw(client.request("tools/call", json!({ "name": "t" }))).await.unwrap();
    let text = response.text().await.unwrap();
    assert_eq!(text.matches("serverInfo").count(), 1, "{text}");
    assert!(text.contains(r#""name":"definitions""#) && text.contains(r#""com.example/own":7"#));
}
