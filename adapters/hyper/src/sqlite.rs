//! Tasks, messages, spent ids and changes in one SQLite file.
//!
//! - [`connection`]: opens the file and brings its schema up to date;
//! - [`threads`]: SQLite blocks, so it runs on threads of its own;
//! - [`tasks`] and [`once`]: the store, the mailbox and the replay guard;
//! - [`feed`]: changes go through a table, so that other processes hear of them.

mod connection;
mod error;
mod feed;
mod once;
mod tasks;
mod threads;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use mcp_edge::Timestamp;

pub use self::error::SqliteError;
use self::{
    feed::Feed,
    threads::{Reader, Writer},
};

/// Keeps tasks, messages, spent ids and changes in an SQLite file, for any number of processes on one
/// host: it is a [`TaskStore`](mcp_edge::TaskStore) with a [`DueIndex`](mcp_edge::DueIndex), a
/// [`Mailbox`](mcp_edge::Mailbox), a [`ReplayGuard`](mcp_edge::ReplayGuard) and a
/// [`ChangeFeed`](mcp_edge::ChangeFeed). Clones are the same store.
///
/// What is acknowledged survives a crash of the process and of the system (write-ahead log,
/// `synchronous=FULL`). Writes that arrive together share a commit. The file must be on a disk of the
/// host, not on a network file system, and `-wal` and `-shm` files live beside it; copy it with
/// SQLite's own backup. A write waits up to 10 seconds for other processes, then it fails.
///
/// Nothing blocks the runtime, and no runtime is needed but to await. A future that is dropped may
/// have done its work or not, as one that fails.
///
/// As a change feed it reaches listeners of this process at once and those of others within 100
/// milliseconds. Its streams end with the last clone of the store, and when a process could not read
/// for so long that changes were removed before.
///
/// Moments more than 2^63 milliseconds after 1970 are stored as that one.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    reader: Reader,
    writer: Writer,
    feed: Feed,
}

impl SqliteStore {
    /// Opens a file, and makes it if there is none. Several processes may do so at once. It blocks,
    /// for milliseconds as a rule: call it before serving.
    ///
    /// # Errors
    /// When the file cannot be read and written, is not one of these, or was made by a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SqliteError> {
        let path = path.as_ref();
        let writer = Writer::start(connection::open(path)?).map_err(SqliteError::Thread)?;
        let reader = Reader::start(connection::open(path)?).map_err(SqliteError::Thread)?;
        let feed = Feed::start(connection::open(path)?).map_err(SqliteError::Thread)?;
        let path = path.to_owned();
        Ok(Self { shared: Arc::new(Shared { path, reader, writer, feed }) })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// A moment as SQLite keeps it.
fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}

/// The inverse of [`millis`].
fn timestamp(millis: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// A number of rows as SQLite takes it.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
