//! SAMP: questions to the client's model.

use mcp_edge::{
    Cx, NoArgs,
    protocol::{IncludeContext, JsonObject, SampleParams, SamplingContent},
};

use super::*;

fn asking(params: SampleParams) -> Client {
    let tool = move |cx: Cx, _: NoArgs| {
        let params = params.clone();
        async move { cx.sample("q", params).await.as_text().unwrap_or_default().to_owned() }
    };
    client(builder().tool("t", "Asks the model", tool))
}

#[tokio::test]
async fn samp_03_and_08_a_question_to_the_model_and_its_answer() {
    let params = SampleParams::new(200).user("Why?").system_prompt("Be brief.").temperature(0.5);
    let client = asking(params);
    let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    assert_eq!(
        reply.result().unwrap()["inputRequests"]["q"],
        json!({ "method": "sampling/createMessage", "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Why?" } }],
            "maxTokens": 200, "systemPrompt": "Be brief.", "temperature": 0.5 } })
    );
    let block = json!({ "type": "text", "text": "Because." });
    for content in [block.clone(), json!([block])] {
        let answer = json!({ "role": "assistant", "model": "m", "stopReason": "endTurn",
            "content": content });
        let reply = client.retry(&reply, json!({ "q": answer })).await.unwrap();
        assert_eq!(text(&reply), "Because.");
    }
}

#[tokio::test]
async fn samp_04_context_is_asked_for_where_it_is_declared() {
    let with = |context| asking(SampleParams::new(1).user("?").include_context(context));
    let plain = json!({ "sampling": {} });
    for (context, declared, missing) in [
        (IncludeContext::ThisServer, &plain, json!({ "sampling": { "context": {} } })),
        (IncludeContext::AllServers, &plain, json!({ "sampling": { "context": {} } })),
        (IncludeContext::None, &plain, json!(null)),
        (IncludeContext::AllServers, &json!({ "sampling": { "context": {} } }), json!(null)),
    ] {
        let client = with(context).capabilities(declared.clone());
        let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
        let error = reply.error().unwrap_or(&Value::Null);
        assert_eq!(error["data"]["requiredCapabilities"], missing, "{declared}");
        assert_eq!(reply.is_input_required(), missing.is_null());
    }
}

#[tokio::test]
async fn samp_05_and_06_every_use_of_a_tool_is_answered_before_anything_else() {
    let used = || SamplingContent::tool_use("a", "weather", JsonObject::new());
    let asked = || SampleParams::new(1).user("?").assistant(used());
    let result =
        || SamplingContent::tool_result("a", [mcp_edge::protocol::ContentBlock::text("x")]);
    for (params, sound) in [
        (asked().user(result()), true),
        (asked(), false),
        (asked().user("wait"), false),
        (asked().user(vec![result(), SamplingContent::text("and")]), false),
    ] {
        let reply = asking(params).round("tools/call", json!({ "name": "t" })).await.unwrap();
        assert_eq!(reply.code(), (!sound).then_some(-32603));
        assert_eq!(reply.is_input_required(), sound);
    }
}
