//! Where the tables are, and what a store may use.

use std::time::Duration;

/// Where the tables are and what a [`PostgresStore`](crate::PostgresStore) may use, each with a
/// default and a reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostgresOptions {
    pub(crate) schema: String,
    pub(crate) max_connections: usize,
    pub(crate) time_limit: Duration,
}

impl PostgresOptions {
    /// The schema with the tables: `a`-`z`, digits and `_`, not beginning with a digit, at most 40
    /// characters. `mcp_edge` by default. Servers that share a schema share their tasks and their
    /// news.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Most connections at a time, at least 1; an operation that finds none free waits. 10 by
    /// default: a PostgreSQL server takes 100 in all by default, which several instances share. One
    /// more is opened while anyone listens for changes.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// How long an operation may take, with all that belongs to it: waiting for a connection,
    /// opening it, and waiting for others who lock the same row. 10 s by default.
    #[must_use]
    pub const fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "mcp_edge".to_owned(),
            max_connections: 10,
            time_limit: Duration::from_secs(10),
        }
    }
}
