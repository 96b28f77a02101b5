//! The answer to one request.

use std::fmt;

use http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use mcp_edge::Rejection;
use serde_json::Value;

use crate::{
    answers::Question,
    error::{CallError, Fault},
    exchange::Exchange,
    request::Sent,
    task::Task,
};

/// The answer to one request, checked as a conforming client checks it.
///
/// Made by [`Client::round`](crate::Client::round). `Display` and `Debug` print the exchange.
#[derive(Clone)]
#[non_exhaustive]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// How the body was framed.
    pub framing: Framing,
    /// The notifications before the response, as they came.
    pub notifications: Vec<Value>,
    /// The JSON-RPC response. An error status may come without.
    pub message: Option<Value>,
    pub(crate) extensions: Extensions,
    pub(crate) sent: Sent,
    pub(crate) exchange: Exchange,
}

/// How the body of a response is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "`Other` is whatever else there is")]
pub enum Framing {
    /// One JSON value.
    Json,
    /// Events.
    Sse,
    /// Nothing.
    Empty,
    /// Something else.
    Other,
}

impl Reply {
    /// The result, if the request succeeded.
    #[must_use]
    pub fn result(&self) -> Option<&Value> {
        self.message.as_ref()?.get("result")
    }

    /// The JSON-RPC error: an object with `code` and `message`, if the request failed.
    #[must_use]
    pub fn error(&self) -> Option<&Value> {
        self.message.as_ref()?.get("error")
    }

    /// The code of the JSON-RPC error, if the request failed.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.error()?["code"].as_i64()
    }

    /// The state to send with the answers, if the server gave one.
    #[must_use]
    pub fn request_state(&self) -> Option<&str> {
        self.result()?["requestState"].as_str()
    }

    /// The questions, if the server asks some.
    #[must_use]
    pub fn input_requests(&self) -> Vec<Question> {
        self.result().map(Question::all).unwrap_or_default()
    }

    /// Whether the server needs something from the client before it can go on.
    #[must_use]
    pub fn is_input_required(&self) -> bool {
        self.result().is_some_and(|result| result["resultType"] == "input_required")
    }

    /// The task, if the call became one, or the request asked for one.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        let is_task =
            |result: &&Value| result["resultType"] == "task" || self.sent.method == "tasks/get";
        Task::read(self.result().filter(is_task)?).ok()
    }

    /// Why a server in this process refused the request, if it did.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        self.extensions.get()
    }

    /// The result, or why there is none.
    pub(crate) fn outcome(&self) -> Result<&Value, CallError> {
        if let Some(result) = self.result() {
            return Ok(result);
        }
        let Some(error) = self.error() else {
            let text = format!("the server answered {} without a message", self.status);
            return Err(CallError::new(Fault::Status(self.status), text, &self.exchange));
        };
        let fault = Fault::error(error, self.status);
        let message = error["message"].as_str().unwrap_or_default();
        Err(CallError::new(fault, message, &self.exchange))
    }

    pub(crate) fn refused(&self, text: impl Into<String>) -> CallError {
        CallError::refused(text, &self.exchange)
    }
}

impl Framing {
    /// What the head of a response says of its body.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let media_type = content_type.and_then(|value| value.split(|byte| *byte == b';').next());
        let is = |name: &str| {
            media_type.is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        };
        match () {
            () if is("application/json") => Self::Json,
            () if is("text/event-stream") => Self::Sse,
            () => Self::Other,
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exchange.fmt(f)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
