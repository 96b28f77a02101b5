//! Tools that ask before they answer: the user, the client's model, or the client itself.
//!
//! A question ends the request: the client gets it, and calls again with the answer. Nothing is kept
//! here meanwhile. The handler then runs again from its start, and what it awaited through `cx` is
//! there at once.

use futures_util::join;
use mcp_edge::{
    Capability, Cx, NoArgs, ServerBuilder, ToolError,
    protocol::{Root, SampleParams, SampleResult},
};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            "test_input_required_result_elicitation",
            "Asks the user for a name and greets them",
            elicitation,
        )
        .tool(
            "test_input_required_result_sampling",
            "Asks the client's model for a capital",
            sampling,
        )
        .tool(
            "test_input_required_result_list_roots",
            "Asks the client for its roots and lists them",
            list_roots,
        )
        .tool(
            "test_input_required_result_request_state",
            "Remembers something over a question",
            request_state,
        )
        .tool(
            "test_input_required_result_multiple_inputs",
            "Asks the user, the model and the client in one round",
            multiple_inputs,
        )
        .tool(
            "test_input_required_result_multi_round",
            "Asks a second question once the first is answered",
            multi_round,
        )
        .tool_with(
            "test_input_required_result_tampered_state",
            "Takes an answer only with the state that belongs to its question",
            confirmed,
            |tool| tool.answers_need_state(),
        )
        .tool(
            "test_input_required_result_capabilities",
            "Asks whomever the client can ask",
            capabilities,
        )
        .tool(
            "test_streaming_elicitation",
            "Reports progress and then asks the user for a name",
            streaming_elicitation,
        )
        .tool("test_missing_capability", "Cannot do without the client's model", missing_capability)
}

// The forms that the user is shown; the fields of each are its inputs.

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

/// Each question of a call has a key of its own, here `user_name`. `required` turns "no" into an
/// error that tells the model so; match on the `Answer` to go on without one.
async fn elicitation(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let answer = cx.elicit::<Name>("user_name", "What is your name?").await.required()?;
    Ok(format!("Hello, {}!", answer.name))
}

async fn sampling(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let question = SampleParams::new(100).user("What is the capital of France?");
    text_of(&cx.sample("capital_question", question).await)
}

async fn list_roots(cx: Cx, _: NoArgs) -> String {
    let roots = cx.roots("client_roots").await;
    format!("{} roots: {}", roots.len(), uris_of(&roots))
}

/// What a keyed step returned travels to the client and back, sealed, in `requestState`. So `token`
/// below was made in the first round, though it is the second that answers.
async fn request_state(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let token = cx.once("token", async || "state-ok".to_owned()).await;
    let answer = cx.elicit::<Confirmation>("confirm", "Please confirm").await.required()?;
    Ok(format!("{token}, confirmed: {}", answer.ok))
}

/// Questions that are awaited together go out in one round.
async fn multiple_inputs(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let (name, greeting, roots) = join!(
        cx.elicit::<Name>("user_name", "What is your name?"),
        cx.sample("greeting", SampleParams::new(50).user("Generate a greeting")),
        cx.roots("client_roots"),
    );
    let (name, greeting) = (name.required()?.name, text_of(&greeting)?);
    Ok(format!("{greeting} This is for {name}, from {}.", uris_of(&roots)))
}

async fn multi_round(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("step1", "Step 1: What is your name?").await.required()?;
    let second = "Step 2: What is your favorite color?";
    let Color { color } = cx.elicit("step2", second).await.required()?;
    Ok(format!("{name} likes {color}."))
}

/// A state that was altered never gets here. `answers_need_state` also refuses answers that come
/// without any: the user was certainly asked.
async fn confirmed(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let answer = cx.elicit::<Confirmation>("confirm", "Please confirm").await.required()?;
    Ok(format!("Confirmed: {}", answer.ok))
}

/// `can` tells what this client declared, to choose among alternatives. A question that the client
/// cannot be asked ends the call, with an error that tells the client what it lacks.
async fn capabilities(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    if cx.can(Capability::Elicitation) {
        let question = "What is your favorite color?";
        let answer = cx.elicit::<Color>("user_color", question).await.required()?;
        return Ok(format!("The user likes {}.", answer.color));
    }
    let question = SampleParams::new(50).user("Name a color");
    let color = text_of(&cx.sample("model_color", question).await)?;
    Ok(format!("The model says: {color}"))
}

async fn streaming_elicitation(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    cx.progress(1.0, 2.0, "About to ask");
    let answer = cx.elicit::<Name>("user_name", "What is your name?").await.required()?;
    cx.progress(2.0, 2.0, "Answered");
    Ok(format!("Hello, {}!", answer.name))
}

async fn missing_capability(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let question = SampleParams::new(10).user("Say something");
    text_of(&cx.sample("something", question).await)
}

fn text_of(answer: &SampleResult) -> Result<String, ToolError> {
    let text =
        answer.as_text().ok_or_else(|| ToolError::new("The model answered without text."))?;
    Ok(text.to_owned())
}

fn uris_of(roots: &[Root]) -> String {
    roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(", ")
}
