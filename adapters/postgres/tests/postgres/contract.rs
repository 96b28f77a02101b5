//! What every store and every feed must do.
//!
//! The suites cannot skip: where no server is named they run over memory, and say so.

use std::thread;

use mcp_edge::{InProcessFeed, MemoryStore};
use mcp_edge_test::{feed::Feeds, store::Stores};

use crate::support::Database;

mod store {
    mcp_edge_test::store_suite!(super::stores);
}

mod feed {
    mcp_edge_test::feed_suite!(super::feeds);
}

async fn stores() -> Stores {
    let Some(database) = Database::new() else {
        let store = MemoryStore::default();
        return Stores::new(store.clone(), store);
    };
    let (one, other) = (database.store().await, database.store().await);
    Stores::new(one.clone(), other.clone())
        .with_mailboxes(one.clone(), other.clone())
        .with_replay_guards(one, other)
        .keeping(RemoveOnDrop(database))
}

async fn feeds() -> Feeds {
    let Some(database) = Database::new() else {
        let feed = InProcessFeed::default();
        return Feeds::new(feed.clone(), feed);
    };
    Feeds::new(database.store().await, database.store().await).keeping(RemoveOnDrop(database))
}

/// Removes the schema at the end of a test.
struct RemoveOnDrop(Database);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let remove = || tokio::runtime::Runtime::new().unwrap().block_on(self.0.remove());
        // On a thread of its own: the test's runtime does not let this one wait.
        thread::scope(|scope| scope.spawn(remove).join()).unwrap();
    }
}
