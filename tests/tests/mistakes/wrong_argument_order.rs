use mcp_edge::{Cx, NoArgs, Server};

async fn hello(_: NoArgs, _: Cx) -> String {
    String::new()
}

fn main() {
    let _ = Server::builder("s", "1").tool("hello", "Greets", hello);
}
