//! A request that may be read: [`Admission`], and the checks from its body on.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    MODERN_VERSIONS,
    body::Body,
    call::{Call, Capability, ClientCapabilities, Output},
    canonical,
    catalogue::List,
    cx::Cx,
    envelope::{CAPABILITIES_KEY, Envelope, Fault, Meta, Params, Text, VERSION_KEY},
    error::RequestError,
    execution::{self, Execution},
    handler::CompletionRequest,
    headers::{self, Accept},
    invoke::{Invoked, Location},
    journal::{
        engine::Engine,
        entry::{Journal, Kind},
        run::Run,
    },
    listen,
    method::Method,
    options::Policy,
    outbox::Outbox,
    param_headers,
    platform::Platform,
    principal::Principal,
    protocol::{ElicitResult, LogLevel, RootsResult, SampleResult},
    rejection::{HeaderFault, Rejection},
    respond,
    server::{ResourceEntry, Server, TemplateEntry},
    token::{Binding, State},
    uri,
};

/// A request whose head is sound: its body may be read, up to [`body_limit`](Self::body_limit).
#[must_use = "a request that was admitted is to be answered"]
pub struct Admission<'a> {
    pub(crate) server: &'a Server,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) mirrored: Mirrored<'a>,
    pub(crate) accept: Accept,
    pub(crate) principal: Arc<Principal>,
    pub(crate) platform: Arc<dyn Platform>,
}

/// The headers that mirror the body (HDR-01).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mirrored<'a> {
    pub(crate) version: Slot<'a>,
    pub(crate) method: Slot<'a>,
    pub(crate) name: Slot<'a>,
}

/// A header that may occur once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot<'a> {
    value: Option<&'a HeaderValue>,
    repeated: bool,
}

impl<'a> Slot<'a> {
    pub(crate) fn add(&mut self, value: &'a HeaderValue) {
        self.repeated |= self.value.replace(value).is_some();
    }
}

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

impl Admission<'_> {
    /// How many bytes of the body to read at most.
    #[must_use]
    pub fn body_limit(&self) -> usize {
        self.server.limits().body_bytes
    }

    /// Who is calling.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The response when the body outgrows its limit.
    #[must_use]
    pub fn too_large(self) -> Response<Body> {
        Rejection::BodyTooLarge { limit: self.body_limit() }.into_response(None)
    }

    /// Answers the request.
    ///
    /// The response is complete when the handler was done at once. Otherwise its body runs the
    /// handler while it is sent; dropping it cancels the call.
    pub async fn handle(self, body: Bytes) -> Response<Body> {
        let envelope = match Envelope::read(&body) {
            Ok(envelope) => envelope,
            Err((rejection, id)) => return rejection.into_response(id),
        };
        let answered = match envelope.id {
            None => check_notification(&envelope).map(|()| respond::accepted()),
            Some(id) => self.answer(&envelope, id, &body).await,
        };
        answered.unwrap_or_else(|rejection| rejection.into_response(envelope.id))
    }

    /// The ladder (section 1.8 of the requirements), from the era on.
    async fn answer(
        &self,
        envelope: &Envelope<'_>,
        id: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, Rejection> {
        self.check_version(envelope)?;
        let meta = check_meta(&envelope.params)?;
        self.check_names(envelope)?;
        let Some(method) = Method::of(&envelope.method).filter(|m| m.is_served_by(self.server))
        else {
            return Err(Rejection::MethodNotFound { method: envelope.method.to_string() });
        };
        let params = &envelope.params;
        if let Some(Fault::Member { name, expected }) = params.fault {
            return Err(Rejection::params(format!("params.{name} must be {expected}")));
        }
        let level = log_level(meta)?;
        match method {
            Method::Discover => {
                let live = self.server.has_change_feed() && self.platform.can_stream();
                let discover = &self.server.definition().discover[usize::from(live)];
                Ok(self.json(id, discover))
            }
            Method::List(list) => {
                let definition = self.server.definition();
                let (server, platform) = (self.server, self.platform.as_ref());
                let (principal, cursor) = (&self.principal, params.cursor.as_ref());
                let page = match list {
                    List::Tools => {
                        definition.tools.page(server, platform, principal, cursor).await?
                    }
                    List::Prompts => {
                        definition.prompts.page(server, platform, principal, cursor).await?
                    }
                    List::Resources => {
                        definition.resources.page(server, platform, principal, cursor).await?
                    }
                    List::ResourceTemplates => {
                        definition.templates.page(server, platform, principal, cursor).await?
                    }
                };
                Ok(self.json(id, &page))
            }
            Method::Listen => {
                if !self.accept.sse {
                    return Err(Rejection::NotAcceptable);
                }
                let (platform, principal) = (Arc::clone(&self.platform), &self.principal);
                listen::listen(self.server, platform, principal, id, params.notifications).await
            }
            Method::CallTool => self.call_tool(envelope, id, body, meta, level).await,
            Method::GetPrompt => self.get_prompt(envelope, id, body, meta, level).await,
            Method::ReadResource => self.read_resource(envelope, id, body, meta, level).await,
            Method::Complete => self.complete(envelope, id, body, meta, level).await,
        }
    }

    /// Steps 7 and 9 to 13: which era, and which version.
    fn check_version(&self, envelope: &Envelope<'_>) -> Result<(), Rejection> {
        let params = &envelope.params;
        let body = params.meta.as_ref().and_then(|meta| meta.0.version.as_ref());
        if body.is_none() && envelope.method == "initialize" {
            let requested = params.protocol_version.as_ref().map_or("", |version| &version.0);
            return Err(unsupported(requested));
        }
        for (slot, header) in [
            (self.mirrored.version, VERSION_HEADER),
            (self.mirrored.method, METHOD_HEADER),
            (self.mirrored.name, NAME_HEADER),
        ] {
            if slot.repeated {
                return Err(mismatch(header, HeaderFault::Repeated));
            }
        }
        let Some(value) = self.mirrored.version.value else {
            return Err(mismatch(VERSION_HEADER, HeaderFault::Missing));
        };
        let header = headers::plain_value(value)
            .map_err(|_| mismatch(VERSION_HEADER, HeaderFault::Unreadable))?;
        match body {
            None if !MODERN_VERSIONS.contains(&header) => Err(unsupported(header)),
            None => {
                Err(check_meta(params).err().unwrap_or(Rejection::InvalidMeta { key: "_meta" }))
            }
            Some(_) if params.fault.is_some_and(|fault| matches!(fault, Fault::Meta(_))) => {
                check_meta(params).map(|_| ())
            }
            Some(version) => {
                check_meta(params)?;
                if version.0 != header {
                    return Err(mismatch(VERSION_HEADER, HeaderFault::Mismatch));
                }
                if !MODERN_VERSIONS.contains(&header) {
                    return Err(unsupported(header));
                }
                Ok(())
            }
        }
    }

    /// Steps 14 and 15: `Mcp-Method` and `Mcp-Name`.
    fn check_names(&self, envelope: &Envelope<'_>) -> Result<(), Rejection> {
        let Some(value) = self.mirrored.method.value else {
            return Err(mismatch(METHOD_HEADER, HeaderFault::Missing));
        };
        let header = headers::plain_value(value)
            .map_err(|_| mismatch(METHOD_HEADER, HeaderFault::Unreadable))?;
        if header != envelope.method {
            return Err(mismatch(METHOD_HEADER, HeaderFault::Mismatch));
        }
        let named = match envelope.method.as_ref() {
            "tools/call" | "prompts/get" => &envelope.params.name,
            "resources/read" => &envelope.params.uri,
            _ => return Ok(()),
        };
        // without a value in the body there is nothing to mirror; step 18 says so.
        let Some(Text(named)) = named else {
            return Ok(());
        };
        let Some(value) = self.mirrored.name.value else {
            return Err(mismatch(NAME_HEADER, HeaderFault::Missing));
        };
        let header = headers::mirrored_value(value)
            .map_err(|_| mismatch(NAME_HEADER, HeaderFault::Unreadable))?;
        if header != *named {
            return Err(mismatch(NAME_HEADER, HeaderFault::Mismatch));
        }
        Ok(())
    }

    async fn call_tool(
        &self,
        envelope: &Envelope<'_>,
        id: &str,
        body: &Bytes,
        meta: &Meta<'_>,
        level: Option<LogLevel>,
    ) -> Result<Response<Body>, Rejection> {
        let name = required(&envelope.params.name, "name")?;
        let arguments = object(envelope.params.arguments, "arguments")?;
        let Some(tool) = self.server.definition().tools.get(name) else {
            return Err(Rejection::params("Unknown tool"));
        };
        if !tool.headers.is_empty() {
            let text = arguments.map_or("{}", RawValue::get);
            let values: Value = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
            param_headers::check(&tool.headers, &values, self.headers)
                .map_err(|header| mismatch(header.clone(), HeaderFault::Mismatch))?;
        }
        let capabilities = capabilities(meta);
        if tool.policy.requires_task {
            return Err(capabilities.missing(Capability::Tasks).map_or_else(
                || Rejection::internal(format_args!("tool `{name}` needs a task store")),
                execution::missing,
            ));
        }
        let request = Request { method: "tools/call", name, arguments, body };
        let engine = match self.begin(&envelope.params, &tool.policy, &request).await? {
            Begin::Run(engine) => engine,
            Begin::Later(state) => return self.give_back(id, state, &request).await,
        };
        let call = self.call(name, capabilities, meta, level, engine, true);
        let arguments = match arguments {
            Some(arguments) => arguments,
            None => serde_json::from_str("{}").map_err(|error| unreadable(&error))?, // TOOL-10: absent is `{}`
        };
        let invoked = tool.handler.invoke(Cx::new(Arc::clone(&call)), arguments);
        self.run(id, call, invoked, &tool.policy, &request, None).await
    }

    async fn get_prompt(
        &self,
        envelope: &Envelope<'_>,
        id: &str,
        body: &Bytes,
        meta: &Meta<'_>,
        level: Option<LogLevel>,
    ) -> Result<Response<Body>, Rejection> {
        let name = required(&envelope.params.name, "name")?;
        let arguments = object(envelope.params.arguments, "arguments")?;
        let Some(prompt) = self.server.definition().prompts.get(name) else {
            return Err(Rejection::params("Unknown prompt"));
        };
        let values = strings(arguments, "arguments")?;
        if let Some(missing) = prompt.required.iter().find(|name| !values.contains_key(*name)) {
            return Err(Rejection::params(format!("Missing argument `{missing}`")));
        }
        let request = Request { method: "prompts/get", name, arguments, body };
        let engine = match self.begin(&envelope.params, &prompt.policy, &request).await? {
            Begin::Run(engine) => engine,
            Begin::Later(state) => return self.give_back(id, state, &request).await,
        };
        let call = self.call(name, capabilities(meta), meta, level, engine, true);
        let invoked = prompt.handler.invoke(Cx::new(Arc::clone(&call)), values);
        self.run(id, call, invoked, &prompt.policy, &request, None).await
    }

    async fn read_resource(
        &self,
        envelope: &Envelope<'_>,
        id: &str,
        body: &Bytes,
        meta: &Meta<'_>,
        level: Option<LogLevel>,
    ) -> Result<Response<Body>, Rejection> {
        let name = required(&envelope.params.uri, "uri")?;
        if !uri::is_uri(name) {
            return Err(Rejection::params("params.uri must be an absolute URI (RFC 3986)"));
        }
        let Some((resource, variables)) = self.find_resource(name) else {
            return Err(Rejection::Failed(RequestError::not_found(name)));
        };
        let request = Request { method: "resources/read", name, arguments: None, body };
        let engine = match self.begin(&envelope.params, &resource.policy, &request).await? {
            Begin::Run(engine) => engine,
            Begin::Later(state) => return self.give_back(id, state, &request).await,
        };
        let call = self.call(name, capabilities(meta), meta, level, engine, true);
        let location = Location { uri: name, variables };
        let invoked = resource.handler.invoke(Cx::new(Arc::clone(&call)), location);
        let (mime_type, retried) = (resource.mime_type.clone(), call.engine().round() > 0);
        // MRTR-26: what was read with the help of answers is nobody else's.
        let cache = if retried { Default::default() } else { resource.cache };
        let read = execution::Read { mime_type, cache };
        self.run(id, call, invoked, &resource.policy, &request, Some(read)).await
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

    async fn complete(
        &self,
        envelope: &Envelope<'_>,
        id: &str,
        body: &Bytes,
        meta: &Meta<'_>,
        level: Option<LogLevel>,
    ) -> Result<Response<Body>, Rejection> {
        #[derive(Deserialize)]
        struct Reference {
            r#type: String,
            name: Option<String>,
            uri: Option<String>,
        }
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
        let params = &envelope.params;
        let reference: Reference = typed(params.r#ref, "ref")?;
        let argument: Argument = typed(params.argument, "argument")?;
        let context: Context = match params.context {
            Some(_) => typed(params.context, "context")?,
            None => Context::default(),
        };
        let definition = self.server.definition();
        let named = match (reference.r#type.as_str(), &reference.name, &reference.uri) {
            ("ref/prompt", Some(name), _) => definition
                .prompts
                .get(name)
                .map(|prompt| (prompt.arguments.contains(&argument.name), &prompt.completers)),
            ("ref/resource", _, Some(uri)) => {
                let matching = |entry: &&TemplateEntry| entry.template.matches(uri).is_some();
                let by_uri = || definition.templates.iter().find(matching);
                definition.templates.get(uri).or_else(by_uri).map(|entry| {
                    let known = entry.template.variables().any(|name| name == argument.name);
                    (known, &entry.completers)
                })
            }
            _ => return Err(Rejection::params("params.ref must be a ref/prompt or ref/resource")),
        };
        let completers = match named {
            None => return Err(Rejection::params("params.ref names nothing that is here")),
            Some((false, _)) => {
                return Err(Rejection::params("params.argument.name is not an argument of it"));
            }
            Some((true, completers)) => completers,
        };
        let policy = Policy::default();
        let engine = Engine::first(policy.version, self.platform.now());
        let call = self.call(&argument.name, capabilities(meta), meta, level, engine, false);
        let request = CompletionRequest::new(argument.value, context.arguments);
        let invoked = match completers.get(&argument.name) {
            Some(completer) => completer.invoke(Cx::new(Arc::clone(&call)), request),
            None => Invoked::Answered(Ok(Output::Completion(Default::default()))),
        };
        let request =
            Request { method: "completion/complete", name: &argument.name, arguments: None, body };
        self.run(id, call, invoked, &policy, &request, None).await
    }

    /// Takes up the journal that the request carries, or begins a new one (MRTR-09 to MRTR-24).
    async fn begin(
        &self,
        params: &Params<'_>,
        policy: &Policy,
        request: &Request<'_>,
    ) -> Result<Begin, Rejection> {
        let now = self.platform.now();
        let mut answers: BTreeMap<String, Box<RawValue>> = match params.input_responses {
            None => BTreeMap::new(),
            Some(_) => typed(params.input_responses, "inputResponses")?,
        };
        let limits = self.server.limits();
        let deny_lints = self.server.services().deny_replay_lints;
        let sleep_until = {
            let until = now + limits.inline_sleep;
            self.platform.deadline().map_or(until, |deadline| deadline.min(until))
        };
        let Some(Text(token)) = &params.request_state else {
            let cold = if policy.answers_need_state { BTreeMap::new() } else { answers };
            let engine = Engine::first(policy.version, now).with_cold_answers(cold);
            return Ok(Begin::Run(engine.with_rules(deny_lints, sleep_until)));
        };
        let binding = self.binding(request)?;
        let state = State::open(token, self.server, self.platform.as_ref(), binding).await?;
        let State { mut journal, mut carried, .. } = state;
        answers.retain(|key, _| journal.open.iter().any(|question| question.key == *key));
        check_answers(&journal, &answers)?;
        carried.append(&mut answers);
        if !policy.accepts(journal.version) {
            if journal.version < policy.version {
                return Err(Rejection::params(format!(
                    "`{}` changed since it asked (version {} is no longer accepted); call it anew",
                    request.name, journal.version
                )));
            }
            // A newer instance asked; this one gives the work back untouched.
            journal.round += 1;
            let ttl = self.server.limits().state_ttl;
            return Ok(Begin::Later(State::new(journal, carried, now, ttl)));
        }
        journal.answer(&mut carried);
        let engine = Engine::resume(journal, policy.version, now);
        Ok(Begin::Run(engine.with_rules(deny_lints, sleep_until)))
    }

    /// Answers with nothing but a state: the client retries, and another instance may take it up
    /// (MRTR-23).
    async fn give_back(
        &self,
        id: &str,
        state: State,
        request: &Request<'_>,
    ) -> Result<Response<Body>, Rejection> {
        execution::check_round(self.server, request.name, state.journal.round)?;
        let binding = self.binding(request)?;
        let token = state.seal(self.server, self.platform.as_ref(), binding).await?;
        let result = execution::input_required(self.server, &[], &token);
        Ok(self.json(id, &result))
    }

    fn binding<'b>(&'b self, request: &Request<'b>) -> Result<Binding<'b>, Rejection> {
        Ok(Binding {
            purpose: "state",
            principal: &self.principal,
            method: request.method,
            name: request.name.as_bytes(),
            arguments: canonical::digest_json(request.arguments.map(RawValue::get))
                .map_err(|error| unreadable(&error))?,
        })
    }

    fn call(
        &self,
        name: &str,
        capabilities: ClientCapabilities,
        meta: &Meta<'_>,
        level: Option<LogLevel>,
        engine: Engine,
        may_ask: bool,
    ) -> Arc<Call> {
        let token = meta.progress_token.map(RawValue::get).filter(|token| is_token(token));
        let level = level.filter(|_| self.server.definition().logging);
        let outbox = if self.accept.sse {
            Outbox::new(token.map(str::to_owned), level)
        } else {
            if token.is_some() || level.is_some() {
                tracing::debug!("the client asked for notifications and accepts JSON alone");
            }
            Outbox::default()
        };
        Arc::new(Call {
            server: self.server.clone(),
            platform: Arc::clone(&self.platform),
            principal: Arc::clone(&self.principal),
            capabilities,
            name: name.to_owned(),
            may_ask,
            deadline: self.platform.deadline(),
            outbox: outbox.into(),
            engine: engine.into(),
        })
    }

    async fn run(
        &self,
        id: &str,
        call: Arc<Call>,
        invoked: Invoked,
        policy: &Policy,
        request: &Request<'_>,
        read: Option<execution::Read>,
    ) -> Result<Response<Body>, Rejection> {
        let arguments =
            request.arguments.map(|arguments| request.body.slice_ref(arguments.get().as_bytes()));
        let execution = Execution {
            id: id.to_owned(),
            method: request.method,
            arguments,
            read,
            timeout: policy.timeout.unwrap_or_else(|| self.server.limits().call_timeout),
            accept: self.accept,
        };
        match invoked {
            Invoked::Answered(outcome) => execution.answer(&call, outcome),
            Invoked::Running(handler) => execution.respond(Run::new(call, handler)).await,
        }
    }

    /// A plain reply; SSE for those who take nothing else.
    fn json(&self, id: &str, result: &[u8]) -> Response<Body> {
        execution::reply(self.accept, respond::envelope(Some(id), "result", result))
    }
}

impl std::fmt::Debug for Admission<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("server", self.server).finish_non_exhaustive()
    }
}

/// How a call begins.
#[allow(clippy::large_enum_variant, reason = "moved once, and a box would cost each call")]
enum Begin {
    Run(Engine),
    Later(State),
}

/// What a state is bound to, besides the caller.
struct Request<'a> {
    method: &'static str,
    name: &'a str,
    arguments: Option<&'a RawValue>,
    body: &'a Bytes,
}

/// A notification is accepted, unless it names a version that is not served.
fn check_notification(envelope: &Envelope<'_>) -> Result<(), Rejection> {
    let version = envelope.params.meta.as_ref().and_then(|meta| meta.0.version.as_ref());
    match version {
        Some(version) if !MODERN_VERSIONS.contains(&version.0.as_ref()) => {
            Err(unsupported(&version.0))
        }
        _ => Ok(()),
    }
}

/// Step 11: the two required keys (META-03, META-04).
fn check_meta<'p, 'a>(params: &'p Params<'a>) -> Result<&'p Meta<'a>, Rejection> {
    if let Some(Fault::Meta(key)) = params.fault {
        return Err(Rejection::InvalidMeta { key });
    }
    let Some(meta) = &params.meta else {
        return Err(Rejection::InvalidMeta { key: "_meta" });
    };
    if meta.0.version.is_none() {
        return Err(Rejection::InvalidMeta { key: VERSION_KEY });
    }
    if meta.0.capabilities.is_none() {
        return Err(Rejection::InvalidMeta { key: CAPABILITIES_KEY });
    }
    Ok(&meta.0)
}

fn capabilities(meta: &Meta<'_>) -> ClientCapabilities {
    meta.capabilities
        .as_ref()
        .map_or_else(Default::default, |declared| ClientCapabilities::new(&declared.0))
}

/// Step 20: the level, if one is asked for (LOG-06).
fn log_level(meta: &Meta<'_>) -> Result<Option<LogLevel>, Rejection> {
    meta.log_level.map(|level| serde_json::from_str(level.get())).transpose().map_err(|_| {
        Rejection::params("params._meta[\"io.modelcontextprotocol/logLevel\"] is not a log level")
    })
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
        let text = answer.get();
        let sound = match question.kind {
            Kind::Sampling => serde_json::from_str::<SampleResult>(text).is_ok(),
            Kind::Roots => serde_json::from_str::<RootsResult>(text).is_ok(),
            _ => serde_json::from_str::<ElicitResult>(text)
                .is_ok_and(|answer| answer.check().is_ok()),
        };
        if !sound {
            return Err(bad_answer(&question.key));
        }
    }
    Ok(())
}

pub(crate) fn bad_answer(key: &str) -> Rejection {
    Rejection::params(format!("params.inputResponses[{key:?}] is not an answer to its question"))
}

fn required<'p>(value: &'p Option<Text<'_>>, name: &str) -> Result<&'p str, Rejection> {
    match value {
        Some(value) => Ok(&value.0),
        None => Err(Rejection::params(format!("params.{name} is missing"))),
    }
}

fn object<'a>(value: Option<&'a RawValue>, name: &str) -> Result<Option<&'a RawValue>, Rejection> {
    if value.is_some_and(|value| !value.get().starts_with('{')) {
        return Err(Rejection::params(format!("params.{name} must be an object")));
    }
    Ok(value)
}

fn strings(value: Option<&RawValue>, name: &str) -> Result<BTreeMap<String, String>, Rejection> {
    match value {
        None => Ok(BTreeMap::new()),
        Some(value) => serde_json::from_str(value.get())
            .map_err(|_| Rejection::params(format!("params.{name} must be an object of strings"))),
    }
}

fn typed<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>, name: &str) -> Result<T, Rejection> {
    let Some(value) = value else {
        return Err(Rejection::params(format!("params.{name} is missing")));
    };
    if !value.get().starts_with('{') {
        return Err(Rejection::params(format!("params.{name} must be an object")));
    }
    serde_json::from_str(value.get())
        .map_err(|_| Rejection::params(format!("params.{name} has missing or ill-typed members")))
}

fn unreadable(error: &serde_json::Error) -> Rejection {
    Rejection::params(format!("params.arguments cannot be read: {error}"))
}

fn unsupported(requested: &str) -> Rejection {
    Rejection::UnsupportedVersion { requested: requested.to_owned() }
}

fn mismatch(header: HeaderName, fault: HeaderFault) -> Rejection {
    Rejection::HeaderMismatch { header, fault }
}
