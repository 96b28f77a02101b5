//! Several requests in one write; and the oldest clients.

use crate::support::{Running, call, call_body, head, server, with_body};

/// The call of `hello` under another id.
fn numbered(id: u32) -> String {
    let body = call_body("hello").replacen("\"id\":1", &format!("\"id\":{id}"), 1);
    with_body(&head("tools/call", Some("hello")), &body)
}

#[tokio::test]
async fn requests_in_one_write_are_answered_in_their_order() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    client.send((1..=5).map(numbered).collect::<String>()).await;
    for id in 1..=5 {
        let reply = client.reply().await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(reply.body.contains(&format!("\"id\":{id},")), "{id}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_request_behind_a_refused_one_is_answered_too() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    let unnamed = with_body(&head("tools/call", None), &call_body("hello"));
    let get = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send(format!("{unnamed}{get}{}", numbered(3))).await;
    for status in [400, 405, 200] {
        let reply = client.reply().await;
        assert_eq!(reply.status, status, "{}", reply.body);
    }
}

#[tokio::test]
async fn a_request_behind_a_body_that_is_not_read_is_not_mistaken_for_one() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    // The body of the refused request looks like a request.
    let refused = head("tools/call", Some("hello")).replace("localhost", "evil.example");
    client.send(format!("{}{}", with_body(&refused, &call("hello")), numbered(2))).await;
    assert_eq!(client.reply().await.status, 403);
    client.close_sending().await;
    let rest = client.rest().await;
    assert!(!rest.contains("\"id\":1,"), "it ran: {rest}");
    assert!(rest.contains("\"id\":2,"), "{rest}");
}

#[tokio::test]
async fn a_request_without_a_host_is_403() {
    let running = Running::with_defaults(server()).await;
    for version in ["HTTP/1.1", "HTTP/1.0"] {
        let mut client = running.connect().await;
        let call = call("hello").replace("Host: localhost\r\n", "");
        client.send(call.replace("HTTP/1.1", version)).await;
        let reply = client.reply().await;
        assert_eq!(reply.status, 403, "{version}: {}", reply.head);
    }
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    client.send(call("hello").replace("HTTP/1.1", "HTTP/1.0")).await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(reply.body.contains("Hello!"), "{}", reply.body);
    assert!(client.is_closed().await, "1.0 keeps no connection unless it says so");
}
