//! HDR: mirrored headers.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use super::*;

#[tokio::test]
async fn hdr_05_prompts_and_resources_mirror_their_name_too() {
    let client = contract();
    let prompt = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    for (method, params, plain, sentinel) in [
        ("prompts/get", prompt, "greet", "=?base64?Z3JlZXQ=?="),
        (
            "resources/read",
            json!({ "uri": "test://text" }),
            "test://text",
            "=?base64?dGVzdDovL3RleHQ=?=",
        ),
    ] {
        for (value, accepted) in
            [(Some(plain), true), (Some(sentinel), true), (Some("other"), false), (None, false)]
        {
            let request = header(client.request(method, params.clone()), "mcp-name", value);
            let expected = if accepted { (200, 0) } else { (400, -32020) };
            assert_eq!(refusal(&client, request).await, expected, "{method} {value:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hdr_07_names_of_headers_have_no_case() {
    let address = serve(mcp_edge_tests::server().unwrap()).await;
    let params = json!({ "name": "mirror", "arguments": { "region": "eu" } });
    let body = Client::url(&format!("http://{address}/mcp")).request("tools/call", params);
    let body = String::from_utf8(body.into_body().to_vec()).unwrap();
    for (names, method, status) in [
        (
            ["MCP-PROTOCOL-VERSION", "mcp-method", "mCp-NaMe", "MCP-Param-REGION"],
            "tools/call",
            "200",
        ),
        (
            ["mcp-protocol-version", "MCP-METHOD", "Mcp-Name", "mcp-param-region"],
            "tools/call",
            "200",
        ),
        (
            ["mcp-protocol-version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region"],
            "Tools/Call",
            "400",
        ),
    ] {
        let [version, method_name, name, region] = names;
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHOST: localhost\r\ncontent-TYPE: application/json\r\n\
             {version}: 2026-07-28\r\n{method_name}: {method}\r\n{name}: mirror\r\n{region}: eu\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        let answer = answer.await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
}

#[tokio::test]
async fn hdr_19_an_empty_header_stands_for_the_empty_string() {
    let client = contract();
    let params = json!({ "name": "mirror", "arguments": { "region": "" } });
    for (value, expected) in
        [(Some(""), (200, 0)), (None, (400, -32020)), (Some("x"), (400, -32020))]
    {
        let request = client.request("tools/call", params.clone());
        let request = header(request, "mcp-param-region", value);
        assert_eq!(refusal(&client, request).await, expected, "{value:?}");
    }
}

#[tokio::test]
async fn an_argument_that_says_two_things_agrees_with_no_header() {
    let client = contract();
    for (arguments, name, values) in [
        (r#"{"region":"eu","region":"us"}"#, "mcp-param-region", ["eu", "us"]),
        (r#"{"region":"eu","re\u0067ion":"us"}"#, "mcp-param-region", ["eu", "us"]),
        (r#"{"region":null,"region":"us"}"#, "mcp-param-region", ["null", "us"]),
        (r#"{"region":"us","region":"us"}"#, "mcp-param-region", ["us", ""]),
        (r#"{"options":{"dry":true,"dry":false}}"#, "mcp-param-dry-run", ["true", "false"]),
        (
            r#"{"options":{"dry":true},"options":{"dry":false}}"#,
            "mcp-param-dry-run",
            ["true", "false"],
        ),
        (r#"{"options":{"dry":true},"options":{}}"#, "mcp-param-dry-run", ["true", "false"]),
    ] {
        for value in [Some(values[0]), Some(values[1]), None] {
            let params = json!({ "name": "mirror", "arguments": "@" });
            let mut request = header(client.request("tools/call", params), name, value);
            let body = String::from_utf8(request.body().to_vec()).unwrap();
            *request.body_mut() = body.replace("\"@\"", arguments).into();
            let (_, answer) = send(&client, request).await;
            assert!(answer["error"]["code"].is_i64(), "{arguments} with {value:?}: {answer}");
        }
    }
}
