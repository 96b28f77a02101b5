//! Server processes behind a proxy.

mod builder;
mod error;
mod pool;
mod process;
mod proxy;
mod routing;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};

use crate::client::Client;

use self::{pool::Pool, process::Starter};

pub use self::{builder::FleetBuilder, error::FleetError, routing::Routing};

/// Several processes of a server behind one URL, each request to which goes to another of them, as
/// behind a load balancer that keeps nobody in one place.
///
/// What a client and a server keep between requests must then be in what they send, or in a store
/// that the processes share. [`Client::fleet`](crate::Client::fleet) tests the same faster, without
/// processes and sockets.
///
/// ```no_run
/// use mcp_edge_test::{Fleet, Routing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fleet = Fleet::builder("target/debug/my-server")
///     .instances(3)
///     .routing(Routing::Random { seed: 7 })
///     .start()
///     .await?;
/// let client = fleet.client();
/// assert_eq!(client.call("hello", ()).await?.text(), "Hello!");
/// fleet.kill(1).await?;
/// assert_eq!(client.call("hello", ()).await?.text(), "Hello!");
/// fleet.shutdown().await;
/// # Ok(())
/// # }
/// ```
///
/// **The program** is started with `--port 0` after its own arguments. It listens on a free port of
/// the loopback interface, then prints a line with its URL, such as `http://127.0.0.1:34567/mcp`, to
/// standard output. What it writes to standard error appears on that of the test. At SIGTERM it
/// finishes what is under way and ends.
///
/// Three variables are added to the environment. `MCP_EDGE_TEST_PROCESS_ID` asks the program to add
/// the header `Mcp-Edge-Process-Id` to each response, its process id; it may ignore that, but must
/// not say a wrong one. `MCP_EDGE_KEYS` has a key that is the same for all and not secret, unless
/// the environment or the builder sets it.
///
/// **The proxy** changes nothing but what HTTP says is between neighbours: `Host`, `Origin` and
/// the like arrive as they were sent, and events one by one. A client that disconnects is
/// disconnected from its instance. A request goes to the next instance if no connection to the
/// first can be made; once a byte is sent, a failure is answered with 502.
///
/// Everything runs on the tokio runtime that it was started on, whose clock must not be paused.
/// When the fleet is dropped, its processes are killed as soon as that runtime gets to it.
pub struct Fleet {
    url: String,
    shared: Arc<Shared>,
    /// Start spare processes, with [`Routing::Fresh`].
    workers: JoinSet<()>,
    proxy: JoinSet<()>,
}

/// What the proxy works with.
struct Shared {
    starter: Starter,
    pool: Pool,
    /// The process that each request was given to.
    served: Mutex<Vec<u32>>,
}

impl Fleet {
    /// Begins to describe a fleet of this program.
    pub fn builder(program: impl Into<std::ffi::OsString>) -> FleetBuilder {
        FleetBuilder::new(program.into())
    }

    /// The endpoint, on the proxy.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes a client of the fleet.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::url(&self.url)
    }

    /// The processes that run, in the order in which they were started; with [`Routing::Fresh`]
    /// those under way and the spare ones. The resident process is not among them.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.shared.starter.running()
    }

    /// The process that each request was given to, in the order in which they came.
    #[must_use]
    pub fn served(&self) -> Vec<u32> {
        lock(&self.shared.served).clone()
    }

    /// Kills an instance, and returns when it is gone. Its exchanges break off, and requests go to
    /// the others. Does nothing if it is gone already.
    ///
    /// # Errors
    /// When there is no such instance; with [`Routing::Fresh`] there is none.
    pub async fn kill(&self, index: usize) -> Result<(), FleetError> {
        if let Some(process) = self.shared.pool.replace(index, None)? {
            process.kill().await;
        }
        Ok(())
    }

    /// Starts an instance anew, after killing it if it still runs.
    ///
    /// # Errors
    /// When there is no such instance, or it does not start.
    pub async fn restart(&self, index: usize) -> Result<(), FleetError> {
        self.kill(index).await?;
        let process = self.shared.starter.start().await?;
        self.shared.pool.replace(index, Some(process))?;
        Ok(())
    }

    /// Ends the fleet as a deployment ends: no new connections, SIGTERM for each process, and the
    /// end when all have finished what was under way, or are killed at the
    /// [limit](FleetBuilder::end_limit).
    pub async fn shutdown(mut self) {
        self.workers.shutdown().await;
        self.shared.starter.end().await;
        // Answers are complete by now, but for clients that do not read them.
        let _ = timeout(LAST_WORDS, self.proxy.join_next()).await;
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Fleet");
        debug.field("url", &self.url).field("process_ids", &self.process_ids());
        debug.finish_non_exhaustive()
    }
}

/// No guarded value is ever half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long what is ready to be read may wait for its reader.
const LAST_WORDS: Duration = Duration::from_secs(1);
