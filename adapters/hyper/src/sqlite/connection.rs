//! Opens a file and brings its schema up to date.

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::error::SqliteError;

/// Opens a connection to a file whose schema is the newest.
///
/// # Errors
/// Those of [`SqliteStore::open`](crate::SqliteStore::open).
pub(super) fn open(path: &Path) -> Result<Connection, SqliteError> {
    let attempt = || {
        let mut connection = connect(path)?;
        // Before anything is written: the file may belong to others.
        missing(&connection)?;
        if !write_ahead(&connection)? {
            return Err(Refused::NotShared);
        }
        migrate(&mut connection)?;
        Ok(connection)
    };
    attempt().map_err(|refused| {
        let path = path.to_owned();
        match refused {
            Refused::Foreign => SqliteError::Foreign { path },
            Refused::Newer { found } => SqliteError::Newer { path, found, known: newest() },
            Refused::NotShared => SqliteError::NotShared { path },
            Refused::Sqlite(error) => SqliteError::Unusable { path, source: error.into() },
        }
    })
}

enum Refused {
    Foreign,
    Newer { found: i64 },
    NotShared,
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Each connection is used by one thread alone, so SQLite need not guard it.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Turns the write-ahead log on, which the file remembers. `false` where there can be none.
///
/// SQLite does not wait for others here, so this does.
fn write_ahead(connection: &Connection) -> rusqlite::Result<bool> {
    let started = Instant::now();
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Err(error) if is_busy(&error) && started.elapsed() < PATIENCE => sleep(PAUSE),
            mode => return Ok(mode? == "wal"),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Makes the schema, or what is missing of it, in one transaction.
fn migrate(connection: &mut Connection) -> Result<(), Refused> {
    // Most often there is nothing to do, and no need to wait for others that write. What is only
    // readable has to fail below.
    if missing(connection)?.is_empty() && !connection.is_readonly("main")? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in missing(&transaction)? {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest())?;
    transaction.commit()?;
    Ok(())
}

/// The migrations that the file lacks.
fn missing(connection: &Connection) -> Result<&'static [&'static str], Refused> {
    // One statement, so that it sees one state of the file.
    let (application_id, found, tables) = connection.query_row(
        "SELECT (SELECT application_id FROM pragma_application_id),
                (SELECT user_version FROM pragma_user_version),
                (SELECT count(*) FROM sqlite_schema)",
        [],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
    )?;
    if (application_id, found, tables) == (0, 0, 0) {
        return Ok(MIGRATIONS);
    }
    if application_id != APPLICATION_ID {
        return Err(Refused::Foreign);
    }
    usize::try_from(found)
        .ok()
        .and_then(|done| MIGRATIONS.get(done..))
        .ok_or(Refused::Newer { found })
}

/// The version of the schema that [`MIGRATIONS`] lead to.
const fn newest() -> i64 {
    MIGRATIONS.len() as i64
}

/// What leads from each version of the schema to the next; the first one makes it. Never edit one that
/// was released.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// Says in the head of a file that it is one of these: `mcpE`.
const APPLICATION_ID: i64 = 0x6d63_7045;

/// How long a statement waits for other connections.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an attempt waits for the next.
const PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// What SQLite intends to do for a statement.
    fn plan(sql: &str) -> String {
        let connection = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|migration| connection.execute_batch(migration).unwrap());
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = statement.raw_query();
        let mut plan = String::new();
        while let Some(row) = rows.next().unwrap() {
            plan += &row.get::<_, String>("detail").unwrap();
            plan += "\n";
        }
        plan
    }

    #[test]
    fn statements_use_the_indexes() {
        use super::super::{feed, once, tasks};
        for (sql, index) in [
            (tasks::COUNT_OPEN, "INDEX task_open (owner=? AND expires>?)"),
            (tasks::SELECT_DUE, "INDEX task_due (due<?)"),
            (tasks::CLAIM_DUE, "INDEX task_due (due<?)"),
            (tasks::PURGE, "INDEX task_expires (expires<?)"),
            (once::SWEEP_MESSAGES, "INDEX message_expires (expires<?)"),
            (once::SWEEP_SPENT, "INDEX spent_expires (expires<?)"),
            (feed::SELECT_AFTER, "INTEGER PRIMARY KEY (rowid>?)"),
        ] {
            let plan = plan(sql);
            assert!(plan.contains(index), "{sql}\n{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
        }
    }
}
