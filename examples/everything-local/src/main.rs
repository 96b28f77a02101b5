//! `cargo run -p everything-local -- --port 3000`
//!
//! Serves the everything example on this machine until ctrl-c, and prints how to call it. Port 0
//! takes any that is free.
#![allow(clippy::print_stdout, reason = "a program for the command line")]

use std::{env, error::Error, io, net::Ipv4Addr, process};

use http::{HeaderName, HeaderValue};
use mcp_edge_hyper::ServeOptions;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let flags = Flags::parse(env::args().skip(1))?;
    let server = everything::server()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, flags.port))
        .await
        .map_err(|error| format!("cannot listen on port {}: {error}", flags.port))?;
    let url = format!("http://{}{}", listener.local_addr()?, server.endpoint());
    println!("Everything is served at {url}; only programs on this machine reach it.");
    println!("It has {}. To call the tool `hello`, paste:\n", everything::CONTENTS);
    println!("curl -sS {url} {HEADERS} -d '{BODY}'\n");
    let server = mcp_edge_hyper::with_tasks(server, mcp_edge::MemoryStore::default());
    mcp_edge_hyper::serve_on_with(server, listener, options()).await?;
    Ok(())
}

/// What the command line says.
struct Flags {
    port: u16,
}

impl Flags {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self { port: 3000 };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| usage(&format!("{flag} needs a value")));
            match flag.as_str() {
                "--port" => {
                    let port = value()?;
                    let wrong = |_| usage(&format!("'{port}' is not a port number"));
                    flags.port = port.parse().map_err(wrong)?;
                }
                _ => return Err(usage(&format!("there is no option {flag}"))),
            }
        }
        Ok(flags)
    }
}

fn usage(fault: &str) -> String {
    format!("{fault}; usage: everything-local [--port N]")
}

/// The usual ones. A test of several processes finds out which of them answered, when it sets the
/// environment variable.
fn options() -> ServeOptions {
    let options = ServeOptions::default();
    if env::var_os("MCP_EDGE_TEST_PROCESS_ID").is_none() {
        return options;
    }
    let name = HeaderName::from_static("mcp-edge-process-id");
    options.response_header(name, HeaderValue::from(process::id()))
}

/// What every request needs, and what it mirrors of its body.
const HEADERS: &str = "-H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
    -H 'Mcp-Method: tools/call' -H 'Mcp-Name: hello'";

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{"name":"Ada"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
