//! The connection that listens for changes, while anyone wants to know.
//!
//! Whatever may have cost a change ends the streams of all listeners: they ask for a new one, and
//! read again what they follow. Whoever asks first opens the next connection.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
};
use mcp_edge::{BoxStream, Change, ChangeFeed as _, FeedError, InProcessFeed, Topics};
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep, timeout},
};
use tokio_postgres::{AsyncMessage, Client};

use crate::{
    connector::{Connector, Messages},
    error::Fault,
    feed::News,
    pool::Pool,
};

/// Listens for the changes of one schema.
pub(crate) struct Listening {
    connector: Arc<Connector>,
    pool: Arc<Pool>,
    channel: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Listeners>>,
    /// Failed attempts to connect in a row.
    failures: u32,
    /// No attempt is made before.
    pause: Option<Instant>,
}

/// A connection and those who listen through it.
struct Listeners {
    client: Client,
    feed: InProcessFeed,
    /// Whether the connection is gone; each listener has a receiver.
    is_over: watch::Sender<bool>,
}

impl Listening {
    pub(crate) fn new(connector: Arc<Connector>, pool: Arc<Pool>, schema: &str) -> Self {
        let channel = format!("{schema}_changes");
        Self { connector, pool, channel, state: Mutex::default() }
    }

    /// What the database calls our notifications. Channels know no schemas, so its name is in it.
    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        topics: Topics,
    ) -> Result<BoxStream<'static, Change>, FeedError> {
        let (listeners, mut is_over) = {
            let mut state = self.state.lock().await;
            let listeners = match &state.current {
                Some(listeners) if !*listeners.is_over.borrow() => Arc::clone(listeners),
                _ => self.begin(&mut state).await?,
            };
            // Under the lock, so that whoever looks for listeners sees this one.
            let is_over = listeners.is_over.subscribe();
            (listeners, is_over)
        };
        // What was published before may be on its way. It arrives before the answer does.
        listeners.check(self.pool.limit()).await?;
        let changes = listeners.feed.subscribe(topics).await?;
        let over = async move {
            // An error means that the sender is gone, and the connection with it.
            let _ = is_over.wait_for(|is_over| *is_over).await;
        };
        Ok(changes.take_until(over).boxed())
    }

    /// Opens a connection, unless the last attempts failed a moment ago.
    async fn begin(self: &Arc<Self>, state: &mut State) -> Result<Arc<Listeners>, Fault> {
        if let Some(left) = state.pause.and_then(|end| end.checked_duration_since(Instant::now())) {
            let left = left.as_millis();
            return Err(Fault::new(format!(
                "PostgreSQL could not be reached; the next attempt is in {left} ms"
            )));
        }
        let limit = self.pool.limit();
        let opened = timeout(limit, self.open()).await;
        let (client, messages) = match opened.unwrap_or_else(|_| Err(Fault::too_slow(limit))) {
            Ok(opened) => opened,
            Err(fault) => {
                state.pause = Some(Instant::now() + pause_after(state.failures));
                state.failures = state.failures.saturating_add(1);
                return Err(fault);
            }
        };
        let listeners = Arc::new(Listeners {
            client,
            feed: InProcessFeed::default(),
            is_over: watch::Sender::new(false),
        });
        *state = State { current: Some(Arc::clone(&listeners)), ..State::default() };
        tokio::spawn(Arc::clone(self).run(Arc::clone(&listeners), messages));
        Ok(listeners)
    }

    async fn open(&self) -> Result<(Client, Messages), Fault> {
        let (client, mut messages) = self.connector.open().await?;
        let sql = format!("LISTEN \"{}\"", self.channel);
        {
            let mut listen = pin!(client.batch_execute(&sql));
            // Nobody is there yet to hear what is said meanwhile.
            loop {
                match select(listen.as_mut(), messages.next()).await {
                    Either::Left((done, _)) => break done?,
                    Either::Right((Some(message), _)) => drop(message?),
                    Either::Right((None, _)) => return Err(closed()),
                }
            }
        }
        Ok((client, messages))
    }

    /// Serves the listeners until the connection is lost or nobody listens any more.
    async fn run(self: Arc<Self>, listeners: Arc<Listeners>, messages: Messages) {
        let listeners = EndOnDrop(listeners);
        let hear = pin!(self.hear(&listeners.0, messages));
        let watch = pin!(self.watch(&listeners.0));
        let lost = select(hear, watch).await.factor_first().0;
        if let Err(fault) = lost {
            tracing::warn!(%fault, "lost the connection that listens for changes");
        }
    }

    /// Hands on what the connection says.
    async fn hear(&self, listeners: &Listeners, mut messages: Messages) -> Result<(), Fault> {
        while let Some(message) = messages.next().await {
            let AsyncMessage::Notification(notification) = message? else {
                continue;
            };
            let Some(News { tenant, change }) = self.read(notification.payload()).await? else {
                continue;
            };
            // It never fails.
            let _ = listeners.feed.publish(tenant.as_deref(), change).await;
        }
        Err(closed())
    }

    /// What a notification says, if it can be understood: an instance of a later version may know
    /// changes that nobody here could have asked for.
    async fn read(&self, payload: &str) -> Result<Option<News>, Fault> {
        let news = match payload.parse::<i64>() {
            Err(_) => serde_json::from_str(payload),
            Ok(id) => {
                let rows = self.pool.query(LARGE_CHANGE, &[&id]).await?;
                let row = rows.first().ok_or_else(|| Fault::new("a large change is gone"))?;
                serde_json::from_str(row.try_get(0)?)
            }
        };
        Ok(news.inspect_err(|error| tracing::warn!(%error, "passed over an unknown change")).ok())
    }

    /// Makes sure that the connection is alive, which by itself nobody would notice. `Ok` once nobody
    /// listens.
    async fn watch(&self, listeners: &Listeners) -> Result<(), Fault> {
        loop {
            sleep(HEARTBEAT).await;
            if self.end_if_unheard(listeners).await {
                return Ok(());
            }
            listeners.check(self.pool.limit()).await?;
        }
    }

    async fn end_if_unheard(&self, listeners: &Listeners) -> bool {
        let mut state = self.state.lock().await;
        let is_unheard = listeners.is_over.receiver_count() == 0;
        if is_unheard {
            state.current = None;
        }
        is_unheard
    }
}

impl Listeners {
    /// Resolves once the database has answered, and all that it said before was handed on.
    async fn check(&self, limit: Duration) -> Result<(), Fault> {
        let answered = timeout(limit, self.client.check_connection()).await;
        Ok(answered.map_err(|_| Fault::too_slow(limit))??)
    }
}

/// Ends the streams of the listeners, also when the runtime that serves them is shut down.
struct EndOnDrop(Arc<Listeners>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.is_over.send_replace(true);
    }
}

fn closed() -> Fault {
    Fault::new("PostgreSQL closed the connection")
}

/// How long nobody tries again after an attempt failed, and `failures` before it.
fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LAST_PAUSE)
}

const LARGE_CHANGE: &str = "SELECT change FROM large_changes WHERE id = $1";

/// How often the connection is tried. A silent loss is found within this and the time limit.
const HEARTBEAT: Duration = Duration::from_secs(10);

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);
