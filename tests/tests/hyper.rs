//! The contract, over real sockets.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use mcp_edge::MemoryStore;
use mcp_edge_hyper::{ServeOptions, serve_with, with_tasks};
use mcp_edge_test::Client;

async fn client() -> Client {
    let server = with_tasks(mcp_edge_tests::server().unwrap(), MemoryStore::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let forever = std::future::pending();
    tokio::spawn(serve_with(server, listener, ServeOptions::default(), forever));
    Client::url(&url)
}

mcp_edge_tests::contract_suite!(client);
