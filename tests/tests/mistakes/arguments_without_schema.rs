use mcp_edge::Server;

struct Args {
    name: String,
}

async fn hello(args: Args) -> String {
    args.name
}

fn main() {
    let _ = Server::builder("s", "1").tool("hello", "Greets", hello);
}
