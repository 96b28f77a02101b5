//! Messages and ids that are used once.

use std::time::Duration;

use mcp_edge::{BoxFuture, Mailbox, ReplayGuard, StoreError, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{SqliteStore, millis};

impl Mailbox for SqliteStore {
    fn put_once<'a>(
        &'a self,
        id: &'a str,
        message: &'a [u8],
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (id, message) = (id.to_owned(), message.to_vec());
        Box::pin(self.shared.writer.write(move |connection| {
            sweep(connection, SWEEP_MESSAGES, now)?;
            let put = params![id, message, millis(expires), millis(now)];
            Ok(connection.prepare_cached(PUT)?.execute(put)? == 1)
        }))
    }

    fn take<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let id = id.to_owned();
        Box::pin(self.shared.writer.write(move |connection| {
            let message = connection
                .prepare_cached(SELECT_MESSAGE)?
                .query_row(params![id, millis(now)], |row| row.get(0))
                .optional()?;
            if message.is_some() {
                connection.prepare_cached(TAKE)?.execute([id])?;
            }
            Ok(message)
        }))
    }
}

impl ReplayGuard for SqliteStore {
    fn spend<'a>(
        &'a self,
        id: &'a str,
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.to_owned();
        Box::pin(self.shared.writer.write(move |connection| {
            sweep(connection, SWEEP_SPENT, now)?;
            let spend = params![id, millis(expires), millis(now)];
            Ok(connection.prepare_cached(SPEND)?.execute(spend)? == 1)
        }))
    }
}

/// Removes some of what expired long ago: more than is added.
fn sweep(connection: &Connection, sql: &str, now: Timestamp) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([millis(now - SKEW)]).map(drop)
}

const PUT: &str = "
    INSERT INTO message (id, message, expires) VALUES (?1, ?2, ?3)
    ON CONFLICT (id) DO UPDATE SET message = excluded.message, expires = excluded.expires
    WHERE message.expires <= ?4";

const SELECT_MESSAGE: &str =
    "SELECT message FROM message WHERE id = ?1 AND expires > ?2 AND message IS NOT NULL";

const TAKE: &str = "UPDATE message SET message = NULL WHERE id = ?1";

const SPEND: &str = "
    INSERT INTO spent (id, expires) VALUES (?1, ?2)
    ON CONFLICT (id) DO UPDATE SET expires = excluded.expires
    WHERE spent.expires <= ?3";

pub(super) const SWEEP_MESSAGES: &str = "
    DELETE FROM message
    WHERE rowid IN (SELECT rowid FROM message WHERE expires < ?1 LIMIT 8)";

pub(super) const SWEEP_SPENT: &str = "
    DELETE FROM spent
    WHERE id IN (SELECT id FROM spent WHERE expires < ?1 LIMIT 8)";

/// What is past its time for one caller may not be for another: how far their clocks may be apart.
const SKEW: Duration = Duration::from_hours(24);
