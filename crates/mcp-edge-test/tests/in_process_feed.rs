//! The feed within a process does what feeds do.

use mcp_edge::InProcessFeed;
use mcp_edge_test::feed::Feeds;

async fn feeds() -> Feeds {
    let feed = InProcessFeed::default();
    Feeds::new(feed.clone(), feed)
}

mcp_edge_test::feed_suite!(feeds);
