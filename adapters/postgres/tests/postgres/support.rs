//! A schema for each test.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use mcp_edge::{TaskRecord, Timestamp};
use mcp_edge_postgres::{
    ConnectError, PostgresOptions, PostgresStore,
    tokio_postgres::{Client, Config, NoTls},
};

/// Runs a test with a schema of its own, which is removed if the test passes.
pub(crate) fn with_database(test: impl AsyncFnOnce(&Database)) {
    let Some(database) = Database::new() else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        test(&database).await;
        database.remove().await;
    });
}

pub(crate) struct Database {
    config: Config,
    pub(crate) schema: String,
}

impl Database {
    /// A schema that nobody else uses. Says so where no server is named.
    pub(crate) fn new() -> Option<Self> {
        let Ok(url) = std::env::var("MCP_EDGE_POSTGRES_URL") else {
            eprintln!("SKIPPED: MCP_EDGE_POSTGRES_URL names no PostgreSQL server");
            return None;
        };
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let schema = format!("test_{now}_{}_{count}", std::process::id());
        Some(Self { config: url.parse().unwrap(), schema })
    }

    /// How to get there; the name of the application is that of the schema.
    pub(crate) fn config(&self) -> Config {
        let mut config = self.config.clone();
        config.application_name(&self.schema);
        config
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::default().schema(&self.schema)
    }

    pub(crate) async fn connect(&self) -> Result<PostgresStore, ConnectError> {
        PostgresStore::connect_with(self.config(), NoTls, self.options()).await
    }

    pub(crate) async fn store(&self) -> PostgresStore {
        self.connect().await.unwrap()
    }

    /// Another schema in the same database; the test removes it.
    pub(crate) fn sibling(&self) -> Self {
        Self { config: self.config.clone(), schema: format!("{}_b", self.schema) }
    }

    pub(crate) async fn remove(&self) {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        self.admin().await.batch_execute(&drop).await.unwrap();
    }

    /// A connection beside the stores, which sees the schema.
    pub(crate) async fn admin(&self) -> Client {
        let (client, connection) = self.config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        let setup = format!("SET search_path TO {}", self.schema);
        client.batch_execute(&setup).await.unwrap();
        client
    }

    /// Ends the connections of all stores from the side of the server; returns how many.
    pub(crate) async fn terminate_all(&self) -> i64 {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE application_name = $1";
        self.admin().await.query_one(sql, &[&self.schema]).await.unwrap().get(0)
    }
}

/// Results of `count` calls under way at once.
pub(crate) async fn at_once<F>(count: usize, call: impl Fn(usize) -> F) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let calls: Vec<_> = (0..count).map(|n| tokio::spawn(call(n))).collect();
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    results
}

/// Fails a test that waits for what does not come.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it takes too long")
}

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// An open task that is due now and expires in an hour.
pub(crate) fn task(key: &str, owner: &str) -> TaskRecord {
    TaskRecord {
        key: key.to_owned(),
        owner: owner.to_owned(),
        version: 1,
        is_open: true,
        due: Some(NOW),
        expires: NOW + 3600 * SECOND,
        body: "{}".into(),
    }
}
