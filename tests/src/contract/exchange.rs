//! HTTP, before any JSON is read.

use http::Method;

use super::*;

pub async fn http_02_foreign_origins_are_refused(client: &Client) {
    for (origin, status) in [
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("http://localhost:5173", 200),
        ("http://127.0.0.1", 200),
        ("http://[::1]:3000", 200),
    ] {
        let answer = send(client, header(add(client), "origin", Some(origin.as_bytes()))).await;
        assert_eq!(answer.status.as_u16(), status, "{origin}");
        if status == 403 {
            assert!(answer.json().get("id").is_none(), "the body was not read");
        }
    }
}

pub async fn http_03_an_absent_origin_passes_and_null_does_not(client: &Client) {
    assert_eq!(send(client, add(client)).await.status, 200);
    assert_eq!(send(client, header(add(client), "origin", Some(b"null"))).await.status, 403);
}

pub async fn http_04_foreign_hosts_are_refused(client: &Client) {
    for (host, status) in [
        ("evil.example.com", 403),
        ("localhost.evil.example:3000", 403),
        ("localhost", 200),
        ("LOCALHOST:3000", 200),
        ("127.0.0.1:3000", 200),
        ("[::1]:3000", 200),
    ] {
        let answer = send(client, header(add(client), "host", Some(host.as_bytes()))).await;
        assert_eq!(answer.status.as_u16(), status, "{host}");
    }
}

pub async fn http_07_other_methods_are_answered_405_with_allow(client: &Client) {
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::OPTIONS] {
        let mut request = add(client);
        *request.method_mut() = method.clone();
        *request.body_mut() = Bytes::new();
        let answer = send(client, request).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "POST"), "{method}");
    }
}

pub async fn http_08_sessions_and_event_ids_are_ignored(client: &Client) {
    let request = header(add(client), "mcp-session-id", Some(b"long-dead"));
    let answer = send(client, header(request, "last-event-id", Some(b"7"))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), "", "none is minted or echoed");
}

pub async fn http_11_notifications_are_accepted_without_a_body(client: &Client) {
    for method in ["notifications/cancelled", "notifications/initialized", "com.example/unknown"] {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": 1 } });
        let mut request = add(client);
        for name in ["mcp-method", "mcp-name", "mcp-protocol-version"] {
            request.headers_mut().remove(name);
        }
        *request.body_mut() = body.to_string().into();
        let answer = send(client, request).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (202, 0), "{method}");
    }
    let unsupported = edit(add(client), |body| {
        body.as_object_mut().unwrap().remove("id");
        body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    });
    let answer = send(client, unsupported).await;
    assert_eq!(answer.refusal(), (400, -32022));
    assert!(answer.json().get("id").is_none());
}

pub async fn http_14_content_types(client: &Client) {
    for (value, status) in [
        (Some("application/json"), 200),
        (Some("Application/JSON; charset=utf-8"), 200),
        (None, 200),
        (Some("text/plain"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some(""), 415),
    ] {
        let request = header(add(client), "content-type", value.map(str::as_bytes));
        assert_eq!(send(client, request).await.status.as_u16(), status, "{value:?}");
    }
}

pub async fn http_15_accept(client: &Client) {
    const JSON: &str = "application/json";
    const SSE: &str = "text/event-stream";
    for (value, status, kind) in [
        (None, 200, JSON),
        (Some("*/*"), 200, JSON),
        (Some("application/json"), 200, JSON),
        (Some("text/event-stream, application/json;q=0.5"), 200, JSON),
        (Some("text/event-stream"), 200, SSE),
        (Some("text/html"), 406, JSON),
        (Some("application/json;q=0"), 406, JSON),
    ] {
        let answer = send(client, header(add(client), "accept", value.map(str::as_bytes))).await;
        let got = (answer.status.as_u16(), answer.header("content-type"));
        assert_eq!(got, (status, kind), "{value:?}");
    }
    let listen = client.request("subscriptions/listen", json!({ "notifications": {} }));
    let answer = send(client, header(listen, "accept", Some(JSON.as_bytes()))).await;
    assert_eq!(answer.status, 406, "SUB-02: the reply is never JSON");
    assert!(answer.json().get("id").is_some());
}

pub async fn http_16_nothing_is_stored(client: &Client) {
    assert_eq!(send(client, add(client)).await.header("cache-control"), "no-store");
}

pub async fn other_paths_are_404(client: &Client) {
    for path in ["/", "/mcp/", "/mcp2", "/MCP", "/.well-known/openid-configuration"] {
        let mut request = add(client);
        *request.uri_mut() = path.parse().unwrap();
        assert_eq!(send(client, request).await.status, 404, "{path}");
    }
}

pub async fn the_body_limit_is_413(client: &Client) {
    let padded =
        |size: usize| edit(add(client), |body| body["params"]["padding"] = json!("x".repeat(size)));
    let answer = send(client, padded(64 << 10)).await;
    assert_eq!(answer.refusal(), (413, -32600));
    assert_eq!(send(client, padded(60 << 10)).await.status, 200);
}

pub async fn too_many_headers_are_431(client: &Client) {
    let mut request = add(client);
    for n in 0..95 {
        let name: http::HeaderName = format!("x-padding-{n}").parse().unwrap();
        request.headers_mut().insert(name, http::HeaderValue::from_static("x"));
    }
    assert_eq!(send(client, request).await.status, 431);
    let large = "x".repeat(40 << 10);
    let answer = send(client, header(add(client), "x-padding", Some(large.as_bytes()))).await;
    assert_eq!(answer.status, 431);
}

pub async fn healthz_says_ok(client: &Client) {
    let mut request = add(client);
    *request.method_mut() = Method::GET;
    *request.uri_mut() = "/healthz".parse().unwrap();
    *request.body_mut() = Bytes::new();
    let answer = send(client, request).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (200, &json!("ok")));
}
