//! TOOL: tools.

use mcp_edge::{Json, NoArgs, RawArgs, protocol::ContentBlock};

use super::*;

#[tokio::test]
async fn tool_06_names_have_case() {
    let server = builder().tool("get", "One", |_: NoArgs| async { "one" }).tool(
        "Get",
        "Two",
        |_: NoArgs| async { "two" },
    );
    let client = client(server);
    assert_eq!(client.call("get", ()).await.unwrap().text(), "one");
    assert_eq!(client.call("Get", ()).await.unwrap().text(), "two");
    assert_eq!(client.call("GET", ()).await.unwrap_err().code(), Some(-32602));
}

#[tokio::test]
async fn tool_09_an_output_schema_passes_through_untouched() {
    let schema = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "$defs": { "a": { "$anchor": "a" } }, "x-vendor": [null] });
    let listed = schema.clone();
    let server = builder().tool_with(
        "t",
        "A tool",
        |_: RawArgs| async { "" },
        |tool| tool.input_schema(json!({ "type": "object" })).output_schema(schema),
    );
    let tools = client(server).list_tools().await.unwrap();
    assert_eq!(tools[0].output_schema.as_ref().unwrap().to_string(), listed.to_string());
}

#[tokio::test]
async fn tool_11_structured_content_is_any_value() {
    let server = builder()
        .tool("none", "Nothing", |_: NoArgs| async {})
        .tool("null", "Null", |_: NoArgs| async { Json(None::<u8>) })
        .tool("number", "A number", |_: NoArgs| async { Json(7) })
        .tool("list", "A list", |_: NoArgs| async { Json(["a"]) })
        .tool("blocks", "Two blocks", |_: NoArgs| async {
            vec![ContentBlock::text("a"), ContentBlock::resource_link("a:b", "b")]
        });
    let client = client(server);
    let of = |text: &str| json!([{ "type": "text", "text": text }]);
    let link = json!([{ "type": "text", "text": "a" },
        { "type": "resource_link", "uri": "a:b", "name": "b" }]);
    for (tool, content, structured) in [
        ("none", json!([]), None),
        ("null", of("null"), Some(json!(null))),
        ("number", of("7"), Some(json!(7))),
        ("list", of(r#"["a"]"#), Some(json!(["a"]))),
        ("blocks", link, None),
    ] {
        let called = client.call(tool, ()).await.unwrap();
        assert_eq!(called.raw["content"], content, "{tool}");
        assert_eq!(called.raw.get("structuredContent"), structured.as_ref(), "{tool}");
        assert!(called.raw.get("isError").is_none(), "{tool}");
    }
}
