//! The checks of a request, in the order of section 1.8 of the requirements.

use super::*;

pub async fn unreadable_bodies_are_parse_errors(client: &Client) {
    for body in [&b""[..], b"{", b"nonsense", b"{} {}", b"\xff\xfe{}"] {
        let answer = with_body(client, Bytes::copy_from_slice(body)).await;
        assert_eq!(answer.refusal(), (400, -32700), "{body:?}");
        assert!(answer.json().get("id").is_none(), "A-21");
    }
    let deep = "[".repeat(20_000);
    assert_eq!(with_body(client, deep).await.refusal().0, 400);
}

pub async fn base_02_batches_and_responses_are_refused(client: &Client) {
    for body in [
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#,
        "7",
    ] {
        assert_eq!(with_body(client, body).await.refusal(), (400, -32600), "{body}");
    }
}

pub async fn base_05_ids_are_echoed_as_they_were_written(client: &Client) {
    for id in [json!(0), json!(-7), json!("a\"b"), json!(""), json!(9_007_199_254_740_993_u64)] {
        for name in ["add", "no such tool"] {
            let request = edit(add(client), |body| {
                body["id"] = id.clone();
                body["params"]["name"] = json!(name);
            });
            let answer = send(client, header(request, "mcp-name", Some(name.as_bytes()))).await;
            assert_eq!(answer.json()["id"], id);
        }
    }
}

pub async fn err_06_unknown_and_removed_methods_are_404(client: &Client) {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "unknown/method",
        "",
    ] {
        let mut request = client.request(method, json!({}));
        request = header(request, "mcp-name", Some(b"x"));
        let answer = send(client, request).await;
        assert_eq!(answer.refusal(), (404, -32601), "{method}");
        assert!(answer.json().get("id").is_some(), "ERR-10");
    }
}

pub async fn meta_03_and_04_required_metadata(client: &Client) {
    let keys =
        ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"];
    let mut requests = vec![
        edit(add(client), |body| {
            body.as_object_mut().unwrap().remove("params");
        }),
        edit(add(client), |body| {
            body["params"].as_object_mut().unwrap().remove("_meta");
        }),
        edit(add(client), |body| body["params"]["_meta"] = json!(null)),
        edit(add(client), |body| body["params"]["_meta"] = json!([])),
        edit(add(client), |body| body["params"] = json!([])),
    ];
    for key in keys {
        requests.push(edit(add(client), |body| {
            body["params"]["_meta"].as_object_mut().unwrap().remove(key);
        }));
        for wrong in [json!(7), json!(null), json!([])] {
            requests.push(edit(add(client), |body| body["params"]["_meta"][key] = wrong));
        }
    }
    for request in requests {
        let text = String::from_utf8_lossy(request.body()).into_owned();
        let answer = send(client, request).await;
        assert_eq!(answer.refusal(), (400, -32602), "{text}");
        assert!(answer.json().get("id").is_some(), "ERR-10");
    }
}

pub async fn meta_05_client_info_is_optional(client: &Client) {
    for info in [None, Some(json!(7)), Some(json!({}))] {
        let request = edit(add(client), |body| {
            let meta = body["params"]["_meta"].as_object_mut().unwrap();
            meta.remove("io.modelcontextprotocol/clientInfo");
            if let Some(info) = info {
                meta.insert("io.modelcontextprotocol/clientInfo".to_owned(), info);
            }
        });
        assert_eq!(send(client, request).await.status, 200);
    }
}

pub async fn ver_02_versions(client: &Client) {
    let with = |header_value: Option<&str>, body_value: Option<&str>| {
        let request = edit(add(client), |body| {
            let meta = body["params"]["_meta"].as_object_mut().unwrap();
            meta.remove("io.modelcontextprotocol/protocolVersion");
            if let Some(version) = body_value {
                let key = "io.modelcontextprotocol/protocolVersion".to_owned();
                meta.insert(key, json!(version));
            }
        });
        header(request, "mcp-protocol-version", header_value.map(str::as_bytes))
    };
    const MODERN: &str = "2026-07-28";
    for (header_value, body_value, refusal) in [
        (Some("v999.0.0"), Some("v999.0.0"), (400, -32022)),
        (Some("2025-11-25"), Some("2025-11-25"), (400, -32022)), // A-27
        (Some(MODERN), Some("v999.0.0"), (400, -32020)),         // mismatch before version
        (Some("v999.0.0"), Some(MODERN), (400, -32020)),
        (None, Some(MODERN), (400, -32020)),       // HDR-02
        (Some("1999-01-01"), None, (400, -32022)), // A-28
        (Some(MODERN), None, (400, -32602)),
    ] {
        let answer = send(client, with(header_value, body_value)).await;
        assert_eq!(answer.refusal(), refusal, "{header_value:?} {body_value:?}");
        if refusal.1 == -32022 {
            let data = &answer.json()["error"]["data"];
            assert_eq!(data["requested"], header_value.unwrap(), "VER-03");
            assert_eq!(data["supported"], json!([MODERN]), "VER-04");
        }
    }
}

pub async fn ver_07_initialize_is_told_the_versions(client: &Client) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "old", "version": "1" } } });
    let mut request = add(client);
    for name in ["mcp-method", "mcp-name", "mcp-protocol-version"] {
        request.headers_mut().remove(name);
    }
    *request.body_mut() = body.to_string().into();
    let answer = send(client, request).await;
    assert_eq!(answer.refusal(), (400, -32022));
    assert_eq!(answer.json()["error"]["data"]["requested"], "2025-06-18");
}

pub async fn hdr_01_to_13_mirrored_headers(client: &Client) {
    for (name, value, status) in [
        ("mcp-method", None, 400),
        ("mcp-method", Some(&b"tools/list"[..]), 400),
        ("mcp-method", Some(b"TOOLS/CALL"), 400),
        ("mcp-method", Some(b"  tools/call\t"), 200),
        ("mcp-method", Some(b"=?base64?dG9vbHMvY2FsbA==?="), 400), // HDR-13
        ("mcp-method", Some(b"tools/call\xe9"), 400),
        ("mcp-name", None, 400),
        ("mcp-name", Some(b""), 400),
        ("mcp-name", Some(b"ADD"), 400),
        ("mcp-name", Some(b" add "), 200),
        ("mcp-name", Some(b"=?base64?YWRk?="), 200),
        ("mcp-name", Some(b"=?BASE64?YWRk?="), 400), // HDR-09
        ("mcp-name", Some(b"=?base64?YWRk"), 400),
        ("mcp-name", Some(b"=?base64?YW!k?="), 400),
        ("mcp-name", Some(b"=?base64?YWRkZA?="), 400),
        ("mcp-name", Some(b"=?base64?/w==?="), 400),
        ("mcp-name", Some(b"add\xe9"), 400),
        ("mcp-protocol-version", Some(b" 2026-07-28 "), 200),
        ("mcp-protocol-version", Some(b"2026-07-28\xe9"), 400),
    ] {
        let answer = send(client, header(add(client), name, value)).await;
        assert_eq!(answer.status.as_u16(), status, "{name}: {value:?}");
        if status == 400 {
            assert_eq!(answer.refusal().1, -32020, "{name}: {value:?}");
            assert!(answer.json().get("id").is_some(), "HDR-17");
        }
    }
    // HDR-15: a name where none is defined.
    let list = client.request("tools/list", json!({}));
    assert_eq!(send(client, header(list, "mcp-name", Some(b"whatever"))).await.status, 200);
}

pub async fn hdr_14_repeated_headers_are_refused(client: &Client) {
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let mut request = add(client);
        let value = request.headers()[name].clone();
        request.headers_mut().append(http::HeaderName::from_static(name), value);
        assert_eq!(send(client, request).await.refusal(), (400, -32020), "{name}");
    }
}

pub async fn hdr_16_a_missing_name_is_a_matter_of_params(client: &Client) {
    for wrong in [None, Some(json!(7)), Some(json!(null))] {
        let request = edit(add(client), |body| match wrong {
            None => drop(body["params"].as_object_mut().unwrap().remove("name")),
            Some(wrong) => body["params"]["name"] = wrong,
        });
        assert_eq!(send(client, request).await.refusal(), (200, -32602));
    }
}

pub async fn param_10_to_18_mirrored_arguments(client: &Client) {
    type Case<'a> = (Value, &'a [(&'a str, &'a [u8])], bool);
    let cases: &[Case<'_>] = &[
        (json!({ "region": "eu" }), &[("mcp-param-region", b"eu")], true),
        (json!({ "region": "eu" }), &[("mcp-param-region", b"=?base64?ZXU=?=")], true),
        (json!({ "region": "eu" }), &[("mcp-param-region", b"=?base64?ZXU?=")], false),
        (json!({ "region": "eu" }), &[("mcp-param-region", b"us")], false),
        (json!({ "region": "eu" }), &[], false), // PARAM-12
        (json!({}), &[("mcp-param-region", b"eu")], false), // PARAM-13
        (json!({ "region": null }), &[], true),  // PARAM-11
        (json!({ "region": "eu" }), &[("mcp-param-region", b"eu\xe9")], false), // PARAM-14
        (json!({ "count": 42 }), &[("mcp-param-count", b"42.0")], true), // PARAM-16
        (json!({ "count": 42 }), &[("mcp-param-count", b"43")], false),
        (json!({ "options": { "dry": true } }), &[("mcp-param-dry-run", b"true")], true),
        (json!({ "options": { "dry": true } }), &[("mcp-param-dry-run", b"True")], false),
        (json!({ "region": [1] }), &[], true), // PARAM-18
        (json!({}), &[("mcp-param-other", b"x")], true), // PARAM-17
        (json!({}), &[], true),
    ];
    for (arguments, headers, accepted) in cases {
        let params = json!({ "name": "mirror", "arguments": arguments });
        let mut request = client.request("tools/call", params);
        for name in ["mcp-param-region", "mcp-param-count", "mcp-param-dry-run"] {
            request.headers_mut().remove(name);
        }
        for (name, value) in *headers {
            request = header(request, name, Some(value));
        }
        let answer = send(client, request).await;
        if *accepted {
            assert_eq!(answer.status, 200, "{arguments} {headers:?}");
        } else {
            assert_eq!(answer.refusal(), (400, -32020), "{arguments} {headers:?}");
        }
    }
    let params = json!({ "name": "mirror", "arguments": { "region": "eu" } });
    let mut twice = header(client.request("tools/call", params), "mcp-param-region", Some(b"eu"));
    twice.headers_mut().append("mcp-param-region", http::HeaderValue::from_static("eu"));
    assert_eq!(send(client, twice).await.refusal(), (400, -32020), "HDR-14");
}

pub async fn log_06_unknown_levels_are_refused(client: &Client) {
    for level in [json!("loud"), json!(7), json!("INFO")] {
        let request = edit(add(client), |body| {
            body["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = level.clone();
        });
        assert_eq!(send(client, request).await.refusal(), (200, -32602), "{level}");
    }
}
