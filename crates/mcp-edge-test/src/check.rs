//! What a conforming client checks. A fault is a sentence for a person, with the requirement it
//! breaks.

mod input;
mod listen;
mod memory;
mod result;
mod task;
mod time;

use http::StatusCode;
use mcp_edge::protocol::LogLevel;
use serde_json::Value;

use crate::{reply::Framing, request::Sent};

pub(crate) use {listen::ListenCheck, memory::TaskMemory};

/// The value, or what is wrong.
type Verdict<T = ()> = Result<T, String>;

/// The messages that answer one request.
#[derive(Debug)]
pub(crate) struct Check<'a> {
    sent: &'a Sent,
    head: Head,
    last_progress: Option<f64>,
}

/// The head of the response that a message came in.
#[derive(Clone, Copy, Debug)]
struct Head {
    status: StatusCode,
    framing: Framing,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Notification,
    Response,
}

impl<'a> Check<'a> {
    pub(crate) const fn new(sent: &'a Sent, status: StatusCode, framing: Framing) -> Self {
        Self { sent, head: Head { status, framing }, last_progress: None }
    }

    /// Checks the next message.
    pub(crate) fn message(&mut self, message: &Value) -> Verdict<Message> {
        match envelope(message)? {
            Envelope::Notification { method, params } => {
                self.notification(method, params)?;
                Ok(Message::Notification)
            }
            Envelope::Response { id, outcome } => {
                response(self.sent, self.head, id, outcome)?;
                Ok(Message::Response)
            }
        }
    }

    fn notification(&mut self, method: &str, params: &Value) -> Verdict {
        match method {
            "notifications/progress" | "notifications/message"
                if self.sent.method.starts_with("tasks/") =>
            {
                fail(format!("{method} is never sent for a task (TASK-35)"))
            }
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.log(params),
            "notifications/cancelled" => fail(format!("{method} is never sent over HTTP (A-01)")),
            "notifications/subscriptions/acknowledged"
            | "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated"
            | "notifications/tasks" => fail(format!("{method} belongs on a listen stream")),
            "notifications/initialized"
            | "notifications/roots/list_changed"
            | "notifications/elicitation/complete" => fail(format!("{method} does not exist")),
            _ => Ok(()),
        }
    }

    fn progress(&mut self, params: &Value) -> Verdict {
        let token = self.sent.meta("progressToken").ok_or("progress without a token (PROG-01)")?;
        ensure(params.get("progressToken") == Some(token), || {
            format!("progress is for another token than {token} (PROG-02)")
        })?;
        let progress = params["progress"].as_f64().ok_or("progress must be a number")?;
        if let Some(last) = self.last_progress.filter(|last| progress <= *last) {
            return fail(format!("progress {progress} does not follow {last} (PROG-03)"));
        }
        self.last_progress = Some(progress);
        optional(params, "total", Value::is_number, "a number")?;
        optional(params, "message", Value::is_string, "a string")
    }

    fn log(&self, params: &Value) -> Verdict {
        let lowest = self.sent.log_level().ok_or("a log message without a log level (LOG-03)")?;
        let level = params["level"].as_str().and_then(|level| level.parse::<LogLevel>().ok());
        let level = level.ok_or_else(|| format!("{} is not a log level", params["level"]))?;
        ensure(level >= lowest, || format!("{level} is below the level {lowest} (LOG-04)"))?;
        ensure(params.get("data").is_some(), || "a log message needs data (LOG-07)".to_owned())?;
        optional(params, "logger", Value::is_string, "a string")
    }
}

/// Whether a JSON body is no JSON-RPC at all but what a gateway says of a failure.
pub(crate) fn is_of_a_gateway(status: StatusCode, body: &Value) -> bool {
    let members = ["jsonrpc", "id", "method", "result"];
    !status.is_success()
        && members.iter().all(|member| body.get(member).is_none())
        && !body["error"].is_object()
        && !body.is_array()
}

/// Checks that a response comes the way it must.
pub(crate) fn framing(
    sent: &Sent,
    status: StatusCode,
    framing: Framing,
    message: Option<&Value>,
) -> Verdict {
    if status != StatusCode::OK {
        ensure(!status.is_success(), || format!("a request is answered with 200, not {status}"))?;
        return ensure(framing != Framing::Sse, || {
            format!("an event stream cannot come with {status}")
        });
    }
    let Some(message) = message else {
        return fail("a request is answered with JSON or an event stream (HTTP-10)");
    };
    let media_type = if framing == Framing::Sse { "text/event-stream" } else { "application/json" };
    // Errors are JSON, whatever the client takes.
    let must_fit = framing == Framing::Sse || message.get("error").is_none();
    ensure(!must_fit || sent.accepts(media_type), || {
        format!("{media_type} is not what the request accepts (HTTP-15)")
    })
}

/// What a message consists of.
enum Envelope<'m> {
    Notification { method: &'m str, params: &'m Value },
    Response { id: Option<&'m Value>, outcome: Outcome<'m> },
}

#[derive(Clone, Copy)]
enum Outcome<'m> {
    Result(&'m Value),
    Error(&'m Value),
}

fn envelope(message: &Value) -> Verdict<Envelope<'_>> {
    ensure(!message.is_array(), || "there are no batches (BASE-02)".to_owned())?;
    ensure(message.is_object(), || "a message must be an object".to_owned())?;
    ensure(message["jsonrpc"] == "2.0", || "jsonrpc must be \"2.0\" (BASE-01)".to_owned())?;
    let (result, error) = (message.get("result"), message.get("error"));
    if let Some(method) = message.get("method") {
        let method = method.as_str().ok_or("method must be a string")?;
        ensure(message.get("id").is_none(), || {
            format!("servers send no requests, and {method} is one (BASE-03)")
        })?;
        ensure(result.or(error).is_none(), || "a notification has no result".to_owned())?;
        let params = message.get("params").unwrap_or(&Value::Null);
        optional(message, "params", Value::is_object, "an object")?;
        optional(params, "_meta", Value::is_object, "an object")?;
        return Ok(Envelope::Notification { method, params });
    }
    let id = message.get("id");
    ensure(id != Some(&Value::Null), || "an id is never null (BASE-06)".to_owned())?;
    let outcome = match (result, error) {
        (Some(result), None) => Outcome::Result(result),
        (None, Some(error)) => Outcome::Error(error),
        _ => return fail("a response has either a result or an error"),
    };
    Ok(Envelope::Response { id, outcome })
}

/// Checks a response: its id, and its result or error.
fn response(sent: &Sent, head: Head, id: Option<&Value>, outcome: Outcome<'_>) -> Verdict {
    if let Some(id) = id {
        ensure(*id == sent.id, || format!("the id is {id}, not {} (BASE-05)", sent.id))?;
    }
    match outcome {
        Outcome::Result(result) => {
            ensure(id.is_some(), || "a result needs its id (BASE-05)".to_owned())?;
            ensure(head.status == StatusCode::OK, || {
                format!("a result cannot come with {}", head.status)
            })?;
            result::check(sent, result)
        }
        Outcome::Error(error) => check_error(head, id.is_some(), error),
    }
}

fn check_error(head: Head, has_id: bool, error: &Value) -> Verdict {
    let code = error_object(error)?;
    // Codes that nobody can know without having read the id.
    let was_read =
        matches!(code, -32601 | -32602 | -32022..=-32020) || head.status == StatusCode::OK;
    ensure(has_id || !was_read, || format!("error {code} needs the request's id (BASE-06)"))?;
    let (expected, source) = match code {
        -32601 => (StatusCode::NOT_FOUND, "ERR-06"),
        // It may turn up late, when the status of a stream was sent already (SSE-11).
        -32021 if head.framing == Framing::Sse => (StatusCode::OK, "SSE-11"),
        -32020 => (StatusCode::BAD_REQUEST, "HDR-03"),
        -32021 => (StatusCode::BAD_REQUEST, "META-09"),
        -32022 => (StatusCode::BAD_REQUEST, "VER-02"),
        _ => return Ok(()),
    };
    ensure(head.status == expected, || {
        format!("error {code} comes with {expected}, not {} ({source})", head.status)
    })
}

/// Checks an error for itself, and returns its code.
fn error_object(error: &Value) -> Verdict<i64> {
    let code = error["code"].as_i64().ok_or("error.code must be an integer (BASE-11)")?;
    ensure(error["message"].is_string(), || "error.message must be a string".to_owned())?;
    let known = [-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022];
    ensure(known.contains(&code) || !(-32768..=-32000).contains(&code), || {
        format!("code {code} is reserved (ERR-02, ERR-03, ERR-04)")
    })?;
    let data = &error["data"];
    match code {
        -32021 => {
            let required = &data["requiredCapabilities"];
            let text = "error -32021 needs data.requiredCapabilities (META-09)";
            ensure(required.as_object().is_some_and(|r| !r.is_empty()), || text.to_owned())?;
        }
        -32022 => {
            let supported = data["supported"].as_array();
            let sound = supported.is_some_and(|versions| versions.iter().all(Value::is_string))
                && data["requested"].is_string();
            let text = "error -32022 needs data.supported and data.requested (VER-03)";
            ensure(sound, || text.to_owned())?;
        }
        _ => {}
    }
    Ok(code)
}

fn fail<T>(text: impl Into<String>) -> Verdict<T> {
    Err(text.into())
}

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(text()) }
}

/// Checks a member that may be left out.
fn optional(object: &Value, name: &str, is: impl Fn(&Value) -> bool, kind: &str) -> Verdict {
    ensure(object.get(name).is_none_or(is), || format!("{name} must be {kind}"))
}

#[cfg(test)]
mod tests;
