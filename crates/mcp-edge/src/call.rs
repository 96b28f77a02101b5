//! One call under way: what its handler can reach, shared by every clone of its
//! [`Cx`](crate::Cx).

use std::{
    collections::BTreeMap,
    fmt,
    future::{pending, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    envelope,
    error::RequestError,
    journal::engine::{Engine, Fatal},
    observe::TraceContext,
    outbox::Outbox,
    platform::{Platform, SETTLE_MARGIN, Timestamp, time_left},
    principal::Principal,
    protocol::{Completion, PromptResult, ResourceContents, ToolResult},
    server::Server,
    target::BoxFuture,
};

/// What a handler gave back.
#[derive(Debug)]
pub(crate) enum Output {
    Tool(ToolResult),
    /// The JSON of a tool's structured result.
    Structured(String),
    Prompt(PromptResult),
    Resource(Vec<ResourceContents>),
    Completion(Completion),
    /// The handle of a job that was started elsewhere.
    Job(String),
}

pub(crate) type Outcome = Result<Output, RequestError>;

/// One call under way.
pub(crate) struct Call {
    pub(crate) server: Server,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) principal: Arc<Principal>,
    pub(crate) capabilities: ClientCapabilities,
    /// The tool or prompt, or the URI of the resource.
    pub(crate) name: Arc<str>,
    /// Whether the method may answer with questions (MRTR-02).
    pub(crate) may_ask: bool,
    /// Whether the method may answer with a task (TASK-05).
    pub(crate) may_become_task: bool,
    /// When this request must have been answered.
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) trace: Option<Box<TraceContext>>,
    pub(crate) outbox: Mutex<Outbox>,
    pub(crate) engine: Mutex<Engine>,
}

impl Call {
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        // The engine is consistent between any two of its methods, so a panic elsewhere is no harm.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn platform(&self) -> &dyn Platform {
        self.platform.as_ref()
    }

    /// The seed of this call's idempotency keys, drawn at its first use (rule I).
    pub(crate) fn run_id(&self) -> [u8; 16] {
        let mut engine = self.engine();
        if let Some(run_id) = engine.run_id() {
            return run_id;
        }
        let mut run_id = [0; 16];
        self.platform.fill_random(&mut run_id);
        engine.set_run_id(run_id);
        run_id
    }

    /// Whether this client can hold a task, and there is a place for one.
    pub(crate) fn can_go_on_as_task(&self) -> bool {
        self.client_can_hold_task() && self.server.tasks_of(&self.principal).is_some()
    }

    /// Whether this client can hold a task.
    pub(crate) fn client_can_hold_task(&self) -> bool {
        self.may_become_task
            && self.capabilities.has(Capability::Tasks)
            && self.server.permits_tasks_of(&self.principal)
    }

    /// Uses up the state that this call was taken up with. Returns when it is the first to do so;
    /// otherwise the run ends.
    pub(crate) async fn spend(&self) {
        let Some(id) = poll_fn(|cx| self.engine().begin_spending(cx.waker())).await else {
            return; // another step did
        };
        let _spending = Spending(self);
        let fatal = match &self.server.services().replay_guard {
            None => {
                Fatal::NoReplayGuard("it is for single use, and there is no replay guard".into())
            }
            Some(guard) => {
                let now = self.platform.now();
                let expires = now + self.server.limits().state_ttl;
                match guard.spend(&id, expires, now).await {
                    Ok(true) => return self.engine().spent(),
                    Ok(false) => Fatal::StateSpent,
                    Err(error) => Fatal::NoReplayGuard(error.to_string()),
                }
            }
        };
        self.engine().fail(fatal);
        pending().await
    }

    /// How long a step may hold back a question beside it (rule B).
    pub(crate) fn settle_timer(&self) -> BoxFuture<'static, ()> {
        let platform = self.platform();
        platform.sleep(time_left(platform, self.server.limits().settle, SETTLE_MARGIN))
    }
}

/// A state that is being used up; when that is given up, the next step has to.
struct Spending<'a>(&'a Call);

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        self.0.engine().end_spending();
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Something that a client may be able to do, see [`Cx::can`](crate::Cx::can).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Show a form to the user ([`Cx::elicit`](crate::Cx::elicit)).
    Elicitation,
    /// Roots ([`Cx::roots`](crate::Cx::roots)).
    Roots,
    /// Ask its model ([`Cx::sample`](crate::Cx::sample)).
    Sampling,
    /// Sampling with `includeContext`.
    SamplingContext,
    /// Sampling with tools.
    SamplingTools,
    /// Hold a task (`io.modelcontextprotocol/tasks`).
    Tasks,
    /// Open a page for the user ([`Cx::elicit_url`](crate::Cx::elicit_url)).
    UrlElicitation,
}

/// The extension by which a client can hold a task.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What the client declared on this request, and on no other (META-08). A task keeps what the request
/// declared that began it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClientCapabilities {
    form: bool,
    url: bool,
    roots: bool,
    sampling: bool,
    sampling_context: bool,
    sampling_tools: bool,
    /// JSON of the extensions, a part of the request's body.
    #[serde(with = "text")]
    extensions: Option<Bytes>,
}

impl ClientCapabilities {
    /// Keeps what `body` declares.
    pub(crate) fn new(declared: &envelope::Capabilities<'_>, body: &Bytes) -> Self {
        let envelope::Capabilities { elicitation, sampling, .. } = declared;
        Self {
            // `elicitation: {}` means form only (META-15).
            form: elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
            url: elicitation.is_some_and(|modes| modes.url.is_some()),
            roots: declared.roots.is_some(),
            sampling: sampling.is_some(),
            sampling_context: sampling.is_some_and(|sampling| sampling.context.is_some()),
            sampling_tools: sampling.is_some_and(|sampling| sampling.tools.is_some()),
            extensions: declared.extensions.map(|extensions| body.slice_ref(extensions.as_bytes())),
        }
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Elicitation => self.form,
            Capability::Roots => self.roots,
            Capability::Sampling => self.sampling,
            Capability::SamplingContext => self.sampling_context,
            Capability::SamplingTools => self.sampling_tools,
            Capability::Tasks => self.extension(TASKS).is_some(),
            Capability::UrlElicitation => self.url,
        }
    }

    /// The settings of an extension that the client declared.
    pub(crate) fn extension(&self, id: &str) -> Option<&RawValue> {
        let declared = self.extensions.as_deref()?;
        let mut all: BTreeMap<String, &RawValue> = serde_json::from_slice(declared).ok()?;
        all.remove(id).filter(|settings| settings.get().starts_with('{'))
    }

    /// What the client would have to declare for `capability`, if it does not (META-09).
    pub(crate) fn missing(&self, capability: Capability) -> Option<Map<String, Value>> {
        if self.has(capability) {
            return None;
        }
        let required = match capability {
            Capability::Elicitation if self.url => json!({ "elicitation": { "form": {} } }),
            Capability::Elicitation => json!({ "elicitation": {} }),
            Capability::Roots => json!({ "roots": {} }),
            Capability::Sampling => json!({ "sampling": {} }),
            Capability::SamplingContext => json!({ "sampling": { "context": {} } }),
            Capability::SamplingTools => json!({ "sampling": { "tools": {} } }),
            Capability::Tasks => json!({ "extensions": { (TASKS): {} } }),
            Capability::UrlElicitation => json!({ "elicitation": { "url": {} } }),
        };
        match required {
            Value::Object(required) => Some(required),
            _ => None,
        }
    }
}

/// Bytes that are UTF-8, as a JSON string.
mod text {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Bytes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes.as_deref().map(String::from_utf8_lossy).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Bytes>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Bytes::from))
    }
}
