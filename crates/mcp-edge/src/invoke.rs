//! Handlers without their types: what is generic here only converts.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use crate::{
    call::{Outcome, Output},
    cx::Cx,
    error::ToolError,
    handler::{
        CompletionOutput, CompletionRequest, Handler, PromptArgs, PromptOutput, ReadArgs,
        ReadOutput, ToolArgs, ToolOutput, ToolReply, tool_failure,
    },
    protocol::{Completion, ToolResult},
    target::{BoxFuture, MaybeSend, MaybeSync, boxed},
};

/// Starts a handler on an input that is still to be converted.
pub(crate) trait Invoke<Input>: fmt::Debug + MaybeSend + MaybeSync {
    fn invoke(&self, cx: Cx, input: Input) -> Invoked;
}

/// A handler under way, or the answer to an input that it cannot take.
pub(crate) enum Invoked {
    Running(BoxFuture<'static, Outcome>),
    Answered(Outcome),
}

/// Where a resource is, and what its template found there.
pub(crate) struct Location<'a> {
    pub(crate) uri: &'a str,
    pub(crate) variables: Vec<(String, String)>,
}

macro_rules! erased {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub(crate) struct $name<H, M>(H, PhantomData<fn() -> M>);

        impl<H, M> $name<H, M> {
            pub(crate) const fn new(handler: H) -> Self {
                Self(handler, PhantomData)
            }
        }

        impl<H, M> fmt::Debug for $name<H, M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(std::any::type_name::<H>())
            }
        }
    };
}

erased! {
    /// A tool.
    ToolHandler
}
erased! {
    /// A prompt.
    PromptHandler
}
erased! {
    /// A resource or template.
    ResourceHandler
}
erased! {
    /// A completion.
    Completer
}

impl<H, M> Invoke<&str> for ToolHandler<H, M>
where
    H: Handler<M>,
    H::Args: ToolArgs,
    H::Out: ToolOutput,
    H::Future: MaybeSend,
{
    fn invoke(&self, cx: Cx, input: &str) -> Invoked {
        match H::Args::parse(input) {
            Ok(args) => {
                let future = self.0.call(cx, args);
                Invoked::Running(boxed(async move { tool_outcome(future.await.into_reply()) }))
            }
            Err(text) => Invoked::Answered(Ok(Output::Tool(ToolResult::error(text)))),
        }
    }
}

pub(crate) fn tool_outcome(reply: Result<ToolReply, ToolError>) -> Outcome {
    match reply {
        Ok(ToolReply::Whole(result)) => Ok(Output::Tool(result)),
        Ok(ToolReply::Structured(json)) => Ok(Output::Structured(json)),
        Err(error) => tool_failure(error).map(Output::Tool),
    }
}

impl<H, M> Invoke<BTreeMap<String, String>> for PromptHandler<H, M>
where
    H: Handler<M>,
    H::Args: PromptArgs,
    H::Out: PromptOutput,
    H::Future: MaybeSend,
{
    fn invoke(&self, cx: Cx, input: BTreeMap<String, String>) -> Invoked {
        match H::Args::parse(input) {
            Ok(args) => {
                let future = self.0.call(cx, args);
                Invoked::Running(boxed(
                    async move { future.await.into_result().map(Output::Prompt) },
                ))
            }
            Err(error) => Invoked::Answered(Err(error)),
        }
    }
}

impl<H, M> Invoke<Location<'_>> for ResourceHandler<H, M>
where
    H: Handler<M>,
    H::Args: ReadArgs,
    H::Out: ReadOutput,
    H::Future: MaybeSend,
{
    fn invoke(&self, cx: Cx, input: Location<'_>) -> Invoked {
        match H::Args::from_uri(input.uri, input.variables) {
            Ok(args) => {
                let uri = input.uri.to_owned();
                let future = self.0.call(cx, args);
                Invoked::Running(boxed(async move {
                    future.await.into_contents(&uri).map(Output::Resource)
                }))
            }
            Err(error) => Invoked::Answered(Err(error)),
        }
    }
}

impl<H, M> Invoke<CompletionRequest> for Completer<H, M>
where
    H: Handler<M, Args = CompletionRequest>,
    H::Out: CompletionOutput,
    H::Future: MaybeSend,
{
    fn invoke(&self, cx: Cx, input: CompletionRequest) -> Invoked {
        let future = self.0.call(cx, input);
        Invoked::Running(boxed(
            async move { future.await.into_completion().map(Output::Completion) },
        ))
    }
}

/// Completes from a fixed list, by prefix and regardless of case.
#[derive(Debug)]
pub(crate) struct StaticValues(Vec<String>);

impl StaticValues {
    pub(crate) fn new<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        Self(values.into_iter().map(Into::into).collect())
    }
}

impl Invoke<CompletionRequest> for StaticValues {
    fn invoke(&self, _: Cx, input: CompletionRequest) -> Invoked {
        let typed = input.value.to_lowercase();
        let fits = |value: &&String| value.to_lowercase().starts_with(&typed);
        let completion = Completion::new(self.0.iter().filter(fits).cloned());
        Invoked::Answered(Ok(Output::Completion(completion)))
    }
}
