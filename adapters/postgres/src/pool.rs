//! The connections that operations share.
//!
//! Every operation is one statement, so a pool needs no transactions and this one is small. What a
//! ready-made one lacks: a connection whose operation failed, was too slow or was dropped halfway is
//! closed, never reused, since nobody knows what it is still busy with.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::StreamExt as _;
use tokio::{
    sync::Semaphore,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_postgres::{Client, Row, Statement, types::ToSql};

use crate::{connector::Connector, error::Fault, options::PostgresOptions};

/// Connections to one database, opened as they are needed.
pub(crate) struct Pool {
    connector: Arc<Connector>,
    setup: String,
    limit: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Session>>,
}

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>, options: &PostgresOptions) -> Self {
        // The server gives up a little before the client does, so that what failed for being slow was
        // mostly not written. At any other level than this a statement may not see what was committed
        // while it waited.
        let setup = format!(
            "SET search_path TO \"{}\"; SET statement_timeout TO {}; \
             SET default_transaction_isolation TO 'read committed'",
            options.schema,
            (options.time_limit.as_millis() * 9 / 10).clamp(1, 2_147_483_647),
        );
        Self {
            connector,
            setup,
            limit: options.time_limit,
            permits: Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
        }
    }

    /// How long an operation may take.
    pub(crate) const fn limit(&self) -> Duration {
        self.limit
    }

    /// Runs one statement.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        let fault = match timeout(self.limit, self.attempt(sql, parameters)).await {
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(error)) => error.into(),
            Err(_) => Fault::too_slow(self.limit),
        };
        // What ended one connection has most likely ended them all, or left them with a database that
        // no longer takes writes.
        let idle = std::mem::take(&mut *self.idle());
        drop(idle);
        Err(fault)
    }

    async fn attempt(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        // It is an error only once the semaphore is closed, which nobody does.
        let _permit = self.permits.acquire().await;
        let mut session = match self.take_idle() {
            Some(session) => session,
            None => self.open().await?,
        };
        let rows = session.query(sql, parameters).await?;
        session.used = Instant::now();
        self.idle().push(session);
        Ok(rows)
    }

    /// Opens a connection outside the pool.
    pub(crate) async fn open(&self) -> Result<Session, tokio_postgres::Error> {
        let (client, mut messages) = self.connector.open().await?;
        let driver = tokio::spawn(async move { while let Some(Ok(_)) = messages.next().await {} });
        let session = Session { client, statements: HashMap::new(), driver, used: Instant::now() };
        session.client.batch_execute(&self.setup).await?;
        Ok(session)
    }

    /// The connection that was used last, so that those not needed grow old and go.
    fn take_idle(&self) -> Option<Session> {
        let mut idle = self.idle();
        idle.retain(|session| session.used.elapsed() < MAX_IDLE && !session.client.is_closed());
        idle.pop()
    }

    /// A panic elsewhere leaves the list whole, so a poisoned lock is as good as any.
    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection, closed when dropped.
pub(crate) struct Session {
    pub(crate) client: Client,
    statements: HashMap<&'static str, Statement>,
    driver: JoinHandle<()>,
    used: Instant,
}

impl Session {
    async fn query(
        &mut self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return self.client.query(statement, parameters).await;
        }
        let statement = self.client.prepare(sql).await?;
        let rows = self.client.query(&statement, parameters).await?;
        self.statements.insert(sql, statement);
        Ok(rows)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A farewell could not be sent on a connection that hangs.
        self.driver.abort();
    }
}

/// How long a connection is kept unused: shorter than common firewalls remember it.
const MAX_IDLE: Duration = Duration::from_secs(240);
