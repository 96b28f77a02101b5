//! What goes wrong, told without secrets.

use std::{error::Error, fmt, time::Duration};

use mcp_edge::{FeedError, StoreError};

/// Why there is no [`PostgresStore`](crate::PostgresStore).
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be read. The error does not repeat it, for it may hold a password.
    InvalidUrl,
    /// The name is none that [`PostgresOptions::schema`](crate::PostgresOptions::schema) allows.
    InvalidSchemaName(String),
    /// The tables were made by a later version of this crate.
    NewerSchema {
        /// The schema with the tables.
        schema: String,
        /// The version of the tables.
        found: i32,
        /// The latest version that this build knows.
        known: i32,
    },
    /// The database was not reached, or refused something.
    Failed(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUrl => f.write_str(
                "the URL of the database cannot be read: expected \
                 postgres://user:password@host:port/database, with special characters in the \
                 password percent-encoded, and no options but those of tokio_postgres::Config",
            ),
            Self::InvalidSchemaName(name) => write!(
                f,
                "{name:?} cannot be the name of the schema: use a to z, digits and _, not a digit \
                 first, at most 40 characters"
            ),
            Self::NewerSchema { schema, found, known } => write!(
                f,
                "the tables in schema {schema} have version {found}, and this build knows none \
                 after {known}: deploy the later version of mcp-edge-postgres that made them, or \
                 name another schema in PostgresOptions::schema"
            ),
            Self::Failed(message) => write!(f, "no connection to the task store: {message}"),
        }
    }
}

impl Error for ConnectError {}

/// Why an operation failed: a text for the log.
#[derive(Debug)]
pub(crate) struct Fault(String);

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn too_slow(limit: Duration) -> Self {
        Self(format!("PostgreSQL did not answer within {} s", limit.as_secs_f32()))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<tokio_postgres::Error> for Fault {
    /// Leaves out the detail and the context of the database, which repeat what was to be written.
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(refusal) = error.as_db_error() {
            let (message, code) = (refusal.message(), refusal.code().code());
            return Self(format!("PostgreSQL: {message} (SQLSTATE {code})"));
        }
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        Self(message)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        Self::new(fault.0)
    }
}

impl From<Fault> for FeedError {
    fn from(fault: Fault) -> Self {
        Self::new(fault.0)
    }
}

impl From<Fault> for ConnectError {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault.0)
    }
}
