//! The servers that fleets run: this program again, told to run one of the ignored tests here.

use std::{env, io::Write as _, process};

use http::{HeaderName, HeaderValue};
use mcp_edge::{Cx, InProcessFeed, NoArgs, Server, ToolError};
use mcp_edge_hyper::{ServeOptions, serve_on_with};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::PROBE;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// Asks twice.
async fn greet(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let name: Text = cx.elicit("name", "Who are you?").await.required()?;
    let title: Text = cx.elicit("title", "And your title?").await.required()?;
    Ok(format!("Hello, {} {}!", title.text, name.text))
}

/// Reports progress three times, each time when the test lets it.
async fn steps(cx: Cx, _: NoArgs) -> &'static str {
    let mut probe = TcpStream::connect(probe()).await.unwrap();
    for step in 1..=3 {
        cx.progress(step.into(), 3.0, "");
        probe.read_u8().await.unwrap();
    }
    "done"
}

/// Tells the test when its handler is dropped.
struct TellsWhenDropped(std::net::TcpStream);

impl Drop for TellsWhenDropped {
    fn drop(&mut self) {
        self.0.write_all(b"dropped").unwrap();
    }
}

/// Never answers. With a token it streams, without it is silent.
async fn waits(cx: Cx, _: NoArgs) -> &'static str {
    let mut probe = std::net::TcpStream::connect(probe()).unwrap();
    probe.write_all(b"entered ").unwrap();
    let _told = TellsWhenDropped(probe);
    cx.progress(1.0, None, "");
    std::future::pending().await
}

fn probe() -> String {
    env::var(PROBE).unwrap()
}

fn server() -> Server {
    Server::builder("one of many", "1.0.0")
        .tool("hello", "Says hello", async |_: NoArgs| "Hello!")
        .tool("echo", "Says the same", async |said: Text| said.text)
        .tool("greet", "Greets", greet)
        .tool("steps", "Goes on when it is told to", steps)
        .tool("waits", "Waits", waits)
        .change_feed(InProcessFeed::default())
        .build()
        .unwrap()
}

async fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    listener
}

#[tokio::test]
#[ignore = "not a test of its own: fleets run it in processes"]
async fn serves() {
    let name = HeaderName::from_static("mcp-edge-process-id");
    let id = if env::var_os("FLEET_TEST_LIES").is_some() { 1 } else { process::id() };
    let options = ServeOptions::default().response_header(name, HeaderValue::from(id));
    serve_on_with(server(), listener().await, options).await.unwrap();
}

/// Answers the first request on each connection with its head, as it came, and `END`.
#[tokio::test]
#[ignore = "not a test of its own: fleets run it in processes"]
async fn shows_heads() {
    let listener = listener().await;
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        head.extend_from_slice(b"END");
        let length = head.len();
        let answer = format!(
            "HTTP/1.1 418 Short and stout\r\nX-Two: one\r\nx-other: x\r\nX-Two: two\r\n\
             Connection: X-Mine\r\nX-Mine: x\r\nKeep-Alive: timeout=5\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.write_all(&head).await.unwrap();
    }
}
