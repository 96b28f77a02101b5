//! Tasks of servers in this process.

use std::sync::Arc;

use mcp_edge::{BoxFuture, MemoryStore, Platform as _, Server, StoreError, TaskDriver, Timestamp};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::platform::TestPlatform;

/// Gives a server tasks for a test, in memory: each is advanced when it is due, on tokio's clock.
///
/// To be called inside of a tokio runtime, which advances them as long as it runs. A server that is to
/// be tested [strictly](crate::Client::strict) in its tasks too is given here
/// [with lints denied](Server::with_replay_lints_denied).
#[must_use]
pub fn with_tasks(server: Server) -> Server {
    with_store(server, MemoryStore::default())
}

/// Gives a server tasks in a store of the test's own.
#[must_use]
pub fn with_store(server: Server, store: impl mcp_edge::TaskStore) -> Server {
    let (sender, scheduled) = unbounded_channel();
    let server = server.with_tasks(store, Driver(sender));
    tokio::spawn(drive(server.clone(), scheduled));
    server
}

async fn drive(server: Server, mut scheduled: UnboundedReceiver<(String, Timestamp)>) {
    while let Some((key, at)) = scheduled.recv().await {
        let server = server.clone();
        tokio::spawn(async move {
            let platform = TestPlatform::new();
            platform.sleep(at.since(platform.now())).await;
            // The store is the test's; what it fails to do shows in what the client sees.
            let _ = server.advance(&key, Arc::new(platform)).await;
        });
    }
}

struct Driver(UnboundedSender<(String, Timestamp)>);

impl TaskDriver for Driver {
    fn schedule<'a>(
        &'a self,
        key: &'a str,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let sent = self.0.send((key.to_owned(), at));
        let sent = sent.map_err(|_| StoreError::new("the runtime has ended"));
        Box::pin(std::future::ready(sent))
    }
}
