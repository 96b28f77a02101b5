//! Reading request bodies.

use std::time::Duration;

use mcp_edge_hyper::ServeOptions;

use crate::support::{
    Probe, Running, builder, call, call_body, head, server, small_bodies, with_body,
};

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n";

fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

#[tokio::test]
async fn requests_follow_each_other_on_one_connection() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    for _ in 0..3 {
        client.send(call("hello")).await;
        let reply = client.reply().await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(reply.body.contains("Hello!"), "{}", reply.body);
    }
}

#[tokio::test]
async fn a_body_is_asked_for_when_it_is_wanted() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    let body = call_body("hello");
    let head = head("tools/call", Some("hello"));
    client
        .send(format!("{head}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n", body.len()))
        .await;
    client.read_until("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.send(body).await;
    assert!(client.reply().await.body.contains("Hello!"));
}

#[tokio::test]
async fn a_body_in_pieces_is_joined() {
    let running = Running::with_defaults(server()).await;
    let body = call_body("hello");
    let mut client = running.connect().await;
    client.send(format!("{}{CHUNKED}", head("tools/call", Some("hello")))).await;
    for piece in body.as_bytes().chunks(10) {
        client.send(chunk(std::str::from_utf8(piece).unwrap())).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    client.send("0\r\n\r\n").await;
    let reply = client.reply().await;
    assert!(reply.body.contains("Hello!"), "{}", reply.body);
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_read() {
    let body = call_body("hello");
    let limits = small_bodies(body.len());
    let server = builder(Probe::new().0).limits(limits).build().unwrap();
    let running = Running::with_defaults(server).await;
    let mut client = running.connect().await;
    client.send(with_body(&head("tools/call", Some("hello")), &body)).await;
    assert_eq!(client.reply().await.status, 200);
    client.send(format!("{}{CHUNKED}", head("tools/call", Some("hello")))).await;
    client.send(format!("{}{}", chunk(&body), "0\r\n\r\n")).await;
    assert_eq!(client.reply().await.status, 200);
}

#[tokio::test]
async fn a_chunked_body_that_outgrows_the_limit_is_413() {
    let server = builder(Probe::new().0).limits(small_bodies(1000)).build().unwrap();
    let running = Running::with_defaults(server).await;
    let mut client = running.connect().await;
    client.send(format!("{}{CHUNKED}", head("tools/call", Some("hello")))).await;
    for _ in 0..10 {
        client.send(chunk(&"x".repeat(100))).await;
    }
    assert!(client.is_quiet_for(Duration::from_millis(50)).await, "the limit is not reached");
    client.send(chunk("x")).await;
    assert_eq!(client.reply().await.status, 413);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn who_sends_a_large_body_all_the_same_still_reads_the_413() {
    let server = builder(Probe::new().0).limits(small_bodies(1000)).build().unwrap();
    let running = Running::with_defaults(server).await;
    let mut client = running.connect().await;
    let length = 16 << 20;
    client.send(format!("{}Content-Length: {length}\r\n\r\n", head("tools/call", Some("x")))).await;
    let sent = client.send_all_it_takes(&vec![b'x'; length]).await;
    assert_eq!(sent, length, "the connection was reset");
    assert_eq!(client.reply().await.status, 413);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_never_run() {
    let running = Running::with_defaults(server()).await;
    let mut client = running.connect().await;
    let whole = call_body("hello");
    let longer = whole.len() + 1;
    let head = head("tools/call", Some("hello"));
    client.send(format!("{head}Content-Length: {longer}\r\n\r\n{whole}")).await;
    client.close_sending().await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn timing_a_slow_body_is_cut_without_an_answer() {
    let limit = Duration::from_millis(300);
    let options = ServeOptions::default().body_read_timeout(limit);
    let running = Running::start(server(), options).await;
    let mut client = running.connect().await;
    let begun = std::time::Instant::now();
    client.send(format!("{}{CHUNKED}", head("tools/call", Some("hello")))).await;
    let drip = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            client.send_all_it_takes(chunk(" ").as_bytes()).await;
            if client.is_closed_by_now().await {
                break;
            }
        }
    };
    crate::support::soon(drip).await;
    let took = begun.elapsed();
    assert!(took >= limit && took < limit * 5, "{took:?}");
}
