//! The rules of replay and suspension.
//!
//! The engine is a plain value behind a lock: futures tell it what the handler does, and after each
//! poll of the handler [`Engine::settle`] says how to go on. Letters name the rules of the design.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use serde_json::{Map, Value, value::RawValue};

use super::entry::{Digest, Entry, Journal, Kind, OpenQuestion};
use crate::platform::Timestamp;

/// Why a run cannot go on. The handler stays pending and cannot swallow it.
#[derive(Debug)]
pub(crate) enum Fatal {
    /// The handler broke a rule of the journal; the text is for the log.
    Misuse(String),
    /// A lint, where lints are errors.
    Lint(String),
    /// An answer is not an answer at all (MRTR-19).
    BadAnswer { key: String },
    /// Every open question needs something that the client does not have (MRTR-08).
    MissingCapability(Map<String, Value>),
    /// A sleep is too long to be waited for inside the request (rule K).
    SleepTooLong { key: String },
}

/// A question of this run.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) key: String,
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    /// JSON of the input request's `params`; roots have none.
    pub(crate) params: Option<String>,
    /// What the client would have to declare, if it does not.
    pub(crate) missing: Option<Map<String, Value>>,
}

/// How a poll that left the handler pending is to be followed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Poll again at once: replay went on, or new work may start now.
    Again,
    /// Wait to be woken.
    Wait,
    /// A question is open and a step runs beside it: wait, but not longer than the settle limit.
    WaitToSettle,
    /// Only questions are left: the round ends, after one more look (rule H).
    Suspend,
}

/// What a future learns about its key.
pub(crate) enum Turn {
    /// The journal has it.
    Replayed(Kind, Box<RawValue>),
    /// It happens now.
    Fresh,
    /// The journal is not used up and something else comes first (rule F).
    Wait,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Awaited,
    Resolved,
}

#[derive(Debug)]
pub(crate) struct Engine {
    version: u32,
    round: u32,
    run_id: Option<[u8; 16]>,
    started_at: Timestamp,
    /// Entries that were loaded and not handed out yet, in the order in which they were written.
    leftover: VecDeque<Entry>,
    /// Entries that were handed out or made in this run, in order.
    written: Vec<Entry>,
    /// Answers of a first run, which count for the questions that it asks.
    cold_answers: BTreeMap<String, Box<RawValue>>,
    deadlines: BTreeMap<String, u64>,
    /// The keys that were asked for, and whether their futures resolved or are being awaited.
    keys: HashMap<Arc<str>, Use>,
    open: Vec<Question>,
    steps_in_flight: u32,
    /// Sleeps that are waited for, with their deadlines.
    sleeping: Vec<(String, Timestamp)>,
    /// `cx.read` bodies that are being awaited.
    reading: u32,
    /// Futures that wait for their turn in the replay.
    waiters: Vec<Waker>,
    /// How many polls neither ended the handler nor handed out an entry while someone waited.
    stalls: u64,
    /// Whether the poll under way handed out an entry.
    consumed: bool,
    fatal: Option<Box<Fatal>>,
    /// Whether the handler is being polled: changes are then looked at when the poll returns.
    polling: bool,
    /// Wakes the task that polls the handler.
    waker: Option<Waker>,
    /// Something that is not a step was awaited in this run (rule G).
    plain_await: bool,
    deny_lints: bool,
    /// The latest moment that a sleep may be waited for.
    inline_sleep_until: Timestamp,
}

impl Engine {
    /// A first run.
    pub(crate) fn first(version: u32, now: Timestamp) -> Self {
        Self {
            version,
            round: 0,
            run_id: None,
            started_at: now,
            leftover: VecDeque::new(),
            written: Vec::new(),
            cold_answers: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            keys: HashMap::new(),
            open: Vec::new(),
            steps_in_flight: 0,
            sleeping: Vec::new(),
            reading: 0,
            waiters: Vec::new(),
            stalls: 0,
            consumed: false,
            fatal: None,
            polling: false,
            waker: None,
            plain_await: false,
            deny_lints: false,
            inline_sleep_until: now,
        }
    }

    /// A run of a handler of `version` that takes up a journal, whose answers were taken in already.
    pub(crate) fn resume(journal: Journal, version: u32, now: Timestamp) -> Self {
        Self {
            round: journal.round,
            run_id: Some(journal.run_id),
            started_at: journal.started_at(),
            leftover: journal.entries.into(),
            deadlines: journal.deadlines,
            ..Self::first(version, now)
        }
    }

    pub(crate) fn with_cold_answers(mut self, answers: BTreeMap<String, Box<RawValue>>) -> Self {
        self.cold_answers = answers;
        self
    }

    pub(crate) const fn set_rules(&mut self, deny_lints: bool, sleep_until: Timestamp) {
        self.deny_lints = deny_lints;
        self.inline_sleep_until = sleep_until;
    }

    pub(crate) const fn round(&self) -> u32 {
        self.round
    }

    pub(crate) const fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Progress and logs are muted until the journal is used up (rule J).
    pub(crate) fn is_replaying(&self) -> bool {
        !self.leftover.is_empty()
    }

    pub(crate) const fn run_id(&self) -> Option<[u8; 16]> {
        self.run_id
    }

    pub(crate) const fn set_run_id(&mut self, run_id: [u8; 16]) {
        self.run_id = Some(run_id);
    }

    // Before and after a poll of the handler.

    pub(crate) const fn begin_poll(&mut self) {
        self.polling = true;
        self.consumed = false;
    }

    /// Says how to go on after a poll that left the handler pending.
    pub(crate) fn settle(&mut self, waker: &Waker) -> Next {
        self.polling = false;
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            None => self.waker = Some(waker.clone()),
        }
        if self.fatal.is_some() {
            return Next::Wait;
        }
        if !self.waiters.is_empty() {
            if !self.consumed {
                self.stalls += 1;
            }
            self.wake_waiters();
            return Next::Again;
        }
        if self.consumed {
            // What was woken by an entry that was handed out has not been polled yet.
            return Next::Again;
        }
        if self.steps_in_flight > 0 {
            return if self.open.is_empty() { Next::Wait } else { Next::WaitToSettle };
        }
        if !self.open.is_empty() {
            return Next::Suspend;
        }
        if let Some((key, _)) =
            self.sleeping.iter().find(|(_, until)| *until > self.inline_sleep_until)
        {
            self.fatal = Some(Box::new(Fatal::SleepTooLong { key: key.clone() }));
            return Next::Wait;
        }
        if self.sleeping.is_empty() && self.reading == 0 {
            self.plain_await = true;
        }
        Next::Wait
    }

    pub(crate) fn take_fatal(&mut self) -> Option<Fatal> {
        self.fatal.take().map(|fatal| *fatal)
    }

    /// Whether something of ours may hold on to the waker of a poll: a timer, or a read.
    pub(crate) fn may_hold_waker(&self) -> bool {
        !self.sleeping.is_empty() || self.reading > 0 || self.steps_in_flight > 0
    }

    /// Ends the round: gives back the journal, and the questions that the client can be asked.
    ///
    /// # Errors
    /// When it can be asked none of them.
    pub(crate) fn suspend(&mut self, run_id: [u8; 16]) -> Result<(Journal, Vec<Question>), Fatal> {
        let (permitted, refused): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|q| q.missing.is_none());
        if permitted.is_empty() {
            let mut required = Map::new();
            refused.into_iter().filter_map(|q| q.missing).for_each(|m| merge(&mut required, m));
            return Err(Fatal::MissingCapability(required));
        }
        let unread = self.leftover.iter().find(|entry| entry.digest.is_some());
        if let Some(entry) = unread {
            let text = format!(
                "the answer to `{}` was never read while `{}` is new: are the keys stable?",
                entry.key, permitted[0].key
            );
            self.lint(text);
            if let Some(fatal) = self.take_fatal() {
                return Err(fatal);
            }
        }
        let mut journal = Journal::new(self.version, self.round + 1, run_id, self.started_at);
        journal.entries = std::mem::take(&mut self.written);
        journal.entries.extend(std::mem::take(&mut self.leftover));
        journal.deadlines = std::mem::take(&mut self.deadlines);
        journal.open = permitted
            .iter()
            .map(|q| OpenQuestion { key: q.key.clone(), kind: q.kind, digest: q.digest })
            .collect();
        Ok((journal, permitted))
    }

    // What futures do.

    /// Claims a key; false if that is misuse (rule L).
    pub(crate) fn claim(&mut self, key: &str) -> bool {
        if self.keys.contains_key(key) {
            return self.twice(key);
        }
        self.keys.insert(key.into(), Use::Awaited);
        true
    }

    /// The way of nearly every entry: it is next in line when it is asked for, so it is handed out
    /// before its key is even claimed. `None` if that is not so.
    pub(crate) fn next_in_line(
        &mut self,
        key: &str,
        kind: Kind,
        digest: Option<&Digest>,
    ) -> Option<Turn> {
        let fits = |head: &Entry| {
            *head.key == *key && head.kind.answers(kind) && head.digest.as_ref() == digest
        };
        self.leftover.front().filter(|head| fits(head))?;
        let entry = self.leftover.pop_front()?;
        self.consumed = true;
        self.wake_waiters();
        if self.keys.insert(Arc::clone(&entry.key), Use::Resolved).is_some() {
            self.twice(key);
            return Some(Turn::Wait);
        }
        let turn = Turn::Replayed(entry.kind, entry.value.clone());
        self.written.push(entry);
        Some(turn)
    }

    /// Whose turn it is. `since` is when the future began to wait, in stalls.
    pub(crate) fn turn(
        &mut self,
        key: &str,
        kind: Kind,
        digest: Option<&Digest>,
        since: u64,
        waker: &Waker,
    ) -> Turn {
        let stalled = self.stalls > since;
        let position = match self.leftover.front() {
            None => return Turn::Fresh,
            Some(head) if *head.key == *key => Some(0),
            Some(_) if stalled => self.leftover.iter().position(|entry| *entry.key == *key),
            Some(_) => {
                self.waiters.push(waker.clone());
                return Turn::Wait;
            }
        };
        let Some(entry) = position.and_then(|position| self.leftover.remove(position)) else {
            return Turn::Fresh; // nothing else moved, so new work may start
        };
        self.consumed = true;
        self.wake_waiters();
        if !entry.kind.answers(kind) {
            self.fail(Fatal::Misuse(format!(
                "`{key}` was something else when the journal was written: the handler changed; \
                 raise its version"
            )));
            return Turn::Wait;
        }
        if entry.digest.as_ref() != digest {
            tracing::warn!(key, "the question changed since it was answered; asking again");
            return self.turn(key, kind, digest, since, waker);
        }
        self.resolve(key);
        let turn = Turn::Replayed(entry.kind, entry.value.clone());
        self.written.push(entry);
        turn
    }

    pub(crate) const fn stalls(&self) -> u64 {
        self.stalls
    }

    pub(crate) fn begin_step(&mut self) {
        self.steps_in_flight += 1;
    }

    pub(crate) fn end_step(&mut self) {
        self.steps_in_flight -= 1;
        self.changed();
    }

    /// Remembers a result and closes its key.
    pub(crate) fn commit(&mut self, entry: Entry) {
        self.deadlines.remove(&*entry.key);
        self.resolve(&entry.key);
        self.written.push(entry);
    }

    /// Gives a key back that was not resolved.
    pub(crate) fn release(&mut self, key: &str) {
        if self.keys.get(key) == Some(&Use::Awaited) {
            self.keys.remove(key);
        }
        self.open.retain(|question| question.key != key);
    }

    /// Opens a question, or resolves it with the answer that a first run brought along.
    pub(crate) fn ask(&mut self, question: Question) -> Option<Box<RawValue>> {
        if let Some(value) = self.cold_answers.remove(&question.key) {
            self.commit(Entry {
                key: question.key.into(),
                kind: question.kind,
                value: value.clone(),
                digest: Some(question.digest),
            });
            return Some(value);
        }
        if self.plain_await {
            self.lint(format!(
                "a plain await came before question `{}`; it runs again in every round: put it in \
                 a step, or in `cx.read` if that is meant",
                question.key
            ));
        }
        self.open.push(question);
        self.changed();
        None
    }

    /// Takes back an answer that does not fit its question, so that it is asked again.
    pub(crate) fn retract(&mut self, key: &str) {
        self.keys.remove(key);
        self.written.retain(|entry| *entry.key != *key);
    }

    /// The one stored deadline of a sleep (rule C).
    pub(crate) fn deadline(&mut self, key: &str, drawn: Timestamp) -> Timestamp {
        let stored = self.deadlines.entry(key.to_owned()).or_insert(drawn.as_millis());
        Timestamp::from_millis(*stored)
    }

    pub(crate) fn begin_sleep(&mut self, key: &str, until: Timestamp) {
        self.sleeping.push((key.to_owned(), until));
    }

    pub(crate) fn end_sleep(&mut self, key: &str) {
        self.sleeping.retain(|(sleeping, _)| sleeping != key);
    }

    pub(crate) const fn begin_read(&mut self) {
        self.reading += 1;
    }

    pub(crate) const fn end_read(&mut self) {
        self.reading -= 1;
    }

    /// Ends the run; the first reason counts.
    pub(crate) fn fail(&mut self, fatal: Fatal) {
        self.fatal.get_or_insert_with(|| Box::new(fatal));
        self.changed();
    }

    /// A hint to the author: an error in strict mode, otherwise a line in the debug log.
    pub(crate) fn lint(&mut self, text: String) {
        if self.deny_lints {
            self.fail(Fatal::Lint(text));
        } else {
            tracing::debug!("journal lint: {text}");
        }
    }

    fn resolve(&mut self, key: &str) {
        if let Some(used) = self.keys.get_mut(key) {
            *used = Use::Resolved;
        }
    }

    fn twice(&mut self, key: &str) -> bool {
        self.fail(Fatal::Misuse(format!("the key `{key}` is used twice in one call")));
        false
    }

    fn wake_waiters(&mut self) {
        self.waiters.drain(..).for_each(Waker::wake);
    }

    /// Wakes the engine when something happened outside the handler's own poll.
    fn changed(&mut self) {
        if !self.polling
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }
}

/// Adds what a second question misses to what a first one does.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
