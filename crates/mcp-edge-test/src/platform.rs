//! What a server runs on in a test.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use mcp_edge::{BoxFuture, Platform, Timestamp};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::{
    runtime::{self, Handle},
    sync::watch,
    time::Instant,
};

/// A platform on tokio's clock.
///
/// It is always 2026-07-28, midnight UTC, when a runtime first asks for the time; from then on the
/// wall clock moves with [`tokio::time`]. So a test with a paused clock decides what time it is,
/// and hours pass at once:
///
/// ```
/// use mcp_edge::Platform;
/// use mcp_edge_test::TestPlatform;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let platform = TestPlatform::new();
/// let before = platform.now();
/// platform.sleep(Duration::from_secs(3600)).await;
/// assert_eq!(platform.now().since(before), Duration::from_secs(3600));
/// # }
/// ```
///
/// Clones share one draining flag; all platforms of one runtime share one clock.
#[derive(Clone)]
pub struct TestPlatform {
    can_stream: bool,
    deadline: Option<Deadline>,
    draining: Draining,
}

/// How long a request may take, and when that is over.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    after: Duration,
    at: Timestamp,
}

impl TestPlatform {
    /// Makes a platform that streams and sets no deadline.
    #[must_use]
    pub fn new() -> Self {
        Self { can_stream: true, deadline: None, draining: Draining::new() }
    }

    /// Delivers a response only when it is complete, as a buffered Lambda does.
    #[must_use]
    pub fn buffered(mut self) -> Self {
        self.can_stream = false;
        self
    }

    /// Announces that each request is cut off `after` it began.
    ///
    /// A [`Client`](crate::Client) counts from the moment at which it sends a request. For whoever
    /// hands the platform to a server by hand, the time runs from this call on.
    #[must_use]
    pub fn with_deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(Deadline { after, at: now() + after });
        self
    }

    /// Returns the switch that tells the server that its instance is about to stop.
    #[must_use]
    pub fn draining(&self) -> Draining {
        self.draining.clone()
    }

    /// The platform of one request that begins now.
    pub(crate) fn begin(&self) -> Self {
        match self.deadline {
            Some(Deadline { after, .. }) => self.clone().with_deadline(after),
            None => self.clone(),
        }
    }
}

impl Platform for TestPlatform {
    fn now(&self) -> Timestamp {
        now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    /// # Panics
    /// When the operating system has no random numbers to give.
    fn fill_random(&self, out: &mut [u8]) {
        let filled = SystemRandom::new().fill(out);
        assert!(filled.is_ok(), "the operating system gives no random numbers");
    }

    fn can_stream(&self) -> bool {
        self.can_stream
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.deadline.map(|deadline| deadline.at)
    }

    fn is_draining(&self) -> bool {
        self.draining.has_started()
    }

    fn drained(&self) -> BoxFuture<'static, ()> {
        let mut flag = self.draining.flag.subscribe();
        Box::pin(async move {
            if flag.wait_for(|draining| *draining).await.is_err() {
                // Nobody is left who could start it.
                std::future::pending().await
            }
        })
    }
}

impl Default for TestPlatform {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestPlatform")
            .field("can_stream", &self.can_stream)
            .field("deadline", &self.deadline)
            .field("draining", &self.draining.has_started())
            .finish()
    }
}

/// Tells a server that its instance is about to stop; made by [`TestPlatform::draining`].
///
/// ```
/// use mcp_edge::Platform;
/// use mcp_edge_test::TestPlatform;
///
/// let platform = TestPlatform::new();
/// let draining = platform.draining();
/// assert!(!platform.is_draining());
/// draining.start();
/// assert!(platform.is_draining());
/// ```
#[derive(Clone, Debug)]
pub struct Draining {
    flag: Arc<watch::Sender<bool>>,
}

impl Draining {
    fn new() -> Self {
        Self { flag: Arc::new(watch::Sender::new(false)) }
    }

    /// Starts draining: open listen streams end, and `/healthz` says so.
    pub fn start(&self) {
        self.flag.send_replace(true);
    }

    /// Whether it was started.
    #[must_use]
    pub fn has_started(&self) -> bool {
        *self.flag.borrow()
    }
}

/// 2026-07-28, midnight UTC, in milliseconds.
const WALL_BASE: Timestamp = Timestamp::from_millis(1_785_196_800_000);

/// The time of the running runtime.
fn now() -> Timestamp {
    /// When each runtime first asked; `None` stands for code outside of any.
    static ORIGINS: OnceLock<Mutex<HashMap<Option<runtime::Id>, Instant>>> = OnceLock::new();
    let now = Instant::now();
    let runtime = Handle::try_current().ok().map(|handle| handle.id());
    let mut origins =
        ORIGINS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let origin = *origins.entry(runtime).or_insert(now);
    WALL_BASE + now.saturating_duration_since(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_starts_at_a_fixed_date_and_moves_with_tokio() {
        let platform = TestPlatform::new();
        assert_eq!(platform.now(), WALL_BASE);
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(platform.now(), WALL_BASE + Duration::from_millis(1500));
        assert_eq!(TestPlatform::new().now(), platform.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_counted_from_the_begin_of_a_request() {
        let platform = TestPlatform::new().with_deadline(Duration::from_secs(3));
        assert_eq!(platform.deadline(), Some(WALL_BASE + Duration::from_secs(3)));
        tokio::time::advance(Duration::from_secs(10)).await;
        let begun = platform.begin();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(begun.deadline(), Some(WALL_BASE + Duration::from_secs(13)));
    }

    #[tokio::test]
    async fn draining_is_shared_and_can_be_waited_for() {
        let platform = TestPlatform::new();
        let drained = platform.clone().drained();
        platform.draining().start();
        drained.await;
        assert!(platform.is_draining());
        platform.drained().await;
    }

    #[test]
    fn random_bytes_differ() {
        let (mut one, mut two) = ([0; 32], [0; 32]);
        TestPlatform::new().fill_random(&mut one);
        TestPlatform::new().fill_random(&mut two);
        assert_ne!(one, two);
    }
}
