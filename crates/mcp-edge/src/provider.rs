//! Catalogues that depend on who asks: [`Provider`], and what it provides.

use std::{fmt, sync::Arc};

use serde::Serialize;

use crate::{
    define,
    error::{BuildError, RequestError},
    handler::{Handler, PromptArgs, PromptOutput, ReadArgs, ReadOutput, ToolArgs, ToolOutput},
    invoke::{PromptHandler, ResourceHandler, ToolHandler},
    options::{PromptOptions, ResourceOptions, ToolOptions},
    principal::Principal,
    protocol::Resource,
    server::{PromptEntry, ResourceEntry, ToolEntry},
    target::{BoxFuture, MaybeSend, MaybeSync},
};

/// Provides tools, prompts or resources that depend on who calls, or that are too many or too
/// short-lived to be defined once.
///
/// Every list and every call asks anew, so what a caller may see is decided in one place; what it
/// may not see is not found. When a list has changed, publish a [`Change`](crate::Change).
///
/// ```
/// use mcp_edge::{
///     BoxFuture, DynamicTool, NoArgs, Page, Principal, Provider, RequestError, Server,
/// };
///
/// /// One tool for each caller, named after it.
/// struct Own;
///
/// impl Own {
///     fn tool(caller: &Principal) -> Result<DynamicTool, RequestError> {
///         Ok(DynamicTool::new(&caller.subject, "Yours alone", async |_: NoArgs| "hello")?)
///     }
/// }
///
/// impl Provider<DynamicTool> for Own {
///     fn list<'a>(
///         &'a self,
///         caller: &'a Principal,
///         _after: Option<&'a str>,
///         _limit: usize,
///     ) -> BoxFuture<'a, Result<Page<DynamicTool>, RequestError>> {
///         Box::pin(async { Ok(Page::last(vec![Self::tool(caller)?])) })
///     }
///
///     fn find<'a>(
///         &'a self,
///         caller: &'a Principal,
///         key: &'a str,
///     ) -> BoxFuture<'a, Result<Option<DynamicTool>, RequestError>> {
///         Box::pin(async move { (key == caller.subject).then(|| Self::tool(caller)).transpose() })
///     }
/// }
///
/// let server = Server::builder("own", "1.0.0").tools_from(Own).build();
/// # assert!(server.is_ok());
/// ```
pub trait Provider<T>: MaybeSend + MaybeSync + 'static {
    /// Lists what `caller` may see: at most `limit` items, in an order that does not change.
    ///
    /// `after` is the [`next`](Page::next) of the page before, `None` for the first page. Clients
    /// hold it sealed to this list and caller. Encode a position by key and not by number, so that
    /// what comes and goes in between neither repeats nor hides anything (PAGE-05).
    ///
    /// # Errors
    /// What the request is answered with.
    fn list<'a>(
        &'a self,
        caller: &'a Principal,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<T>, RequestError>>;

    /// Finds the tool or prompt of this name, or the resource at this URI, if `caller` may see it.
    ///
    /// # Errors
    /// What the request is answered with.
    fn find<'a>(
        &'a self,
        caller: &'a Principal,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<T>, RequestError>>;
}

/// A part of a list.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a list and where it goes on")]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one; any string, the empty one too.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page after which there is none.
    #[must_use]
    pub const fn last(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// What all kinds have: the definition on the wire, and the entry that is run.
pub(crate) trait Provided: MaybeSend + MaybeSync {
    fn json(&self) -> &[u8];
}

struct Made<E> {
    json: Vec<u8>,
    entry: E,
}

impl<E> Made<E> {
    fn new(
        definition: &impl Serialize,
        entry: E,
        mut faults: Vec<String>,
    ) -> Result<Arc<Self>, BuildError> {
        let json = serde_json::to_vec(definition).unwrap_or_else(|error| {
            faults.push(format!("the definition is not JSON: {error}"));
            Vec::new()
        });
        if faults.is_empty() {
            Ok(Arc::new(Self { json, entry }))
        } else {
            Err(BuildError::new(faults))
        }
    }
}

macro_rules! provided {
    ($(#[$doc:meta])* $name:ident, $entry:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Arc<Made<$entry>>);

        impl $name {
            pub(crate) fn entry(&self) -> &$entry {
                &self.0.entry
            }
        }

        impl Provided for $name {
            fn json(&self) -> &[u8] {
                &self.0.json
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let json = String::from_utf8_lossy(&self.0.json);
                f.debug_tuple(stringify!($name)).field(&json).finish()
            }
        }
    };
}

provided! {
    /// A tool of a [`Provider`]; cheap to clone, so make it once where you can.
    DynamicTool, ToolEntry
}
provided! {
    /// A prompt of a [`Provider`]; cheap to clone, so make it once where you can.
    DynamicPrompt, PromptEntry
}
provided! {
    /// A resource of a [`Provider`]; cheap to clone, so make it once where you can.
    DynamicResource, ResourceEntry
}

impl DynamicTool {
    /// Makes a tool, as [`ServerBuilder::tool`](crate::ServerBuilder::tool) does.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn new<M, H>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Result<Self, BuildError>
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ToolArgs,
        H::Out: ToolOutput,
        H::Future: MaybeSend,
    {
        Self::with(name, description, handler, |options| options)
    }

    /// Makes a tool with [options](ToolOptions).
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn with<M, H>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
        options: impl FnOnce(ToolOptions) -> ToolOptions,
    ) -> Result<Self, BuildError>
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ToolArgs,
        H::Out: ToolOutput,
        H::Future: MaybeSend,
    {
        let options = options(ToolOptions::of::<H::Args, H::Out>(name.into(), description.into()));
        let mut faults = Vec::new();
        let handler = Arc::new(ToolHandler::new(handler));
        let (tool, entry) = define::tool(options, handler, &mut faults);
        Made::new(&tool, entry, faults).map(Self)
    }
}

impl DynamicPrompt {
    /// Makes a prompt with [options](PromptOptions), as
    /// [`ServerBuilder::prompt_with`](crate::ServerBuilder::prompt_with) does.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn with<M, H>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
        options: impl FnOnce(PromptOptions) -> PromptOptions,
    ) -> Result<Self, BuildError>
    where
        M: 'static,
        H: Handler<M>,
        H::Args: PromptArgs,
        H::Out: PromptOutput,
        H::Future: MaybeSend,
    {
        let options = options(PromptOptions::of::<H::Args>(name.into(), description.into()));
        let mut faults = Vec::new();
        let handler = Arc::new(PromptHandler::new(handler));
        let (prompt, entry) = define::prompt(options, handler, &mut faults);
        Made::new(&prompt, entry, faults).map(Self)
    }
}

impl DynamicResource {
    /// Makes a resource with [options](ResourceOptions), as
    /// [`ServerBuilder::resource_with`](crate::ServerBuilder::resource_with) does.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn with<M, H>(
        uri: impl Into<String>,
        name: impl Into<String>,
        handler: H,
        options: impl FnOnce(ResourceOptions) -> ResourceOptions,
    ) -> Result<Self, BuildError>
    where
        M: 'static,
        H: Handler<M>,
        H::Args: ReadArgs,
        H::Out: ReadOutput,
        H::Future: MaybeSend,
    {
        let options = options(ResourceOptions::new(Resource::new(uri, name)));
        let mut faults = Vec::new();
        let handler = Arc::new(ResourceHandler::new(handler));
        let (resource, entry) = define::resource(options, handler, &mut faults);
        Made::new(&resource, entry, faults).map(Self)
    }
}

/// The providers of a server.
#[derive(Clone, Default)]
pub(crate) struct Providers {
    pub(crate) tools: Option<Arc<dyn Provider<DynamicTool>>>,
    pub(crate) prompts: Option<Arc<dyn Provider<DynamicPrompt>>>,
    pub(crate) resources: Option<Arc<dyn Provider<DynamicResource>>>,
}

/// Asks a provider, if there is one.
///
/// # Errors
/// What the provider answered with.
pub(crate) async fn find<T: 'static>(
    provider: Option<&Arc<dyn Provider<T>>>,
    caller: &Principal,
    key: &str,
) -> Result<Option<T>, RequestError> {
    match provider {
        Some(provider) => provider.find(caller, key).await,
        None => Ok(None),
    }
}
