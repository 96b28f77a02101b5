//! How a server is defined.

use std::{
    any::TypeId,
    collections::{BTreeMap, HashMap},
    sync::{Arc, RwLock},
};

use serde_json::{Value, json};

use crate::{
    MODERN_VERSIONS,
    call::TASKS,
    catalogue::{CacheHints, Catalogue, List},
    define,
    error::BuildError,
    feed::ChangeFeed,
    handler::{Handler, PromptArgs, PromptOutput, ReadArgs, ReadOutput, ToolArgs, ToolOutput},
    invoke::{PromptHandler, ResourceHandler, ToolHandler},
    limits::Limits,
    names,
    observe::CallHook,
    options::{PromptOptions, ResourceOptions, TemplateOptions, ToolOptions},
    origin::{HostRules, OriginRules},
    principal::{Authenticator, Principal},
    protocol::{Icon, Implementation, JsonObject, Prompt, Resource, ResourceTemplate, Tool},
    provider::{DynamicPrompt, DynamicResource, DynamicTool, Provider, Providers},
    seal::Sealer,
    server::{
        Definition, Offers, PromptEntry, ResourceEntry, Server, Services, TemplateEntry, ToolEntry,
        end_result,
    },
    target::{DynAny, MaybeSend, MaybeSync},
    task::{
        job::{Job, JobEntry, JobTool},
        store::RECORD_BYTES,
    },
    uri,
};

/// Defines a server; made by [`Server::builder`].
///
/// Every method takes and returns the builder. What is wrong with a definition is found by
/// [`build`](Self::build), all at once.
pub struct ServerBuilder {
    implementation: Implementation,
    server_info: bool,
    instructions: Option<String>,
    endpoint: String,
    public_url: Option<String>,
    audience: Option<String>,
    hosts: Option<HostRules>,
    origins: Option<OriginRules>,
    authenticator: Option<Arc<dyn Authenticator>>,
    limits: Limits,
    logging: bool,
    extensions: JsonObject,
    cache: BTreeMap<List, CacheHints>,
    discover_cache: CacheHints,
    anonymous_tasks: bool,
    state: HashMap<TypeId, Box<DynAny>>,
    services: Services,
    hooks: Vec<Arc<dyn CallHook>>,
    more: Providers,
    tools: Vec<(String, Tool, ToolEntry)>,
    jobs: Vec<JobEntry>,
    prompts: Vec<(String, Prompt, PromptEntry)>,
    resources: Vec<(String, Resource, ResourceEntry)>,
    templates: Vec<(String, ResourceTemplate, TemplateEntry)>,
    faults: Vec<String>,
}

impl ServerBuilder {
    pub(crate) fn new(name: String, version: String) -> Self {
        Self {
            implementation: Implementation::new(name, version),
            server_info: true,
            instructions: None,
            endpoint: "/mcp".to_owned(),
            public_url: None,
            audience: None,
            hosts: None,
            origins: None,
            authenticator: None,
            limits: Limits::default(),
            logging: false,
            extensions: JsonObject::new(),
            cache: BTreeMap::new(),
            discover_cache: CacheHints::default(),
            anonymous_tasks: false,
            state: HashMap::new(),
            services: Services::default(),
            hooks: Vec::new(),
            more: Providers::default(),
            tools: Vec::new(),
            jobs: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            faults: Vec::new(),
        }
    }

    // What the server offers.

    /// Adds a tool: an `async fn` or closure that takes its arguments, with or without a
    /// [`Cx`](crate::Cx) before them.
    #[must_use]
    pub fn tool<M, H>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ToolArgs,
        H::Out: ToolOutput,
        H::Future: MaybeSend,
    {
        self.tool_with(name, description, handler, |options| options)
    }

    /// Adds a tool with [options](ToolOptions).
    #[must_use]
    pub fn tool_with<M, H>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
        options: impl FnOnce(ToolOptions) -> ToolOptions,
    ) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ToolArgs,
        H::Out: ToolOutput,
        H::Future: MaybeSend,
    {
        let options = options(ToolOptions::of::<H::Args, H::Out>(name.into(), description.into()));
        let handler = Arc::new(ToolHandler::new(handler));
        let (tool, entry) = define::tool(options, handler, &mut self.faults);
        self.tools.push((tool.name.clone(), tool, entry));
        self
    }

    /// Adds a tool that starts a [`Job`] elsewhere, which has an id of its own: the task id is that,
    /// sealed, so nothing is stored here.
    #[must_use]
    pub fn job<J: Job>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        job: J,
    ) -> Self {
        self.job_with(name, description, job, |options| options)
    }

    /// Adds a tool that starts a [`Job`] elsewhere, with [options](ToolOptions).
    #[must_use]
    pub fn job_with<J: Job>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        job: J,
        options: impl FnOnce(ToolOptions) -> ToolOptions,
    ) -> Self {
        let options = options(ToolOptions::of::<J::Args, J::Out>(name.into(), description.into()));
        let job = Arc::new(JobTool::new(job));
        let (tool, entry) = define::tool(options, Arc::clone(&job) as _, &mut self.faults);
        self.jobs.push(JobEntry::new(&entry, job));
        self.tools.push((tool.name.clone(), tool, entry));
        self
    }

    /// Adds a prompt.
    #[must_use]
    pub fn prompt<M, H>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: PromptArgs,
        H::Out: PromptOutput,
        H::Future: MaybeSend,
    {
        self.prompt_with(name, description, handler, |options| options)
    }

    /// Adds a prompt with [options](PromptOptions).
    #[must_use]
    pub fn prompt_with<M, H>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
        options: impl FnOnce(PromptOptions) -> PromptOptions,
    ) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: PromptArgs,
        H::Out: PromptOutput,
        H::Future: MaybeSend,
    {
        let options = options(PromptOptions::of::<H::Args>(name.into(), description.into()));
        let handler = Arc::new(PromptHandler::new(handler));
        let (prompt, entry) = define::prompt(options, handler, &mut self.faults);
        self.prompts.push((prompt.name.clone(), prompt, entry));
        self
    }

    /// Adds tools that depend on who calls. What is [defined](Self::tool) goes before them.
    #[must_use]
    pub fn tools_from(mut self, provider: impl Provider<DynamicTool>) -> Self {
        self.more.tools = Some(Arc::new(provider));
        self
    }

    /// Adds prompts that depend on who calls. What is [defined](Self::prompt) goes before them.
    #[must_use]
    pub fn prompts_from(mut self, provider: impl Provider<DynamicPrompt>) -> Self {
        self.more.prompts = Some(Arc::new(provider));
        self
    }

    /// Adds resources that depend on who calls. What is [defined](Self::resource) goes before them,
    /// templates too.
    #[must_use]
    pub fn resources_from(mut self, provider: impl Provider<DynamicResource>) -> Self {
        self.more.resources = Some(Arc::new(provider));
        self
    }

    /// Adds a resource at a fixed URI.
    #[must_use]
    pub fn resource<M, H>(self, uri: impl Into<String>, name: impl Into<String>, handler: H) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ReadArgs,
        H::Out: ReadOutput,
        H::Future: MaybeSend,
    {
        self.resource_with(uri, name, handler, |options| options)
    }

    /// Adds a resource with [options](ResourceOptions).
    #[must_use]
    pub fn resource_with<M, H>(
        mut self,
        uri: impl Into<String>,
        name: impl Into<String>,
        handler: H,
        options: impl FnOnce(ResourceOptions) -> ResourceOptions,
    ) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ReadArgs,
        H::Out: ReadOutput,
        H::Future: MaybeSend,
    {
        let resource = Resource::new(uri, name);
        let handler = Arc::new(ResourceHandler::new(handler));
        let options = options(ResourceOptions::new(resource));
        let (resource, entry) = define::resource(options, handler, &mut self.faults);
        self.resources.push((resource.uri.clone(), resource, entry));
        self
    }

    /// Adds resources at the URIs of a template (RFC 6570 with `{var}` and `{+var}`).
    #[must_use]
    pub fn template<M, H>(
        self,
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: H,
    ) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ReadArgs,
        H::Out: ReadOutput,
        H::Future: MaybeSend,
    {
        self.template_with(uri_template, name, handler, |options| options)
    }

    /// Adds a template with [options](TemplateOptions).
    #[must_use]
    pub fn template_with<M, H>(
        mut self,
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: H,
        options: impl FnOnce(TemplateOptions) -> TemplateOptions,
    ) -> Self
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ReadArgs,
        H::Out: ReadOutput,
        H::Future: MaybeSend,
    {
        let template = ResourceTemplate::new(uri_template, name);
        let handler = Arc::new(ResourceHandler::new(handler));
        let options = options(TemplateOptions::new(template));
        if let Some((template, entry)) = define::template(options, handler, &mut self.faults) {
            self.templates.push((template.uri_template.clone(), template, entry));
        }
        self
    }

    // What the server says of itself.

    /// The name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.implementation.title = Some(title.into());
        self
    }

    /// What the server is.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.implementation.description = Some(description.into());
        self
    }

    /// Where people read more.
    #[must_use]
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.implementation.website_url = Some(url.into());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.implementation.icons.get_or_insert_default().push(icon);
        self
    }

    /// How a model should use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Leaves name and version out of results, where they are told otherwise (META-07).
    #[must_use]
    pub fn without_server_info(mut self) -> Self {
        self.server_info = false;
        self
    }

    /// Lets tools send log messages (deprecated by the specification, LOG-01).
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.logging = true;
        self
    }

    /// Advertises an extension with its settings (EXT-01).
    #[must_use]
    pub fn extension(mut self, id: impl Into<String>, settings: JsonObject) -> Self {
        let id = id.into();
        if !names::is_extension_id(&id) {
            self.faults.push(format!(
                "extension `{id}` is ill-formed; an id looks like `com.example/name` (EXT-02)"
            ));
        } else if id == TASKS {
            self.faults.push(format!("extension `{id}` is advertised by the library itself"));
        }
        if self.extensions.insert(id.clone(), Value::Object(settings)).is_some() {
            self.faults.push(format!("extension `{id}` is there twice; keep one"));
        }
        self
    }

    /// How long and by whom a list may be cached; by default not at all (CACHE-09).
    #[must_use]
    pub fn cache(mut self, list: List, hints: CacheHints) -> Self {
        self.cache.insert(list, hints);
        self
    }

    /// How long and by whom `server/discover` may be cached; by default not at all (DISC-05).
    #[must_use]
    pub fn cache_discover(mut self, hints: CacheHints) -> Self {
        self.discover_cache = hints;
        self
    }

    // Where it stands, and who may call.

    /// The path of the endpoint, `/mcp` by default.
    #[must_use]
    pub fn endpoint(mut self, path: impl Into<String>) -> Self {
        self.endpoint = path.into();
        self
    }

    /// The URL under which clients know the server. It names the audience of tokens and of
    /// everything sealed, and is mandatory with authentication.
    #[must_use]
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// The name of the deployment, for a server without a [public URL](Self::public_url), which is its
    /// name otherwise: what one deployment seals, another does not open (MRTR-17). Without either,
    /// adapters take it from the environment variable `MCP_EDGE_AUDIENCE`, and else it is the server's
    /// name.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// The origins whose browsers may call, such as `https://app.example.com` (HTTP-02). By default
    /// loopback origins alone, for a local server. Once origins are given, hosts are free unless
    /// [`allow_hosts`](Self::allow_hosts) says which.
    #[must_use]
    pub fn allow_origins<'a>(mut self, origins: impl IntoIterator<Item = &'a str>) -> Self {
        match OriginRules::list(origins) {
            Ok(rules) => self.origins = Some(rules),
            Err(fault) => self.faults.push(format!("allow_origins: {fault}")),
        }
        self
    }

    /// The hosts under which the server answers, `host` or `host:port` (HTTP-04).
    #[must_use]
    pub fn allow_hosts<'a>(mut self, hosts: impl IntoIterator<Item = &'a str>) -> Self {
        match HostRules::list(hosts) {
            Ok(rules) => self.hosts = Some(rules),
            Err(fault) => self.faults.push(format!("allow_hosts: {fault}")),
        }
        self
    }

    /// Who finds out who is calling; by default everybody is anonymous.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Lets callers who are nobody in particular have tasks. They share them: whoever learns the id of
    /// such a task can read and cancel it (TASK-37), and one bound holds for all of theirs together.
    #[must_use]
    pub fn anonymous_tasks(mut self, permitted: bool) -> Self {
        self.anonymous_tasks = permitted;
        self
    }

    /// The keys that request states, cursors and task ids are sealed with. Adapters take them from the
    /// platform's secrets, so a server seldom names them itself.
    #[must_use]
    pub fn sealer(mut self, sealer: impl Sealer) -> Self {
        self.services.sealer = Some(Arc::new(sealer));
        self
    }

    /// The feed by which listeners learn of changes. Adapters bring one along, so a server seldom
    /// names it itself.
    #[must_use]
    pub fn change_feed(mut self, feed: impl ChangeFeed) -> Self {
        self.services.feed = Some(Arc::new(feed));
        self
    }

    /// Bounds and times.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A value of the application's own, one for each type, which handlers reach by
    /// [`Cx::state`](crate::Cx::state).
    #[must_use]
    pub fn state<T: MaybeSend + MaybeSync + 'static>(mut self, state: T) -> Self {
        self.state.insert(TypeId::of::<T>(), Box::new(state));
        self
    }

    /// Adds a hook that sees every call from outside, for audit and metrics: a [`CallHook`], or a
    /// closure that sees how each call ended.
    #[must_use]
    pub fn around_call(mut self, hook: impl CallHook) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Makes the server.
    ///
    /// # Errors
    /// Everything that is wrong with the definitions, each with its remedy.
    pub fn build(self) -> Result<Server, BuildError> {
        let mut faults = self.faults;
        if !self.endpoint.starts_with('/') || self.endpoint.contains(['?', '#']) {
            faults.push(format!(
                "endpoint `{}` must be a path that begins with `/`, without query",
                self.endpoint
            ));
        }
        if let Some(url) = &self.public_url
            && !uri::is_web_page(url)
        {
            faults.push(format!(
                "public_url `{url}` must be an https URL, or http on a loopback host"
            ));
        }
        if self.authenticator.is_some() && self.public_url.is_none() {
            faults.push(
                "an authenticator needs public_url: tokens are meant for one server".to_owned(),
            );
        }
        if self.limits.page_size == 0 {
            faults.push("Limits::page_size must be at least 1".to_owned());
        }
        if self.limits.task_bytes > RECORD_BYTES {
            faults.push(format!("Limits::task_bytes must be at most {RECORD_BYTES}"));
        }
        let most = self.limits.task_ttl_max;
        if self.limits.task_ttl > most {
            faults.push("Limits::task_ttl must be at most Limits::task_ttl_max".to_owned());
        }
        for (name, _, ToolEntry { policy, .. }) in &self.tools {
            if policy.task_ttl.is_some_and(|ttl| ttl > most) {
                faults.push(format!(
                    "tool `{name}` has a task_ttl of more than Limits::task_ttl_max"
                ));
            }
        }
        if !(8..128).contains(&self.limits.json_depth) {
            faults.push("Limits::json_depth must be from 8 to 127".to_owned());
        }
        let server_info = server_info(&self.implementation, self.server_info);
        let mut complete_end = Vec::new();
        end_result(&mut complete_end, "complete", &server_info, None);
        // CACHE-09: a list that depends on who asks is nobody else's.
        let hints = |list, varies| {
            let hints = self.cache.get(&list).copied().unwrap_or_default();
            if varies { CacheHints::private(hints.ttl) } else { hints }
        };
        let size = self.limits.page_size.max(1);
        let more = &self.more;
        let resources = !self.resources.is_empty() || !self.templates.is_empty();
        let offers = Offers {
            tools: more.tools.is_some() || !self.tools.is_empty(),
            prompts: more.prompts.is_some() || !self.prompts.is_empty(),
            resources: more.resources.is_some() || resources,
            completions: more.prompts.is_some()
                || self.prompts.iter().any(|(.., entry)| !entry.completers.is_empty())
                || self.templates.iter().any(|(.., entry)| !entry.completers.is_empty()),
        };
        let discover = |live: bool, tasks: bool| {
            let mut extensions = self.extensions.clone();
            if tasks {
                extensions.insert(TASKS.to_owned(), json!({}));
            }
            let mut result = json!({
                "supportedVersions": MODERN_VERSIONS,
                "capabilities": capabilities(
                    offers, self.logging, &extensions, live,
                ),
            });
            if let (Some(text), Some(members)) = (&self.instructions, result.as_object_mut()) {
                members.insert("instructions".to_owned(), text.as_str().into());
            }
            let mut out = result.to_string().into_bytes();
            out.pop();
            out.extend_from_slice(self.discover_cache.members().as_bytes());
            out.extend_from_slice(&complete_end);
            out
        };
        let discover = [false, true].map(|live| [discover(live, false), discover(live, true)]);
        let mut refuse = |what: &str, duplicates: Vec<String>| {
            faults.extend(duplicates.into_iter().map(|name| {
                format!("{what} `{name}` is defined twice; names are unique: rename one")
            }));
        };
        let end = &complete_end;
        let tools = Catalogue::new(
            List::Tools,
            self.tools,
            hints(List::Tools, more.tools.is_some()),
            size,
            end,
        )
        .map_err(|names| refuse("tool", names));
        let prompts = Catalogue::new(
            List::Prompts,
            self.prompts,
            hints(List::Prompts, more.prompts.is_some()),
            size,
            end,
        )
        .map_err(|names| refuse("prompt", names));
        let resources = Catalogue::new(
            List::Resources,
            self.resources,
            hints(List::Resources, more.resources.is_some()),
            size,
            end,
        )
        .map_err(|names| refuse("resource", names));
        let list = List::ResourceTemplates;
        let templates = Catalogue::new(list, self.templates, hints(list, false), size, end)
            .map_err(|names| refuse("resource template", names));
        let (Ok(tools), Ok(prompts), Ok(resources), Ok(templates), true) =
            (tools, prompts, resources, templates, faults.is_empty())
        else {
            return Err(BuildError::new(faults));
        };
        let name = self.implementation.name;
        let audience = self.public_url.or(self.audience);
        let knows_its_callers = self.origins.is_some() || self.hosts.is_some();
        let hosts = self.hosts.unwrap_or(match self.origins {
            Some(_) => HostRules::Any,
            None => HostRules::Loopback,
        });
        let definition = Definition {
            name,
            complete_end,
            server_info,
            endpoint: self.endpoint,
            audience,
            hosts,
            origins: self.origins.unwrap_or_default(),
            knows_its_callers,
            authenticator: self.authenticator,
            anonymous: Arc::new(Principal::anonymous()),
            limits: self.limits,
            logging: self.logging,
            tools,
            prompts,
            resources,
            templates,
            offers,
            discover,
            jobs: self.jobs,
            anonymous_tasks: self.anonymous_tasks,
            state: self.state,
            forms: RwLock::default(),
            listeners: Arc::default(),
            hooks: self.hooks,
            more: self.more,
        };
        Ok(Server::new(definition, self.services))
    }
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("name", &self.implementation.name)
            .finish_non_exhaustive()
    }
}

/// The identity as a member of `_meta`, without braces.
fn server_info(implementation: &Implementation, told: bool) -> String {
    match serde_json::to_string(implementation) {
        Ok(info) if told => format!(r#""io.modelcontextprotocol/serverInfo":{info}"#),
        _ => String::new(),
    }
}

/// `ServerCapabilities` (DISC-06, DISC-07); `live` if listeners learn of changes (DISC-09).
fn capabilities(offers: Offers, logging: bool, extensions: &JsonObject, live: bool) -> JsonObject {
    let mut all = JsonObject::new();
    let mut advertise = |name: &str, offered: bool, value: Value| {
        if offered {
            all.insert(name.to_owned(), value);
        }
    };
    let list = if live { json!({ "listChanged": true }) } else { json!({}) };
    advertise("tools", offers.tools, list.clone());
    advertise("prompts", offers.prompts, list.clone());
    let resource = if live { json!({ "listChanged": true, "subscribe": true }) } else { list };
    advertise("resources", offers.resources, resource);
    advertise("completions", offers.completions, json!({}));
    advertise("logging", logging, json!({}));
    advertise("extensions", !extensions.is_empty(), Value::Object(extensions.clone()));
    all
}
