//! What is seen of a request from outside: a span, one log line, and hooks.

use std::{fmt, sync::Arc, time::Duration};

use http::HeaderMap;
use tracing::{Level, Span};

use crate::{
    envelope::Meta,
    platform::{Platform, Timestamp},
    principal::Principal,
    rejection::Rejection,
    server::Server,
    target::{MaybeSend, MaybeSync},
};

/// Sees every call from outside, for audit and metrics: `tools/call`, `prompts/get`,
/// `resources/read` and `completion/complete`.
///
/// A call that asks a question is seen once for each round, and one that goes on as a task until then:
/// the rest of it is in the `tracing` span `task`. Hooks run in the path of the request, so
/// they hand over quickly what takes long.
pub trait CallHook: MaybeSend + MaybeSync + 'static {
    /// A call begins: it passed all checks, and its handler is about to run.
    fn begin(&self, call: &CallInfo<'_>) {
        let _ = call;
    }

    /// A call ended.
    fn end(&self, call: &CallInfo<'_>, outcome: CallOutcome, took: Duration);
}

impl<F> CallHook for F
where
    F: Fn(&CallInfo<'_>, CallOutcome, Duration) + MaybeSend + MaybeSync + 'static,
{
    fn end(&self, call: &CallInfo<'_>, outcome: CallOutcome, took: Duration) {
        self(call, outcome, took);
    }
}

/// Which call it is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallInfo<'a> {
    /// The method, as `tools/call`.
    pub method: &'a str,
    /// The tool or prompt, the URI of the resource, or the argument that is completed.
    pub name: &'a str,
    /// Who calls.
    pub principal: &'a Principal,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The client went away, or the server stopped.
    Cancelled,
    /// With a result.
    Complete,
    /// With a JSON-RPC error of this code.
    Failed(i64),
    /// With questions.
    InputRequired,
    /// It goes on as a task.
    Task,
    /// With a result that says `isError`.
    ToolError,
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("cancelled"),
            Self::Complete => f.write_str("complete"),
            Self::Failed(code) => write!(f, "error {code}"),
            Self::InputRequired => f.write_str("input_required"),
            Self::Task => f.write_str("task"),
            Self::ToolError => f.write_str("tool_error"),
        }
    }
}

/// The W3C trace context of a request (TRACE-01), to pass on to what a handler calls (TRACE-03).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceContext {
    /// `traceparent`: version, trace, parent and flags.
    pub traceparent: String,
    /// `tracestate`, as it came.
    pub tracestate: Option<String>,
    /// `baggage`, as it came: untrusted input.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// The context in `_meta`, else the one in the headers; an ill-formed one is ignored (TRACE-02).
    pub(crate) fn of(meta: &Meta<'_>, headers: &HeaderMap) -> Option<Self> {
        let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let member = |json: Option<&str>| serde_json::from_str::<String>(json?).ok();
        let (traceparent, tracestate, baggage) = match meta.traceparent {
            Some(json) => (member(Some(json))?, member(meta.tracestate), member(meta.baggage)),
            None => (header("traceparent")?, header("tracestate"), header("baggage")),
        };
        is_traceparent(&traceparent).then_some(Self { traceparent, tracestate, baggage })
    }

    /// The trace, 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        self.traceparent.get(3..35).unwrap_or_default()
    }

    /// The span that sent the request, 16 hexadecimal digits.
    #[must_use]
    pub fn parent_id(&self) -> &str {
        self.traceparent.get(36..52).unwrap_or_default()
    }
}

/// `00-<32 hex>-<16 hex>-<2 hex>` in lower case; a later version may have more after it.
fn is_traceparent(text: &str) -> bool {
    let mut parts = text.splitn(5, '-');
    let mut hex = |digits: usize| {
        let part = parts.next().unwrap_or_default();
        let hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (hex && part.len() == digits).then_some(part)
    };
    let (version, trace, parent, flags) = (hex(2), hex(32), hex(16), hex(2));
    let zero = |part: Option<&str>| part.is_none_or(|part| part.bytes().all(|byte| byte == b'0'));
    match version {
        None | Some("ff") => false,
        Some("00") if parts.next().is_some() => false,
        Some(_) => !zero(trace) && !zero(parent) && flags.is_some(),
    }
}

/// Watches one request, where anybody looks. Dropped unfinished, it reports a cancelled one.
#[derive(Default)]
pub(crate) struct Observation(Option<Box<Watch>>);

struct Watch {
    span: Span,
    server: Server,
    platform: Arc<dyn Platform>,
    principal: Arc<Principal>,
    method: String,
    /// Set for a call whose handler is about to run.
    name: Option<Arc<str>>,
    began: Timestamp,
}

impl Observation {
    /// Begins to watch. `method` is the client's text, so it is cut.
    pub(crate) fn begin(
        server: &Server,
        platform: &Arc<dyn Platform>,
        principal: &Arc<Principal>,
        method: &str,
    ) -> Self {
        if server.definition().hooks.is_empty() && !tracing::enabled!(Level::INFO) {
            return Self(None);
        }
        let method = &method[..method.floor_char_boundary(64)];
        let span = tracing::info_span!(
            "request",
            method = %method,
            name = tracing::field::Empty,
            trace_id = tracing::field::Empty,
            parent_id = tracing::field::Empty,
            outcome = tracing::field::Empty,
            duration_ms = tracing::field::Empty,
        );
        Self(Some(Box::new(Watch {
            span,
            server: server.clone(),
            platform: Arc::clone(platform),
            principal: Arc::clone(principal),
            method: method.to_owned(),
            name: None,
            began: platform.now(),
        })))
    }

    /// The span to be in while the request is worked on.
    pub(crate) fn span(&self) -> Option<Span> {
        self.0.as_ref().map(|watch| watch.span.clone())
    }

    /// A handler is about to run.
    pub(crate) fn begin_call(&mut self, name: &Arc<str>, trace: Option<&TraceContext>) {
        let Some(watch) = &mut self.0 else { return };
        watch.span.record("name", &**name);
        if let Some(trace) = trace {
            watch.span.record("trace_id", trace.trace_id());
            watch.span.record("parent_id", trace.parent_id());
        }
        watch.name = Some(Arc::clone(name));
        watch.hooks(|hook, call| hook.begin(call));
    }

    pub(crate) fn end(&mut self, outcome: CallOutcome) {
        let Some(watch) = self.0.take() else { return };
        let took = watch.platform.now().since(watch.began);
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        watch.span.record("outcome", tracing::field::display(outcome));
        watch.span.record("duration_ms", milliseconds);
        tracing::info!(parent: &watch.span, "answered");
        watch.hooks(|hook, call| hook.end(call, outcome, took));
    }

    pub(crate) fn refuse(&mut self, rejection: &Rejection) {
        if self.0.is_some() {
            self.end(CallOutcome::Failed(rejection.wire().1));
        }
    }
}

/// Polls inside a span, if there is one.
pub(crate) fn inside<T>(span: Option<&Span>, poll: impl FnOnce() -> T) -> T {
    match span {
        Some(span) => span.in_scope(poll),
        None => poll(),
    }
}

impl Watch {
    fn hooks(&self, call: impl Fn(&dyn CallHook, &CallInfo<'_>)) {
        let Some(name) = &self.name else { return };
        let info = CallInfo { method: &self.method, name, principal: &self.principal };
        self.server.definition().hooks.iter().for_each(|hook| call(hook.as_ref(), &info));
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.end(CallOutcome::Cancelled);
    }
}

impl fmt::Debug for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observation").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_01_ill_formed_parents_are_no_parents() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for good in [
            format!("00-{trace}-00f067aa0ba902b7-01"),
            format!("cc-{trace}-00f067aa0ba902b7-01-what-the-future-will-bring"),
        ] {
            assert!(is_traceparent(&good), "{good}");
        }
        for bad in [
            String::new(),
            "00".to_owned(),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("00-{trace}-00f067aa0ba902b7-01-more"),
            format!("00-{trace}-00f067aa0ba902b7"),
            format!("00-{trace}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", &trace[1..]),
        ] {
            assert!(!is_traceparent(&bad), "{bad}");
        }
    }
}
