//! `cargo run -p everything-local -- --port 3000 --data DIR`
//!
//! Serves the everything example on this machine until ctrl-c, and prints how to call it. Port 0
//! takes any that is free. Tasks and news are in a file in DIR, which several processes may share;
//! with the feature `postgres`, `--postgres URL` puts them into a database.
#![allow(clippy::print_stdout, reason = "a program for the command line")]

use std::{env, error::Error, fs, io, net::Ipv4Addr, path::PathBuf, process};

use http::{HeaderName, HeaderValue};
use mcp_edge::{ChangeFeed, ReplayGuard, Server, TaskStore};
use mcp_edge_hyper::{ServeOptions, Serving, SqliteStore};
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
    let serving = with_store(server, &flags).await?;
    mcp_edge_hyper::serve_on_with(serving, listener, options()).await?;
    Ok(())
}

/// Puts tasks, news and spent states where the command line says.
async fn with_store(server: Server, flags: &Flags) -> Result<Serving, Box<dyn Error>> {
    #[cfg(feature = "postgres")]
    if let Some(url) = &flags.postgres {
        let store = mcp_edge_postgres::PostgresStore::connect(url).await?;
        return Ok(attach(server, store));
    }
    fs::create_dir_all(&flags.data)
        .map_err(|error| format!("cannot make the folder {}: {error}", flags.data.display()))?;
    Ok(attach(server, SqliteStore::open(flags.data.join("everything.sqlite"))?))
}

fn attach<S>(server: Server, store: S) -> Serving
where
    S: TaskStore + ReplayGuard + ChangeFeed + Clone,
{
    let server = server.with_change_feed(store.clone()).with_replay_guard(store.clone());
    mcp_edge_hyper::with_tasks(server, store)
}

/// What the command line says.
struct Flags {
    port: u16,
    data: PathBuf,
    #[cfg(feature = "postgres")]
    postgres: Option<String>,
}

impl Flags {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self {
            port: 3000,
            data: env::temp_dir().join("mcp-edge-everything"),
            #[cfg(feature = "postgres")]
            postgres: None,
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| usage(&format!("{flag} needs a value")));
            match flag.as_str() {
                "--port" => {
                    let port = value()?;
                    let wrong = |_| usage(&format!("'{port}' is not a port number"));
                    flags.port = port.parse().map_err(wrong)?;
                }
                "--data" => flags.data = value()?.into(),
                #[cfg(feature = "postgres")]
                "--postgres" => flags.postgres = Some(value()?),
                _ => return Err(usage(&format!("there is no option {flag}"))),
            }
        }
        Ok(flags)
    }
}

fn usage(fault: &str) -> String {
    let postgres = if cfg!(feature = "postgres") { " | --postgres URL" } else { "" };
    format!("{fault}; usage: everything-local [--port N] [--data DIR{postgres}]")
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
