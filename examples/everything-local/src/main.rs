//! `cargo run -p everything-local -- --port 3000`
//!
//! Serves the everything example on this machine until ctrl-c, and prints how to call it. Port 0
//! takes any that is free.
#![allow(clippy::print_stdout, reason = "a program for the command line")]

use std::{env, error::Error, io, net::Ipv4Addr};

use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let server = everything::server()?;
    let port = port()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| format!("cannot listen on port {port}: {error}"))?;
    let url = format!("http://{}{}", listener.local_addr()?, server.endpoint());
    println!("Everything is served at {url}; only programs on this machine reach it.");
    println!("It has {}. To call the tool `hello`, paste:\n", everything::CONTENTS);
    println!("curl -sS {url} {HEADERS} -d '{BODY}'\n");
    let server = mcp_edge_hyper::with_tasks(server, mcp_edge::MemoryStore::default());
    mcp_edge_hyper::serve_on(server, listener).await?;
    Ok(())
}

fn port() -> Result<u16, &'static str> {
    let mut args = env::args().skip(1);
    match (args.next().as_deref(), args.next(), args.next()) {
        (None, ..) => Ok(3000),
        (Some("--port"), Some(port), None) => port.parse().map_err(|_| USAGE),
        _ => Err(USAGE),
    }
}

const USAGE: &str = "usage: everything-local [--port N]";

/// What every request needs, and what it mirrors of its body.
const HEADERS: &str = "-H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
    -H 'Mcp-Method: tools/call' -H 'Mcp-Name: hello'";

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{"name":"Ada"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
