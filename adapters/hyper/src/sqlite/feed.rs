//! Changes go through a table, which a thread reads while anybody listens.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_core::Stream;
use mcp_edge::{BoxFuture, BoxStream, Change, ChangeFeed, FeedError, InProcessFeed, Topics};
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use super::{SqliteStore, threads::spawn};

impl ChangeFeed for SqliteStore {
    fn publish<'a>(
        &'a self,
        tenant: Option<&'a str>,
        change: Change,
    ) -> BoxFuture<'a, Result<(), FeedError>> {
        let tenant = tenant.map(str::to_owned);
        Box::pin(async move {
            let change = serde_json::to_string(&change).map_err(failed)?;
            let publish =
                move |connection: &Connection| insert(connection, tenant.as_deref(), &change);
            self.shared.writer.write(publish).await.map_err(failed)?;
            // The thread is there as long as the store.
            let _ = self.shared.feed.inbox.send(Message::Published);
            Ok(())
        })
    }

    fn subscribe(
        &self,
        topics: Topics,
    ) -> BoxFuture<'_, Result<BoxStream<'static, Change>, FeedError>> {
        Box::pin(async move {
            let ended = || FeedError::new("its thread has ended");
            let (reply, answer) = oneshot::channel();
            let subscribe = Message::Subscribe { topics, reply };
            self.shared.feed.inbox.send(subscribe).map_err(|_| ended())?;
            answer.await.map_err(|_| ended())?
        })
    }
}

/// The thread that reads changes.
pub(super) struct Feed {
    inbox: Sender<Message>,
}

impl Feed {
    /// Starts a thread, which ends with this value.
    pub(super) fn start(connection: Connection) -> io::Result<Self> {
        let (inbox, messages) = channel();
        let local = InProcessFeed::default();
        let poller = Poller { connection, position: 0, local, listeners: Vec::new() };
        spawn("mcp-edge-feed", move || poller.run(&messages))?;
        Ok(Self { inbox })
    }
}

enum Message {
    Published,
    Subscribe {
        topics: Topics,
        reply: oneshot::Sender<Result<BoxStream<'static, Change>, FeedError>>,
    },
}

struct Poller {
    connection: Connection,
    /// The id of the last change that was told. Not kept up to date while nobody listens.
    position: i64,
    local: InProcessFeed,
    /// One for each stream, which ends when it is dropped.
    listeners: Vec<oneshot::Sender<Infallible>>,
}

impl Poller {
    fn run(mut self, messages: &Receiver<Message>) {
        let mut fails = false;
        loop {
            let message = match self.wait(messages) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Some(Message::Subscribe { topics, reply }) = message {
                // Whoever waited may be gone.
                let _ = reply.send(self.subscribe(topics));
                continue;
            }
            let polled = if self.is_heard() { self.poll() } else { Ok(()) };
            if let Err(error) = &polled
                && !fails
            {
                tracing::warn!("changes cannot be read, trying again: {error}");
            }
            fails = polled.is_err();
        }
    }

    /// Waits for a message, and not longer than until the next poll is due.
    fn wait(&mut self, messages: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        if self.is_heard() {
            messages.recv_timeout(INTERVAL)
        } else {
            messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
    }

    fn is_heard(&mut self) -> bool {
        self.listeners.retain(|listener| !listener.is_closed());
        !self.listeners.is_empty()
    }

    /// Adds a listener that hears what happens from now on.
    fn subscribe(&mut self, topics: Topics) -> Result<BoxStream<'static, Change>, FeedError> {
        if self.is_heard() {
            self.poll().map_err(failed)?;
        } else {
            let last = self.connection.prepare_cached(SELECT_LAST).map_err(failed)?;
            self.position = { last }.query_row([], |row| row.get(0)).map_err(failed)?;
        }
        let changes = at_once(self.local.subscribe(topics))?;
        let (listener, lost) = oneshot::channel();
        self.listeners.push(listener);
        Ok(Box::pin(Listening { changes, lost }))
    }

    /// Tells the listeners of this process what was written since the last time.
    fn poll(&mut self) -> rusqlite::Result<()> {
        while self.poll_some()? == BATCH {}
        Ok(())
    }

    fn poll_some(&mut self) -> rusqlite::Result<u32> {
        let mut statement = self.connection.prepare_cached(SELECT_AFTER)?;
        let mut rows = statement.query(params![self.position, BATCH])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let (id, tenant, change) =
                (row.get("id")?, row.get::<_, Option<String>>("tenant")?, row.get_ref("change")?);
            // Ids have no gaps, unless rows were removed.
            if id != self.position + 1 {
                tracing::warn!("changes were removed before they were read; listeners start anew");
                self.listeners.clear();
            }
            (self.position, count) = (id, count + 1);
            // A newer version may know other changes.
            if let Ok(change) = serde_json::from_slice(change.as_bytes()?) {
                // It has no way to fail.
                let _ = at_once(self.local.publish(tenant.as_deref(), change));
            }
        }
        Ok(count)
    }
}

/// What a listener holds.
struct Listening {
    changes: BoxStream<'static, Change>,
    /// Ends when the feed is lost.
    lost: oneshot::Receiver<Infallible>,
}

impl Stream for Listening {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        let change = self.changes.as_mut().poll_next(cx);
        if change.is_pending() && Pin::new(&mut self.lost).poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        change
    }
}

fn insert(connection: &Connection, tenant: Option<&str>, change: &str) -> rusqlite::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    connection.prepare_cached(INSERT)?.execute(params![now, tenant, change])?;
    let last = connection.last_insert_rowid();
    let trim = params![now - MAX_AGE_MILLIS, last - LEAST_KEPT, last - MOST_KEPT];
    connection.prepare_cached(TRIM)?.execute(trim).map(drop)
}

/// The result of a future of [`InProcessFeed`], which never waits.
fn at_once<T>(mut future: BoxFuture<'_, Result<T, FeedError>>) -> Result<T, FeedError> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(FeedError::new("the feed of this process waits")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
fn failed(error: impl ToString) -> FeedError {
    FeedError::new(error.to_string())
}

const SELECT_LAST: &str =
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0)";

pub(super) const SELECT_AFTER: &str =
    "SELECT id, tenant, change FROM change WHERE id > ?1 ORDER BY id LIMIT ?2";

const INSERT: &str = "INSERT INTO change (created, tenant, change) VALUES (?1, ?2, ?3)";

/// Removes some of the oldest changes, more than are added: those that are old, unless they are few, and
/// those that are too many, whatever the clock says.
const TRIM: &str = "
    DELETE FROM change
    WHERE id IN (
      SELECT id FROM (SELECT id, created FROM change ORDER BY id LIMIT 8)
      WHERE created < ?1 AND id <= ?2 OR id <= ?3
    )";

/// How often changes are looked for while anybody listens.
const INTERVAL: Duration = Duration::from_millis(100);

/// How many changes are read by one statement.
const BATCH: u32 = 500;

/// Five minutes, far longer than any process takes to read.
const MAX_AGE_MILLIS: i64 = 5 * 60 * 1000;

/// How many changes are kept, however old: a host that was asleep finds them when it wakes.
const LEAST_KEPT: i64 = 1000;

/// How many changes are kept, however young.
const MOST_KEPT: i64 = 100_000;
