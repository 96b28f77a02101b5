//! The core's refusals are answered before the body is sent.

use std::sync::Arc;

use http::{HeaderValue, header, request::Parts};
use mcp_edge::{Authenticator, BoxFuture, Challenge, Platform, Principal};

use crate::support::{Probe, Running, builder, call, call_body, head, server, small_bodies};

struct Bearer;

impl Authenticator for Bearer {
    fn authenticate<'a>(
        &'a self,
        parts: &'a Parts,
        _platform: &'a dyn Platform,
    ) -> BoxFuture<'a, Result<Arc<Principal>, Challenge>> {
        let good = parts.headers.get(header::AUTHORIZATION).is_some_and(|it| it == "Bearer good");
        Box::pin(async move {
            if good {
                return Ok(Arc::new(Principal::new("somebody")));
            }
            Err(Challenge::unauthorized(HeaderValue::from_static("Bearer")))
        })
    }
}

/// Sends the head alone, and expects the answer; with `Expect` and without.
async fn is_answered_without_body(running: &Running, head: &str, status: u16, has: &str) {
    for expect in ["", "Expect: 100-continue\r\n"] {
        let mut client = running.connect().await;
        client.send(format!("{head}{expect}\r\n")).await;
        let reply = client.reply().await;
        assert_eq!(reply.status, status, "{expect}{}{}", reply.head, reply.body);
        assert!(reply.head.contains(has), "{expect}{}", reply.head);
        assert!(client.is_closed().await, "a body that will not be read cannot be skipped");
    }
}

#[tokio::test]
async fn an_unknown_caller_is_401_before_its_body() {
    let server = builder(Probe::new().0)
        .authenticator(Bearer)
        .public_url("https://mcp.example.com/mcp")
        .build()
        .unwrap();
    let running = Running::with_defaults(server).await;
    let head = head("tools/call", Some("hello"));
    let declared = format!("{head}Content-Length: {}\r\n", call_body("hello").len());
    is_answered_without_body(&running, &declared, 401, "www-authenticate: Bearer").await;

    let mut client = running.connect().await;
    let call = call("hello").replacen("Host", "Authorization: Bearer good\r\nHost", 1);
    client.send(call).await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test]
async fn a_foreign_host_or_origin_is_403_before_its_body() {
    let running = Running::with_defaults(server()).await;
    let head = format!("{}Content-Length: 100\r\n", head("tools/call", Some("hello")));
    let host = head.replace("Host: localhost", "Host: evil.example");
    is_answered_without_body(&running, &host, 403, "application/json").await;
    let origin = head.replace("Host:", "Origin: https://evil.example\r\nHost:");
    is_answered_without_body(&running, &origin, 403, "application/json").await;
}

#[tokio::test]
async fn an_unknown_path_is_404_before_its_body() {
    let running = Running::with_defaults(server()).await;
    let head = format!("{}Content-Length: 100\r\n", head("tools/call", Some("hello")));
    let head = head.replace("/mcp", "/elsewhere");
    is_answered_without_body(&running, &head, 404, "application/json").await;
}

#[tokio::test]
async fn another_method_is_405_before_its_body() {
    let running = Running::with_defaults(server()).await;
    let head = format!("{}Content-Length: 100\r\n", head("tools/call", Some("hello")));
    let put = head.replace("POST", "PUT");
    is_answered_without_body(&running, &put, 405, "allow: POST").await;

    // Without a body, the connection goes on.
    let mut client = running.connect().await;
    for method in ["GET", "DELETE"] {
        client.send(format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        assert_eq!(client.reply().await.status, 405);
    }
}

#[tokio::test]
async fn a_declared_length_above_the_limit_is_413_before_the_body() {
    let server = builder(Probe::new().0).limits(small_bodies(1000)).build().unwrap();
    let running = Running::with_defaults(server).await;
    let head = format!("{}Content-Length: 1001\r\n", head("tools/call", Some("hello")));
    is_answered_without_body(&running, &head, 413, "application/json").await;
}
