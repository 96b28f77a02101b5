//! What tokio and the operating system offer to the core.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_edge::{BoxFuture, Platform, Timestamp};
use tokio::sync::watch;

/// The [`Platform`] of a tokio runtime: its timer, the system's clock and randomness, and whether
/// this instance is about to stop.
///
/// One value serves every request; it is also what [`Server::respond`](mcp_edge::Server::respond)
/// takes outside of HTTP. Its futures need a runtime with the time driver enabled.
#[derive(Debug, Default)]
pub struct HyperPlatform {
    draining: watch::Sender<bool>,
}

impl HyperPlatform {
    /// Makes a platform that is not draining.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that this instance is about to stop: `/healthz` answers 503 from now on, and listen
    /// streams end with their final message.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }
}

impl Platform for HyperPlatform {
    fn now(&self) -> Timestamp {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    /// # Panics
    /// When the system has no randomness. `serve` asks for some before it takes a request, and a
    /// system that gave some keeps giving; sealing with anything predictable would be worse.
    #[expect(clippy::expect_used, reason = "see above")]
    fn fill_random(&self, out: &mut [u8]) {
        getrandom::getrandom(out).expect("the system gives random bytes");
    }

    fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    fn drained(&self) -> BoxFuture<'static, ()> {
        let mut draining = self.draining.subscribe();
        Box::pin(async move {
            // An error means that the platform is gone, and with it the instance.
            let _ = draining.wait_for(|draining| *draining).await;
        })
    }
}
