//! What can be said about a tool, prompt or resource beside its name and handler.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    catalogue::CacheHints,
    handler::{CompletionOutput, CompletionRequest, Handler, PromptArgs, ToolArgs, ToolOutput},
    invoke::{Completer, Invoke, StaticValues},
    names,
    protocol::{
        Annotations, Icon, JsonObject, Prompt, PromptArgument, Resource, ResourceTemplate, Tool,
        ToolAnnotations,
    },
    target::MaybeSend,
};

/// How a handler is run, whatever it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) timeout: Option<Duration>,
    pub(crate) version: u32,
    pub(crate) accepts: Option<RangeInclusive<u32>>,
    pub(crate) answers_need_state: bool,
    pub(crate) requires_task: bool,
    pub(crate) single_use: bool,
    pub(crate) task_ttl: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            timeout: None,
            version: 1,
            accepts: None,
            answers_need_state: false,
            requires_task: false,
            single_use: false,
            task_ttl: None,
        }
    }
}

impl Policy {
    /// Whether a journal of `version` can be replayed.
    pub(crate) fn accepts(&self, version: u32) -> bool {
        match &self.accepts {
            Some(range) => range.contains(&version),
            None => version == self.version,
        }
    }

    fn check(&self, what: &str, faults: &mut Vec<String>) {
        if self.accepts.as_ref().is_some_and(|range| !range.contains(&self.version)) {
            faults.push(format!("{what} does not accept its own version {}", self.version));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            faults.push(format!("{what} has a timeout of zero; leave it out for the default"));
        }
        if self.task_ttl.is_some_and(|ttl| ttl.is_zero()) {
            faults.push(format!("{what} has a task_ttl of zero; leave it out for the default"));
        }
    }
}

/// Methods that every kind of definition has.
macro_rules! shared_options {
    () => {
        /// The name for people.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.definition.title = Some(title.into());
            self
        }

        /// Adds an icon.
        #[must_use]
        pub fn icon(mut self, icon: Icon) -> Self {
            self.definition.icons.get_or_insert_default().push(icon);
            self
        }

        /// Adds a member of the definition's `_meta` (META-10).
        #[must_use]
        pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
            let key = key.into();
            if !names::is_meta_key(&key) || names::is_reserved_meta_key(&key) {
                self.faults.push(format!(
                    "the _meta key `{key}` is reserved or ill-formed; use a prefix of your own \
                     such as `com.example/`"
                ));
            }
            self.definition.meta.get_or_insert_default().insert(key, value.into());
            self
        }

        /// How long one run may take; the default is [`Limits::call_timeout`](crate::Limits).
        #[must_use]
        pub fn timeout(mut self, timeout: Duration) -> Self {
            self.policy.timeout = Some(timeout);
            self
        }

        /// The version of the handler, 1 by default. Raise it when what it asks or does changes in
        /// a way that calls under way must not meet half-way.
        #[must_use]
        pub fn version(mut self, version: u32) -> Self {
            self.policy.version = version;
            self
        }

        /// The versions whose calls under way this handler can take up; only its own by default.
        #[must_use]
        pub fn accepts(mut self, versions: RangeInclusive<u32>) -> Self {
            self.policy.accepts = Some(versions);
            self
        }

        /// Answers count only together with the `requestState` of the question: a first call that
        /// brings answers along is asked all the same.
        #[must_use]
        pub fn answers_need_state(mut self) -> Self {
            self.policy.answers_need_state = true;
            self
        }

        /// A `requestState` may be used once, for a handler with effects after a question: a client
        /// that presents an older one again is refused before the first new step. Needs a
        /// [replay guard](crate::Server::with_replay_guard).
        #[must_use]
        pub fn single_use(mut self) -> Self {
            self.policy.single_use = true;
            self
        }
    };
}

/// Methods of whatever is read.
macro_rules! reading_options {
    () => {
        /// What is read.
        #[must_use]
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.definition.description = Some(description.into());
            self
        }

        /// The MIME type, also of contents that name none.
        #[must_use]
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.definition.mime_type = Some(mime_type.into());
            self
        }

        /// Audience, priority and age (RES-19).
        #[must_use]
        pub fn annotations(mut self, annotations: Annotations) -> Self {
            self.definition.annotations = Some(annotations);
            self
        }

        /// How long and by whom what is read may be cached; by default not at all (CACHE-09).
        #[must_use]
        pub fn cache(mut self, hints: CacheHints) -> Self {
            self.cache = hints;
            self
        }
    };
}

/// Methods of whatever completes its arguments or variables.
macro_rules! completion_options {
    () => {
        /// Completes an argument as it is typed (COMP-02).
        #[must_use]
        pub fn complete<M, H>(mut self, argument: impl Into<String>, handler: H) -> Self
        where
            M: 'static,
            H: Handler<M, Args = CompletionRequest>,
            H::Out: CompletionOutput,
            H::Future: MaybeSend,
        {
            self.completers.add(argument.into(), Arc::new(Completer::new(handler)));
            self
        }

        /// Completes an argument from a fixed list, by prefix.
        #[must_use]
        pub fn complete_values<S: Into<String>>(
            mut self,
            argument: impl Into<String>,
            values: impl IntoIterator<Item = S>,
        ) -> Self {
            self.completers.add(argument.into(), Arc::new(StaticValues::new(values)));
            self
        }
    };
}

/// Options of a tool, see [`ServerBuilder::tool_with`](crate::ServerBuilder::tool_with).
#[derive(Debug)]
pub struct ToolOptions {
    pub(crate) definition: Tool,
    pub(crate) has_schema: bool,
    pub(crate) validates: bool,
    pub(crate) checks_output: Option<bool>,
    pub(crate) policy: Policy,
    pub(crate) faults: Vec<String>,
}

impl ToolOptions {
    pub(crate) fn new(definition: Tool, has_schema: bool) -> Self {
        Self {
            definition,
            has_schema,
            validates: true,
            checks_output: None,
            policy: Policy::default(),
            faults: Vec::new(),
        }
    }

    /// What the types of a handler say of a tool.
    pub(crate) fn of<A: ToolArgs, O: ToolOutput>(name: String, description: String) -> Self {
        let schema = A::schema();
        let has_schema = schema.is_some();
        let mut tool = Tool::new(name, schema.unwrap_or_default()).with_description(description);
        tool.output_schema = O::output_schema();
        Self::new(tool, has_schema)
    }

    shared_options!();

    /// Hints about what the tool does (TOOL-21).
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// The JSON Schema of the arguments, instead of the one of the handler's type (TOOL-07). All
    /// keywords pass through untouched (TOOL-09). Mirror no secrets and no personal data with
    /// `x-mcp-header`: whatever routes requests reads them (PARAM-09).
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.definition.input_schema = schema;
        self.has_schema = true;
        self
    }

    /// The JSON Schema of the structured result, instead of the one of the handler's type
    /// (TOOL-12).
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.definition.output_schema = Some(schema);
        self.checks_output.get_or_insert(true);
        self
    }

    /// Leaves it to the handler's type to judge the arguments, for a tool whose type says all that
    /// its schema says. Otherwise arguments are validated first, and the model reads every fault at
    /// once (TOOL-15).
    #[must_use]
    pub fn without_validation(mut self) -> Self {
        self.validates = false;
        self
    }

    /// Whether a structured result is checked against its schema before it is sent (TOOL-12). By
    /// default it is where the schema was given, and in debug builds where a type made it.
    #[must_use]
    pub fn check_output(mut self, check: bool) -> Self {
        self.checks_output = Some(check);
        self
    }

    /// The tool only makes sense as a task: a client that cannot hold one is told so before
    /// anything of the tool runs (TASK-04).
    #[must_use]
    pub fn requires_task(mut self) -> Self {
        self.policy.requires_task = true;
        self
    }

    /// How long a task of this tool lives, from its creation on (TASK-38); the default is
    /// [`Limits::task_ttl`](crate::Limits), and [`Limits::task_ttl_max`](crate::Limits) the most.
    #[must_use]
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.policy.task_ttl = Some(ttl);
        self
    }

    pub(crate) fn check(&mut self) -> Vec<String> {
        let mut faults = std::mem::take(&mut self.faults);
        let what = format!("tool `{}`", self.definition.name);
        self.policy.check(&what, &mut faults);
        faults
    }
}

/// Options of a prompt, see [`ServerBuilder::prompt_with`](crate::ServerBuilder::prompt_with).
#[derive(Debug)]
pub struct PromptOptions {
    pub(crate) definition: Prompt,
    pub(crate) policy: Policy,
    pub(crate) completers: Completers,
    pub(crate) faults: Vec<String>,
}

impl PromptOptions {
    pub(crate) fn new(definition: Prompt) -> Self {
        let policy = Policy::default();
        Self { definition, policy, completers: Completers::default(), faults: Vec::new() }
    }

    /// What the types of a handler say of a prompt.
    pub(crate) fn of<A: PromptArgs>(name: String, description: String) -> Self {
        let mut prompt = Prompt::new(name).with_description(description);
        let mut faults = Vec::new();
        match prompt_arguments(&A::schema()) {
            Ok(arguments) => prompt.arguments = Some(arguments).filter(|list| !list.is_empty()),
            Err(fault) => faults.push(format!("prompt `{}`: {fault}", prompt.name)),
        }
        let mut options = Self::new(prompt);
        options.faults = faults;
        options
    }

    shared_options!();
    completion_options!();

    pub(crate) fn check(&mut self) -> Vec<String> {
        let mut faults = std::mem::take(&mut self.faults);
        let what = format!("prompt `{}`", self.definition.name);
        self.policy.check(&what, &mut faults);
        let arguments: &[PromptArgument] = self.definition.arguments.as_deref().unwrap_or(&[]);
        let known = arguments.iter().map(|argument| argument.name.as_str());
        self.completers.check(&what, known, &mut faults);
        faults
    }
}

/// Options of a resource, see [`ServerBuilder::resource_with`](crate::ServerBuilder::resource_with).
#[derive(Debug)]
pub struct ResourceOptions {
    pub(crate) definition: Resource,
    pub(crate) policy: Policy,
    pub(crate) cache: CacheHints,
    pub(crate) faults: Vec<String>,
}

impl ResourceOptions {
    pub(crate) fn new(definition: Resource) -> Self {
        let (policy, cache) = (Policy::default(), CacheHints::default());
        Self { definition, policy, cache, faults: Vec::new() }
    }

    shared_options!();
    reading_options!();

    /// The size in bytes, before base64.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.definition.size = Some(bytes);
        self
    }

    pub(crate) fn check(&mut self) -> Vec<String> {
        let mut faults = std::mem::take(&mut self.faults);
        self.policy.check(&format!("resource `{}`", self.definition.uri), &mut faults);
        faults
    }
}

/// Options of a resource template, see
/// [`ServerBuilder::template_with`](crate::ServerBuilder::template_with).
#[derive(Debug)]
pub struct TemplateOptions {
    pub(crate) definition: ResourceTemplate,
    pub(crate) policy: Policy,
    pub(crate) cache: CacheHints,
    pub(crate) completers: Completers,
    pub(crate) faults: Vec<String>,
}

impl TemplateOptions {
    pub(crate) fn new(definition: ResourceTemplate) -> Self {
        Self {
            definition,
            policy: Policy::default(),
            cache: CacheHints::default(),
            completers: Completers::default(),
            faults: Vec::new(),
        }
    }

    shared_options!();
    reading_options!();
    completion_options!();

    pub(crate) fn check<'a>(&mut self, variables: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut faults = std::mem::take(&mut self.faults);
        let what = format!("resource template `{}`", self.definition.uri_template);
        self.policy.check(&what, &mut faults);
        self.completers.check(&what, variables, &mut faults);
        faults
    }
}

/// Completion handlers by argument.
#[derive(Debug, Default)]
pub(crate) struct Completers {
    by_argument: BTreeMap<String, Arc<dyn Invoke<CompletionRequest>>>,
    duplicates: Vec<String>,
}

impl Completers {
    fn add(&mut self, argument: String, handler: Arc<dyn Invoke<CompletionRequest>>) {
        if self.by_argument.insert(argument.clone(), handler).is_some() {
            self.duplicates.push(argument);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_argument.is_empty()
    }

    pub(crate) fn get(&self, argument: &str) -> Option<&Arc<dyn Invoke<CompletionRequest>>> {
        self.by_argument.get(argument)
    }

    fn check<'a>(
        &self,
        what: &str,
        arguments: impl Iterator<Item = &'a str>,
        faults: &mut Vec<String>,
    ) {
        let known: Vec<&str> = arguments.collect();
        for argument in self.by_argument.keys().filter(|name| !known.contains(&name.as_str())) {
            faults.push(format!(
                "{what} completes `{argument}`, which it does not have; it has: {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            ));
        }
        for argument in &self.duplicates {
            faults.push(format!("{what} completes `{argument}` twice; keep one"));
        }
    }
}

/// The arguments of a prompt, from the schema of its handler's type.
///
/// # Errors
/// When an argument cannot be read from a string: clients send nothing else (PROMPT-12).
fn prompt_arguments(schema: &Value) -> Result<Vec<PromptArgument>, String> {
    let empty = JsonObject::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its arguments must be a struct with named fields".to_owned());
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut arguments = Vec::with_capacity(properties.len());
    for (name, property) in properties {
        if !is_scalar(property) {
            return Err(format!(
                "argument `{name}` must be a string, number, boolean, unit enum, or an Option of \
                 one: clients send strings only"
            ));
        }
        let mut argument = PromptArgument::new(name);
        let text = |member: &str| property.get(member).and_then(Value::as_str).map(str::to_owned);
        argument.title = text("title");
        argument.description = text("description");
        argument.required = Some(required.contains(&name.as_str()));
        arguments.push(argument);
    }
    Ok(arguments)
}

fn is_scalar(schema: &Value) -> bool {
    let scalar = |kind: &Value| {
        ["string", "number", "integer", "boolean", "null"].iter().any(|scalar| kind == scalar)
    };
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    match (schema.get("type"), alternatives) {
        (Some(Value::Array(kinds)), _) => kinds.iter().all(scalar),
        (Some(kind), _) => scalar(kind),
        (None, Some(schemas)) => schemas.iter().all(is_scalar),
        (None, None) => schema.get("const").is_some_and(Value::is_string),
    }
}
