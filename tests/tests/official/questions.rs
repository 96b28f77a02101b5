//! The example questions of the specification go out as they are.

use mcp_edge::{Cx, KeyRing, NoArgs, Server, protocol::SampleParams};
use mcp_edge_test::Client;
use serde_json::{Value, json};

use super::*;

/// A question of one of the kinds that a handler can ask.
#[derive(Clone)]
enum Ask {
    Form { message: String, schema: Value },
    Page { message: String, url: String },
    Sample(Box<SampleParams>),
}

/// What goes out for a question: its params.
async fn sent(ask: Ask) -> Value {
    let tool = move |cx: Cx, _: NoArgs| {
        let ask = ask.clone();
        async move {
            match ask {
                Ask::Form { message, schema } => drop(cx.elicit_schema("q", message, schema).await),
                Ask::Page { message, url } => drop(cx.elicit_url("q", message, url).await),
                Ask::Sample(params) => drop(cx.sample("q", *params).await),
            }
        }
    };
    let server = Server::builder("questions", "1.0.0")
        .tool("t", "Asks", tool)
        .sealer(KeyRing::new(1, &[7; 32]))
        .build()
        .unwrap();
    let client = Client::in_process(&server);
    let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let question =
        reply.input_requests().pop().unwrap_or_else(|| panic!("it was refused: {reply}"));
    question.params
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn forms_and_pages_and_questions_to_the_model() {
    let Some(spec) = spec() else { return };
    for folder in
        ["ElicitRequestFormParams", "ElicitRequestURLParams", "CreateMessageRequestParams"]
    {
        for path in entries(&spec.join("examples").join(folder)) {
            let example = read(&path);
            let message = || text(&example["message"]);
            let ask = match folder {
                "ElicitRequestFormParams" => {
                    Ask::Form { message: message(), schema: example["requestedSchema"].clone() }
                }
                "ElicitRequestURLParams" => {
                    Ask::Page { message: message(), url: text(&example["url"]) }
                }
                _ => Ask::Sample(serde_json::from_str(&example.to_string()).unwrap()),
            };
            assert_eq!(sent(ask).await, example, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn elic_04_each_kind_of_member() {
    let Some(spec) = spec() else { return };
    for folder in entries(&spec.join("examples")) {
        if !name(&folder).ends_with("Schema") {
            continue;
        }
        for path in entries(&folder) {
            let member = read(&path);
            let schema = json!({ "type": "object", "properties": { "p": member } });
            let ask = Ask::Form { message: "?".to_owned(), schema };
            let sent = sent(ask).await;
            assert_eq!(sent["requestedSchema"]["properties"]["p"], member, "{}", path.display());
        }
    }
}
