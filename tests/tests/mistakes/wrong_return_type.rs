use mcp_edge::{NoArgs, Server};

async fn count(_: NoArgs) -> u32 {
    7
}

fn main() {
    let _ = Server::builder("s", "1").tool("count", "Counts", count);
}
