//! Headers that a deployment adds to each response.

use http::{HeaderName, HeaderValue, header};
use mcp_edge_hyper::ServeOptions;

use crate::support::{HEALTH, Running, call, head, listen, server};

#[tokio::test]
async fn a_header_is_on_every_response() {
    let name = HeaderName::from_static("instance");
    let options = ServeOptions::default()
        .response_header(name.clone(), HeaderValue::from_static("replaced"))
        .response_header(name, HeaderValue::from_static("seven"));
    let running = Running::start(server(), options).await;
    let foreign = head("tools/call", Some("hello")).replacen("localhost", "example.com", 1);
    let requests = [
        (HEALTH.to_owned(), "200"),
        (call("hello"), "200"),
        (listen(), "200"),
        (format!("{foreign}Content-Length: 9\r\n\r\n"), "403"),
    ];
    for (request, status) in requests {
        let mut client = running.connect().await;
        client.send(&request).await;
        let head = client.read_until("\r\n\r\n").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        assert_eq!(head.matches("instance: seven\r\n").count(), 1, "{head}");
        assert!(!head.contains("replaced"), "{head}");
    }
}

#[tokio::test]
async fn a_response_keeps_the_headers_of_its_own() {
    let other = HeaderValue::from_static("text/plain");
    let options = ServeOptions::default().response_header(header::CONTENT_TYPE, other);
    let running = Running::start(server(), options).await;
    let mut client = running.connect().await;
    client.send(call("hello")).await;
    let head = client.reply().await.head;
    assert_eq!(head.matches("content-type: ").count(), 1, "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
}
