//! The rules of replay and suspension.
//!
//! The engine is a plain value behind a lock: futures tell it what the handler does, and after each
//! poll of the handler [`Engine::settle`] says how to go on. Letters name the rules of the design.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    task::{Poll, Waker},
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
    /// The state that was presented has had its one use.
    StateSpent,
    /// Nothing can be spent, so nothing may run that is for single use.
    NoReplayGuard(String),
}

/// A question of this run.
#[derive(Clone, Debug)]
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
    /// Only questions are left, or in a task sleeps: the round ends, after one more look (rule H).
    Suspend,
    /// In a task: what happened is to be written before anything else does (rule M).
    Write,
    /// The handler wants to go on as a task, and nothing else goes on.
    Background,
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
    /// Whether something new began in this run, although entries may be left that nobody asks for.
    is_live: bool,
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
    /// How often the handler asked to go on as a task, which makes the keys of that.
    backgrounds: u32,
    /// The key and the status under which the handler wants to go on as a task.
    background: Option<Box<(String, String)>>,
    task: Option<Box<TaskRun>>,
    /// What is to be used up before the first new step, if anything.
    spending: Option<Box<Spending>>,
    /// How often a state of this call was used up.
    uses: u32,
}

/// A state for single use.
#[derive(Debug)]
struct Spending {
    id: String,
    /// Whether a step is about to use it up.
    under_way: bool,
    waiting: Vec<Waker>,
}

/// What a run of a task writes.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) journal: Journal,
    pub(crate) open: Vec<Question>,
    /// The end of the first of the sleeps that are waited for.
    pub(crate) wakes_at: Option<Timestamp>,
    /// How often the journal had grown.
    pub(crate) grown: u64,
    /// What the client reads as the status, if that changed.
    pub(crate) message: Option<String>,
    /// The keys of questions that nobody waits for any more.
    pub(crate) withdrawn: Vec<String>,
}

/// What is particular to a run of a task, whose journal is written as it grows.
#[derive(Debug, Default)]
struct TaskRun {
    /// Whether something happened that is not durable yet.
    dirty: bool,
    /// How often the journal grew, and how much of that is durable.
    grown: u64,
    durable: u64,
    /// Futures that wait until their entry is durable, or for an answer.
    waiting: Vec<Waker>,
    /// What the client reads as the status, if it changed.
    message: Option<String>,
    /// The keys of entries of this run that their futures have not returned yet, in the order of the
    /// journal.
    unread: VecDeque<Arc<str>>,
    /// Answers that came while their questions were being awaited.
    delivered: HashMap<String, Box<RawValue>>,
    /// Questions of this run that nobody waits for any more.
    withdrawn: Vec<String>,
}

impl TaskRun {
    /// Keeps a waker, once, until something is written or an answer comes.
    fn keep(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }
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
            is_live: false,
            fatal: None,
            polling: false,
            waker: None,
            plain_await: false,
            deny_lints: false,
            inline_sleep_until: now,
            backgrounds: 0,
            background: None,
            task: None,
            spending: None,
            uses: 0,
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
            uses: journal.uses,
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

    /// Makes it the run of a task.
    pub(crate) fn in_task(mut self) -> Self {
        self.task = Some(Box::default());
        self
    }

    /// Makes it the run that a state for single use begins.
    pub(crate) fn spending(mut self, id: String) -> Self {
        self.spending = Some(Box::new(Spending { id, under_way: false, waiting: Vec::new() }));
        self
    }

    pub(crate) const fn is_in_task(&self) -> bool {
        self.task.is_some()
    }

    pub(crate) const fn round(&self) -> u32 {
        self.round
    }

    pub(crate) const fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Progress and logs are muted until the journal is used up (rule J), or left behind.
    pub(crate) fn is_replaying(&self) -> bool {
        !self.leftover.is_empty() && !self.is_live
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
        if self.task.as_ref().is_some_and(|task| task.dirty) {
            return Next::Write;
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
            return if self.is_in_task() || self.open.is_empty() {
                Next::Wait
            } else {
                Next::WaitToSettle
            };
        }
        if !self.open.is_empty() {
            return Next::Suspend;
        }
        if self.background.is_some() {
            return Next::Background;
        }
        if self.is_in_task() && !self.sleeping.is_empty() {
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

    /// How many copies of a waker are kept for questions of a task.
    pub(crate) fn keeps(&self, waker: &Waker) -> usize {
        let kept = self.task.iter().flat_map(|task| &task.waiting);
        kept.filter(|known| known.will_wake(waker)).count()
    }

    /// Ends the round: gives back the journal, and the questions that the client can be asked.
    ///
    /// # Errors
    /// When it can be asked none of them.
    pub(crate) fn suspend(&mut self, run_id: [u8; 16]) -> Result<(Journal, Vec<Question>), Fatal> {
        self.refuse_unaskable()?;
        let (permitted, _): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|q| q.missing.is_none());
        let mut journal = self.end(run_id);
        journal.round += 1;
        journal.open = permitted.iter().map(OpenQuestion::of).collect();
        Ok((journal, permitted))
    }

    /// Ends the run inside the request: gives back the journal with which the task begins, and its
    /// status. `None` if the handler does not want to go on as one.
    pub(crate) fn go_on_as_task(&mut self, run_id: [u8; 16]) -> Option<(Journal, String)> {
        let (key, status) = *self.background.take()?;
        let mut journal = self.end(run_id);
        let (kind, value) = (Kind::Background, RawValue::TRUE.to_owned());
        journal.entries.push(Entry { key: key.into(), kind, value, digest: None });
        Some((journal, status))
    }

    /// What is left of a run, as the client or the task carries it on.
    fn end(&mut self, run_id: [u8; 16]) -> Journal {
        let mut journal = Journal::new(self.version, self.round, run_id, self.started_at);
        journal.entries = std::mem::take(&mut self.written);
        journal.entries.extend(std::mem::take(&mut self.leftover));
        journal.deadlines = std::mem::take(&mut self.deadlines);
        journal.uses = self.uses;
        journal
    }

    /// Before a round ends: whether there is anything that the client can be asked.
    ///
    /// # Errors
    /// When it can be asked none of the open questions, or where lints are errors.
    pub(crate) fn refuse_unaskable(&mut self) -> Result<(), Fatal> {
        let Some(first) = self.open.iter().find(|question| question.missing.is_none()) else {
            let mut required = Map::new();
            let missing = self.open.drain(..).filter_map(|question| question.missing);
            missing.for_each(|missing| merge(&mut required, missing));
            return match required.is_empty() {
                true => Ok(()), // there is no question
                false => Err(Fatal::MissingCapability(required)),
            };
        };
        if let Some(entry) = self.leftover.iter().find(|entry| entry.digest.is_some()) {
            let text = format!(
                "the answer to `{}` was never read while `{}` is new: are the keys stable?",
                entry.key, first.key
            );
            self.lint(text);
        }
        self.take_fatal().map_or(Ok(()), Err)
    }

    // What the run of a task does beside polling.

    /// What is to be written now. It counts as written, unless [`unwritten`](Self::unwritten) says
    /// that it is not.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let run_id = self.run_id.unwrap_or_default();
        let mut journal = Journal::new(self.version, self.round, run_id, self.started_at);
        journal.entries = self.written.iter().chain(&self.leftover).cloned().collect();
        journal.deadlines.clone_from(&self.deadlines);
        let mut snapshot = Snapshot {
            journal,
            open: self.open.clone(),
            wakes_at: self.sleeping.iter().map(|(_, until)| *until).min(),
            ..Snapshot::default()
        };
        if let Some(task) = &mut self.task {
            task.dirty = false;
            snapshot.grown = task.grown;
            snapshot.message = task.message.take();
            snapshot.withdrawn = std::mem::take(&mut task.withdrawn);
        }
        snapshot
    }

    /// The last snapshot was not written, nor was the message that it had, if any.
    pub(crate) fn unwritten(&mut self, message: Option<String>) {
        if let Some(task) = &mut self.task {
            task.dirty = true;
            task.message = task.message.take().or(message);
        }
    }

    /// How often the journal grew in this run.
    pub(crate) fn grown(&self) -> u64 {
        self.task.as_ref().map_or(0, |task| task.grown)
    }

    /// Whether the status of the task is to be told.
    pub(crate) fn has_message(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.message.is_some())
    }

    /// What the journal held when it had grown so often is durable.
    pub(crate) fn written(&mut self, grown: u64) {
        let Some(task) = &mut self.task else { return };
        task.durable = task.durable.max(grown);
        task.waiting.drain(..).for_each(Waker::wake);
    }

    /// Takes in an answer that came while the task runs. If its question is not awaited yet, it will be
    /// found in the journal.
    pub(crate) fn deliver(&mut self, entry: Entry) {
        let Some(task) = &mut self.task else { return };
        task.dirty = true;
        task.grown += 1;
        let asked = |question: &Question| {
            *question.key == *entry.key && Some(question.digest) == entry.digest
        };
        if !self.open.iter().any(asked) {
            self.leftover.push_back(entry);
            return;
        }
        self.open.retain(|question| !asked(question));
        task.delivered.insert((*entry.key).to_owned(), entry.value.clone());
        task.waiting.drain(..).for_each(Waker::wake);
        task.unread.push_back(Arc::clone(&entry.key));
        self.resolve(&entry.key);
        self.written.push(entry);
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
            None => return self.begin(),
            Some(head) if *head.key == *key => Some(0),
            Some(_) if stalled => self.leftover.iter().position(|entry| *entry.key == *key),
            Some(_) => {
                self.waiters.push(waker.clone());
                return Turn::Wait;
            }
        };
        let Some(entry) = position.and_then(|position| self.leftover.remove(position)) else {
            return self.begin(); // nothing else moved, so new work may start
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

    const fn begin(&mut self) -> Turn {
        self.is_live = true;
        Turn::Fresh
    }

    pub(crate) const fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Whether something is to be used up before a step may begin.
    pub(crate) const fn must_be_spent(&self) -> bool {
        self.spending.is_some()
    }

    /// Makes the caller the one who uses the state up, and gives its id; `None` once that is done.
    pub(crate) fn begin_spending(&mut self, waker: &Waker) -> Poll<Option<String>> {
        let Some(spending) = &mut self.spending else { return Poll::Ready(None) };
        if spending.under_way {
            spending.waiting.push(waker.clone());
            return Poll::Pending;
        }
        spending.under_way = true;
        Poll::Ready(Some(spending.id.clone()))
    }

    /// The state is used up; steps may begin.
    pub(crate) fn spent(&mut self) {
        self.end_spending();
        self.spending = None;
        self.uses += 1;
    }

    /// Nobody is using the state up any more.
    pub(crate) fn end_spending(&mut self) {
        if let Some(spending) = &mut self.spending {
            spending.under_way = false;
            spending.waiting.drain(..).for_each(Waker::wake);
        }
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
        if let Some(task) = &mut self.task {
            task.grown += 1;
            task.dirty = true;
            task.unread.push_back(Arc::clone(&entry.key));
            self.changed();
        }
        self.written.push(entry);
    }

    /// Whether the future of an entry of this run may return. Where the journal travels with the client
    /// it always may. In a task all that the journal held when it had grown so often is durable by then
    /// (rule M), and what comes before it was returned, as a replay will have it (rule F). `since` is
    /// when the future began to wait for that, in stalls.
    pub(crate) fn hand_out(
        &mut self,
        key: &str,
        grown: u64,
        since: &mut Option<u64>,
        waker: &Waker,
    ) -> bool {
        let Some(task) = &mut self.task else { return true };
        if task.durable < grown {
            task.keep(waker);
            return false;
        }
        let is_next = task.unread.front().is_none_or(|first| **first == *key);
        let since = *since.get_or_insert(self.stalls);
        if !is_next && self.stalls == since {
            self.waiters.push(waker.clone());
            return false;
        }
        task.unread.retain(|unread| **unread != *key);
        self.consumed |= !self.waiters.is_empty();
        self.wake_waiters();
        true
    }

    /// The answer to a question of this run, once it is there.
    pub(crate) fn answer(
        &mut self,
        key: &str,
        since: &mut Option<u64>,
        waker: &Waker,
    ) -> Option<Box<RawValue>> {
        let task = self.task.as_mut()?;
        if !task.delivered.contains_key(key) {
            task.keep(waker);
            return None;
        }
        // It is durable where the client left it.
        if !self.hand_out(key, 0, since, waker) {
            return None;
        }
        self.task.as_mut()?.delivered.remove(key)
    }

    /// A key for the next wish to go on as a task. No handler uses it: it begins with a control
    /// character.
    pub(crate) fn background_key(&mut self) -> String {
        self.backgrounds += 1;
        format!("\0background {}", self.backgrounds)
    }

    /// The handler waits to go on as a task.
    pub(crate) fn ask_for_task(&mut self, key: &str, status: &str) {
        self.background = Some(Box::new((key.to_owned(), status.to_owned())));
        self.changed();
    }

    /// What a client reads as the status of the task, from the next write on.
    pub(crate) fn tell(&mut self, message: String) {
        if let Some(task) = &mut self.task {
            task.message = Some(message);
        }
    }

    /// A step sleeps until it is tried again, whatever else goes on or comes earlier.
    pub(crate) fn postpone(&mut self, key: &str, until: Timestamp) {
        self.deadlines.insert(key.to_owned(), until.as_millis());
        self.begin_sleep(key, until);
        self.dirty();
    }

    /// Until when a step of a task is not to be tried again, if it asked for that.
    pub(crate) fn postponed_until(&self, key: &str) -> Option<Timestamp> {
        self.task
            .as_ref()
            .and_then(|_| self.deadlines.get(key).copied().map(Timestamp::from_millis))
    }

    /// Gives a key back that was not resolved. What the journal has of it waits for whoever asks for it
    /// next.
    pub(crate) fn release(&mut self, key: &str) {
        self.put_back(key);
        if self.keys.get(key) == Some(&Use::Awaited) {
            self.keys.remove(key);
        }
        let asked = self.open.len();
        self.open.retain(|question| question.key != key);
        if self.open.len() < asked
            && let Some(task) = &mut self.task
        {
            task.withdrawn.push(key.to_owned());
            task.dirty = true;
        }
        if self.background.as_ref().is_some_and(|asked| asked.0 == key) {
            self.background = None;
        }
    }

    /// In a task: leaves an entry of this run that its future did not return to the next one.
    fn put_back(&mut self, key: &str) {
        let Some(task) = &mut self.task else { return };
        let Some(at) = task.unread.iter().position(|unread| **unread == *key) else { return };
        task.unread.remove(at);
        task.delivered.remove(key);
        self.keys.remove(key);
        if let Some(at) = self.written.iter().rposition(|entry| *entry.key == *key) {
            self.leftover.push_back(self.written.remove(at));
        }
        self.wake_waiters();
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
        self.dirty();
        None
    }

    /// Takes back an answer that does not fit its question, so that it is asked again.
    pub(crate) fn retract(&mut self, key: &str) {
        self.keys.remove(key);
        self.written.retain(|entry| *entry.key != *key);
        self.dirty();
    }

    /// The one stored deadline of a sleep (rule C).
    pub(crate) fn deadline(&mut self, key: &str, drawn: Timestamp) -> Timestamp {
        if let Some(stored) = self.deadlines.get(key) {
            return Timestamp::from_millis(*stored);
        }
        self.deadlines.insert(key.to_owned(), drawn.as_millis());
        self.dirty();
        drawn
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

    /// Something is to be written, where the journal is.
    fn dirty(&mut self) {
        if let Some(task) = &mut self.task {
            task.dirty = true;
        }
        self.changed();
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
