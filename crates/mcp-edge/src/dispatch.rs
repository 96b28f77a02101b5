//! From a sound request to the handler that it names, and to the journal that it carries.

use std::{collections::BTreeMap, mem, sync::Arc};

use bytes::Bytes;
use http::Response;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    admission::{Admission, mismatch},
    body::Body,
    call::{Call, Capability, ClientCapabilities, Output},
    cx::Cx,
    envelope::{Meta, Params},
    error::RequestError,
    execution::{self, Execution},
    handler::CompletionRequest,
    invoke::{Invoked, Location},
    journal::{
        engine::Engine,
        entry::{Journal, Kind},
        run::Run,
    },
    method::Method,
    observe::{CallOutcome, Observation, TraceContext},
    options::{Completers, Policy},
    outbox::Outbox,
    param_headers,
    protocol::{Completion, ElicitResult, LogLevel, RootsResult, SampleResult, ToolResult},
    provider::{self, DynamicPrompt, DynamicResource, DynamicTool, Provider},
    rejection::{HeaderFault, Rejection},
    schema,
    server::{PromptEntry, ResourceEntry, TemplateEntry},
    target::boxed,
    task::{self, id::Named},
    token::{Binding, State},
    uri,
};

/// A request that passed the checks which all methods share.
pub(crate) struct Incoming<'r> {
    pub(crate) id: &'r str,
    pub(crate) params: &'r Params<'r>,
    pub(crate) meta: &'r Meta<'r>,
    pub(crate) body: &'r Bytes,
}

impl Incoming<'_> {
    /// Step 20: the level, if one is asked for (LOG-06).
    pub(crate) fn level(&self) -> Result<Option<LogLevel>, Rejection> {
        self.meta.log_level.map(serde_json::from_str).transpose().map_err(|_| {
            let key = "params._meta[\"io.modelcontextprotocol/logLevel\"]";
            Rejection::params(format!("{key} is not a log level"))
        })
    }
}

/// What is called, and what a state is bound to besides the caller.
struct Target<'r> {
    method: &'static str,
    name: &'r Arc<str>,
    /// JSON.
    arguments: Option<&'r str>,
    policy: &'r Policy,
    /// Whether the method may answer with questions (MRTR-02).
    may_ask: bool,
}

/// How a call begins.
enum Begin {
    Run(Arc<Call>),
    /// The work of a newer version goes back to the client.
    GivenBack(Response<Body>),
}

impl Admission<'_> {
    pub(crate) async fn call_tool(
        &self,
        incoming: &Incoming<'_>,
        observation: &mut Observation,
    ) -> Result<Response<Body>, Rejection> {
        let name = required(incoming.params.name.as_deref(), "name")?;
        let arguments = object(incoming.params.arguments, "arguments")?;
        let definition = self.server.definition();
        let provided;
        let tool = match definition.tools.get(name) {
            Some(tool) => tool,
            None => {
                provided = self.find(definition.more.tools.as_ref(), name).await?;
                let unknown = || Rejection::params("Unknown tool");
                provided.as_ref().map(DynamicTool::entry).ok_or_else(unknown)?
            }
        };
        if !tool.headers.is_empty() {
            let values = param_headers::read(arguments.unwrap_or("{}"));
            let values = values.map_err(|error| unreadable(&error))?;
            param_headers::check(&tool.headers, &values, self.headers)
                .map_err(|header| mismatch(header.clone(), HeaderFault::Mismatch))?;
        }
        if tool.policy.requires_task {
            // before anything of it runs.
            Self::needs_tasks(incoming)?;
            let is_job = self.server.definition().jobs.iter().any(|job| *job.name == *tool.name);
            let permitted = match is_job {
                true => self.server.permits_tasks_of(&self.principal),
                false => self.server.tasks_of(&self.principal).is_some(),
            };
            if !permitted {
                return Err(Rejection::internal(format_args!(
                    "tool `{name}` requires a task, and this caller cannot have one: there is no \
                     store (Server::with_tasks), or it is anonymous and nothing says \
                     `anonymous_tasks(true)`"
                )));
            }
        }
        let (policy, name) = (&tool.policy, &tool.name);
        let target = Target { method: "tools/call", name, arguments, policy, may_ask: true };
        self.start(incoming, &target, observation, |call| {
            // TOOL-10: absent is `{}`.
            let arguments = arguments.unwrap_or("{}");
            let invoked = match tool.input.as_ref().map_or(Ok(()), |s| s.validate_json(arguments)) {
                Ok(()) => tool.handler.invoke(Cx::new(Arc::clone(call)), arguments),
                Err(violations) => {
                    Invoked::Answered(Ok(Output::Tool(invalid_arguments(&violations))))
                }
            };
            (
                invoked,
                execution::Kind::Tool {
                    output: tool.output.clone(),
                    task_ttl: tool.policy.task_ttl,
                },
            )
        })
        .await
    }

    pub(crate) async fn get_prompt(
        &self,
        incoming: &Incoming<'_>,
        observation: &mut Observation,
    ) -> Result<Response<Body>, Rejection> {
        let name = required(incoming.params.name.as_deref(), "name")?;
        let arguments = object(incoming.params.arguments, "arguments")?;
        let mut provided = None;
        let prompt = self.find_prompt(name, &mut provided).await?;
        let prompt = prompt.ok_or_else(|| Rejection::params("Unknown prompt"))?;
        let values = strings(arguments, "arguments")?;
        if let Some(missing) = prompt.required.iter().find(|name| !values.contains_key(*name)) {
            return Err(Rejection::params(format!("Missing argument `{missing}`")));
        }
        let (policy, name) = (&prompt.policy, &prompt.name);
        let target = Target { method: "prompts/get", name, arguments, policy, may_ask: true };
        self.start(incoming, &target, observation, |call| {
            let invoked = prompt.handler.invoke(Cx::new(Arc::clone(call)), values);
            (invoked, execution::Kind::Other)
        })
        .await
    }

    pub(crate) async fn read_resource(
        &self,
        incoming: &Incoming<'_>,
        observation: &mut Observation,
    ) -> Result<Response<Body>, Rejection> {
        let uri = required(incoming.params.uri.as_deref(), "uri")?;
        if !uri::is_uri(uri) {
            return Err(Rejection::params("params.uri must be an absolute URI (RFC 3986)"));
        }
        let provided;
        let (resource, variables) = match self.find_resource(uri) {
            Some(found) => found,
            None => {
                let provider = self.server.definition().more.resources.as_ref();
                provided = self.find(provider, uri).await?;
                let missing = || Rejection::Failed(RequestError::not_found(uri));
                let found = provided.as_ref().map(DynamicResource::entry);
                (found.ok_or_else(missing)?, Vec::new())
            }
        };
        let (policy, name) = (&resource.policy, &Arc::from(uri));
        let target =
            Target { method: "resources/read", name, arguments: None, policy, may_ask: true };
        self.start(incoming, &target, observation, |call| {
            let location = Location { uri, variables };
            let invoked = resource.handler.invoke(Cx::new(Arc::clone(call)), location);
            // MRTR-26: what was read with the help of answers is nobody else's.
            let retried = call.engine().round() > 0;
            let cache = if retried { Default::default() } else { resource.cache };
            (invoked, execution::Kind::Read { mime_type: resource.mime_type.clone(), cache })
        })
        .await
    }

    pub(crate) async fn complete(
        &self,
        incoming: &Incoming<'_>,
        observation: &mut Observation,
    ) -> Result<Response<Body>, Rejection> {
        #[derive(Deserialize)]
        struct Argument {
            name: String,
            value: String,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Context {
            arguments: BTreeMap<String, String>,
        }
        let params = incoming.params;
        let reference: Reference = typed(params.r#ref, "ref")?;
        let argument: Argument = typed(params.argument, "argument")?;
        let context: Context = match params.context {
            Some(_) => typed(params.context, "context")?,
            None => Context::default(),
        };
        let mut provided = None;
        let completers = self.find_completers(&reference, &argument.name, &mut provided).await?;
        let policy = Policy::default();
        let target = Target {
            method: "completion/complete",
            name: &Arc::from(argument.name.as_str()),
            arguments: None,
            policy: &policy,
            may_ask: false,
        };
        let engine = Engine::first(policy.version, self.platform.now());
        let call = self.call(incoming, &target, incoming.level()?, engine);
        self.run(incoming, &target, observation, call, |call| {
            let invoked = match completers.get(&argument.name) {
                Some(completer) => {
                    let request =
                        CompletionRequest { value: argument.value, arguments: context.arguments };
                    completer.invoke(Cx::new(Arc::clone(call)), request)
                }
                None => Invoked::Answered(Ok(Output::Completion(Completion::default()))),
            };
            (invoked, execution::Kind::Other)
        })
        .await
    }

    /// The methods of the tasks extension.
    pub(crate) async fn task(
        &self,
        method: Method,
        incoming: &Incoming<'_>,
    ) -> Result<Vec<u8>, Rejection> {
        let (server, platform) = (self.server, self.platform.as_ref());
        let (caller, params) = (&self.principal, incoming.params);
        let id = required(params.task_id.as_deref(), "taskId")?;
        let answers: Option<BTreeMap<_, _>> = match method {
            Method::UpdateTask => Some(typed(params.input_responses, "inputResponses")?),
            _ => None,
        };
        let key = match task::id::open_id(id, server, caller).await? {
            Named::Record(key) => key,
            Named::Job(job) => {
                let tool = task::job::find(server, platform, caller, &job)?;
                return match method {
                    Method::CancelTask => tool.cancel(server, &job).await,
                    Method::GetTask => tool.get(server, id, &job).await,
                    _ => Ok(task::wire::acknowledgement(server)), // it asks nothing
                };
            }
        };
        match (method, answers) {
            (_, Some(answers)) => {
                task::serve::update(server, platform, caller, &key, answers).await
            }
            (Method::CancelTask, _) => task::serve::cancel(server, platform, caller, &key).await,
            _ => task::serve::get(server, platform, caller, &key).await,
        }
    }

    /// Refuses a client that did not declare the tasks extension on this request (TASK-33).
    pub(crate) fn needs_tasks(incoming: &Incoming<'_>) -> Result<(), Rejection> {
        let missing = capabilities(incoming).missing(Capability::Tasks);
        missing.map_or(Ok(()), |missing| Err(execution::missing(missing)))
    }

    async fn find<T: 'static>(
        &self,
        provider: Option<&Arc<dyn Provider<T>>>,
        key: &str,
    ) -> Result<Option<T>, Rejection> {
        provider::find(provider, &self.principal, key).await.map_err(Rejection::Failed)
    }

    /// The prompt of this name; a provided one is kept in `provided`.
    async fn find_prompt<'p>(
        &'p self,
        name: &str,
        provided: &'p mut Option<DynamicPrompt>,
    ) -> Result<Option<&'p PromptEntry>, Rejection> {
        let definition = self.server.definition();
        if let Some(prompt) = definition.prompts.get(name) {
            return Ok(Some(prompt));
        }
        *provided = self.find(definition.more.prompts.as_ref(), name).await?;
        Ok(provided.as_ref().map(DynamicPrompt::entry))
    }

    fn find_resource(&self, uri: &str) -> Option<(&ResourceEntry, Vec<(String, String)>)> {
        let definition = self.server.definition();
        if let Some(resource) = definition.resources.get(uri) {
            return Some((resource, Vec::new()));
        }
        definition.templates.iter().find_map(|entry| {
            let variables = entry.template.matches(uri)?;
            Some((&entry.read, variables))
        })
    }

    /// The completers of what is referred to, if it has the argument (COMP-04).
    async fn find_completers<'p>(
        &'p self,
        reference: &Reference,
        argument: &str,
        provided: &'p mut Option<DynamicPrompt>,
    ) -> Result<&'p Completers, Rejection> {
        let definition = self.server.definition();
        let found = match (reference.r#type.as_str(), &reference.name, &reference.uri) {
            ("ref/prompt", Some(name), _) => {
                self.find_prompt(name, provided).await?.map(|prompt| {
                    let known = prompt.arguments.iter().any(|name| name == argument);
                    (known, &prompt.completers)
                })
            }
            ("ref/resource", _, Some(uri)) => {
                let matching = |entry: &&TemplateEntry| entry.template.matches(uri).is_some();
                let by_uri = || definition.templates.iter().find(matching);
                definition.templates.get(uri).or_else(by_uri).map(|entry| {
                    let known = entry.template.variables().any(|name| name == argument);
                    (known, &entry.completers)
                })
            }
            _ => return Err(Rejection::params("params.ref must be a ref/prompt or ref/resource")),
        };
        match found {
            None => Err(Rejection::params("params.ref names nothing that is here")),
            Some((false, _)) => {
                Err(Rejection::params("params.argument.name is not an argument of it"))
            }
            Some((true, completers)) => Ok(completers),
        }
    }

    /// Takes a call up or begins it, and runs it to its answer.
    async fn start(
        &self,
        incoming: &Incoming<'_>,
        target: &Target<'_>,
        observation: &mut Observation,
        invoke: impl FnOnce(&Arc<Call>) -> (Invoked, execution::Kind),
    ) -> Result<Response<Body>, Rejection> {
        let params = incoming.params;
        let begin = if params.input_responses.is_none() && params.request_state.is_none() {
            let engine = Engine::first(target.policy.version, self.platform.now());
            Begin::Run(self.call(incoming, target, incoming.level()?, engine))
        } else {
            // Boxed, as what is rare is not to make what is common larger.
            boxed(self.take_up(incoming, target)).await?
        };
        match begin {
            Begin::Run(call) => self.run(incoming, target, observation, call, invoke).await,
            Begin::GivenBack(response) => Ok(response),
        }
    }

    /// Takes up the journal or the answers that the request carries (MRTR-09 to MRTR-24).
    async fn take_up(
        &self,
        incoming: &Incoming<'_>,
        target: &Target<'_>,
    ) -> Result<Begin, Rejection> {
        let level = incoming.level()?;
        let now = self.platform.now();
        let params = incoming.params;
        let mut answers: BTreeMap<String, Box<RawValue>> = match params.input_responses {
            None => BTreeMap::new(),
            Some(_) => typed(params.input_responses, "inputResponses")?,
        };
        let Some(token) = params.request_state.as_deref() else {
            let cold = if target.policy.answers_need_state { BTreeMap::new() } else { answers };
            let engine = Engine::first(target.policy.version, now).with_cold_answers(cold);
            return Ok(Begin::Run(self.call(incoming, target, level, engine)));
        };
        let binding = self.binding(target)?;
        let state = State::open(token, self.server, self.platform.as_ref(), binding).await?;
        let State { mut journal, mut carried, .. } = state;
        answers.retain(|key, _| journal.open.iter().any(|question| question.key == *key));
        check_answers(&journal, &answers)?;
        carried.append(&mut answers);
        if !target.policy.accepts(journal.version) {
            if journal.version < target.policy.version {
                return Err(Rejection::params(format!(
                    "`{}` changed since it asked (version {} is no longer accepted); call it anew",
                    target.name, journal.version
                )));
            }
            journal.round += 1;
            let ttl = self.server.limits().state_ttl;
            let state = State::new(journal, carried, now, ttl);
            return self.give_back(incoming.id, &state, target).await;
        }
        journal.answer(&mut carried);
        let id = target.policy.single_use.then(|| journal.use_id());
        let mut engine = Engine::resume(journal, target.policy.version, now);
        if let Some(id) = id {
            engine = engine.spending(id);
        }
        Ok(Begin::Run(self.call(incoming, target, level, engine)))
    }

    /// Answers with nothing but a state, sealed again with the answers that came: the client
    /// retries, and an instance that knows the newer version takes it up (MRTR-23).
    async fn give_back(
        &self,
        id: &str,
        state: &State,
        target: &Target<'_>,
    ) -> Result<Begin, Rejection> {
        execution::check_round(self.server, target.name, state.journal.round)?;
        let binding = self.binding(target)?;
        let token = state.seal(self.server, self.platform.as_ref(), binding).await?;
        let result = execution::input_required(self.server, &[], &token);
        Ok(Begin::GivenBack(self.json(id, &result)))
    }

    fn binding<'b>(&'b self, target: &Target<'b>) -> Result<Binding<'b>, Rejection> {
        Binding::state(&self.principal, target.method, target.name, target.arguments)
            .map_err(|error| unreadable(&error))
    }

    fn call(
        &self,
        incoming: &Incoming<'_>,
        target: &Target<'_>,
        level: Option<LogLevel>,
        mut engine: Engine,
    ) -> Arc<Call> {
        let deadline = self.platform.deadline();
        let until = self.platform.now() + self.server.limits().inline_sleep;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        engine.set_rules(self.server.services().deny_replay_lints, until);
        let token = incoming.meta.progress_token.filter(|token| is_token(token));
        let level = level.filter(|_| self.server.definition().logging);
        if !self.accept.sse && (token.is_some() || level.is_some()) {
            tracing::debug!("the client asked for notifications and accepts JSON alone");
        }
        let part = |json: &str| incoming.body.slice_ref(json.as_bytes());
        Arc::new(Call {
            server: self.server.clone(),
            platform: Arc::clone(&self.platform),
            principal: Arc::clone(&self.principal),
            capabilities: capabilities(incoming),
            name: Arc::clone(target.name),
            may_ask: target.may_ask,
            may_become_task: target.method == "tools/call",
            deadline,
            trace: self.trace(incoming.meta),
            outbox: match self.accept.sse {
                true => Outbox::new(token.map(part), level),
                false => Outbox::default(),
            }
            .into(),
            engine: engine.into(),
        })
    }

    /// The trace context, if the request has one: most have none, and pay nothing.
    fn trace(&self, meta: &Meta<'_>) -> Option<Box<TraceContext>> {
        if meta.traceparent.is_none() && self.traceparent.is_none() {
            return None;
        }
        TraceContext::of(meta, self.headers).map(Box::new)
    }

    async fn run(
        &self,
        incoming: &Incoming<'_>,
        target: &Target<'_>,
        observation: &mut Observation,
        call: Arc<Call>,
        invoke: impl FnOnce(&Arc<Call>) -> (Invoked, execution::Kind),
    ) -> Result<Response<Body>, Rejection> {
        observation.begin_call(&call.name, call.trace.as_deref());
        let (invoked, kind) = invoke(&call);
        let part = |json: &str| incoming.body.slice_ref(json.as_bytes());
        let timeout = target.policy.timeout;
        let execution = Execution {
            id: part(incoming.id),
            method: target.method,
            arguments: target.arguments.map(part),
            kind,
            timeout: timeout.unwrap_or_else(|| self.server.limits().call_timeout),
            accept: self.accept,
            outcome: CallOutcome::Complete,
            observation: mem::take(observation),
        };
        match invoked {
            Invoked::Answered(outcome) => execution.answer(&call, outcome),
            Invoked::Running(handler) => execution.respond(Run::new(call, handler)).await,
        }
    }
}

/// What the model reads about arguments that are not what the tool takes (TOOL-15).
fn invalid_arguments(violations: &[schema::Violation]) -> ToolResult {
    ToolResult::error(format!("Invalid arguments:\n{}", schema::lines(violations)))
}

/// What a completion is for (COMP-02).
#[derive(Deserialize)]
struct Reference {
    r#type: String,
    name: Option<String>,
    uri: Option<String>,
}

fn capabilities(incoming: &Incoming<'_>) -> ClientCapabilities {
    let declared = incoming.meta.capabilities.as_ref();
    declared
        .map_or_else(Default::default, |declared| ClientCapabilities::new(declared, incoming.body))
}

/// Whether a progress token is a string or an integer; others are ignored (PROG-09).
fn is_token(json: &str) -> bool {
    json.starts_with('"') || json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok()
}

/// Answers that are no answers of their kind are protocol-level garbage (MRTR-19).
fn check_answers(
    journal: &Journal,
    answers: &BTreeMap<String, Box<RawValue>>,
) -> Result<(), Rejection> {
    for question in &journal.open {
        let Some(answer) = answers.get(&question.key) else { continue };
        if !check_answer(question.kind, answer) {
            return Err(bad_answer(&question.key));
        }
    }
    Ok(())
}

/// Whether an answer is one of its kind.
pub(crate) fn check_answer(kind: Kind, answer: &RawValue) -> bool {
    let text = answer.get();
    match kind {
        Kind::Sampling => serde_json::from_str::<SampleResult>(text).is_ok(),
        Kind::Roots => serde_json::from_str::<RootsResult>(text).is_ok(),
        _ => serde_json::from_str::<ElicitResult>(text).is_ok_and(|answer| answer.check().is_ok()),
    }
}

pub(crate) fn bad_answer(key: &str) -> Rejection {
    Rejection::params(format!("params.inputResponses[{key:?}] is not an answer to its question"))
}

fn required<'p>(value: Option<&'p str>, name: &str) -> Result<&'p str, Rejection> {
    value.ok_or_else(|| Rejection::params(format!("params.{name} is missing")))
}

fn object<'a>(json: Option<&'a str>, name: &str) -> Result<Option<&'a str>, Rejection> {
    if json.is_some_and(|json| !json.starts_with('{')) {
        return Err(Rejection::params(format!("params.{name} must be an object")));
    }
    Ok(json)
}

fn strings(json: Option<&str>, name: &str) -> Result<BTreeMap<String, String>, Rejection> {
    match json {
        None => Ok(BTreeMap::new()),
        Some(json) => serde_json::from_str(json)
            .map_err(|_| Rejection::params(format!("params.{name} must be an object of strings"))),
    }
}

fn typed<'a, T: Deserialize<'a>>(json: Option<&'a str>, name: &str) -> Result<T, Rejection> {
    let Some(json) = object(json, name)? else {
        return Err(Rejection::params(format!("params.{name} is missing")));
    };
    serde_json::from_str(json)
        .map_err(|_| Rejection::params(format!("params.{name} has missing or ill-typed members")))
}

fn unreadable(error: &serde_json::Error) -> Rejection {
    Rejection::params(format!("params.arguments cannot be read: {error}"))
}
