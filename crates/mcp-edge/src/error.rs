//! Errors that handlers return, and the ones that building a server can give.

use std::{error::Error, fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// JSON-RPC error codes that this revision uses (ERR-01, ERR-02).
pub(crate) mod code {
    pub(crate) const PARSE_ERROR: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const INTERNAL_ERROR: i64 = -32603;
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    pub(crate) const MISSING_CAPABILITY: i64 = -32021;
    pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
}

/// What the caller reads when the fault is ours (ERR-08).
const INTERNAL: &str = "Internal error";

/// A JSON-RPC error that answers a whole request.
///
/// It does not implement [`Error`], so that `?` converts any error into one: the converted error
/// answers `-32603` with a neutral text, and its own text goes to the log only (ERR-08).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestError(Box<RequestErrorMembers>);

/// Behind a box, so that results that may hold the error stay small.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RequestErrorMembers {
    code: i64,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// For the log only.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

impl RequestError {
    /// The resource does not exist, or this caller may not know that it does: `-32602` with
    /// `data.uri` (RES-07, RES-20).
    pub fn not_found(uri: impl Into<String>) -> Self {
        Self::invalid_params("Resource not found").with_data(json!({ "uri": uri.into() }))
    }

    /// The parameters of the request are wrong: `-32602`.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::plain(code::INVALID_PARAMS, message.into())
    }

    /// Something failed here: `-32603` with a neutral text; `source` goes to the log.
    pub fn internal(source: impl fmt::Display) -> Self {
        let mut error = Self::plain(code::INTERNAL_ERROR, INTERNAL.to_owned());
        error.0.source = Some(source.to_string());
        error
    }

    /// The call was cut by its time limit (CANC-07).
    pub(crate) fn timed_out() -> Self {
        Self::plain(code::INTERNAL_ERROR, "The call took too long".to_owned())
    }

    /// The owner has as many open tasks as it may.
    pub(crate) fn too_many_tasks() -> Self {
        let text = "Too many open tasks; wait until some have ended, or cancel them";
        Self::plain(code::INTERNAL_ERROR, text.to_owned())
    }

    /// A lint of the journal, where lints are errors: the author is the one who reads it.
    pub(crate) fn lint(message: String) -> Self {
        Self::plain(code::INTERNAL_ERROR, message)
    }

    /// An error of the application's own. Codes from -32768 to -32000 belong to JSON-RPC and MCP
    /// (ERR-05): given one of those, the error is `-32603` and the log says why.
    pub fn application(code: i64, message: impl Into<String>) -> Self {
        if (-32768..=-32000).contains(&code) {
            return Self::internal(format_args!("error code {code} is reserved; use another"));
        }
        Self::plain(code, message.into())
    }

    /// Adds `error.data`.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.0.data = Some(data);
        self
    }

    /// The JSON-RPC code.
    #[must_use]
    pub fn code(&self) -> i64 {
        self.0.code
    }

    /// The text that the caller reads.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// `error.data`, if there is any.
    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        self.0.data.as_ref()
    }

    /// The text for the log, if it differs from the message.
    pub(crate) fn source(&self) -> Option<&str> {
        self.0.source.as_deref()
    }

    fn plain(code: i64, message: String) -> Self {
        Self(Box::new(RequestErrorMembers { code, message, data: None, source: None }))
    }
}

impl<E: Error> From<E> for RequestError {
    fn from(error: E) -> Self {
        Self::internal(chain(&error))
    }
}

impl From<ToolError> for RequestError {
    fn from(error: ToolError) -> Self {
        match error.0 {
            ToolErrorKind::Tool { text, source } => Self::internal(source.unwrap_or(text)),
            ToolErrorKind::RetryAfter { text, .. } => Self::internal(text),
            ToolErrorKind::Protocol(error) => error,
        }
    }
}

/// Why a tool did not succeed.
///
/// The model reads the text of [`ToolError::new`] as a result with `isError` (TOOL-15). It does not
/// implement [`Error`], so that `?` converts any error into one; such an error shows the model a
/// neutral text, and its own goes to the log, unless it is made [public](Self::public) (ERR-08).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolError(ToolErrorKind);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToolErrorKind {
    #[serde(rename = "t")]
    Tool {
        #[serde(rename = "m")]
        text: String,
        #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    #[serde(rename = "p")]
    Protocol(RequestError),
    /// Never in a journal.
    #[serde(skip)]
    RetryAfter { text: String, delay: Duration },
}

impl ToolError {
    /// An error that the model reads and can act on.
    pub fn new(text: impl Into<String>) -> Self {
        Self(ToolErrorKind::Tool { text: text.into(), source: None })
    }

    /// A step that may succeed later. In a task the step runs again after `delay`, as often as it
    /// says so, until the task is past its time; elsewhere it is an error like that of
    /// [`new`](Self::new), and is not remembered.
    pub fn retry_after(text: impl Into<String>, delay: Duration) -> Self {
        Self(ToolErrorKind::RetryAfter { text: text.into(), delay })
    }

    /// Answers the request with a JSON-RPC error instead of a tool result.
    #[must_use]
    pub const fn protocol(error: RequestError) -> Self {
        Self(ToolErrorKind::Protocol(error))
    }

    /// Shows the model the text of the error that this one was converted from.
    #[must_use]
    pub fn public(self) -> Self {
        match self.0 {
            ToolErrorKind::Tool { source: Some(source), .. } => Self::new(source),
            _ => self,
        }
    }

    pub(crate) const fn retry_delay(&self) -> Option<Duration> {
        match self.0 {
            ToolErrorKind::RetryAfter { delay, .. } => Some(delay),
            _ => None,
        }
    }

    pub(crate) fn into_kind(self) -> ToolErrorKind {
        self.0
    }
}

impl<E: Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(ToolErrorKind::Tool { text: INTERNAL.to_owned(), source: Some(chain(&error)) })
    }
}

impl From<RequestError> for ToolError {
    fn from(error: RequestError) -> Self {
        Self::protocol(error)
    }
}

/// The texts of an error and of what caused it, on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// A definition that cannot be served, found by [`ServerBuilder::build`](crate::ServerBuilder::build).
///
/// Its text names the definition and the remedy. All faults are found at once.
#[derive(Clone, Debug)]
pub struct BuildError {
    faults: Vec<String>,
}

impl BuildError {
    pub(crate) const fn new(faults: Vec<String>) -> Self {
        Self { faults }
    }

    /// Each fault, as one sentence.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.faults.iter().map(String::as_str)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.as_slice() {
            [fault] => write!(f, "the server cannot be built: {fault}"),
            faults => {
                write!(f, "the server cannot be built, {} faults:", faults.len())?;
                faults.iter().try_for_each(|fault| write!(f, "\n  - {fault}"))
            }
        }
    }
}

impl Error for BuildError {}

#[cfg(test)]
mod tests {
    use std::fmt::Error as FmtError;

    use super::*;

    #[test]
    fn converted_errors_hide_their_text_unless_made_public() {
        let hidden = ToolError::from(FmtError);
        assert!(matches!(&hidden.0, ToolErrorKind::Tool { text, .. } if text == "Internal error"));
        let ToolErrorKind::Tool { text, source } = hidden.public().into_kind() else {
            panic!("a protocol error")
        };
        assert_eq!((text.as_str(), source), (FmtError.to_string().as_str(), None));
    }

    #[test]
    fn err_05_reserved_codes_are_not_the_applications_own() {
        assert_eq!(RequestError::application(-32002, "x").code(), code::INTERNAL_ERROR);
        assert_eq!(RequestError::application(42, "x").code(), 42);
    }

    #[test]
    fn a_tool_error_becomes_internal_or_the_protocol_error_it_wraps() {
        assert_eq!(RequestError::from(ToolError::new("x")).code(), code::INTERNAL_ERROR);
        let wrapped = ToolError::protocol(RequestError::not_found("a:b"));
        assert_eq!(RequestError::from(wrapped).code(), code::INVALID_PARAMS);
    }
}
