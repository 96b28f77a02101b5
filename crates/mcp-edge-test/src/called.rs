//! What a call gave.

use std::fmt;

use mcp_edge::protocol::{Implementation, LogLevel, ResourceContents, ToolResult};
use serde::{Deserialize, de::DeserializeOwned, de::Error as _};
use serde_json::Value;

use crate::answers::Question;

/// What a call gave in the end, and what happened on the way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Called<R = ToolResult> {
    /// The result.
    pub result: R,
    /// The result as it came, with `resultType` and `_meta`; the one in a task may have neither.
    pub raw: Value,
    /// The notifications of all rounds, in order.
    pub notifications: Vec<Value>,
    /// The questions of each round, and then of a task each time that it had new ones. A round in
    /// which the server only asked to be called again has none.
    pub rounds: Vec<Vec<Question>>,
    /// The id of the task that the call became, if it became one.
    pub task_id: Option<String>,
    /// How often the task was asked for.
    pub polls: usize,
}

/// A `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// How far it is.
    pub progress: f64,
    /// How far it goes, if that is known.
    pub total: Option<f64>,
    /// What is going on.
    #[serde(default)]
    pub message: String,
}

/// A `notifications/message`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Log {
    /// How severe it is.
    pub level: LogLevel,
    /// Who logs.
    pub logger: Option<String>,
    /// What is logged.
    pub data: Value,
}

impl<R> Called<R> {
    /// The progress that was reported.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        self.params_of("notifications/progress")
    }

    /// The messages that were logged.
    #[must_use]
    pub fn logs(&self) -> Vec<Log> {
        self.params_of("notifications/message")
    }

    /// The keys of all questions, in the order of the rounds.
    #[must_use]
    pub fn questions(&self) -> Vec<&str> {
        self.rounds.iter().flatten().map(|question| question.key.as_str()).collect()
    }

    fn params_of<T: DeserializeOwned>(&self, method: &str) -> Vec<T> {
        let notifications = self.notifications.iter().filter(|n| n["method"] == method);
        notifications.filter_map(|n| T::deserialize(&n["params"]).ok()).collect()
    }
}

impl Called {
    /// The texts of the result, joined by line feeds.
    #[must_use]
    pub fn text(&self) -> String {
        let blocks = self.raw["content"].as_array();
        let texts = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The structured value of the result.
    ///
    /// # Errors
    /// When there is none, or it is another type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match &self.result.structured_content {
            Some(json) => serde_json::from_str(json.get()),
            None => Err(serde_json::Error::custom("the result has no structuredContent")),
        }
    }

    /// Whether the tool says that it failed.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.result.is_error
    }
}

/// What `resources/read` gives.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResult {
    /// The contents; at least one.
    pub contents: Vec<ResourceContents>,
    /// For how many milliseconds it may be kept.
    pub ttl_ms: u64,
    /// By whom: `public` or `private`.
    pub cache_scope: String,
}

impl Called<ReadResult> {
    /// The texts of the contents, joined by line feeds.
    #[must_use]
    pub fn text(&self) -> String {
        let contents = self.raw["contents"].as_array();
        let texts = contents.into_iter().flatten().filter_map(|contents| contents["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// What `server/discover` gives.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Discovered {
    /// The revisions that the server speaks.
    pub supported_versions: Vec<String>,
    /// What the server offers.
    pub capabilities: Value,
    /// How a model should use it.
    pub instructions: Option<String>,
    /// For how many milliseconds this may be kept.
    pub ttl_ms: u64,
    /// By whom: `public` or `private`.
    pub cache_scope: String,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<Implementation>,
}

impl Discovered {
    /// Who the server is, if it says so.
    #[must_use]
    pub const fn server_info(&self) -> Option<&Implementation> {
        self.meta.server_info.as_ref()
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Some(total) => write!(f, "{}/{total} {}", self.progress, self.message),
            None => write!(f, "{} {}", self.progress, self.message),
        }
    }
}
