//! Keeps the tasks of an mcp-edge server in PostgreSQL, and carries news between its instances.
//!
//! ```no_run
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_edge_postgres::PostgresStore;
//!
//! let store = PostgresStore::connect(&std::env::var("DATABASE_URL")?).await?;
//! # Ok(()) }
//! ```
//!
//! One [`PostgresStore`] is everything that many instances need to share: a
//! [`TaskStore`](mcp_edge::TaskStore) with a [`DueIndex`](mcp_edge::DueIndex), a
//! [`Mailbox`](mcp_edge::Mailbox), a [`ReplayGuard`](mcp_edge::ReplayGuard) and a
//! [`ChangeFeed`](mcp_edge::ChangeFeed). Clones are the same store. It needs a tokio runtime with time
//! and I/O, and PostgreSQL 12 or later.
//!
//! # The database
//!
//! All tables are in one schema, `mcp_edge` unless [`PostgresOptions::schema`] says otherwise. Whoever
//! connects first makes them, and an instance of a later version brings them up to date; several may
//! start at once. An instance refuses a schema that is newer than it knows.
//!
//! A role that may create nothing can connect too, once the schema is there and up to date: connect
//! once with a role that may, then grant the other
//!
//! ```sql
//! GRANT USAGE ON SCHEMA mcp_edge TO the_role;
//! GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mcp_edge TO the_role;
//! ```
//!
//! What was written is as durable as the database's `synchronous_commit` makes it; with `off` a
//! crash of the database may lose acknowledged writes. Connect to the primary: a replica that lags
//! behind would show old tasks. Of several hosts in the URL the one that takes writes is used. A
//! pooler in between must be in session mode: transaction mode knows neither `LISTEN` nor prepared
//! statements.
//!
//! # Encryption
//!
//! [`PostgresStore::connect`] speaks no TLS: the password and all tasks cross the network as they are,
//! and a URL with `sslmode=require` fails. That is right for a socket, for this machine, and behind a
//! tunnel. For everything else hand a connector of your choice (`postgres-native-tls`,
//! `tokio-postgres-rustls`) to [`PostgresStore::connect_with`] and ask for it in the URL:
//! the default, `sslmode=prefer`, goes on without TLS when the server has none.

mod connector;
mod error;
mod feed;
mod handoff;
mod listening;
mod options;
mod pool;
mod schema;
mod store;
mod tasks;

pub use tokio_postgres;
pub use {error::ConnectError, options::PostgresOptions, store::PostgresStore};
