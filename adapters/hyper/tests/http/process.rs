//! `serve` as a process: keys from its environment, an end by a signal. Needs a Unix.

#![cfg(unix)]

use std::{
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{HEALTH, server, soon};

const ADDRESS: &str = "MCP_EDGE_HYPER_TEST_ADDRESS";

/// The other process, which is this one again.
#[tokio::test]
#[ignore = "not a test of its own: the others run it in a process"]
async fn child() {
    let address = std::env::var(ADDRESS).unwrap();
    // Without keys of its own.
    let server = mcp_edge::Server::builder("child", "1")
        .tool("hello", "Greets", async |_: mcp_edge::NoArgs| "Hello!")
        .build()
        .unwrap();
    mcp_edge_hyper::serve(server, address).await.unwrap();
}

fn spawn(address: SocketAddr) -> Command {
    spawn_under("", address)
}

fn spawn_under(shell: &str, address: SocketAddr) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!(r#"{shell} exec "$0" "$@""#)])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "process::child"])
        .env(ADDRESS, address.to_string())
        .env_remove("MCP_EDGE_KEYS")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn ended(child: &mut Killed) -> std::process::ExitStatus {
    soon(async {
        loop {
            if let Some(status) = child.0.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

async fn connect(address: SocketAddr) -> TcpStream {
    soon(async {
        loop {
            if let Ok(stream) = TcpStream::connect(address).await {
                return stream;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

async fn is_well(stream: &mut TcpStream) {
    stream.write_all(HEALTH.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn it_ends_gracefully_at_either_signal() {
    for signal in ["INT", "TERM"] {
        let address = free_address();
        let mut child = Killed(spawn(address).spawn().unwrap());
        is_well(&mut connect(address).await).await;
        let id = child.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert!(ended(&mut child).await.success(), "{signal}");
    }
}

/// How much processor time a process has used, in ticks of mostly 10 ms.
#[cfg(target_os = "linux")]
fn ticks(child: &Killed) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.0.id())).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').collect::<Vec<_>>();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn timing_without_file_descriptors_it_neither_spins_nor_ends() {
    let address = free_address();
    let child = Killed(spawn_under("ulimit -n 30;", address).spawn().unwrap());
    let mut streams = Vec::new();
    for _ in 0..40 {
        streams.push(connect(address).await);
    }
    let before = ticks(&child);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = ticks(&child) - before;
    assert!(used < 40, "{used} ticks in 2 s");
    is_well(&mut streams[0]).await;
    streams.truncate(1);
    is_well(&mut connect(address).await).await;
}

#[tokio::test]
async fn an_ill_formed_variable_is_an_error_at_start() {
    let mut child = Killed(spawn(free_address()).env("MCP_EDGE_KEYS", "1:short").spawn().unwrap());
    assert!(!ended(&mut child).await.success());
}

#[tokio::test]
async fn an_address_in_use_is_an_error_at_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = mcp_edge_hyper::serve(server(), address).await.unwrap_err();
    assert_eq!(error.to_string(), "the address cannot be bound");
    assert!(std::error::Error::source(&error).is_some());
}
