//! Prompts: without and with arguments, with other content than text, and one that asks.

use mcp_edge::{
    CompletionRequest, Cx, NoArgs, RequestError, ServerBuilder,
    protocol::{ContentBlock, PromptMessage, ResourceContents},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::content::PNG;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .prompt("test_simple_prompt", "A prompt without arguments", simple)
        .prompt_with(
            "test_prompt_with_arguments",
            "A prompt with two arguments",
            with_arguments,
            |prompt| {
                prompt
                    .complete_values("arg1", ["paris", "park", "party"])
                    .complete("arg2", complete_arg2)
            },
        )
        .prompt(
            "test_prompt_with_embedded_resource",
            "A prompt that brings a resource along",
            with_resource,
        )
        .prompt("test_prompt_with_image", "A prompt that brings an image along", with_image)
        .prompt("test_input_required_result_prompt", "A prompt that asks the user first", asking)
}

async fn simple(_: NoArgs) -> &'static str {
    "This is a simple prompt for testing."
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

async fn with_arguments(Arguments { arg1, arg2 }: Arguments) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// A completion may look at the other arguments: once `arg1` is known, it is offered here as well.
async fn complete_arg2(request: CompletionRequest) -> Vec<String> {
    let mut values = request.arguments.get("arg1").cloned().into_iter().collect::<Vec<_>>();
    values.extend(["hello", "world"].map(str::to_owned));
    values.retain(|value| value.starts_with(&request.value));
    values
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceArgument {
    /// URI of the resource to embed
    resource_uri: String,
}

async fn with_resource(args: ResourceArgument) -> Vec<PromptMessage> {
    let text = "Embedded resource content for testing.";
    let contents = ResourceContents::text(args.resource_uri, text).with_mime_type("text/plain");
    vec![
        PromptMessage::user(ContentBlock::resource(contents)),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

async fn with_image(_: NoArgs) -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(ContentBlock::image(PNG, "image/png")),
        PromptMessage::user("Please analyze the image above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Context {
    context: String,
}

/// Prompts ask as tools do.
async fn asking(cx: Cx, _: NoArgs) -> Result<String, RequestError> {
    let question = "What context should the prompt use?";
    let answer = cx.elicit::<Context>("user_context", question).await.required()?;
    Ok(format!("Use this context: {}", answer.context))
}
