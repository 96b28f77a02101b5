//! What happens on one connection, and for how long nothing may happen.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Version};
use tokio::{
    task::unconstrained,
    time::{Instant, Sleep, sleep},
};

use crate::options::ServeOptions;

/// What happens on a connection, told by its socket and by its exchanges.
///
/// HTTP/2 runs exchanges in tasks of their own, hence the atomics; none guards other memory.
#[derive(Default)]
pub(crate) struct Activity {
    /// Exchanges under way, until their response is handed over.
    open: AtomicUsize,
    /// Grows when an exchange begins and when the peer takes bytes.
    progress: AtomicUsize,
    has_begun: AtomicBool,
    is_http2: AtomicBool,
    /// Bytes came since the last exchange.
    has_head: AtomicBool,
    /// The peer does not take what is written.
    is_blocked: AtomicBool,
    /// A body was not read, so the peer may still be sending it.
    has_unread: AtomicBool,
}

/// What a connection waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first request, or the rest of a later one.
    Head,
    /// A request, or that the peer reads on.
    Peer,
    /// An answer.
    Answer,
}

impl Activity {
    /// Whether there was a request.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    /// Whether the peer may be sending what nobody reads.
    pub(crate) fn has_unread(&self) -> bool {
        self.has_unread.load(Relaxed)
    }

    pub(crate) fn bytes_came(&self) {
        if self.open.load(Relaxed) == 0 {
            self.has_head.store(true, Relaxed);
        }
    }

    pub(crate) fn bytes_went(&self) {
        self.progress.fetch_add(1, Relaxed);
        self.is_blocked.store(false, Relaxed);
    }

    pub(crate) fn is_blocked(&self) {
        self.is_blocked.store(true, Relaxed);
    }

    fn phase(&self) -> Phase {
        if self.open.load(Relaxed) > 0 {
            if self.is_blocked.load(Relaxed) { Phase::Peer } else { Phase::Answer }
        } else if !self.has_begun() || self.has_head.load(Relaxed) && !self.is_http2.load(Relaxed) {
            Phase::Head
        } else {
            Phase::Peer
        }
    }
}

/// An exchange under way.
pub(crate) struct Open(Arc<Activity>);

impl Open {
    pub(crate) fn new<B>(activity: &Arc<Activity>, request: &Request<B>) -> Self {
        activity.open.fetch_add(1, Relaxed);
        activity.progress.fetch_add(1, Relaxed);
        activity.has_head.store(false, Relaxed);
        if !activity.has_begun() {
            activity.is_http2.store(request.version() == Version::HTTP_2, Relaxed);
            activity.has_begun.store(true, Relaxed);
        }
        Self(Arc::clone(activity))
    }

    /// The request is answered without its body.
    pub(crate) fn leaves_unread(&self) {
        self.0.has_unread.store(true, Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// The time limit of whatever a connection waits for, set anew when that changes.
pub(crate) struct Clock {
    seen: (Phase, usize),
    sleep: Pin<Box<Sleep>>,
    waits: bool,
}

impl Clock {
    /// Sets the limit for the first request.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { seen: (Phase::Head, 0), sleep: Box::pin(sleep(limit)), waits: false }
    }

    /// Ready when the limit is exceeded. To be polled by one task alone: its waker stays the same,
    /// so a timer that waits is not polled again before it is due.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        activity: &Activity,
        options: &ServeOptions,
    ) -> Poll<()> {
        let now = (activity.phase(), activity.progress.load(Relaxed));
        let limit = match now.0 {
            Phase::Head => options.header_read_timeout,
            Phase::Peer => options.idle_timeout,
            Phase::Answer => return Poll::Pending,
        };
        let waits = self.waits && !self.sleep.is_elapsed();
        if self.seen != now {
            self.seen = now;
            self.sleep.as_mut().reset(Instant::now() + limit);
        }
        if waits {
            return Poll::Pending;
        }
        self.waits = true;
        poll_always(self.sleep.as_mut(), cx)
    }
}

/// Polls a tokio future even if the task has used up its budget. It would not note the waker then.
pub(crate) fn poll_always<F: Future + Unpin>(future: F, cx: &mut Context<'_>) -> Poll<F::Output> {
    Pin::new(&mut unconstrained(future)).poll(cx)
}
