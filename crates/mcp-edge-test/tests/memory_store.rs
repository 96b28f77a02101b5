//! The store in memory does what stores do.

use mcp_edge::MemoryStore;
use mcp_edge_test::store::Stores;

async fn stores() -> Stores {
    let store = MemoryStore::default();
    Stores::new(store.clone(), store.clone())
        .with_mailboxes(store.clone(), store.clone())
        .with_replay_guards(store.clone(), store)
}

mcp_edge_test::store_suite!(stores);
