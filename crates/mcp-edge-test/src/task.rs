//! A task, as its server shows it.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::answers::Question;

/// A task: a call that outlives its request, in the state in which its server showed it.
///
/// Made by [`Client::start`](crate::Client::start) and [`Client::task`](crate::Client::task).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    #[serde(rename = "taskId")]
    pub id: String,
    /// What it is at.
    pub status: TaskStatus,
    /// What it is at, in words.
    pub status_message: Option<String>,
    /// When it began, as RFC 3339 writes it.
    pub created_at: String,
    /// When its state changed last, as RFC 3339 writes it.
    pub last_updated_at: String,
    /// For how many milliseconds from its beginning it is kept; `None` says that there is no end.
    pub ttl_ms: Option<u64>,
    /// How many milliseconds to wait before asking again, if the server says so.
    pub poll_interval_ms: Option<u64>,
    /// All questions that wait for an answer.
    #[serde(skip)]
    pub questions: Vec<Question>,
    /// What the call gave, once it is completed. A task that has just been created does not show
    /// it.
    pub result: Option<Value>,
    /// The JSON-RPC error with which the call failed: an object with `code` and `message`.
    pub error: Option<Value>,
}

/// What a task is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// The call goes on.
    Working,
    /// The call waits for answers.
    InputRequired,
    /// The call has a result, which may say that the tool failed.
    Completed,
    /// The call ended with a JSON-RPC error.
    Failed,
    /// The call was given up.
    Cancelled,
}

impl Task {
    pub(crate) fn read(task: &Value) -> Result<Self, serde_json::Error> {
        let mut read = Self::deserialize(task)?;
        read.questions = Question::all(task);
        Ok(read)
    }
}

impl TaskStatus {
    /// Whether it stays so.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The name that the specification gives it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
