//! How changes travel: as notifications, by way of a table if they are large.

use mcp_edge::{BoxFuture, BoxStream, Change, ChangeFeed, FeedError, Topics};
use serde::{Deserialize, Serialize};

use crate::store::PostgresStore;

impl ChangeFeed for PostgresStore {
    fn publish<'a>(
        &'a self,
        tenant: Option<&'a str>,
        change: Change,
    ) -> BoxFuture<'a, Result<(), FeedError>> {
        Box::pin(async move {
            let news = News { tenant: tenant.map(str::to_owned), change };
            let news = serde_json::to_string(&news)
                .map_err(|error| FeedError::new(format!("a change is not JSON: {error}")))?;
            let sql = if news.len() < NOTIFICATION_BYTES { PUBLISH } else { PUBLISH_LARGE };
            self.pool.query(sql, &[&self.listening.channel(), &news]).await?;
            Ok(())
        })
    }

    fn subscribe(
        &self,
        topics: Topics,
    ) -> BoxFuture<'_, Result<BoxStream<'static, Change>, FeedError>> {
        Box::pin(async move { self.listening.subscribe(topics).await })
    }
}

/// A change and whom it concerns. Its JSON is an object, whereas the number of a row is not.
#[derive(Serialize, Deserialize)]
pub(crate) struct News {
    pub(crate) tenant: Option<String>,
    pub(crate) change: Change,
}

/// Notifications queue up at the database's flush to disk, one by one. A change need not survive a
/// crash, which ends all listeners anyway, so this does not wait for it.
const PUBLISH: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";

/// Rows are read at once, or by nobody.
const PUBLISH_LARGE: &str = "
    WITH removed AS (
        DELETE FROM large_changes WHERE made < now() - interval '10 minutes'
    ), kept AS (
        INSERT INTO large_changes (change) VALUES ($2) RETURNING id
    )
    SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, id::text) FROM kept";

/// A notification is shorter than this.
const NOTIFICATION_BYTES: usize = 8000;
