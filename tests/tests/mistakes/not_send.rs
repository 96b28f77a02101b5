use std::rc::Rc;

use mcp_edge::{Cx, NoArgs, Server};

async fn hello(cx: Cx, _: NoArgs) -> String {
    let name = Rc::new(7);
    cx.sleep("pause", std::time::Duration::from_secs(1)).await;
    name.to_string()
}

fn main() {
    let _ = Server::builder("s", "1").tool("hello", "Greets", hello);
}
