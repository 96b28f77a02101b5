//! Tasks in a table.

use mcp_edge::{BoxFuture, Created, DueIndex, StoreError, TaskRecord, TaskStore, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

use super::{SqliteStore, millis, rows, timestamp};

impl TaskStore for SqliteStore {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        let key = key.to_owned();
        Box::pin(self.shared.reader.read(move |connection| {
            Ok(select(connection, &key)?.filter(|task| task.expires > now))
        }))
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            record.check_size()?;
            let record = record.clone();
            let create = move |connection: &Connection| insert(connection, &record, max_open, now);
            self.shared.writer.write(create).await
        })
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            record.check_size()?;
            let record = record.clone();
            self.shared.writer.write(move |connection| update(connection, &record, now)).await
        })
    }

    fn due_index(&self) -> Option<&dyn DueIndex> {
        Some(self)
    }
}

impl DueIndex for SqliteStore {
    fn claim_due(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.shared.writer.write(move |connection| {
            let (now, limit) = (millis(now), rows(limit));
            let keys = connection
                .prepare_cached(SELECT_DUE)?
                .query_map(named_params! {":now": now, ":limit": limit}, |row| row.get(0))?
                .collect::<Result<Vec<_>, _>>()?;
            if !keys.is_empty() {
                let until = millis(until);
                let claim = named_params! {":now": now, ":limit": limit, ":until": until};
                connection.prepare_cached(CLAIM_DUE)?.execute(claim)?;
            }
            Ok(keys)
        }))
    }

    fn purge(&self, before: Timestamp, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.shared.writer.write(move |connection| {
            connection.prepare_cached(PURGE)?.execute(params![millis(before), rows(limit)])
        }))
    }
}

fn insert(
    connection: &Connection,
    record: &TaskRecord,
    max_open: u32,
    now: Timestamp,
) -> rusqlite::Result<Created> {
    if let Some(task) = select(connection, &record.key)? {
        return Ok(Created::Exists(Some(task).filter(|task| task.expires > now)));
    }
    let open: u32 = connection
        .prepare_cached(COUNT_OPEN)?
        .query_row(params![record.owner, millis(now), max_open], |row| row.get(0))?;
    if open >= max_open {
        return Ok(Created::TooMany);
    }
    connection.prepare_cached(INSERT)?.execute(params![
        record.key,
        record.owner,
        record.is_open,
        record.due.map(millis),
        millis(record.expires),
        &*record.body,
    ])?;
    Ok(Created::Created)
}

fn update(connection: &Connection, record: &TaskRecord, now: Timestamp) -> rusqlite::Result<bool> {
    let Ok(version) = i64::try_from(record.version) else {
        // No task is written that often.
        return Ok(false);
    };
    let updated = connection.prepare_cached(UPDATE)?.execute(named_params! {
        ":key": record.key,
        ":version": version,
        ":now": millis(now),
        ":owner": record.owner,
        ":is_open": record.is_open,
        ":due": record.due.map(millis),
        ":expires": millis(record.expires),
        ":body": &*record.body,
    })?;
    Ok(updated == 1)
}

/// A task, whether or not it is past its time.
fn select(connection: &Connection, key: &str) -> rusqlite::Result<Option<TaskRecord>> {
    connection.prepare_cached(SELECT)?.query_row([key], record).optional()
}

fn record(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    Ok(TaskRecord {
        key: row.get("key")?,
        owner: row.get("owner")?,
        version: row.get::<_, i64>("version")?.cast_unsigned(),
        is_open: row.get("is_open")?,
        due: row.get::<_, Option<_>>("due")?.map(timestamp),
        expires: timestamp(row.get("expires")?),
        body: row.get::<_, Vec<u8>>("body")?.into(),
    })
}

const SELECT: &str =
    "SELECT key, owner, version, is_open, due, expires, body FROM task WHERE key = ?1";

/// No more than are of interest.
pub(super) const COUNT_OPEN: &str = "
    SELECT count(*) FROM (
      SELECT 1 FROM task WHERE owner = ?1 AND is_open = 1 AND expires > ?2 LIMIT ?3
    )";

const INSERT: &str = "
    INSERT INTO task (key, owner, version, is_open, due, expires, body)
    VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6)";

const UPDATE: &str = "
    UPDATE task
    SET owner = :owner, version = version + 1, is_open = :is_open, due = :due,
        expires = :expires, body = :body
    WHERE key = :key AND version = :version AND is_open = 1 AND expires > :now";

pub(super) const SELECT_DUE: &str = "
    SELECT key FROM task
    WHERE is_open = 1 AND due <= :now AND expires > :now
    ORDER BY due, rowid LIMIT :limit";

/// Claims what [`SELECT_DUE`] finds.
pub(super) const CLAIM_DUE: &str = "
    UPDATE task SET due = :until
    WHERE rowid IN (
      SELECT rowid FROM task
      WHERE is_open = 1 AND due <= :now AND expires > :now
      ORDER BY due, rowid LIMIT :limit
    )";

pub(super) const PURGE: &str = "
    DELETE FROM task
    WHERE rowid IN (SELECT rowid FROM task WHERE expires < ?1 LIMIT ?2)";
