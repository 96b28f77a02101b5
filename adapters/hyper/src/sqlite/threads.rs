//! Runs statements on threads of their own, one for reads and one for writes.

use std::{
    fmt, io, iter,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use mcp_edge::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

/// A thread that reads. Its statements see every write that was acknowledged before.
pub(super) struct Reader {
    jobs: Sender<ReadJob>,
}

type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

impl Reader {
    /// Starts a thread, which ends with this value.
    pub(super) fn start(connection: Connection) -> io::Result<Self> {
        let (jobs, inbox) = channel::<ReadJob>();
        spawn("mcp-edge-read", move || inbox.into_iter().for_each(|job| job(&connection)))?;
        Ok(Self { jobs })
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = move |connection: &Connection| {
            // Nobody may be waiting any more.
            let _ = reply.send(work(connection));
        };
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?.map_err(failed)
    }
}

/// A thread that writes.
pub(super) struct Writer {
    jobs: Sender<Box<dyn WriteJob>>,
}

impl Writer {
    /// Starts a thread, which ends with this value, once it has done what was asked of it.
    pub(super) fn start(connection: Connection) -> io::Result<Self> {
        let (jobs, inbox) = channel();
        spawn("mcp-edge-write", move || write_all(connection, &inbox))?;
        Ok(Self { jobs })
    }

    /// Does some work in a transaction, which other work may share. It sees what others have done, and
    /// the answer comes when all of it is durable. Work that fails is not undone, so a statement that
    /// may fail after another one has written must not matter.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Write { work: Some(work), result: None, reply };
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

/// Something to write, of any type.
trait WriteJob: Send {
    fn run(&mut self, connection: &Connection);
    /// Answers whoever waits, if anybody does, once the transaction has ended.
    fn answer(self: Box<Self>, committed: &Result<(), String>);
}

struct Write<F, T> {
    work: Option<F>,
    result: Option<rusqlite::Result<T>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> WriteJob for Write<F, T>
where
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) {
        self.result = self.work.take().map(|work| work(connection));
    }

    fn answer(self: Box<Self>, committed: &Result<(), String>) {
        let answer = match (self.result, committed) {
            (Some(Err(error)), _) => Err(failed(error)),
            (_, Err(error)) => Err(StoreError::new(error)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::new("nothing was done")),
        };
        let _ = self.reply.send(answer);
    }
}

fn write_all(mut connection: Connection, inbox: &Receiver<Box<dyn WriteJob>>) {
    while let Ok(first) = inbox.recv() {
        let mut jobs: Vec<_> = iter::once(first).chain(inbox.try_iter()).take(TOGETHER).collect();
        let committed = write_together(&mut connection, &mut jobs).map_err(text);
        jobs.into_iter().for_each(|job| job.answer(&committed));
    }
}

fn write_together(
    connection: &mut Connection,
    jobs: &mut [Box<dyn WriteJob>],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in jobs {
        job.run(&transaction);
        // Some failures, such as a full disk, roll back by themselves. Then committing fails as well.
        if transaction.is_autocommit() {
            break;
        }
    }
    transaction.commit()
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

fn ended() -> StoreError {
    StoreError::new("the thread of SQLite has ended")
}

fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::new(text(error))
}

fn text(error: impl fmt::Display) -> String {
    format!("SQLite: {error}")
}

/// How many writes share a transaction at most.
const TOGETHER: usize = 64;
