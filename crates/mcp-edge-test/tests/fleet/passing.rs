//! What the proxy passes on.

use bytes::Bytes;
use http::StatusCode;
use mcp_edge_test::{Fault, Fleet, RawResponse, Routing};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{PROBE, Probe, exchange, fleet, fleet_of, hello, soon};

#[tokio::test]
async fn headers_arrive_as_they_were_sent() {
    let fleet = fleet_of("shows_heads").instances(1).start().await.unwrap();
    let request = "POST /mcp?a=%20b HTTP/1.1\r\nhOsT: somewhere.example:81\r\nX-Two: one\r\n\
                   Origin: https://example.com\r\nX-Other: x\r\nx-two: two\r\nX-Two: three\r\n\
                   Connection: keep-alive, X-Mine\r\nX-Mine: x\r\nTE: trailers\r\n\
                   Content-Length: 0\r\n\r\n";
    let answer = exchange(&fleet, request, "END").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with("POST /mcp?a=%20b HTTP/1.1\r\n"), "{body}");
    let lines: Vec<&str> = body.lines().skip(1).take_while(|line| !line.is_empty()).collect();
    for line in ["hOsT: somewhere.example:81", "Origin: https://example.com", "X-Other: x"] {
        assert!(lines.contains(&line), "{line} in {body}");
    }
    let two: Vec<_> =
        lines.iter().filter(|line| line.to_lowercase().starts_with("x-two")).collect();
    assert_eq!(two, [&"X-Two: one", &"x-two: two", &"X-Two: three"]);
    assert_eq!(lines.len(), 7, "nothing else: {body}");

    assert!(head.starts_with("HTTP/1.1 418 "), "{head}");
    let mut lines: Vec<_> = head.lines().skip(1).collect();
    lines.sort_unstable();
    let length = format!("Content-Length: {}", body.len());
    assert_eq!(lines, [&length, "X-Two: one", "X-Two: two", "x-other: x"], "{head}");
}

#[tokio::test]
async fn a_head_does_not_wait_for_its_body() {
    let fleet = fleet_of("shows_heads").instances(1).start().await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n";
    assert!(exchange(&fleet, head, "END").await.starts_with("HTTP/1.1 418 "));
}

#[tokio::test]
async fn the_instance_refuses_a_foreign_origin() {
    let fleet = fleet().instances(1).start().await.unwrap();
    for (name, value) in [("origin", "https://example.com"), ("host", "example.com")] {
        let mut response = hello(&fleet.client().header(name, value)).await;
        assert_eq!(response.status, 403, "{name}");
        let id = fleet.process_ids()[0].to_string();
        assert_eq!(response.headers["mcp-edge-process-id"], id, "the proxy does not refuse");
        assert!(response.json().await.unwrap()["error"].is_object());
    }
    assert_eq!(hello(&fleet.client().header("origin", "http://localhost:5173")).await.status, 200);
}

/// The progress of the next event.
async fn progress(response: &mut RawResponse) -> f64 {
    let event = soon(response.next_event()).await.unwrap().expect("an event");
    let message: serde_json::Value = serde_json::from_str(&event.data).unwrap();
    message["params"]["progress"].as_f64().unwrap()
}

#[tokio::test]
async fn events_pass_one_by_one() {
    for routing in [Routing::RoundRobin, Routing::Fresh] {
        let probe = Probe::new().await;
        let fleet = fleet().env(PROBE, probe.address()).instances(1).routing(routing);
        let fleet = fleet.start().await.unwrap();
        let client = fleet.client().with_progress();
        let request = client.request("tools/call", json!({"name": "steps"}));
        let mut response = soon(client.raw(request)).await.unwrap();
        let mut handler = probe.handler().await;
        for step in 1..=3 {
            // The handler is waiting now, so nothing pushes the event.
            assert_eq!(progress(&mut response).await, f64::from(step));
            handler.write_u8(0).await.unwrap();
        }
        let last = soon(response.next_event()).await.unwrap().unwrap();
        assert!(last.data.contains("done"), "{}", last.data);
        assert_eq!(soon(response.next_event()).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_disconnect_reaches_the_handler() {
    for routing in [Routing::RoundRobin, Routing::Fresh] {
        for streams in [true, false] {
            let probe = Probe::new().await;
            let fleet = fleet().env(PROBE, probe.address()).instances(1);
            let fleet = fleet.routing(routing).start().await.unwrap();
            let client = fleet.client();
            let client = if streams { client.with_progress() } else { client };
            let request = client.request("tools/call", json!({"name": "waits"}));
            let call = async {
                let mut response = client.raw(request).await.unwrap();
                if streams {
                    assert_eq!(progress(&mut response).await, 1.0);
                }
                response.next_chunk().await.unwrap();
            };
            let mut handler = tokio::select! {
                () = call => panic!("the handler waits"),
                handler = entered(&probe) => handler,
            };
            let mut told = String::new();
            soon(handler.read_to_string(&mut told)).await.unwrap();
            assert_eq!(told, "dropped");
        }
    }
}

async fn entered(probe: &Probe) -> TcpStream {
    let mut handler = probe.handler().await;
    let mut told = [0; 8];
    soon(handler.read_exact(&mut told)).await.unwrap();
    assert_eq!(&told, b"entered ");
    handler
}

async fn post(fleet: &Fleet, text: &str) -> RawResponse {
    let client = fleet.client();
    let params = json!({"name": "echo", "arguments": {"text": text}});
    soon(client.raw(client.request("tools/call", params))).await.unwrap()
}

#[tokio::test]
async fn a_mebibyte_passes_in_both_directions() {
    let fleet = fleet().instances(2).start().await.unwrap();
    let text = "0123456789abcdef".repeat(1 << 16);
    for _ in 0..2 {
        let answer = post(&fleet, &text).await.json().await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"].as_str(), Some(text.as_str()));
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_passes() {
    let fleet = fleet().instances(1).start().await.unwrap();
    let client = fleet.client();
    let (head, body) = client.request("tools/call", json!({"name": "hello"})).into_parts();
    let mut request = String::from("POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != "host") {
        request += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    request += "Transfer-Encoding: chunked\r\n\r\n";
    for byte in body {
        request += &format!("1\r\n{}\r\n", char::from(byte));
    }
    request += "0\r\n\r\n";
    let answer = exchange(&fleet, &request, "Hello!").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_first_sends_its_whole_body() {
    let fleet = fleet().instances(1).start().await.unwrap();
    let length = 8 << 20;
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    let answer = exchange(&fleet, &(head + &"x".repeat(length)), "}}").await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[tokio::test]
async fn a_process_that_answers_for_another_is_found_out() {
    let fleet = fleet().env("FLEET_TEST_LIES", "1").instances(1).start().await.unwrap();
    let mut response = hello(&fleet.client()).await;
    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    let text = response.text().await.unwrap();
    assert!(text.contains("another answered"), "{text}");
    let error = fleet.client().call("hello", ()).await.unwrap_err();
    assert_eq!(error.fault(), &Fault::Status(StatusCode::BAD_GATEWAY));
}

#[tokio::test]
async fn an_empty_answer_passes() {
    let fleet = fleet().instances(1).start().await.unwrap();
    let client = fleet.client();
    let mut request = client.request("notifications/cancelled", json!({}));
    *request.body_mut() = Bytes::from_static(
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    let mut response = soon(client.raw(request)).await.unwrap();
    assert_eq!(response.status, StatusCode::ACCEPTED);
    assert!(response.bytes().await.unwrap().is_empty());
}
