//! A [`Server`]: what was defined, immutable and cheap to clone.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, PoisonError, RwLock, atomic::AtomicUsize},
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use schemars::JsonSchema;
use serde_json::Value;

use crate::{
    admission::Admission,
    body::Body,
    builder::ServerBuilder,
    catalogue::{CacheHints, Catalogue},
    elicit_schema,
    feed::{ChangeFeed, Publisher},
    gate,
    invoke::{Invoke, Location},
    limits::Limits,
    names,
    observe::CallHook,
    options::{Completers, Policy},
    origin::{HostRules, OriginRules},
    param_headers::ParamHeader,
    platform::Platform,
    principal::{Authenticator, Principal},
    protocol::JsonObject,
    provider::Providers,
    schema::Schema,
    seal::Sealer,
    target::DynAny,
    task::{
        job::JobEntry,
        store::{ReplayGuard, TaskDriver, TaskStore},
    },
    uri::UriTemplate,
};

/// An MCP server: an immutable value that keeps nothing between two requests.
///
/// It is made by [`Server::builder`], and cheap to clone. An adapter asks [`gate`](Self::gate)
/// first, reads as much of the body as that allows, and gives it to
/// [`Admission::handle`]. What a platform brings along (keys, a change feed) is
/// added with the `with_*` methods.
#[derive(Clone)]
pub struct Server {
    definition: Arc<Definition>,
    services: Arc<Services>,
}

/// What a platform brings along.
#[derive(Clone, Default)]
pub(crate) struct Services {
    pub(crate) sealer: Option<Arc<dyn Sealer>>,
    pub(crate) feed: Option<Arc<dyn ChangeFeed>>,
    pub(crate) tasks: Option<Tasks>,
    pub(crate) replay_guard: Option<Arc<dyn ReplayGuard>>,
    pub(crate) audience: Option<String>,
    pub(crate) deny_replay_lints: bool,
}

/// Where tasks are kept, and who comes back to them.
#[derive(Clone)]
pub(crate) struct Tasks {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) driver: Arc<dyn TaskDriver>,
}

/// A form, or why the type is none.
pub(crate) type Form = Result<FormSchema, String>;

/// What a question asks for, and what judges the answer (ELIC-13).
#[derive(Debug)]
pub(crate) struct FormSchema {
    pub(crate) json: String,
    pub(crate) schema: Schema,
}

impl FormSchema {
    pub(crate) fn new(form: &Value) -> Form {
        let schema = Schema::compile(form)?;
        Ok(Self { json: form.to_string(), schema })
    }
}

/// What was defined.
pub(crate) struct Definition {
    pub(crate) name: String,
    /// Closes a result: `resultType`, and `_meta` with the server's identity (META-07).
    pub(crate) complete_end: Vec<u8>,
    /// The identity as a member of `_meta`, without braces; empty if it is not told.
    pub(crate) server_info: String,
    pub(crate) endpoint: String,
    /// Said by the builder, or left to the platform.
    pub(crate) audience: Option<String>,
    pub(crate) hosts: HostRules,
    pub(crate) origins: OriginRules,
    /// Whether who may call was said, and is not left at the default for local servers.
    pub(crate) knows_its_callers: bool,
    pub(crate) authenticator: Option<Arc<dyn Authenticator>>,
    pub(crate) anonymous: Arc<Principal>,
    pub(crate) limits: Limits,
    pub(crate) logging: bool,
    pub(crate) tools: Catalogue<ToolEntry>,
    pub(crate) prompts: Catalogue<PromptEntry>,
    pub(crate) resources: Catalogue<ResourceEntry>,
    pub(crate) templates: Catalogue<TemplateEntry>,
    pub(crate) offers: Offers,
    /// The discover results: without and with news of changes (DISC-09), and of each of these the one
    /// without and the one with tasks (TASK-01).
    pub(crate) discover: [[Vec<u8>; 2]; 2],
    /// The tools that start jobs elsewhere.
    pub(crate) jobs: Vec<JobEntry>,
    /// Whether tasks may belong to nobody in particular.
    pub(crate) anonymous_tasks: bool,
    pub(crate) state: HashMap<TypeId, Box<DynAny>>,
    /// The forms of the types that questions ask for; right when empty.
    pub(crate) forms: RwLock<HashMap<TypeId, Arc<Form>>>,
    /// How many listen streams this instance holds open.
    pub(crate) listeners: Arc<AtomicUsize>,
    pub(crate) hooks: Vec<Arc<dyn CallHook>>,
    /// What depends on who asks.
    pub(crate) more: Providers,
}

/// Which kinds there are, defined or provided.
#[derive(Clone, Copy)]
pub(crate) struct Offers {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
}

pub(crate) struct ToolEntry {
    pub(crate) name: Arc<str>,
    /// What arguments must be; `None` if only the handler's type judges them.
    pub(crate) input: Option<Schema>,
    /// What a structured result must be, where that is checked (TOOL-12).
    pub(crate) output: Option<Arc<Schema>>,
    pub(crate) policy: Policy,
    pub(crate) headers: Vec<ParamHeader>,
    pub(crate) handler: Arc<dyn for<'a> Invoke<&'a str>>,
}

pub(crate) struct PromptEntry {
    pub(crate) name: Arc<str>,
    pub(crate) policy: Policy,
    /// Arguments that must be given (PROMPT-05).
    pub(crate) required: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) completers: Completers,
    pub(crate) handler: Arc<dyn Invoke<BTreeMap<String, String>>>,
}

pub(crate) struct ResourceEntry {
    pub(crate) policy: Policy,
    pub(crate) cache: CacheHints,
    pub(crate) mime_type: Option<String>,
    pub(crate) handler: Arc<dyn for<'a> Invoke<Location<'a>>>,
}

pub(crate) struct TemplateEntry {
    pub(crate) template: UriTemplate,
    pub(crate) completers: Completers,
    pub(crate) read: ResourceEntry,
}

impl Server {
    /// Begins a server with the name and version that clients see.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into(), version.into())
    }

    pub(crate) fn new(definition: Definition, services: Services) -> Self {
        Self { definition: Arc::new(definition), services: Arc::new(services) }
    }

    /// Decides from the head of a request whether its body is read at all.
    ///
    /// Nothing is read from a caller that is not welcome: host, origin, path, method, token, media
    /// types and declared length are checked here.
    ///
    /// # Errors
    /// The response that refuses the request, or answers it without its body.
    pub async fn gate<'a>(
        &'a self,
        parts: &'a Parts,
        platform: Arc<dyn Platform>,
    ) -> Result<Admission<'a>, Response<Body>> {
        gate::gate(self, parts, platform).await
    }

    /// Answers a request whose body is there already.
    pub async fn respond(
        &self,
        request: Request<Bytes>,
        platform: Arc<dyn Platform>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        match self.gate(&parts, platform).await {
            Err(response) => response,
            Ok(admission) if body.len() > admission.body_limit() => admission.too_large(),
            Ok(admission) => admission.handle(body).await,
        }
    }

    /// Adds the keys that request states and cursors are sealed with.
    #[must_use]
    pub fn with_sealer(self, sealer: impl Sealer) -> Self {
        self.with_services(|services| services.sealer = Some(Arc::new(sealer)))
    }

    /// Adds the feed by which listeners learn of changes.
    #[must_use]
    pub fn with_change_feed(self, feed: impl ChangeFeed) -> Self {
        self.with_services(|services| services.feed = Some(Arc::new(feed)))
    }

    /// Adds a store for tasks, and the driver that advances them. Without, calls go on inside their
    /// request.
    #[must_use]
    pub fn with_tasks(self, store: impl TaskStore, driver: impl TaskDriver) -> Self {
        let tasks = Tasks { store: Arc::new(store), driver: Arc::new(driver) };
        self.with_services(|services| services.tasks = Some(tasks))
    }

    /// Adds the memory of what was used once, for tools that are for
    /// [single use](crate::ToolOptions::single_use).
    #[must_use]
    pub fn with_replay_guard(self, guard: impl ReplayGuard) -> Self {
        self.with_services(|services| services.replay_guard = Some(Arc::new(guard)))
    }

    /// Names the deployment, where the builder did not: what one deployment seals, another does not
    /// open (MRTR-17).
    #[must_use]
    pub fn with_audience(self, audience: impl Into<String>) -> Self {
        self.with_services(|services| services.audience = Some(audience.into()))
    }

    /// For tests: what the journal would only hint at in the debug log (a plain await before a
    /// question, keys that change) fails the call with the hint as its message.
    #[must_use]
    pub fn with_replay_lints_denied(self) -> Self {
        self.with_services(|services| services.deny_replay_lints = true)
    }

    /// Whether it has keys. Without, questions and paginated lists fail.
    #[must_use]
    pub fn has_sealer(&self) -> bool {
        self.services.sealer.is_some()
    }

    /// Whether it has a change feed. Without, it advertises no changes.
    #[must_use]
    pub fn has_change_feed(&self) -> bool {
        self.services.feed.is_some()
    }

    /// Whether it has a task store.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        self.services.tasks.is_some()
    }

    /// Whether it has a replay guard.
    #[must_use]
    pub fn has_replay_guard(&self) -> bool {
        self.services.replay_guard.is_some()
    }

    /// Whether who may call was said. If not, only loopback hosts and origins are accepted, which
    /// refuses every caller of a deployed server.
    #[must_use]
    pub fn knows_its_callers(&self) -> bool {
        self.definition.knows_its_callers
    }

    /// The name that clients see.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The path of the endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.definition.endpoint
    }

    /// The bounds and times in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.definition.limits
    }

    /// Announces changes to listeners; works outside a request too. Does nothing without a feed.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.services
            .feed
            .as_ref()
            .map_or_else(Publisher::default, |feed| Publisher::new(Arc::clone(feed)))
    }

    /// Announces changes to the listeners of a caller's tenant.
    pub(crate) fn publisher_of(&self, caller: &Principal) -> Publisher {
        match &caller.tenant {
            Some(tenant) => self.publisher().for_tenant(tenant.clone()),
            None => self.publisher(),
        }
    }

    pub(crate) fn definition(&self) -> &Definition {
        &self.definition
    }

    pub(crate) fn services(&self) -> &Services {
        &self.services
    }

    pub(crate) fn sealer(&self) -> Option<&dyn Sealer> {
        self.services.sealer.as_deref()
    }

    /// Where tasks are kept, if there can be any: without authentication only if the server says so.
    pub(crate) fn tasks(&self) -> Option<&Tasks> {
        self.services.tasks.as_ref().filter(|_| self.permits_tasks())
    }

    /// Where the tasks of a caller are kept, if it may have any.
    pub(crate) fn tasks_of(&self, owner: &Principal) -> Option<&Tasks> {
        self.services.tasks.as_ref().filter(|_| self.permits_tasks_of(owner))
    }

    pub(crate) fn permits_tasks_of(&self, owner: &Principal) -> bool {
        self.definition.anonymous_tasks || !owner.is_anonymous()
    }

    /// Whether there may be tasks at all, which is what clients are told (TASK-01).
    pub(crate) fn offers_tasks(&self) -> bool {
        let any = self.services.tasks.is_some() || !self.definition.jobs.is_empty();
        any && self.permits_tasks()
    }

    fn permits_tasks(&self) -> bool {
        self.definition.anonymous_tasks || self.definition.authenticator.is_some()
    }

    pub(crate) fn audience(&self) -> &str {
        let said = self.definition.audience.as_deref();
        said.or(self.services.audience.as_deref()).unwrap_or(&self.definition.name)
    }

    pub(crate) fn state<T: Any>(&self) -> Option<&T> {
        self.definition.state.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// The form of a type, made at its first question: replay asks for it in every round.
    pub(crate) fn form<T: JsonSchema + 'static>(&self) -> Arc<Form> {
        let (forms, id) = (&self.definition.forms, TypeId::of::<T>());
        if let Some(form) = forms.read().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Arc::clone(form);
        }
        let form =
            Arc::new(elicit_schema::form_schema_of::<T>().and_then(|form| FormSchema::new(&form)));
        let mut forms = forms.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(forms.entry(id).or_insert(form))
    }

    /// Closes a result object: a comma, `resultType`, `_meta` and the brace.
    pub(crate) fn end_result(
        &self,
        out: &mut Vec<u8>,
        result_type: &str,
        meta: Option<&JsonObject>,
    ) {
        if result_type == "complete" && meta.is_none() {
            out.extend_from_slice(&self.definition.complete_end);
        } else {
            end_result(out, result_type, &self.definition.server_info, meta);
        }
    }

    fn with_services(self, change: impl FnOnce(&mut Services)) -> Self {
        let mut services = (*self.services).clone();
        change(&mut services);
        Self { services: Arc::new(services), ..self }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

/// Closes a result object that has at least one member. `server_info` is a member of `_meta`.
pub(crate) fn end_result(
    out: &mut Vec<u8>,
    result_type: &str,
    server_info: &str,
    meta: Option<&JsonObject>,
) {
    out.extend_from_slice(b",\"resultType\":\"");
    out.extend_from_slice(result_type.as_bytes());
    out.push(b'"');
    let own = meta.map(own_members).filter(|own| !own.is_empty());
    let own = own.and_then(|own| serde_json::to_vec(&own).ok());
    match (own, server_info) {
        (None, "") => {}
        (None, info) => {
            out.extend_from_slice(b",\"_meta\":{");
            out.extend_from_slice(info.as_bytes());
            out.push(b'}');
        }
        (Some(own), info) => {
            out.extend_from_slice(b",\"_meta\":");
            out.extend_from_slice(own.strip_suffix(b"}").unwrap_or(&own));
            if !info.is_empty() {
                out.push(b',');
                out.extend_from_slice(info.as_bytes());
            }
            out.push(b'}');
        }
    }
    out.push(b'}');
}

/// The members of `_meta` that are the application's to say (META-12).
fn own_members(meta: &JsonObject) -> BTreeMap<&str, &Value> {
    let mut own: BTreeMap<&str, &Value> =
        meta.iter().map(|(key, value)| (key.as_str(), value)).collect();
    own.retain(|key, _| {
        let reserved = names::is_reserved_meta_key(key);
        if reserved {
            tracing::warn!(key, "a result's _meta key is reserved for the protocol; left out");
        }
        !reserved
    });
    own
}
