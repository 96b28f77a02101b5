//! The contract, over the bare core: no socket, no runtime of the platform's.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use mcp_edge_test::Client;

async fn client() -> Client {
    Client::in_process(&mcp_edge_test::with_tasks(mcp_edge_tests::server().unwrap()))
}

mcp_edge_tests::contract_suite!(client);
