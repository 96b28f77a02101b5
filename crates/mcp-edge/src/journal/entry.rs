//! What a journal holds.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};
use serde_json::value::RawValue;

use super::engine::Question;
use crate::{encode, platform::Timestamp};

/// What kind of effect an entry remembers. A kind that differs on replay is a changed handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "s")]
    Step,
    /// A step that failed; it replays as the same error.
    #[serde(rename = "x")]
    FailedStep,
    #[serde(rename = "o")]
    Once,
    #[serde(rename = "z")]
    Sleep,
    #[serde(rename = "e")]
    Elicitation,
    #[serde(rename = "m")]
    Sampling,
    #[serde(rename = "r")]
    Roots,
    /// Whether the call goes on as a task from there on.
    #[serde(rename = "b")]
    Background,
}

impl Kind {
    /// Whether an entry of kind `self` is what a call of kind `asked` left behind.
    pub(crate) fn answers(self, asked: Self) -> bool {
        self == asked || (self == Self::FailedStep && asked == Self::Step)
    }
}

/// Identifies the exact question that an answer was given to (rule D).
pub(crate) type Digest = [u8; 16];

/// One remembered effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(rename = "k", serialize_with = "write_key", deserialize_with = "read_key")]
    pub(crate) key: Arc<str>,
    #[serde(rename = "t")]
    pub(crate) kind: Kind,
    /// The value as the handler got it: always the round-tripped one.
    #[serde(rename = "v")]
    pub(crate) value: Box<RawValue>,
    /// Of the question, for an answer.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<Digest>,
}

/// A question that was put to the client and has no answer yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OpenQuestion {
    #[serde(rename = "k")]
    pub(crate) key: String,
    #[serde(rename = "t")]
    pub(crate) kind: Kind,
    #[serde(rename = "d")]
    pub(crate) digest: Digest,
}

impl OpenQuestion {
    pub(crate) fn of(question: &Question) -> Self {
        Self { key: question.key.clone(), kind: question.kind, digest: question.digest }
    }
}

/// Everything that is needed to run a handler again, on any machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// Of the tool that wrote it.
    #[serde(rename = "t")]
    pub(crate) version: u32,
    #[serde(rename = "n")]
    pub(crate) round: u32,
    /// The seed of idempotency keys (rule I).
    #[serde(rename = "r")]
    pub(crate) run_id: [u8; 16],
    /// When the first run began, in milliseconds.
    #[serde(rename = "s")]
    started_at: u64,
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<OpenQuestion>,
    #[serde(rename = "j", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) entries: Vec<Entry>,
    /// One stored deadline per sleep, in milliseconds (rule C).
    #[serde(rename = "z", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) deadlines: BTreeMap<String, u64>,
    /// How often a state of this call was used up.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub(crate) uses: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Journal {
    pub(crate) fn new(version: u32, round: u32, run_id: [u8; 16], started_at: Timestamp) -> Self {
        Self {
            version,
            round,
            run_id,
            started_at: started_at.as_millis(),
            open: Vec::new(),
            entries: Vec::new(),
            deadlines: BTreeMap::new(),
            uses: 0,
        }
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        Timestamp::from_millis(self.started_at)
    }

    /// What is used up by whoever first takes up this state: all those from before the same new step
    /// are one, however many rounds they are apart.
    pub(crate) fn use_id(&self) -> String {
        format!("{}.{}", encode(&self.run_id), self.uses)
    }

    /// Takes in the answers of a round, in the order in which the questions were asked. Only open
    /// questions count; other keys are ignored, and missing answers are asked for again.
    pub(crate) fn answer(&mut self, answers: &mut BTreeMap<String, Box<RawValue>>) {
        for question in std::mem::take(&mut self.open) {
            match answers.remove(&question.key) {
                Some(value) => self.entries.push(Entry {
                    key: question.key.into(),
                    kind: question.kind,
                    value,
                    digest: Some(question.digest),
                }),
                None => self.open.push(question),
            }
        }
    }

    /// The key of the largest entry, for the log.
    pub(crate) fn largest(&self) -> Option<&str> {
        let largest = self.entries.iter().max_by_key(|entry| entry.value.get().len());
        largest.map(|entry| &*entry.key)
    }
}

// Without serde's feature `rc`, which would be turned on for the whole of a user's program.

fn write_key<S: Serializer>(key: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key)
}

fn read_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct KeyVisitor;
    impl Visitor<'_> for KeyVisitor {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a key")
        }

        fn visit_str<E: de::Error>(self, key: &str) -> Result<Arc<str>, E> {
            Ok(key.into())
        }
    }
    deserializer.deserialize_str(KeyVisitor)
}
