//! The tables, and how they come about.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, GenericClient};

use crate::error::{ConnectError, Fault};

/// Checks the name of a schema, so that it can stand in SQL between quotes.
pub(crate) fn check_name(name: &str) -> Result<(), ConnectError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.len() <= MAX_NAME
        && name.bytes().all(is_plain)
        && name.starts_with(|first: char| !first.is_ascii_digit())
    {
        return Ok(());
    }
    Err(ConnectError::InvalidSchemaName(name.to_owned()))
}

/// Makes the tables, or brings them up to date, on a connection that is closed afterwards.
pub(crate) async fn migrate(client: &mut Client, schema: &str) -> Result<(), ConnectError> {
    // Without the lock and without the right to create anything, for a role that has none.
    let mut found = version(client, schema).await?;
    if found < KNOWN {
        let limit = MIGRATION_LIMIT;
        let applied = timeout(limit, apply(client, schema)).await;
        found = applied.unwrap_or_else(|_| Err(Fault::too_slow(limit)))?;
    }
    if found > KNOWN {
        let schema = schema.to_owned();
        return Err(ConnectError::NewerSchema { schema, found, known: KNOWN });
    }
    Ok(())
}

/// Applies what is missing, in one transaction, and returns the version that is there then. Instances
/// that start together take turns; one gives up its turn by closing the connection.
async fn apply(client: &mut Client, schema: &str) -> Result<i32, Fault> {
    // The lock is not part of the transaction, which has to begin after it was taken: only then does
    // PostgreSQL look up anew which tables there are.
    let lock = format!(
        "SET statement_timeout TO 0; \
         SELECT pg_advisory_lock({MIGRATION_LOCK}, hashtext('{schema}'))"
    );
    client.batch_execute(&lock).await?;
    let transaction = client.transaction().await?;
    let found = version(&transaction, schema).await?;
    if found == 0 {
        // `IF NOT EXISTS` asks for the right to create schemas even where there is nothing to do.
        let sql = "SELECT FROM pg_namespace WHERE nspname = $1";
        if transaction.query_opt(sql, &[&schema]).await?.is_none() {
            transaction.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
        }
        transaction.batch_execute(MIGRATIONS_TABLE).await?;
    }
    for (version, migration) in (1..).zip(MIGRATIONS).skip_while(|(version, _)| *version <= found) {
        transaction.batch_execute(migration).await?;
        let sql = "INSERT INTO migrations (version) VALUES ($1)";
        transaction.execute(sql, &[&version]).await?;
        tracing::info!(schema, version, "migrated the task store");
    }
    transaction.commit().await?;
    Ok(found.max(KNOWN))
}

/// The version of the tables; 0 when there are none.
async fn version(client: &impl GenericClient, schema: &str) -> Result<i32, Fault> {
    let table = format!("\"{schema}\".migrations");
    let is_there = client
        .query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&table])
        .await?
        .try_get::<_, bool>(0)?;
    if !is_there {
        return Ok(0);
    }
    let row = client.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await?;
    Ok(row.try_get(0)?)
}

/// What makes each version out of the one before, beginning with 1. Never changed once released.
const MIGRATIONS: [&str; KNOWN as usize] = [include_str!("migrations/1.sql")];

/// The latest version.
const KNOWN: i32 = 1;

const MIGRATIONS_TABLE: &str = "CREATE TABLE migrations (
    version integer PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT now()
)";

/// Keeps clear of the application's advisory locks, and of those of `create_task`.
const MIGRATION_LOCK: i32 = 1_296_257_618;

/// How long the migrations of others and our own may take.
const MIGRATION_LIMIT: Duration = Duration::from_secs(300);

/// Names in PostgreSQL have at most 63 bytes, and those of channels add some.
const MAX_NAME: usize = 40;
