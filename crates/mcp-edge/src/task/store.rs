//! What tasks need of the place they run in: a store, and someone who comes back to them.
//!
//! A store keeps [`TaskRecord`]s. It understands their few columns and none of their body, which is
//! the core's. Every transition is one compare-and-set on [`TaskRecord::version`]: whoever loses
//! reads again. All methods are told the time, so that a test decides what it is; the clocks of two
//! instances may differ, and what is decided by a version does not depend on them.
//!
//! `mcp_edge_test::store_suite!` states what an implementation must do.

use std::fmt;

use bytes::Bytes;

use crate::{
    platform::Timestamp,
    target::{BoxFuture, MaybeSend, MaybeSync},
};

/// The largest [`TaskRecord::body`] that every store takes, in bytes: 256 KiB.
pub const RECORD_BYTES: usize = 256 << 10;

/// A task as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "stores of others make it, column by column")]
pub struct TaskRecord {
    /// Names the record: 22 characters of base64url.
    pub key: String,
    /// Whose it is, for the bound on open tasks: a digest in 43 characters of base64url.
    pub owner: String,
    /// Counts the writes: 1 once created, one more with each update.
    pub version: u64,
    /// Whether the task can still change. A store never changes a record that is not open.
    pub is_open: bool,
    /// When the driver is to look at it next; `None` while it waits for its client, or has ended.
    pub due: Option<Timestamp>,
    /// From then on it is as good as gone.
    pub expires: Timestamp,
    /// The task itself, UTF-8 JSON of at most [`RECORD_BYTES`] bytes.
    pub body: Bytes,
}

impl TaskRecord {
    /// What a store checks before it writes.
    ///
    /// # Errors
    /// When the body is larger than [`RECORD_BYTES`].
    pub fn check_size(&self) -> Result<(), StoreError> {
        let length = self.body.len();
        if length > RECORD_BYTES {
            return Err(StoreError::new(format!(
                "the record of task {} has {length} bytes, more than the {RECORD_BYTES} that a \
                 store takes",
                self.key
            )));
        }
        Ok(())
    }
}

/// What became of [`TaskStore::create`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store can do nothing else")]
pub enum Created {
    /// It is durable now, with version 1.
    Created,
    /// There is a record of this key, which was left as it is; `None` if it is past its time.
    Exists(Option<TaskRecord>),
    /// The owner has as many open tasks as it may.
    TooMany,
}

/// Keeps tasks. An implementation passes the contract suite of `mcp-edge-test`.
///
/// Reads see every write that was acknowledged before them, on any instance (TASK-10). A record whose
/// [`expires`](TaskRecord::expires) is not after `now` is ignored: it is not found, cannot be updated,
/// is not due and counts for nobody. Its key stays taken until it is [purged](DueIndex::purge).
pub trait TaskStore: MaybeSend + MaybeSync + 'static {
    /// Reads a task that is not past its time.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>>;

    /// Writes a new task, if its key is free and its owner has fewer than `max_open` open tasks, in one
    /// step. The [`version`](TaskRecord::version) of `record` does not matter.
    ///
    /// # Errors
    /// When the store cannot be reached, or the record is too large. It may have been written all
    /// the same, which a second attempt finds out.
    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>>;

    /// Writes a task over the version that `record` says, and counts the version up. `false`, and
    /// nothing is written, if the stored version is another one, or not open, or past its time, or
    /// not there at all.
    ///
    /// # Errors
    /// When the store cannot be reached, or the record is too large. It may have been written all
    /// the same, which a reader finds out.
    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The tasks by the time at which they are due, where the store can tell. Where it cannot, each
    /// record has a timer of its own, set in the same transaction.
    fn due_index(&self) -> Option<&dyn DueIndex> {
        None
    }
}

/// Finds the tasks that nobody else is looking after.
pub trait DueIndex: MaybeSend + MaybeSync {
    /// Takes up to `limit` open tasks that are due at `now`, those first that are due longest, and
    /// makes them due at `until` instead, so that no other sweep takes them meanwhile. Versions stay as
    /// they are. No task is in the answers of two sweeps at once.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn claim_due(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Removes up to `limit` records that expired before `before`; their keys are free again. Returns
    /// how many.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn purge(&self, before: Timestamp, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>>;
}

/// Holds a message for whoever waits for it, on whatever instance.
pub trait Mailbox: MaybeSend + MaybeSync + 'static {
    /// Leaves a message until `expires`. `false`, and nothing is changed, if there was one under this
    /// id already that is not past its time, taken or not: the first one wins.
    ///
    /// # Errors
    /// When the mailbox cannot be reached.
    fn put_once<'a>(
        &'a self,
        id: &'a str,
        message: &'a [u8],
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Takes a message that is not past its time; nobody else gets it.
    ///
    /// # Errors
    /// When the mailbox cannot be reached.
    fn take<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;
}

/// Remembers what may be used once.
pub trait ReplayGuard: MaybeSend + MaybeSync + 'static {
    /// Spends an id until `expires`. `true` for exactly one caller.
    ///
    /// # Errors
    /// When the guard cannot be reached.
    fn spend<'a>(
        &'a self,
        id: &'a str,
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// Comes back to tasks: calls [`Server::advance`](crate::Server::advance) with their keys.
pub trait TaskDriver: MaybeSend + MaybeSync + 'static {
    /// Sees to it that the task is advanced at `at` or soon after, once the request is over too. What
    /// gets lost on the way, a sweep finds: the record says when it is due.
    ///
    /// # Errors
    /// When it cannot be scheduled.
    fn schedule<'a>(&'a self, key: &'a str, at: Timestamp)
    -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Why a store, or what is built on it, did not do its work.
#[derive(Debug)]
pub struct StoreError {
    message: String,
}

impl StoreError {
    /// Makes an error with a text for the log.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task store failed: {}", self.message)
    }
}

impl std::error::Error for StoreError {}
