//! The futures that a handler awaits. None of their code is generic: a generic method of
//! [`Cx`](crate::Cx) only converts.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use serde_json::value::RawValue;

use super::{
    engine::{Fatal, Question, Turn},
    entry::{Digest, Entry, Kind},
};
use crate::{call::Call, platform::Timestamp};

/// How often a sleep goes on when its timer was early.
const ATTEMPTS: usize = 4;

/// Waits until it is clear whether the journal has `key` or it happens now.
///
/// A key is claimed at the first poll, and given back when the future is dropped unresolved, so a
/// `select!` loop may ask for the same thing again (rule L).
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    call: &'a Call,
    key: &'a str,
    kind: Kind,
    digest: Option<Digest>,
    state: ClaimState,
}

#[derive(Debug)]
enum ClaimState {
    New,
    Waiting { since: u64 },
    Done,
}

/// What became of a claim.
pub(crate) enum Claimed<'a> {
    Replayed(Kind, Box<RawValue>),
    Fresh(Held<'a>),
}

impl<'a> Claim<'a> {
    pub(crate) const fn new(call: &'a Call, key: &'a str, kind: Kind) -> Self {
        Self { call, key, kind, digest: None, state: ClaimState::New }
    }

    pub(crate) const fn question(call: &'a Call, key: &'a str, kind: Kind, digest: Digest) -> Self {
        Self { call, key, kind, digest: Some(digest), state: ClaimState::New }
    }
}

impl<'a> Future for Claim<'a> {
    type Output = Claimed<'a>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Claimed<'a>> {
        let call = self.call;
        let mut engine = call.engine();
        let since = match self.state {
            ClaimState::New => {
                if is_in_step(call) {
                    let text =
                        format!("`{}` is used inside a step; nothing keyed may be", self.key);
                    engine.fail(Fatal::Misuse(text));
                    return Poll::Pending;
                }
                match engine.next_in_line(self.key, self.kind, self.digest.as_ref()) {
                    Some(Turn::Replayed(kind, value)) => {
                        self.state = ClaimState::Done;
                        return Poll::Ready(Claimed::Replayed(kind, value));
                    }
                    Some(_) => return Poll::Pending,
                    None => {}
                }
                if !engine.claim(self.key) {
                    return Poll::Pending;
                }
                let since = engine.stalls();
                self.state = ClaimState::Waiting { since };
                since
            }
            ClaimState::Waiting { since } => since,
            ClaimState::Done => return Poll::Pending,
        };
        match engine.turn(self.key, self.kind, self.digest.as_ref(), since, cx.waker()) {
            Turn::Wait => Poll::Pending,
            Turn::Replayed(kind, value) => {
                self.state = ClaimState::Done;
                Poll::Ready(Claimed::Replayed(kind, value))
            }
            Turn::Fresh => {
                self.state = ClaimState::Done;
                Poll::Ready(Claimed::Fresh(Held { call, key: self.key, activity: Activity::None }))
            }
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if matches!(self.state, ClaimState::Waiting { .. }) {
            self.call.engine().release(self.key);
        }
    }
}

/// A key that is this future's to resolve; given back when dropped before.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    call: &'a Call,
    key: &'a str,
    activity: Activity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    None,
    Step,
    Sleep,
}

impl Held<'_> {
    /// Counts as a step in flight from here on. What is for single use is spent before the first, and
    /// what is to be tried again later waits until then.
    pub(crate) async fn begin_step(&mut self) {
        let later = self.call.engine().postponed_until(self.key);
        if let Some(until) = later {
            self.wait(until).await;
            self.rest();
        }
        if self.call.engine().must_be_spent() {
            self.call.spend().await;
        }
        self.call.engine().begin_step();
        self.activity = Activity::Step;
    }

    pub(crate) fn is_in_task(&self) -> bool {
        self.call.engine().is_in_task()
    }

    /// Waits for the stored deadline of this key, `duration` after its first use (rule C).
    pub(crate) async fn sleep(mut self, duration: std::time::Duration) {
        let until = {
            let drawn = self.call.platform().now() + duration;
            self.call.engine().deadline(self.key, drawn)
        };
        self.wait(until).await;
        self.commit(Kind::Sleep, RawValue::NULL.to_owned()).await;
    }

    async fn wait(&mut self, until: Timestamp) {
        self.call.engine().begin_sleep(self.key, until);
        self.activity = Activity::Sleep;
        // A timer may be early by its resolution; a clock that stands still must not keep us here.
        for _ in 0..ATTEMPTS {
            let now = self.call.platform().now();
            if now >= until {
                break;
            }
            self.call.platform().sleep(until.since(now)).await;
        }
    }

    /// Ends what is going on under the key, which stays held.
    fn rest(&mut self) {
        match std::mem::replace(&mut self.activity, Activity::None) {
            Activity::None => {}
            Activity::Step => self.call.engine().end_step(),
            Activity::Sleep => self.call.engine().end_sleep(self.key),
        }
    }

    /// Goes on as a task where that is possible; returns whether it is one. If it becomes one, the run
    /// ends here, and the task's own finds the answer in the journal.
    async fn background(self, status: String) -> bool {
        let call = self.call;
        if call.engine().is_in_task() {
            call.engine().tell(status);
        } else if call.can_go_on_as_task() {
            call.engine().ask_for_task(self.key, &status);
            return std::future::pending().await;
        }
        let is_task = call.engine().is_in_task();
        let value = if is_task { RawValue::TRUE } else { RawValue::FALSE };
        self.commit(Kind::Background, value.to_owned()).await;
        is_task
    }

    /// Remembers what happened. In a task it is durable when this returns (rule M), and what came
    /// before it was returned (rule F).
    pub(crate) async fn commit(mut self, kind: Kind, value: Box<RawValue>) {
        let entry = Entry { key: self.key.into(), kind, value, digest: None };
        let call = self.call;
        let grown = {
            let mut engine = call.engine();
            engine.commit(entry);
            engine.grown()
        };
        self.rest();
        let mut since = None;
        std::future::poll_fn(|cx| {
            match call.engine().hand_out(self.key, grown, &mut since, cx.waker()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// The step did not succeed yet: it sleeps, and a later run of the task tries it again.
    pub(crate) async fn retry<T>(mut self, delay: std::time::Duration) -> T {
        let until = self.call.platform().now() + delay;
        self.rest();
        self.call.engine().postpone(self.key, until);
        self.activity = Activity::Sleep;
        std::future::pending().await
    }

    /// Puts the question to the client. In a task it resolves when the answer comes, otherwise only
    /// if it is there already.
    async fn ask(self, question: Question) -> Box<RawValue> {
        let key = question.key.clone();
        let answer = self.call.engine().ask(question);
        match answer {
            Some(answer) => answer,
            None => {
                let mut since = None;
                std::future::poll_fn(|cx| {
                    match self.call.engine().answer(&key, &mut since, cx.waker()) {
                        Some(answer) => Poll::Ready(answer),
                        None => Poll::Pending,
                    }
                })
                .await
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.rest();
        self.call.engine().release(self.key);
    }
}

/// Goes on as a task if it can, or did so already.
pub(crate) async fn background(call: &Call, status: String) -> bool {
    let key = call.engine().background_key();
    match Claim::new(call, &key, Kind::Background).await {
        Claimed::Replayed(_, value) => value.get() == RawValue::TRUE.get(),
        Claimed::Fresh(held) => held.background(status).await,
    }
}

/// Asks the client, or takes its answer from the journal.
pub(crate) async fn ask(call: &Call, question: Question) -> Box<RawValue> {
    if !call.may_ask {
        let text =
            format!("`{}` asks a question, which this method cannot (MRTR-02)", question.key);
        call.engine().fail(Fatal::Misuse(text));
        return std::future::pending().await;
    }
    let key = question.key.clone();
    match Claim::question(call, &key, question.kind, question.digest).await {
        Claimed::Replayed(_, value) => value,
        Claimed::Fresh(held) => held.ask(question).await,
    }
}

/// Polls the body of a step: whatever is keyed is misuse meanwhile (rule A).
pub(crate) async fn in_step<T>(call: &Call, body: impl Future<Output = T>) -> T {
    let mut body = std::pin::pin!(body);
    std::future::poll_fn(|cx| {
        let _inside = InStep::enter(call);
        body.as_mut().poll(cx)
    })
    .await
}

/// Whether this thread is polling the body of a step of `call`.
pub(crate) fn is_in_step(call: &Call) -> bool {
    IN_STEP.get() == address(call)
}

thread_local! {
    /// The call whose step this thread is polling. A step may poll a step of another server's call
    /// (a client in the same process), so it is the call's address and not a flag.
    static IN_STEP: Cell<usize> = const { Cell::new(0) };
}

struct InStep {
    outer: usize,
}

impl InStep {
    fn enter(call: &Call) -> Self {
        Self { outer: IN_STEP.replace(address(call)) }
    }
}

impl Drop for InStep {
    fn drop(&mut self) {
        IN_STEP.set(self.outer);
    }
}

fn address(call: &Call) -> usize {
    std::ptr::from_ref(call).addr()
}

/// Runs something that is meant to run again in each round.
pub(crate) async fn read<T>(call: &Call, body: impl Future<Output = T>) -> T {
    struct Reading<'a>(&'a Call);
    impl Drop for Reading<'_> {
        fn drop(&mut self) {
            self.0.engine().end_read();
        }
    }
    call.engine().begin_read();
    let _reading = Reading(call);
    body.await
}
