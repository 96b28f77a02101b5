//! Messages that wait for whoever takes them, and ids that were spent.
//!
//! Each write removes two rows that expired long ago, so the tables do not grow with time and need
//! nobody who comes by. Ids are any text, and kept as digests: those have one length, and the database
//! takes them where it would refuse a text.

use std::time::Duration;

use mcp_edge::{BoxFuture, Mailbox, ReplayGuard, StoreError, Timestamp};

use crate::{
    error::Fault,
    store::{PostgresStore, millis},
};

impl Mailbox for PostgresStore {
    fn put_once<'a>(
        &'a self,
        id: &'a str,
        message: &'a [u8],
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let long_ago = millis(now - KEPT);
            let rows = self
                .pool
                .query(PUT, &[&id.as_bytes(), &millis(expires), &millis(now), &long_ago, &message])
                .await?;
            Ok(!rows.is_empty())
        })
    }

    fn take<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            let rows = self.pool.query(TAKE, &[&id.as_bytes(), &millis(now)]).await?;
            Ok(rows.first().map(|row| row.try_get(0)).transpose().map_err(Fault::from)?)
        })
    }
}

impl ReplayGuard for PostgresStore {
    fn spend<'a>(
        &'a self,
        id: &'a str,
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let long_ago = millis(now - KEPT);
            let rows = self
                .pool
                .query(SPEND, &[&id.as_bytes(), &millis(expires), &millis(now), &long_ago])
                .await?;
            Ok(!rows.is_empty())
        })
    }
}

const PUT: &str = "
    WITH old AS MATERIALIZED (
        SELECT id FROM messages WHERE expires < $4 AND id <> sha256($1)
        ORDER BY expires LIMIT 2
        FOR UPDATE SKIP LOCKED
    ), removed AS (
        DELETE FROM messages USING old WHERE messages.id = old.id
    )
    INSERT INTO messages (id, message, expires) VALUES (sha256($1), $5, $2)
    ON CONFLICT (id) DO UPDATE SET message = excluded.message, expires = excluded.expires
        WHERE messages.expires <= $3
    RETURNING true";

/// The row lock makes the second of two takers look again, and find nothing.
const TAKE: &str = "
    WITH found AS MATERIALIZED (
        SELECT id, message FROM messages
        WHERE id = sha256($1) AND message IS NOT NULL AND expires > $2
        FOR UPDATE
    )
    UPDATE messages SET message = NULL FROM found WHERE messages.id = found.id
    RETURNING found.message";

const SPEND: &str = "
    WITH old AS MATERIALIZED (
        SELECT id FROM spent WHERE expires < $4 AND id <> sha256($1)
        ORDER BY expires LIMIT 2
        FOR UPDATE SKIP LOCKED
    ), removed AS (
        DELETE FROM spent USING old WHERE spent.id = old.id
    )
    INSERT INTO spent (id, expires) VALUES (sha256($1), $2)
    ON CONFLICT (id) DO UPDATE SET expires = excluded.expires WHERE spent.expires <= $3
    RETURNING true";

/// How long rows stay after they expired, a day: the clocks of instances differ, and what is past its
/// time here must not be forgotten while it is not elsewhere.
const KEPT: Duration = Duration::from_hours(24);
