//! Runs a call to its answer, and decides by what happens whether that is JSON or SSE.

use std::{
    collections::BTreeMap,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::Response;
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    body::Body,
    call::{Call, Capability, Outcome, Output},
    catalogue::CacheHints,
    dispatch::bad_answer,
    error::RequestError,
    headers::Accept,
    journal::{
        engine::{Fatal, Question},
        entry::{self, Journal},
        run::{End, Run},
    },
    observe::{CallOutcome, Observation, inside},
    platform::{ANSWER_MARGIN, time_left},
    protocol::{Completion, JsonObject, PromptResult, ResourceContents, ToolResult},
    rejection::Rejection,
    respond::{self, KeepAlive},
    schema::{self, Schema},
    server::{Server, end_result},
    target::{BoxFuture, boxed, boxed_stream},
    task,
    token::{Binding, State},
};

/// One call on its way to an answer.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) id: Bytes,
    pub(crate) method: &'static str,
    /// The arguments as they came, to bind a state to.
    pub(crate) arguments: Option<Bytes>,
    pub(crate) kind: Kind,
    pub(crate) timeout: Duration,
    pub(crate) accept: Accept,
    /// What becomes of it, unless it fails.
    pub(crate) outcome: CallOutcome,
    pub(crate) observation: Observation,
}

/// What else is known of what is called.
#[derive(Debug)]
pub(crate) enum Kind {
    Tool { output: Option<Arc<Schema>>, task_ttl: Option<Duration> },
    Read { mime_type: Option<String>, cache: CacheHints },
    Other,
}

impl Execution {
    /// The response to a call whose handler did not have to run.
    pub(crate) fn answer(
        mut self,
        call: &Call,
        outcome: Outcome,
    ) -> Result<Response<Body>, Rejection> {
        let message = self.complete(call, outcome);
        self.observe(&message);
        Ok(reply(self.accept, message?))
    }

    /// Runs the handler until the form of the response is known (SSE-12).
    ///
    /// Done: JSON, unless something was emitted. Something emitted, or silence for longer than the
    /// setting: SSE, where the front door streams. Elsewhere the same events go out as one body.
    pub(crate) async fn respond(self, run: Run) -> Result<Response<Body>, Rejection> {
        let call = Arc::clone(run.call());
        let streams = self.accept.sse && call.platform().can_stream();
        let accept = self.accept;
        let mut reply_to = Reply { execution: self, stage: Stage::Running(run), limit: None };
        let mut grace: Option<BoxFuture<'static, ()>> = None;
        let first = std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = reply_to.poll(cx, &call) {
                return Poll::Ready(Some(answer));
            }
            if !streams {
                return Poll::Pending;
            }
            let mut outbox = call.outbox();
            if !outbox.is_empty() {
                return Poll::Ready(None);
            }
            outbox.wait(cx.waker());
            drop(outbox);
            let wait = call.server.limits().stream_after;
            let timer = grace.get_or_insert_with(|| call.platform().sleep(wait));
            timer.as_mut().poll(cx).map(|()| None)
        })
        .await;
        let Some(answer) = first else {
            let stream = Events {
                call,
                reply: Some(reply_to),
                keep_alive: KeepAlive::default(),
                release: None,
            };
            return Ok(respond::event_stream(Body::stream(boxed_stream(stream))));
        };
        let events = {
            let mut outbox = call.outbox();
            outbox.flush(call.platform().now());
            outbox.take()
        };
        if events.is_empty() {
            return answer.map(|message| reply(accept, message));
        }
        let mut out = events;
        respond::push_event(&mut out, &message_of(answer, &reply_to.execution.id));
        Ok(respond::event_stream(Body::full(out)))
    }

    fn observe(&mut self, answer: &Sealed) {
        match answer {
            Ok(_) => self.observation.end(self.outcome),
            Err(rejection) => self.observation.refuse(rejection),
        }
    }

    /// The message that ends the call.
    fn complete(&mut self, call: &Call, outcome: Outcome) -> Result<Vec<u8>, Rejection> {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(&self.id);
        out.extend_from_slice(br#","result":"#);
        let end = |out: &mut Vec<u8>, meta: Option<&JsonObject>| {
            call.server.end_result(out, "complete", meta);
        };
        if self.kind.write(&mut out, &call.name, outcome, end)? {
            self.outcome = CallOutcome::ToolError;
        }
        out.push(b'}');
        let limit = call.server.limits().response_bytes;
        if out.len() > limit {
            return Err(Rejection::internal(format_args!(
                "the answer of `{}` takes {} bytes, more than the {limit} of \
                 Limits::response_bytes",
                call.name,
                out.len()
            )));
        }
        Ok(out)
    }

    /// What is to be sealed when a call suspends.
    fn suspend(&mut self, call: &Arc<Call>) -> Result<BoxFuture<'static, Sealed>, Rejection> {
        self.outcome = CallOutcome::InputRequired;
        let run_id = call.run_id();
        let suspended = call.engine().suspend(run_id);
        let (journal, questions) = suspended.map_err(|fatal| refusal(call, fatal))?;
        check_round(&call.server, &call.name, journal.round)?;
        let arguments = self.arguments.clone();
        let (call, method, id) = (Arc::clone(call), self.method, self.id.clone());
        Ok(boxed(async move { seal(&call, method, arguments, id, journal, questions).await }))
    }

    /// What is to be sealed when a job was started elsewhere.
    fn follow_job(&mut self, call: &Arc<Call>, handle: String) -> BoxFuture<'static, Sealed> {
        self.outcome = CallOutcome::Task;
        let ttl = self.kind.task_ttl();
        let (call, id) = (Arc::clone(call), self.id.clone());
        boxed(async move {
            let result = task::job::created(&call, &handle, ttl).await?;
            Ok(respond::envelope(std::str::from_utf8(&id).ok(), "result", &result))
        })
    }

    /// What is to be written when a call goes on as a task.
    fn go_on_as_task(&mut self, call: &Arc<Call>) -> Result<BoxFuture<'static, Sealed>, Rejection> {
        self.outcome = CallOutcome::Task;
        let run_id = call.run_id();
        let Some((journal, status)) = call.engine().go_on_as_task(run_id) else {
            return Err(Rejection::internal("nobody wanted to go on as a task"));
        };
        let ttl = self.kind.task_ttl();
        let (call, arguments, id) = (Arc::clone(call), self.arguments.clone(), self.id.clone());
        Ok(boxed(async move {
            let result = task::create(&call, arguments, journal, status, ttl).await?;
            Ok(respond::envelope(std::str::from_utf8(&id).ok(), "result", &result))
        }))
    }
}

impl Kind {
    const fn task_ttl(&self) -> Option<Duration> {
        match self {
            Self::Tool { task_ttl, .. } => *task_ttl,
            Self::Read { .. } | Self::Other => None,
        }
    }

    /// The result of a call that is told later, as part of another one, which says whose it is (A-40).
    pub(crate) fn result(&self, name: &str, outcome: Outcome) -> Result<Box<RawValue>, Rejection> {
        let mut out = Vec::new();
        let end = |out: &mut Vec<u8>, meta: Option<&JsonObject>| {
            end_result(out, "complete", "", meta);
        };
        self.write(&mut out, name, outcome, end)?;
        serde_json::from_slice(&out).map_err(Rejection::internal)
    }

    /// Writes the result of a call; `end` adds what follows its own members. Returns whether it is the
    /// error of a tool.
    fn write(
        &self,
        out: &mut Vec<u8>,
        name: &str,
        outcome: Outcome,
        end: impl FnOnce(&mut Vec<u8>, Option<&JsonObject>),
    ) -> Result<bool, Rejection> {
        let mut is_error = false;
        let meta = match outcome.map_err(Rejection::Failed)? {
            Output::Tool(mut result) => {
                is_error = result.is_error;
                if !is_error {
                    let json = result.structured_content.as_ref().map(|json| json.get());
                    self.check_output(name, json)?;
                }
                let meta = result.meta.take();
                open_object::<ToolResult>(out, &result)?;
                meta
            }
            Output::Structured(json) => {
                self.check_output(name, Some(&json))?;
                write_structured(out, &json)?;
                None
            }
            Output::Prompt(mut result) => {
                let meta = result.meta.take();
                open_object::<PromptResult>(out, &result)?;
                meta
            }
            Output::Resource(contents) => {
                self.write_contents(out, name, contents)?;
                None
            }
            Output::Job(_) => {
                return Err(Rejection::internal("a job was started where there is no task"));
            }
            Output::Completion(completion) => {
                #[derive(Serialize)]
                struct Members {
                    completion: Completion,
                }
                open_object(out, &Members { completion })?;
                None
            }
        };
        end(out, meta.as_ref());
        Ok(is_error)
    }

    /// Checks a structured result against its schema (TOOL-12, A-47).
    fn check_output(&self, name: &str, json: Option<&str>) -> Result<(), Rejection> {
        let Self::Tool { output: Some(schema), .. } = self else { return Ok(()) };
        let fault = match json {
            None => "it has no structured content".to_owned(),
            Some(json) => match schema.validate_json(json) {
                Ok(()) => return Ok(()),
                Err(violations) => schema::lines(&violations),
            },
        };
        Err(Rejection::internal(format_args!(
            "the result of tool `{name}` is not what its output schema says: {fault}"
        )))
    }

    fn write_contents(
        &self,
        out: &mut Vec<u8>,
        uri: &str,
        mut contents: Vec<ResourceContents>,
    ) -> Result<(), Rejection> {
        if contents.is_empty() {
            // RES-08: absence is never an empty array.
            return Err(Rejection::Failed(RequestError::not_found(uri)));
        }
        let (mime_type, cache) = match self {
            Self::Read { mime_type, cache } => (mime_type.as_ref(), *cache),
            Self::Tool { .. } | Self::Other => (None, CacheHints::default()),
        };
        if let Some(mime_type) = mime_type {
            for content in contents.iter_mut().filter(|content| content.mime_type.is_none()) {
                content.mime_type = Some(mime_type.clone());
            }
        }
        #[derive(Serialize)]
        struct Members {
            contents: Vec<ResourceContents>,
        }
        open_object(out, &Members { contents })?;
        out.extend_from_slice(cache.members().as_bytes());
        Ok(())
    }
}

/// The message of a suspended call, or why it cannot be suspended.
type Sealed = Result<Vec<u8>, Rejection>;

async fn seal(
    call: &Call,
    method: &'static str,
    arguments: Option<Bytes>,
    id: Bytes,
    journal: Journal,
    questions: Vec<Question>,
) -> Sealed {
    let arguments = arguments.as_deref().map(std::str::from_utf8).transpose();
    let arguments = arguments.map_err(Rejection::internal)?;
    let binding = Binding::state(&call.principal, method, &call.name, arguments)
        .map_err(Rejection::internal)?;
    let platform = call.platform();
    let ttl = call.server.limits().state_ttl;
    let state = State::new(journal, Default::default(), platform.now(), ttl);
    let token = state.seal(&call.server, platform, binding).await?;
    let result = input_required(&call.server, &questions, &token);
    Ok(respond::envelope(std::str::from_utf8(&id).ok(), "result", &result))
}

/// A call until its last message.
struct Reply {
    execution: Execution,
    stage: Stage,
    /// The time limit of the call, armed when it does not end at once.
    limit: Option<BoxFuture<'static, ()>>,
}

enum Stage {
    Running(Run),
    Sealing(BoxFuture<'static, Sealed>),
    Ended,
}

impl Reply {
    /// Goes on; the last message, or why there is none.
    fn poll(&mut self, cx: &mut Context<'_>, call: &Arc<Call>) -> Poll<Sealed> {
        let answer = self.poll_answer(cx, call);
        if let Poll::Ready(answer) = &answer {
            self.execution.observe(answer);
        }
        answer
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>, call: &Arc<Call>) -> Poll<Sealed> {
        loop {
            match &mut self.stage {
                Stage::Ended => return Poll::Pending,
                Stage::Sealing(sealing) => {
                    let sealed = sealing.as_mut().poll(cx);
                    if sealed.is_ready() {
                        self.stage = Stage::Ended;
                    }
                    return sealed;
                }
                Stage::Running(run) => match run.poll(cx) {
                    Poll::Pending => {
                        let limit = self.limit.get_or_insert_with(|| {
                            let platform = call.platform();
                            platform.sleep(time_left(
                                platform,
                                self.execution.timeout,
                                ANSWER_MARGIN,
                            ))
                        });
                        if limit.as_mut().poll(cx).is_pending() {
                            return Poll::Pending;
                        }
                        self.stage = Stage::Ended;
                        tracing::warn!(name = &*call.name, "a call was cut by its time limit");
                        return Poll::Ready(Err(Rejection::Failed(RequestError::timed_out())));
                    }
                    Poll::Ready(end) => match self.end(end, call) {
                        Ok(Some(message)) => return Poll::Ready(Ok(message)),
                        Ok(None) => {}
                        Err(rejection) => return Poll::Ready(Err(rejection)),
                    },
                },
            }
        }
    }

    /// What follows the end of a run: a message, or `None` when it is being sealed.
    fn end(&mut self, end: End, call: &Arc<Call>) -> Result<Option<Vec<u8>>, Rejection> {
        // Suspending looks at what the handler still awaits, so it is dropped after that.
        let _handler = mem::replace(&mut self.stage, Stage::Ended);
        match end {
            End::Done(Ok(Output::Job(handle))) => {
                self.stage = Stage::Sealing(self.execution.follow_job(call, handle));
                Ok(None)
            }
            End::Done(outcome) => self.execution.complete(call, outcome).map(Some),
            End::Suspended => {
                self.stage = Stage::Sealing(self.execution.suspend(call)?);
                Ok(None)
            }
            End::Background => {
                self.stage = Stage::Sealing(self.execution.go_on_as_task(call)?);
                Ok(None)
            }
            End::Fatal(fatal) => Err(refusal(call, fatal)),
            End::Panicked(text) => Err(panicked(call, &text)),
            End::Unwritten => Err(Rejection::internal("this is not a task")),
        }
    }
}

/// The SSE reply of a call: its notifications, keep-alives, and its last message.
struct Events {
    call: Arc<Call>,
    /// Gone after the last message (SSE-04).
    reply: Option<Reply>,
    keep_alive: KeepAlive,
    /// Runs while progress is held back.
    release: Option<BoxFuture<'static, ()>>,
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        let Some(reply) = &mut this.reply else {
            return Poll::Ready(None);
        };
        let span = reply.execution.observation.span();
        let answer = inside(span.as_ref(), || reply.poll(cx, &this.call));
        let platform = this.call.platform();
        let mut outbox = this.call.outbox();
        if let Poll::Ready(answer) = answer {
            outbox.flush(platform.now());
            let mut out = outbox.take();
            respond::push_event(&mut out, &message_of(answer, &reply.execution.id));
            drop(outbox);
            this.reply = None;
            return Poll::Ready(Some(out.into()));
        }
        match outbox.held_for(platform.now()) {
            None => this.release = None,
            Some(left) => {
                let timer = this.release.get_or_insert_with(|| platform.sleep(left));
                if timer.as_mut().poll(cx).is_ready() {
                    this.release = None;
                    outbox.flush(platform.now());
                }
            }
        }
        let out = outbox.take();
        outbox.wait(cx.waker());
        drop(outbox);
        this.keep_alive.poll(cx, out, platform, this.call.server.limits().keep_alive).map(Some)
    }
}

/// A reply that is one message: JSON, or SSE for those who take nothing else.
pub(crate) fn reply(accept: Accept, message: Vec<u8>) -> Response<Body> {
    if accept.json {
        return respond::json(http::StatusCode::OK, message);
    }
    let mut out = Vec::new();
    respond::push_event(&mut out, &message);
    respond::event_stream(Body::full(out))
}

/// The result that asks the client (MRTR-03); it carries no caching fields (MRTR-25).
pub(crate) fn input_required(server: &Server, questions: &[Question], token: &str) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Members<'a> {
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        input_requests: BTreeMap<&'a str, InputRequest<'a>>,
        request_state: &'a str,
    }
    let input_requests = questions
        .iter()
        .map(|question| {
            let params = question.params.as_deref();
            (question.key.as_str(), InputRequest::new(question.kind, params))
        })
        .collect();
    let members = Members { input_requests, request_state: token };
    // Plain data with string keys: writing it cannot fail.
    let mut out = serde_json::to_vec(&members).unwrap_or_default();
    out.pop();
    server.end_result(&mut out, "input_required", None);
    out
}

/// One entry of `inputRequests`.
#[derive(Serialize)]
pub(crate) struct InputRequest<'a> {
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

impl<'a> InputRequest<'a> {
    /// A question; `params` are JSON.
    pub(crate) fn new(kind: entry::Kind, params: Option<&'a str>) -> Self {
        let method = match kind {
            entry::Kind::Sampling => "sampling/createMessage",
            entry::Kind::Roots => "roots/list",
            _ => "elicitation/create",
        };
        Self { method, params: params.and_then(|json| serde_json::from_str(json).ok()) }
    }
}

/// A round more than the limit ends the call (MRTR-29).
pub(crate) fn check_round(server: &Server, name: &str, round: u32) -> Result<(), Rejection> {
    let limit = server.limits().rounds;
    if round > limit {
        return Err(Rejection::internal(format_args!(
            "`{name}` asked for more than {limit} rounds: are its keys the same in every round?"
        )));
    }
    Ok(())
}

pub(crate) fn panicked(call: &Call, text: &str) -> Rejection {
    Rejection::internal(format_args!("`{}` panicked: {text}", call.name))
}

/// What the client is told about a run that cannot go on. The log names the key.
pub(crate) fn refusal(call: &Call, fatal: Fatal) -> Rejection {
    let name = &*call.name;
    match fatal {
        Fatal::Misuse(text) => Rejection::internal(format_args!("`{name}`: {text}")),
        Fatal::Lint(text) => Rejection::Failed(RequestError::lint(format!("`{name}`: {text}"))),
        Fatal::BadAnswer { key } => bad_answer(&key),
        Fatal::MissingCapability(required) => missing(required),
        Fatal::StateSpent => {
            tracing::warn!(name, "a requestState was refused: it was used already");
            Rejection::InvalidState
        }
        Fatal::NoReplayGuard(text) => Rejection::internal(format_args!("`{name}`: {text}")),
        Fatal::SleepTooLong { key } => {
            tracing::warn!(
                name,
                key,
                "a sleep is too long to be waited for inside a request ({:?} at most): mark the \
                 tool with `requires_task`",
                call.server.limits().inline_sleep
            );
            call.capabilities
                .missing(Capability::Tasks)
                .map_or_else(|| Rejection::internal("a sleep was too long"), missing)
        }
    }
}

pub(crate) fn missing(required: Map<String, Value>) -> Rejection {
    Rejection::MissingCapability { required: Box::new(required) }
}

fn message_of(answer: Sealed, id: &[u8]) -> Vec<u8> {
    answer.unwrap_or_else(|rejection| rejection.to_json(std::str::from_utf8(id).ok()))
}

/// Writes a structured result without its closing brace: the JSON, and the same as text (TOOL-13).
fn write_structured(out: &mut Vec<u8>, json: &str) -> Result<(), Rejection> {
    out.extend_from_slice(br#"{"content":[{"type":"text","text":"#);
    serde_json::to_writer(&mut *out, json).map_err(Rejection::internal)?;
    out.extend_from_slice(br#"}],"structuredContent":"#);
    out.extend_from_slice(json.as_bytes());
    Ok(())
}

/// Writes an object without its closing brace.
fn open_object<T: Serialize>(out: &mut Vec<u8>, value: &T) -> Result<(), Rejection> {
    serde_json::to_writer(&mut *out, value).map_err(Rejection::internal)?;
    out.pop();
    Ok(())
}
