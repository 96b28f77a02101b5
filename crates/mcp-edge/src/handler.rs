//! What may be a handler, its arguments, and its result.

use std::{collections::BTreeMap, future::Future};

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    cx::Cx,
    error::{RequestError, ToolError, ToolErrorKind},
    protocol::{
        Completion, ContentBlock, PromptMessage, PromptResult, ResourceContents, ToolResult,
    },
    strings::from_strings,
    target::{MaybeSend, MaybeSync},
};

/// An `async fn` or closure that takes its arguments, with or without a [`Cx`] before them.
///
/// `Marker` only keeps the two forms apart; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "expected `async fn(Args) -> Out` or `async fn(Cx, Args) -> Out`",
    note = "the context comes first and by value: `async fn name(cx: Cx, args: Args)`",
    note = "a handler without arguments takes `NoArgs`"
)]
pub trait Handler<Marker>: MaybeSend + MaybeSync + 'static {
    /// What it takes.
    type Args;
    /// What it returns.
    type Out;
    /// The future that it returns.
    type Future: Future<Output = Self::Out> + 'static;

    /// Calls it.
    fn call(&self, cx: Cx, args: Self::Args) -> Self::Future;
}

impl<F, A, Fut> Handler<fn(Cx, A) -> Fut> for F
where
    F: Fn(Cx, A) -> Fut + MaybeSend + MaybeSync + 'static,
    Fut: Future + 'static,
{
    type Args = A;
    type Out = Fut::Output;
    type Future = Fut;

    fn call(&self, cx: Cx, args: A) -> Fut {
        self(cx, args)
    }
}

impl<F, A, Fut> Handler<fn(A) -> Fut> for F
where
    F: Fn(A) -> Fut + MaybeSend + MaybeSync + 'static,
    Fut: Future + 'static,
{
    type Args = A;
    type Out = Fut::Output;
    type Future = Fut;

    fn call(&self, _cx: Cx, args: A) -> Fut {
        self(args)
    }
}

/// The arguments of a handler that takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NoArgs {}

/// The arguments of a tool as they came, for a tool whose schema is given
/// ([`ToolOptions::input_schema`](crate::ToolOptions::input_schema)). Always a JSON object.
#[derive(Clone, Debug)]
pub struct RawArgs(String);

impl RawArgs {
    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Reads them into a type.
    ///
    /// # Errors
    /// When they are not of this type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

/// The arguments of a tool: any type that derives `Deserialize` and `JsonSchema`, [`RawArgs`], or
/// [`NoArgs`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "this handler's arguments need a schema",
    note = "derive both: `#[derive(serde::Deserialize, schemars::JsonSchema)]`; a tool without arguments takes `NoArgs`"
)]
pub trait ToolArgs: Sized + MaybeSend + 'static {
    /// The JSON Schema of the arguments; `None` if it is given elsewhere.
    fn schema() -> Option<Value>;

    /// Reads the arguments, a JSON object.
    ///
    /// # Errors
    /// A text for the model.
    fn parse(arguments: &str) -> Result<Self, String>;
}

impl<T: DeserializeOwned + JsonSchema + MaybeSend + 'static> ToolArgs for T {
    fn schema() -> Option<Value> {
        Some(schema_of::<T>())
    }

    fn parse(arguments: &str) -> Result<Self, String> {
        serde_json::from_str(arguments).map_err(|error| invalid_arguments(&error))
    }
}

impl ToolArgs for RawArgs {
    fn schema() -> Option<Value> {
        None
    }

    fn parse(arguments: &str) -> Result<Self, String> {
        match serde_json::from_str::<serde::de::IgnoredAny>(arguments) {
            Ok(_) => Ok(Self(arguments.to_owned())),
            Err(error) => Err(invalid_arguments(&error)),
        }
    }
}

/// What a tool may return: text, [`Json`], content, a whole [`ToolResult`], nothing, or a `Result`
/// of those.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "this handler's result cannot be sent",
    note = "return a `String`, `Json<T>`, `ContentBlock`, `Vec<ContentBlock>`, `ToolResult`, or `()`",
    note = "or a `Result` of those with `ToolError`, or with any error that converts into it"
)]
pub trait ToolOutput: 'static {
    /// The JSON Schema of `structuredContent`, if the tool has one (TOOL-12).
    fn output_schema() -> Option<Value> {
        None
    }

    /// Makes the result.
    ///
    /// # Errors
    /// What the tool returned instead of one.
    fn into_result(self) -> Result<ToolResult, ToolError>;

    /// Makes what is sent: the result, or less where the rest follows from it.
    #[doc(hidden)]
    fn into_reply(self) -> Result<ToolReply, ToolError>
    where
        Self: Sized,
    {
        self.into_result().map(ToolReply::Whole)
    }
}

/// What a tool's output becomes on its way to the wire.
#[doc(hidden)]
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "not part of the interface")]
pub enum ToolReply {
    Whole(ToolResult),
    /// The JSON of `structuredContent`; the text block is the same.
    Structured(String),
}

impl ToolOutput for ToolResult {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl ToolOutput for String {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl ToolOutput for &'static str {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl ToolOutput for () {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(Vec::new().into())
    }
}

impl ToolOutput for ContentBlock {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(vec![self].into())
    }
}

impl ToolOutput for Vec<ContentBlock> {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(self.into())
    }
}

/// A structured result with a schema (TOOL-12), and its JSON as text (TOOL-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a plain wrapper")]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + 'static> ToolOutput for Json<T> {
    fn output_schema() -> Option<Value> {
        Some(schema_of::<T>())
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::structured(&self.0)?)
    }

    fn into_reply(self) -> Result<ToolReply, ToolError> {
        Ok(ToolReply::Structured(serde_json::to_string(&self.0)?))
    }
}

impl<T: ToolOutput, E: Into<ToolError> + 'static> ToolOutput for Result<T, E> {
    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        self.map_err(Into::into).and_then(T::into_result)
    }

    fn into_reply(self) -> Result<ToolReply, ToolError> {
        self.map_err(Into::into).and_then(T::into_reply)
    }
}

/// The arguments of a prompt: any type that derives `Deserialize` and `JsonSchema` and whose fields
/// can be read from a string (PROMPT-04): strings, numbers, booleans, unit enums, and options of
/// those; or [`NoArgs`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a prompt",
    label = "this handler's arguments need a schema",
    note = "derive both: `#[derive(serde::Deserialize, schemars::JsonSchema)]`; a prompt without arguments takes `NoArgs`"
)]
pub trait PromptArgs: Sized + MaybeSend + 'static {
    /// The JSON Schema that the list of arguments is made from.
    fn schema() -> Value;

    /// Reads the arguments.
    ///
    /// # Errors
    /// When one is missing or not of its type (PROMPT-05).
    fn parse(arguments: BTreeMap<String, String>) -> Result<Self, RequestError>;
}

impl<T: DeserializeOwned + JsonSchema + MaybeSend + 'static> PromptArgs for T {
    fn schema() -> Value {
        flat_schema_of::<T>()
    }

    fn parse(arguments: BTreeMap<String, String>) -> Result<Self, RequestError> {
        from_strings(arguments)
            .map_err(|error| RequestError::invalid_params(format!("Invalid arguments: {error}")))
    }
}

/// What a prompt may return: text (one message of the user), messages, or a whole
/// [`PromptResult`], or a `Result` of those.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    note = "return a `String`, `PromptMessage`, `Vec<PromptMessage>` or `PromptResult`, or a `Result` of those with `RequestError`"
)]
pub trait PromptOutput: 'static {
    /// Makes the result.
    ///
    /// # Errors
    /// What the prompt returned instead of one.
    fn into_result(self) -> Result<PromptResult, RequestError>;
}

impl PromptOutput for PromptResult {
    fn into_result(self) -> Result<PromptResult, RequestError> {
        Ok(self)
    }
}

impl PromptOutput for Vec<PromptMessage> {
    fn into_result(self) -> Result<PromptResult, RequestError> {
        Ok(PromptResult::new(self))
    }
}

impl PromptOutput for PromptMessage {
    fn into_result(self) -> Result<PromptResult, RequestError> {
        Ok(PromptResult::new(vec![self]))
    }
}

impl PromptOutput for String {
    fn into_result(self) -> Result<PromptResult, RequestError> {
        PromptMessage::user(self).into_result()
    }
}

impl PromptOutput for &'static str {
    fn into_result(self) -> Result<PromptResult, RequestError> {
        PromptMessage::user(self).into_result()
    }
}

impl<T: PromptOutput, E: Into<RequestError> + 'static> PromptOutput for Result<T, E> {
    fn into_result(self) -> Result<PromptResult, RequestError> {
        self.map_err(Into::into).and_then(T::into_result)
    }
}

/// The URI that is being read, as the arguments of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a plain wrapper")]
pub struct ResourceUri(pub String);

/// The variables of a resource template, as the arguments of a resource: `T` has a field for each,
/// which can be read from a string. A URI whose variables do not fit is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a plain wrapper")]
pub struct Vars<T>(pub T);

/// The arguments of a resource: [`ResourceUri`], [`Vars`], or [`NoArgs`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a resource",
    note = "take a `ResourceUri`, the variables of a template as `Vars<T>`, or `NoArgs`"
)]
pub trait ReadArgs: Sized + MaybeSend + 'static {
    /// Reads them from a URI and the variables that its template found.
    ///
    /// # Errors
    /// When a variable is not of its type.
    fn from_uri(uri: &str, variables: Vec<(String, String)>) -> Result<Self, RequestError>;
}

impl ReadArgs for NoArgs {
    fn from_uri(_: &str, _: Vec<(String, String)>) -> Result<Self, RequestError> {
        Ok(Self {})
    }
}

impl ReadArgs for ResourceUri {
    fn from_uri(uri: &str, _: Vec<(String, String)>) -> Result<Self, RequestError> {
        Ok(Self(uri.to_owned()))
    }
}

impl<T: DeserializeOwned + MaybeSend + 'static> ReadArgs for Vars<T> {
    fn from_uri(uri: &str, variables: Vec<(String, String)>) -> Result<Self, RequestError> {
        from_strings(variables).map(Self).map_err(|_| RequestError::not_found(uri))
    }
}

/// What a resource may return: text, bytes, [`ResourceContents`], several of those, or a `Result`.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    note = "return a `String`, `Vec<u8>`, `ResourceContents` or `Vec<ResourceContents>`, or a `Result` of those with `RequestError`"
)]
pub trait ReadOutput: 'static {
    /// Makes the contents of `uri`.
    ///
    /// # Errors
    /// What the resource returned instead.
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, RequestError>;
}

impl ReadOutput for Vec<ResourceContents> {
    fn into_contents(self, _: &str) -> Result<Vec<ResourceContents>, RequestError> {
        Ok(self)
    }
}

impl ReadOutput for ResourceContents {
    fn into_contents(self, _: &str) -> Result<Vec<ResourceContents>, RequestError> {
        Ok(vec![self])
    }
}

impl ReadOutput for String {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, RequestError> {
        Ok(vec![ResourceContents::text(uri, self)])
    }
}

impl ReadOutput for &'static str {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, RequestError> {
        Ok(vec![ResourceContents::text(uri, self)])
    }
}

impl ReadOutput for Vec<u8> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, RequestError> {
        Ok(vec![ResourceContents::blob(uri, self)])
    }
}

impl<T: ReadOutput, E: Into<RequestError> + 'static> ReadOutput for Result<T, E> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, RequestError> {
        self.map_err(Into::into).and_then(|output| output.into_contents(uri))
    }
}

/// What a completion handler is asked: the text so far, and the arguments that are settled already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// What was typed so far.
    pub value: String,
    /// Other arguments that have a value (COMP-02).
    pub arguments: BTreeMap<String, String>,
}

/// What a completion handler may return: values, a whole [`Completion`], or a `Result` of those.
#[diagnostic::on_unimplemented(
    message = "a completion cannot return `{Self}`",
    note = "return a `Vec<String>` or `Completion`, or a `Result` of those with `RequestError`"
)]
pub trait CompletionOutput: 'static {
    /// Makes the completion.
    ///
    /// # Errors
    /// What the handler returned instead.
    fn into_completion(self) -> Result<Completion, RequestError>;
}

impl CompletionOutput for Completion {
    fn into_completion(self) -> Result<Completion, RequestError> {
        Ok(self)
    }
}

impl CompletionOutput for Vec<String> {
    fn into_completion(self) -> Result<Completion, RequestError> {
        Ok(self.into())
    }
}

impl<T: CompletionOutput, E: Into<RequestError> + 'static> CompletionOutput for Result<T, E> {
    fn into_completion(self) -> Result<Completion, RequestError> {
        self.map_err(Into::into).and_then(T::into_completion)
    }
}

/// A tool error as the model reads it, or the protocol error that it wraps.
pub(crate) fn tool_failure(error: ToolError) -> Result<ToolResult, RequestError> {
    match error.into_kind() {
        ToolErrorKind::Protocol(error) => Err(error),
        ToolErrorKind::Tool { text, source } => {
            if let Some(source) = source {
                tracing::error!("a tool failed: {source}");
            }
            Ok(ToolResult::error(text))
        }
        ToolErrorKind::RetryAfter { text, .. } => Ok(ToolResult::error(text)),
    }
}

/// What the model reads about arguments that are not of the tool's type (TOOL-15).
fn invalid_arguments(error: &serde_json::Error) -> String {
    format!("Invalid arguments: {error}")
}

/// The 2020-12 schema of a type.
fn schema_of<T: JsonSchema>() -> Value {
    trimmed(SchemaSettings::draft2020_12(), SchemaGenerator::into_root_schema_for::<T>)
}

/// The schema of a type without references.
fn flat_schema_of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    trimmed(settings, SchemaGenerator::into_root_schema_for::<T>)
}

/// Leaves out what is said elsewhere: the dialect, and name and description of the Rust type.
fn trimmed(mut settings: SchemaSettings, generate: fn(SchemaGenerator) -> Schema) -> Value {
    settings.meta_schema = None;
    let mut schema = generate(settings.into_generator()).to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
        members.remove("description");
    }
    schema
}
