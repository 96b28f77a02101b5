//! The tasks, and which of them are due.

use mcp_edge::{BoxFuture, Created, DueIndex, StoreError, TaskRecord, TaskStore, Timestamp};
use tokio_postgres::Row;

use crate::{
    error::Fault,
    store::{PostgresStore, millis},
};

impl TaskStore for PostgresStore {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        Box::pin(async move {
            let rows = self.pool.query(GET, &[&key, &millis(now)]).await?;
            Ok(rows.first().map(record).transpose()?)
        })
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            record.check_size()?;
            let rows = self
                .pool
                .query(
                    CREATE,
                    &[
                        &record.key,
                        &record.owner,
                        &record.is_open,
                        &record.due.map(millis),
                        &millis(record.expires),
                        &record.body.as_ref(),
                        &i64::from(max_open),
                        &millis(now),
                    ],
                )
                .await?;
            match first::<&str>(&rows)? {
                "created" => Ok(Created::Created),
                "too many" => Ok(Created::TooMany),
                _ => Ok(Created::Exists(self.get(&record.key, now).await?)),
            }
        })
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            record.check_size()?;
            let Ok(version) = i64::try_from(record.version) else {
                return Ok(false);
            };
            let rows = self
                .pool
                .query(
                    UPDATE,
                    &[
                        &record.key,
                        &version,
                        &millis(now),
                        &record.owner,
                        &record.is_open,
                        &record.due.map(millis),
                        &millis(record.expires),
                        &record.body.as_ref(),
                    ],
                )
                .await?;
            Ok(!rows.is_empty())
        })
    }

    fn due_index(&self) -> Option<&dyn DueIndex> {
        Some(self)
    }
}

impl DueIndex for PostgresStore {
    fn claim_due(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let rows =
                self.pool.query(CLAIM, &[&millis(now), &millis(until), &count(limit)]).await?;
            let keys = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
            Ok(keys.map_err(Fault::from)?)
        })
    }

    fn purge(&self, before: Timestamp, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            let rows = self.pool.query(PURGE, &[&millis(before), &count(limit)]).await?;
            Ok(rows.len())
        })
    }
}

fn record(row: &Row) -> Result<TaskRecord, Fault> {
    let moment = |kept: i64| Timestamp::from_millis(kept.try_into().unwrap_or(0));
    Ok(TaskRecord {
        key: row.try_get(0)?,
        owner: row.try_get(1)?,
        version: row.try_get::<_, i64>(2)?.try_into().unwrap_or(0),
        is_open: row.try_get(3)?,
        due: row.try_get::<_, Option<i64>>(4)?.map(moment),
        expires: moment(row.try_get(5)?),
        body: row.try_get::<_, Vec<u8>>(6)?.into(),
    })
}

/// The one value of a statement that always has one.
fn first<'a, T: tokio_postgres::types::FromSql<'a>>(rows: &'a [Row]) -> Result<T, Fault> {
    let row = rows.first().ok_or_else(|| Fault::new("PostgreSQL answered without a row"))?;
    Ok(row.try_get(0)?)
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

const GET: &str = "
    SELECT key, owner, version, is_open, due, expires, body FROM tasks
    WHERE key = $1 AND expires > $2";

const CREATE: &str = "SELECT create_task($1, $2, $3, $4, $5, $6, $7, $8)";

const UPDATE: &str = "
    UPDATE tasks
    SET version = version + 1, owner = $4, is_open = $5, due = $6, expires = $7, body = $8
    WHERE key = $1 AND version = $2 AND is_open AND expires > $3
    RETURNING true";

/// Rows that another sweep holds are passed over. One that was written since this statement began is
/// looked at again before it is taken. The keys are an array because that makes the database use the
/// index, where it would guess that a limit it does not know yet is a tenth of the table.
const CLAIM: &str = "
    WITH found AS MATERIALIZED (
        SELECT key, due FROM tasks
        WHERE is_open AND due <= $1 AND expires > $1
        ORDER BY due LIMIT $3
        FOR UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE tasks SET due = $2 WHERE key = ANY (ARRAY (SELECT key FROM found))
        RETURNING key
    )
    SELECT key FROM claimed JOIN found USING (key) ORDER BY found.due";

/// The order, too, is there for the index.
const PURGE: &str = "
    DELETE FROM tasks WHERE key = ANY (ARRAY (
        SELECT key FROM tasks WHERE expires < $1
        ORDER BY expires LIMIT $2
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING true";
