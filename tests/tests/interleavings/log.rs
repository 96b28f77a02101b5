//! What happened, and the rules that it must keep. A rule that is broken panics where it is.

use std::{collections::BTreeMap, time::Duration};

use mcp_edge::{TaskRecord, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    actors::is_terminal,
    tool::{STEPS, Told},
    world::{INSTANCES, Plan},
};

/// In whose hands a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A request.
    Client,
    /// The run that an instance is at.
    Instance(usize),
}

/// Names a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run(usize);

/// All that happened in a schedule.
pub(crate) struct Log {
    price_rises_at: Timestamp,
    id: Option<String>,
    record: Option<Record>,
    /// The answers that were stored, by the keys under which their questions were shown.
    given: BTreeMap<String, Given>,
    runs: Vec<RunLog>,
    /// The run that each instance is at, or was last.
    current: [usize; INSTANCES],
    /// How often each step ended.
    effects: BTreeMap<&'static str, usize>,
    /// How often a step was begun and its run interrupted before that was written.
    interrupted: BTreeMap<&'static str, usize>,
    /// The task, as it was first seen after it had ended.
    ended: Option<Value>,
    is_closed: bool,
}

/// A record as it is stored.
struct Record {
    version: u64,
    is_open: bool,
    expires: Timestamp,
    task: Task,
}

impl Record {
    fn read(record: &TaskRecord) -> Self {
        Self {
            version: record.version,
            is_open: record.is_open,
            expires: record.expires,
            task: serde_json::from_slice(&record.body).unwrap(),
        }
    }
}

/// What the rules are about, of what a record holds.
#[derive(Deserialize)]
struct Task {
    id: String,
    status: String,
    journal: Option<Journal>,
    #[serde(default)]
    answers: Vec<Given>,
    lease: Option<Lease>,
    is_cancelled: bool,
    outcome: Option<Value>,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct Journal {
    #[serde(rename = "j", default)]
    entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Entry {
    #[serde(rename = "k")]
    key: String,
    #[serde(rename = "v")]
    value: Value,
    #[serde(rename = "d")]
    digest: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Given {
    to: Question,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Question {
    shown_as: String,
    key: String,
    digest: Value,
    params: Value,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Lease {
    holder: String,
    until: Timestamp,
}

impl Task {
    fn entries(&self) -> &[Entry] {
        self.journal.as_ref().map_or(&[], |journal| &journal.entries)
    }

    fn has_step(&self, step: &str) -> bool {
        self.entries().iter().any(|entry| entry.key == step)
    }
}

/// What a run did.
#[derive(Default)]
struct RunLog {
    /// Under which it took the task.
    holder: Option<String>,
    /// When its platform cuts it off.
    deadline: Option<Timestamp>,
    knows_of_the_cancel: bool,
    has_given_back: bool,
    /// The steps that it began and whose results it has not written.
    inside: Vec<&'static str>,
}

/// What was known before a request was sent.
pub(crate) struct Look {
    at: Timestamp,
    ended: Option<Value>,
}

impl Log {
    pub(crate) fn new(price_rises_at: Timestamp) -> Self {
        Self {
            price_rises_at,
            id: None,
            record: None,
            given: BTreeMap::new(),
            runs: Vec::new(),
            current: [0; INSTANCES],
            effects: BTreeMap::new(),
            interrupted: BTreeMap::new(),
            ended: None,
            is_closed: false,
        }
    }

    // The store.

    pub(crate) fn created(&mut self, record: &TaskRecord) {
        assert!(self.record.is_none(), "one state made two records");
        assert_eq!(record.version, 1);
        self.record = Some(Record::read(record));
    }

    /// What is stored was read.
    pub(crate) fn read(&mut self, by: By) {
        if let (By::Instance(instance), Some(record)) = (by, &self.record) {
            let run = &mut self.runs[self.current[instance]];
            run.knows_of_the_cancel |= record.task.is_cancelled;
        }
    }

    /// Something was written over what was read as `version`.
    pub(crate) fn written(&mut self, by: By, version: u64, record: &TaskRecord, now: Timestamp) {
        let before = self.record.take().unwrap();
        let after = Record::read(record);
        assert_eq!(version, before.version, "{by:?} wrote over what it had not read");
        assert_eq!(after.version, before.version + 1);
        assert!(before.is_open, "{by:?} changed a task that had ended");
        assert!(now < before.expires, "{by:?} changed a task that was past its time");
        assert_eq!(after.expires, before.expires);
        assert!(before.task.updated_at <= after.task.updated_at);
        assert!(after.task.is_cancelled >= before.task.is_cancelled, "{by:?} lost the cancel");
        match by {
            By::Client => self.client_wrote(&before, &after, now),
            By::Instance(instance) => self.run_wrote(self.current[instance], &before, &after, now),
        }
        if after.is_open {
            self.answers_are_kept(&before.task, &after.task, now);
        }
        self.record = Some(after);
    }

    fn client_wrote(&mut self, before: &Record, after: &Record, now: Timestamp) {
        let held = before.task.lease.as_ref();
        if after.is_open {
            assert_eq!(after.task.lease.as_ref(), held, "a request changed a lease");
            let waits = held.is_some() || !after.task.is_cancelled;
            assert!(waits, "a cancelled task goes on that nobody has in hand");
        } else {
            let is_free = held.is_none_or(|lease| lease.until <= now);
            assert!(is_free, "a request ended a task that somebody has in hand");
        }
        for given in &after.task.answers {
            let known =
                self.given.entry(given.to.shown_as.clone()).or_insert_with(|| given.clone());
            assert_eq!(given, known, "a question was answered twice");
            let (asked, text) = (&given.to.params["message"], &given.value["content"]["text"]);
            let is_to_it = text.as_str().unwrap().starts_with(asked.as_str().unwrap());
            assert!(is_to_it, "{text} was given to another question, {asked}");
        }
    }

    /// A run writes if it has the lease, or nobody has.
    fn run_wrote(&mut self, run: usize, before: &Record, after: &Record, now: Timestamp) {
        let run_log = &mut self.runs[run];
        let held = before.task.lease.as_ref();
        match &run_log.holder {
            Some(holder) => assert!(
                held.is_some_and(|lease| lease.holder == *holder),
                "run {run} lost its lease and wrote"
            ),
            None => {
                assert!(held.is_none_or(|lease| lease.until <= now), "run {run} broke in");
                run_log.holder = after.task.lease.as_ref().map(|lease| lease.holder.clone());
            }
        }
        run_log.inside.retain(|step| !after.task.has_step(step));
        run_log.has_given_back = after.is_open && after.task.lease.is_none();
    }

    /// Answers leave their place only for the journal, and nothing leaves the journal but answers to
    /// questions that changed since.
    fn answers_are_kept(&self, before: &Task, after: &Task, now: Timestamp) {
        let journal = after.entries();
        for given in &before.answers {
            let Question { key, digest, .. } = &given.to;
            let mut entries = journal.iter().filter(|entry| entry.key == *key);
            let kept = after.answers.contains(given)
                || entries.any(|entry| {
                    entry.value == given.value && entry.digest.as_ref() == Some(digest)
                });
            assert!(kept || self.is_stale(&given.value, now), "an answer was lost: {given:?}");
        }
        for entry in before.entries() {
            let kept = journal.contains(entry) || self.is_stale(&entry.value, now);
            assert!(kept, "an entry was lost: {entry:?}");
        }
        for (index, entry) in journal.iter().enumerate() {
            let is_same =
                |other: &Entry| (&other.key, &other.digest) == (&entry.key, &entry.digest);
            let twice = journal[..index].iter().any(is_same);
            assert!(!twice, "an entry is there twice: {entry:?}");
        }
    }

    /// Whether an answer was given to a question with an older price.
    fn is_stale(&self, answer: &Value, now: Timestamp) -> bool {
        let text = answer["content"]["text"].as_str().unwrap_or_default();
        text.starts_with(OLD_PRICE) && self.price(now) != OLD_PRICE
    }

    // Runs.

    pub(crate) fn run_begins(&mut self, instance: usize, deadline: Option<Timestamp>) -> Run {
        self.current[instance] = self.runs.len();
        self.runs.push(RunLog { deadline, ..RunLog::default() });
        Run(self.current[instance])
    }

    /// The run that goes on in somebody's hands. Requests come to no step.
    pub(crate) fn run_of(&self, by: By) -> Run {
        match by {
            By::Instance(instance) => Run(self.current[instance]),
            By::Client => panic!("a request ran what belongs to the task"),
        }
    }

    /// A run begins a step: not after it read that the task is cancelled, and not what is written
    /// already. One that has lost its lease may not know of that yet.
    pub(crate) fn step_begins(&mut self, run: Run, step: &'static str) {
        let record = self.record.as_ref().unwrap();
        let run_log = &mut self.runs[run.0];
        assert!(!run_log.knows_of_the_cancel, "{run:?} knows of the cancel and began `{step}`");
        assert!(run_log.holder.is_some(), "{run:?} began `{step}` without having the task");
        let holder = record.task.lease.as_ref().map(|lease| &lease.holder);
        if holder == run_log.holder.as_ref() {
            assert!(!record.task.has_step(step), "{run:?} began `{step}`, which is written");
        }
        run_log.inside.push(step);
    }

    pub(crate) fn step_ends(&mut self, step: &'static str) {
        *self.effects.entry(step).or_default() += 1;
    }

    /// A run is over. Inside of a step that is only where it was interrupted.
    pub(crate) fn run_ends(&mut self, run: Run, has_died: bool, now: Timestamp) {
        let record = self.record.as_ref().unwrap();
        let RunLog { holder, deadline, has_given_back, inside, .. } = &self.runs[run.0];
        let held = record.task.lease.as_ref().map(|lease| &lease.holder);
        let has_ended = !record.is_open || now >= record.expires;
        let has_lost = has_ended || (held != holder.as_ref() && !has_given_back);
        let is_cut_off = deadline.is_some_and(|deadline| now >= deadline - CUT_OFF);
        for step in inside {
            assert!(has_died || has_lost || is_cut_off, "{run:?} ended inside of `{step}`");
            *self.interrupted.entry(step).or_default() += 1;
        }
    }

    // Clients.

    pub(crate) fn is_created(&self) -> bool {
        self.record.is_some()
    }

    /// The id of the task, and what is known before a request about it.
    pub(crate) fn look(&self, at: Timestamp) -> (String, Look) {
        let id = self.record.as_ref().unwrap().task.id.clone();
        (id, Look { at, ended: self.ended.clone() })
    }

    /// The reply to a request about the task; `None` if there is no task any more.
    pub(crate) fn seen(
        &mut self,
        before: &Look,
        now: Timestamp,
        reply: Result<Value, i64>,
    ) -> Option<Value> {
        let expires = self.expires();
        let reply = match reply {
            Ok(reply) => reply,
            Err(code) => {
                assert_eq!(code, -32602);
                assert!(now >= expires, "the task was gone before its time was over");
                return None;
            }
        };
        assert!(before.at < expires, "the task was there when its time was over");
        if reply["status"].is_string() {
            if let Some(ended) = &before.ended {
                assert_eq!(reply, *ended, "a task that had ended changed");
            }
            if is_terminal(&reply) {
                let ended = self.ended.get_or_insert_with(|| reply.clone());
                assert_eq!(reply, *ended, "a task ended twice");
            }
        }
        Some(reply)
    }

    /// The reply to a retry of the creating call.
    pub(crate) fn retried(
        &mut self,
        started_at: Timestamp,
        now: Timestamp,
        reply: Result<Value, i64>,
    ) {
        let expires = self.expires();
        match reply {
            Ok(task) => {
                assert!(started_at < expires, "a state began a task that is past its time");
                let id = task["taskId"].as_str().unwrap();
                assert_eq!(self.id.get_or_insert_with(|| id.to_owned()), id);
                assert_eq!(self.record.as_ref().unwrap().task.id, id);
            }
            Err(code) => {
                assert_eq!(code, -32602);
                assert!(now >= expires, "a state was refused before the time of its task was over");
            }
        }
    }

    /// Answers to questions that had been seen were acknowledged.
    pub(crate) fn acknowledged(&self, answers: &Map<String, Value>, now: Timestamp) {
        let record = self.record.as_ref().unwrap();
        for (shown_as, answer) in answers {
            let is_stored = self.given.contains_key(shown_as);
            let has_ended = !record.is_open || now >= record.expires;
            assert!(
                is_stored || has_ended || self.is_stale(answer, now),
                "the answer to `{shown_as}` was acknowledged and dropped"
            );
        }
    }

    /// A cancel was acknowledged.
    pub(crate) fn cancelled(&self) {
        let record = self.record.as_ref().unwrap();
        assert!(record.task.is_cancelled || !record.is_open, "the cancel was not stored");
    }

    // The whole.

    /// How it came out, once nobody does anything any more.
    pub(crate) fn judge(&self, plan: Plan) {
        let record = self.record.as_ref().unwrap();
        let Task { status, outcome, is_cancelled, .. } = &record.task;
        match status.as_str() {
            "completed" => self.has_done_it_all(outcome.as_ref().unwrap()),
            "cancelled" => assert!(plan.is_cancelled && *is_cancelled),
            _ => assert!(record.is_open && plan.may_expire, "the task is {status}: {outcome:?}"),
        }
    }

    fn has_done_it_all(&self, result: &Value) {
        let told: Told = serde_json::from_str(result["content"][0]["text"].as_str().unwrap())
            .unwrap_or_else(|_| panic!("the handler failed: {result}"));
        for (asked, answer) in told.values() {
            assert!(answer.starts_with(asked), "{answer} was given to another question, {asked}");
        }
        for Given { to, value } in self.given.values() {
            let (asked, answer) = &told[&to.key];
            let is_asked = to.params["message"] == **asked;
            assert!(!is_asked || value["content"]["text"] == **answer, "{value} was dropped");
        }
        for step in STEPS {
            let interrupted = self.interrupted.get(step).copied().unwrap_or_default();
            let effects = self.effects.get(step).copied().unwrap_or_default();
            let may_be = 1..=1 + interrupted;
            assert!(may_be.contains(&effects), "`{step}` ran {effects} times, not {may_be:?}");
        }
    }

    pub(crate) fn price(&self, now: Timestamp) -> &'static str {
        if now < self.price_rises_at { OLD_PRICE } else { "Pay 90?" }
    }

    pub(crate) fn expires(&self) -> Timestamp {
        self.record.as_ref().unwrap().expires
    }

    /// Instances begin no run after this.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

const OLD_PRICE: &str = "Pay 9?";

/// How long before its deadline a run is given up.
const CUT_OFF: Duration = Duration::from_millis(250);
