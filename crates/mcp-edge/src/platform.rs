//! What the core asks of the place it runs in: time, sleep, randomness, and outgoing requests.
//!
//! The core owns no clock, timer, socket or source of randomness. An adapter hands a [`Platform`] to
//! [`Server::gate`](crate::Server::gate) with each request, so what it says may differ from request
//! to request (a deadline, whether this front door streams).

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::target::{BoxFuture, MaybeSend, MaybeSync};

/// What the runtime offers to one request.
pub trait Platform: MaybeSend + MaybeSync + 'static {
    /// Returns the wall-clock time.
    fn now(&self) -> Timestamp;

    /// Returns a future that resolves after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Fills `out` with bytes from a cryptographically secure source.
    fn fill_random(&self, out: &mut [u8]);

    /// Whether the front door delivers a response while it is being made. Where it does not, events
    /// go out as one buffered body.
    fn can_stream(&self) -> bool {
        true
    }

    /// The moment at which the platform cuts this request off, if it does. The core answers a
    /// quarter of a second before; an adapter whose front door is slower than that names an earlier
    /// moment.
    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    /// Whether this instance is about to stop; `/healthz` then answers 503.
    fn is_draining(&self) -> bool {
        false
    }

    /// Resolves once this instance is about to stop; listen streams then end gracefully.
    fn drained(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// Outgoing HTTP requests, where the platform has them.
    fn fetch(&self) -> Option<&dyn Fetch> {
        None
    }
}

/// How long before the platform's deadline an answer is on its way.
pub(crate) const ANSWER_MARGIN: Duration = Duration::from_millis(250);

/// How long before the platform's deadline a round no longer waits for its steps.
pub(crate) const SETTLE_MARGIN: Duration = Duration::from_secs(2);

/// How long what may take `limit` can go on, to end a margin before the platform's deadline.
pub(crate) fn time_left(platform: &dyn Platform, limit: Duration, margin: Duration) -> Duration {
    platform
        .deadline()
        .map_or(limit, |deadline| (deadline - margin).since(platform.now()).min(limit))
}

/// Sends one HTTP request on behalf of the core, for example for the keys of a token issuer.
///
/// An implementation follows no redirects, and bounds the size of the response and the time it takes.
pub trait Fetch: MaybeSend + MaybeSync {
    /// Sends `request` and returns the whole response.
    ///
    /// # Errors
    /// When no response arrives in time, or it is larger than the implementation allows.
    fn fetch(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, FetchError>>;
}

/// Why a [`Fetch`] gave no response.
#[derive(Debug)]
pub struct FetchError {
    message: String,
}

impl FetchError {
    /// Makes an error with a text for the log.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request failed: {}", self.message)
    }
}

impl std::error::Error for FetchError {}

/// A moment, in milliseconds since the Unix epoch (UTC).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Makes a moment from milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long `earlier` lies before this moment; zero when it does not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}
