//! Why a call gave no result.

use std::{error::Error, fmt};

use http::StatusCode;
use serde_json::Value;

use crate::{exchange::Exchange, transport};

/// Why a call gave no result.
///
/// `Display` and `Debug` print the exchange as a person reads it, so that an `unwrap` in a test
/// shows what went over the wire.
///
/// ```
/// use mcp_edge::Server;
/// use mcp_edge_test::{Client, Fault};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("empty", "1.0.0").tool("noop", "Does nothing", noop).build()?;
/// # async fn noop(_: mcp_edge::NoArgs) -> &'static str { "" }
/// let error = Client::in_process(&server).call("other", ()).await.unwrap_err();
/// assert_eq!(error.code(), Some(-32602));
/// assert_eq!(error.message(), "Unknown tool");
/// assert!(matches!(error.fault(), Fault::Error { .. }));
/// assert!(error.to_string().contains("Mcp-Name: other"));
/// # Ok(())
/// # }
/// ```
pub struct CallError {
    inner: Box<Inner>,
}

struct Inner {
    fault: Fault,
    message: String,
    exchanges: Vec<Exchange>,
    source: Option<transport::Cause>,
}

/// What kind of failure a [`CallError`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The server answered with a JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// What else it says.
        data: Option<Value>,
        /// The status it came with: of a task that failed, 200.
        status: StatusCode,
    },
    /// The server answered with an error status, and no JSON-RPC message in it.
    Status(StatusCode),
    /// The call became a task, and the task was cancelled.
    Cancelled,
    /// The call was to become a task, and the server gave its result at once.
    NotATask,
    /// The server said something that a conforming client refuses.
    Refused,
    /// In [strict](crate::Client::strict) mode: the questions differ when the call is replayed.
    Unstable,
    /// The server asked a question that the test has no answer for.
    Unanswered {
        /// The key of the question.
        key: String,
    },
    /// The call took more rounds of questions than the client allows.
    TooManyRounds,
    /// The call became a task, which does not end.
    Unfinished,
    /// There was no response, or it broke off.
    Transport,
    /// The test asked for something that cannot be done.
    Misuse,
}

impl Fault {
    /// A JSON-RPC error: an object with `code` and `message`.
    pub(crate) fn error(error: &Value, status: StatusCode) -> Self {
        let code = error["code"].as_i64().unwrap_or_default();
        Self::Error { code, data: error.get("data").cloned(), status }
    }
}

impl CallError {
    pub(crate) fn new(fault: Fault, message: impl Into<String>, exchange: &Exchange) -> Self {
        Self::between(fault, message, [exchange])
    }

    /// A failure that several exchanges show together, or none.
    pub(crate) fn between<'e>(
        fault: Fault,
        message: impl Into<String>,
        exchanges: impl IntoIterator<Item = &'e Exchange>,
    ) -> Self {
        let exchanges = exchanges.into_iter().cloned().collect();
        Self { inner: Box::new(Inner { fault, message: message.into(), exchanges, source: None }) }
    }

    pub(crate) fn refused(message: impl Into<String>, exchange: &Exchange) -> Self {
        Self::new(Fault::Refused, message, exchange)
    }

    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::between(Fault::Misuse, message, [])
    }

    pub(crate) fn transport(source: transport::Cause, exchange: &Exchange) -> Self {
        let mut error = Self::new(Fault::Transport, "no whole response arrived", exchange);
        error.inner.source = Some(source);
        error
    }

    /// The kind of failure.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.inner.fault
    }

    /// The message of the JSON-RPC error, or what is wrong in one sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The code of the JSON-RPC error, if it is one.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match &self.inner.fault {
            Fault::Error { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The data of the JSON-RPC error, if it is one and has some.
    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        match &self.inner.fault {
            Fault::Error { data, .. } => data.as_ref(),
            _ => None,
        }
    }

    /// The HTTP status, if the server answered with an error.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match &self.inner.fault {
            Fault::Error { status, .. } | Fault::Status(status) => Some(*status),
            _ => None,
        }
    }

    /// Whether the server said something that a conforming client refuses.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.inner.fault == Fault::Refused
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &self.inner.message;
        match &self.inner.fault {
            Fault::Error { code, status, .. } => {
                write!(f, "the server answered {code} ({status}): {message}")?;
                if message.starts_with("Mcp-Param-") {
                    f.write_str("\nhint: await `client.learn_tools()` before the call")?;
                }
            }
            Fault::Refused => write!(f, "a conforming client refuses this: {message}")?,
            Fault::Unstable => write!(f, "the handler does not replay: {message}")?,
            _ => f.write_str(message)?,
        }
        for exchange in &self.inner.exchanges {
            write!(f, "\n\n{exchange}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match &self.inner.source {
            Some(source) => write!(f, "\ncaused by: {source}"),
            None => Ok(()),
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source: &(dyn Error + 'static) = self.inner.source.as_deref()?;
        Some(source)
    }
}
