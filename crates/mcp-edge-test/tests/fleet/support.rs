//! What the tests share.

use std::{env, time::Duration};

use mcp_edge_test::{Client, Fleet, FleetBuilder, RawResponse};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

/// Where handlers tell what happens to them.
pub(crate) const PROBE: &str = "FLEET_TEST_PROBE";

/// Fails the test if `future` hangs.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(40), future).await.expect("this hangs")
}

/// A fleet of servers.
pub(crate) fn fleet() -> FleetBuilder {
    fleet_of("serves")
}

/// A fleet of this program, which becomes what the shell script says. `--port 0` goes to the script,
/// which does not use it.
pub(crate) fn fleet_of(test: &str) -> FleetBuilder {
    let script = format!(r#"exec "$0" --ignored --exact server::{test} --nocapture"#);
    shell(&script).arg(env::current_exe().unwrap())
}

pub(crate) fn shell(script: &str) -> FleetBuilder {
    Fleet::builder("sh").args(["-c", script])
}

pub(crate) async fn hello(client: &Client) -> RawResponse {
    soon(client.raw(client.request("tools/call", json!({"name": "hello"})))).await.unwrap()
}

/// The process that says that it answered.
pub(crate) async fn who_answers(client: &Client) -> u32 {
    let mut response = hello(client).await;
    let text = response.text().await.unwrap();
    assert!(response.status == 200 && text.contains("Hello!"), "{response:?}");
    response.headers["mcp-edge-process-id"].to_str().unwrap().parse().unwrap()
}

/// Waits until something is so that nobody tells of.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    soon(async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Whether the system has a process.
pub(crate) fn exists(id: u32) -> bool {
    let output = std::process::Command::new("kill").args(["-0", &id.to_string()]).output();
    output.unwrap().status.success()
}

/// The test's end of what handlers tell.
pub(crate) struct Probe(TcpListener);

impl Probe {
    pub(crate) async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// The connection of the next handler.
    pub(crate) async fn handler(&self) -> TcpStream {
        soon(self.0.accept()).await.unwrap().0
    }
}

/// Sends these bytes on a connection of their own, and reads until `end` has come.
pub(crate) async fn exchange(fleet: &Fleet, bytes: &str, end: &str) -> String {
    let mut stream = connect(fleet).await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    soon(async {
        while !answer.windows(end.len()).any(|window| window == end.as_bytes()) {
            let read = stream.read_buf(&mut answer).await.unwrap();
            assert!(read > 0, "it ended: {}", String::from_utf8_lossy(&answer));
        }
    })
    .await;
    String::from_utf8(answer).unwrap()
}

async fn connect(fleet: &Fleet) -> TcpStream {
    let address = fleet.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    TcpStream::connect(address).await.unwrap()
}
