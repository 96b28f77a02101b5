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

/// Makes the tables, or brings them up to date. Touches nothing when they are.
pub(crate) async fn migrate(client: &mut Client, schema: &str) -> Result<(), ConnectError> {
    // Without the lock and without the right to create anything, for a role that has none.
    if pending(client, schema).await?.is_empty() {
        return Ok(());
    }
    timeout(MIGRATION_LIMIT, apply(client, schema))
        .await
        .unwrap_or_else(|_| Err(Fault::too_slow(MIGRATION_LIMIT).into()))
}

/// Applies what is missing, in one transaction; instances that start together take turns.
async fn apply(client: &mut Client, schema: &str) -> Result<(), ConnectError> {
    let transaction = client.transaction().await.map_err(Fault::from)?;
    let lock = format!(
        "SET LOCAL statement_timeout TO 0; \
         SELECT pg_advisory_xact_lock({MIGRATION_LOCK}, hashtext('{schema}'))"
    );
    transaction.batch_execute(&lock).await.map_err(Fault::from)?;

    let pending = pending(&transaction, schema).await?;
    if pending.first().is_some_and(|(version, _)| *version == 1) {
        // `IF NOT EXISTS` asks for the right to create schemas even where there is nothing to do.
        let found = transaction
            .query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[&schema])
            .await
            .map_err(Fault::from)?;
        if found.is_none() {
            let create = format!("CREATE SCHEMA \"{schema}\"");
            transaction.batch_execute(&create).await.map_err(Fault::from)?;
        }
        transaction.batch_execute(MIGRATIONS_TABLE).await.map_err(Fault::from)?;
    }
    for (version, sql) in pending {
        transaction.batch_execute(sql).await.map_err(Fault::from)?;
        transaction
            .execute("INSERT INTO migrations (version) VALUES ($1)", &[&version])
            .await
            .map_err(Fault::from)?;
        tracing::info!(schema, version, "migrated the task store");
    }
    transaction.commit().await.map_err(Fault::from)?;
    Ok(())
}

/// The migrations that were not applied yet, with their versions.
async fn pending(
    client: &impl GenericClient,
    schema: &str,
) -> Result<Vec<(i32, &'static str)>, ConnectError> {
    let found = version(client, schema).await?;
    let known = MIGRATIONS.last().map_or(0, |(version, _)| *version);
    if found > known {
        return Err(ConnectError::NewerSchema { schema: schema.to_owned(), found, known });
    }
    Ok(MIGRATIONS.iter().copied().filter(|(version, _)| *version > found).collect())
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

/// What makes each version out of the one before. Never changed once released.
const MIGRATIONS: &[(i32, &str)] = &[(1, include_str!("migrations/1.sql"))];

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
