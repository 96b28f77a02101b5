//! Polls a handler and finds out how a poll ended.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use super::engine::{Fatal, Next};
use crate::{
    call::{Call, Outcome},
    target::BoxFuture,
};

/// How often a handler that wakes itself is polled once more before its round ends (rule H).
const LOOKS: usize = 64;

/// A handler under way.
pub(crate) struct Run {
    call: Arc<Call>,
    handler: BoxFuture<'static, Outcome>,
    /// Runs while a question waits for a step beside it (rule B).
    settle: Option<BoxFuture<'static, ()>>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    Done(Outcome),
    /// Questions are open, or in a task sleeps, and nothing else goes on.
    Suspended,
    /// The handler wants to go on as a task.
    Background,
    /// In a task: the run goes on once what happened is written.
    Unwritten,
    Fatal(Fatal),
    Panicked(String),
}

impl Run {
    pub(crate) const fn new(call: Arc<Call>, handler: BoxFuture<'static, Outcome>) -> Self {
        Self { call, handler, settle: None }
    }

    pub(crate) const fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Goes on as far as possible without waiting. Must not be polled after it ended, other than
    /// [unwritten](End::Unwritten).
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if let Some(end) = self.poll_handler(cx.waker()) {
                return Poll::Ready(end);
            }
            let mut next = self.call.engine().settle(cx.waker());
            if next == Next::Suspend {
                match self.look_again(cx.waker()) {
                    Look::Next(after) => next = after,
                    Look::Ended(end) => return Poll::Ready(end),
                }
            }
            if let Some(fatal) = self.call.engine().take_fatal() {
                return Poll::Ready(End::Fatal(fatal));
            }
            match next {
                Next::Again => {}
                Next::Suspend => return Poll::Ready(End::Suspended),
                Next::Write => return Poll::Ready(End::Unwritten),
                Next::Background => return Poll::Ready(End::Background),
                Next::Wait => {
                    self.settle = None;
                    return Poll::Pending;
                }
                Next::WaitToSettle => {
                    let timer = self.settle.get_or_insert_with(|| self.call.settle_timer());
                    return timer.as_mut().poll(cx).map(|()| {
                        tracing::debug!(
                            "a question waited for a step too long; the step is dropped"
                        );
                        End::Suspended
                    });
                }
            }
        }
    }

    /// Polls once. `None` means pending without anything fatal.
    fn poll_handler(&mut self, waker: &Waker) -> Option<End> {
        self.call.engine().begin_poll();
        let handler = &mut self.handler;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            handler.as_mut().poll(&mut Context::from_waker(waker))
        }));
        // The flag comes before `Ready`: user code cannot swallow what is fatal.
        if let Some(fatal) = self.call.engine().take_fatal() {
            return Some(End::Fatal(fatal));
        }
        match polled {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(outcome)) => Some(End::Done(outcome)),
            Err(panic) => Some(End::Panicked(panic_text(panic.as_ref()))),
        }
    }

    /// Looks once more before a round ends: a future that woke itself gets another poll, so that a
    /// question behind it goes out in the same round (rule H).
    fn look_again(&mut self, outer: &Waker) -> Look {
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counter));
        for _ in 0..LOOKS {
            let before = counter.0.load(Ordering::Relaxed);
            if let Some(end) = self.poll_handler(&waker) {
                return Look::Ended(end);
            }
            let next = self.call.engine().settle(outer);
            if next != Next::Suspend {
                // Poll again with the real waker, which nobody holds now.
                return Look::Next(Next::Again);
            }
            if counter.0.load(Ordering::Relaxed) == before {
                break;
            }
        }
        let mut engine = self.call.engine();
        // This function holds two, and in a task a question that waits for its answer holds one.
        let known = 2 + engine.keeps(&waker);
        if Arc::strong_count(&counter) > known && !engine.may_hold_waker() {
            engine.lint(
                "something that is not a step may have been pending when a round ended, and starts \
                 anew in the next (FuturesUnordered and Shared always look so; join! does not)"
                    .to_owned(),
            );
        }
        Look::Next(Next::Suspend)
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// What the last look at a handler showed.
enum Look {
    Next(Next),
    Ended(End),
}

/// Counts how often it is woken.
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}
