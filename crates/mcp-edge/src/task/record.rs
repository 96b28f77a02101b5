//! What a record holds: everything that is needed to go on with a task on any machine, and to tell
//! its client how it stands.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::store::TaskRecord;
use crate::{
    call::ClientCapabilities,
    journal::{
        engine::Question,
        entry::{Digest, Entry, Journal, Kind},
    },
    platform::Timestamp,
    principal::Principal,
};

/// A task, the body of its record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Sealed once, and always given to the client as it is here.
    pub(crate) id: String,
    pub(crate) tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Box<RawValue>>,
    pub(crate) principal: Principal,
    /// What the client declared when the task began.
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Gone once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<Journal>,
    /// The questions without an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) questions: Vec<Outstanding>,
    /// The keys of all questions that were ever shown (TASK-20).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) shown: BTreeSet<String>,
    /// Answers that are not in the journal yet, in the order in which they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<Given>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<Lease>,
    /// How often it was taken up since its journal grew.
    #[serde(default)]
    pub(crate) attempts: u32,
    /// Until when it sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wakes_at: Option<Timestamp>,
    /// Whether its client wants it to stop.
    #[serde(default)]
    pub(crate) is_cancelled: bool,
    /// The result of a completed task, the error of a failed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Box<RawValue>>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) ttl_ms: u64,
}

/// TASK-15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub(crate) const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A question that its client sees.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outstanding {
    /// Its key in `inputRequests`, which never stands for another question.
    pub(crate) shown_as: String,
    pub(crate) key: String,
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<Box<RawValue>>,
}

/// An answer, and the question that it was given to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) to: Outstanding,
    pub(crate) value: Box<RawValue>,
}

impl Given {
    pub(crate) fn entry(&self) -> Entry {
        let Outstanding { key, kind, digest, .. } = &self.to;
        let (key, value) = (key.as_str().into(), self.value.clone());
        Entry { key, kind: *kind, value, digest: Some(*digest) }
    }
}

/// Who has the task for itself, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) holder: String,
    pub(crate) until: Timestamp,
}

impl Task {
    /// Reads the body of a record.
    ///
    /// # Errors
    /// When this version of the library did not write it.
    pub(crate) fn read(record: &TaskRecord) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    /// Its record, as it is written over `version`.
    pub(crate) fn record(
        &self,
        key: &str,
        owner: &str,
        version: u64,
    ) -> Result<TaskRecord, serde_json::Error> {
        Ok(TaskRecord {
            key: key.to_owned(),
            owner: owner.to_owned(),
            version,
            is_open: !self.status.is_terminal(),
            due: self.due(),
            expires: self.expires(),
            body: Bytes::from(serde_json::to_vec(self)?),
        })
    }

    /// When somebody is to look at it: when it wakes, at once if there is something to do, and after a
    /// crash when its lease is over.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        if self.status.is_terminal() {
            return None;
        }
        if let Some(lease) = &self.lease {
            return Some(lease.until);
        }
        if self.is_cancelled {
            return Some(self.updated_at);
        }
        if !self.answers.is_empty() {
            return Some(self.wakes_at.unwrap_or(self.updated_at)); // it rests, once given back
        }
        let waits = self.status == Status::InputRequired;
        self.wakes_at.or_else(|| (!waits).then_some(self.updated_at))
    }

    pub(crate) fn expires(&self) -> Timestamp {
        self.created_at + std::time::Duration::from_millis(self.ttl_ms)
    }

    /// Ends it. What is of no use any more is gone.
    pub(crate) fn end(&mut self, status: Status, outcome: Option<Box<RawValue>>) {
        self.status = status;
        self.outcome = outcome;
        self.journal = None;
        self.arguments = None;
        self.questions.clear();
        self.shown.clear();
        self.answers.clear();
        self.lease = None;
        self.wakes_at = None;
    }

    /// Shows questions, besides those that `keep` says are still awaited. One that is shown already
    /// keeps its key, and a new one gets a key that was never shown before (TASK-20).
    pub(crate) fn ask(&mut self, open: &[Question], keep: impl Fn(&Outstanding) -> bool) {
        let is_asked = |shown: &Outstanding, question: &Question| {
            shown.key == question.key && shown.digest == question.digest
        };
        self.questions
            .retain(|shown| open.iter().any(|question| is_asked(shown, question)) || keep(shown));
        for question in open.iter().filter(|question| question.missing.is_none()) {
            if self.questions.iter().any(|shown| is_asked(shown, question)) {
                continue;
            }
            let shown_as = unused(&question.key, &self.shown);
            self.shown.insert(shown_as.clone());
            self.questions.push(Outstanding {
                shown_as,
                key: question.key.clone(),
                kind: question.kind,
                digest: question.digest,
                params: question.params.as_deref().and_then(|json| serde_json::from_str(json).ok()),
            });
        }
        self.set_status();
    }

    /// Working, or waiting for its client.
    pub(crate) fn set_status(&mut self) {
        self.status = match self.questions.is_empty() {
            true => Status::Working,
            false => Status::InputRequired,
        };
    }

    /// Moves the answers that came into the journal.
    pub(crate) fn take_answers(&mut self) {
        let answers = std::mem::take(&mut self.answers);
        if let Some(journal) = &mut self.journal {
            journal.entries.extend(answers.iter().map(Given::entry));
        }
    }

    /// Whether a client would see a difference.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let shown = |task: &Self| -> Vec<String> {
            task.questions.iter().map(|question| question.shown_as.clone()).collect()
        };
        self.status == other.status && self.message == other.message && shown(self) == shown(other)
    }
}

/// `key` itself, or `key#2` and so on.
fn unused(key: &str, used: &BTreeSet<String>) -> String {
    let numbered = (2_u32..).map(|number| format!("{key}#{number}"));
    std::iter::once(key.to_owned())
        .chain(numbered)
        .find(|key| !used.contains(key))
        .unwrap_or_else(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_20_a_key_is_never_shown_twice() {
        let used = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect();
        assert_eq!(unused("a", &used(&[])), "a");
        assert_eq!(unused("a", &used(&["a"])), "a#2");
        assert_eq!(unused("a", &used(&["a", "a#2", "a#3"])), "a#4");
        assert_eq!(unused("a#2", &used(&["a", "a#2"])), "a#2#2");
    }
}
