//! Calls that ask questions.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use mcp_edge::{Answer, Cx, KeyRing, NoArgs, Server, ToolError, protocol::SampleParams};
use mcp_edge_test::{Client, Fault, Question};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Asks for a name, then whether it is right.
async fn greet(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("name", "Who are you?").await.required()?;
    let right: Answer<Confirm> = cx.elicit("right", format!("Is it {name}?")).await;
    Ok(match right {
        Answer::Accepted(Confirm { yes: true }) => format!("Hello, {name}!"),
        Answer::Accepted(_) => "Hello, whoever you are!".to_owned(),
        Answer::Declined => "Then not.".to_owned(),
        Answer::Cancelled => "As you like.".to_owned(),
    })
}

fn keys(server: Server) -> Server {
    server.with_sealer(KeyRing::new(1, &[7; 32]))
}

fn greeter() -> Server {
    keys(Server::builder("greeter", "1.0.0").tool("greet", "Greets", greet).build().unwrap())
}

fn named(client: Client) -> Client {
    client.answer("name", json!({"name": "Ada"}))
}

#[tokio::test]
async fn a_call_goes_on_through_its_questions() {
    let client = named(Client::in_process(&greeter())).answer("right", json!({"yes": true}));
    let called = client.call("greet", ()).await.unwrap();
    assert_eq!(called.text(), "Hello, Ada!");
    assert_eq!(called.questions(), ["name", "right"]);
    assert_eq!(called.rounds.len(), 2);
    assert_eq!(called.rounds[1][0].message(), "Is it Ada?");
    assert_eq!(called.rounds[0][0].schema().unwrap()["required"], json!(["name"]));
}

#[tokio::test]
async fn questions_can_be_declined_and_cancelled() {
    let client = named(Client::in_process(&greeter()));
    let called = client.clone().decline("right").call("greet", ()).await.unwrap();
    assert_eq!(called.text(), "Then not.");
    let called = client.cancel("right").call("greet", ()).await.unwrap();
    assert_eq!(called.text(), "As you like.");
    let called = Client::in_process(&greeter()).decline("name").call("greet", ()).await.unwrap();
    assert!(called.is_error());
}

#[tokio::test]
async fn closures_answer_what_has_no_answer_of_its_own() {
    let client = named(Client::in_process(&greeter()))
        .on_question(|_: &Question| panic!("a newer closure answers"))
        .on_question(|question| {
            assert_eq!((question.key.as_str(), question.url()), ("right", None));
            Some(question.accept(json!({"yes": question.message().contains("Ada")})))
        });
    assert_eq!(client.call("greet", ()).await.unwrap().text(), "Hello, Ada!");
}

#[tokio::test]
async fn a_question_without_an_answer_names_its_key() {
    let client = named(Client::in_process(&greeter())).on_question(|_| None);
    let error = client.call("greet", ()).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Unanswered { key: "right".to_owned() });
    let text = error.to_string();
    assert!(text.contains("Is it Ada?") && text.contains(r#".answer("right", ..)"#), "{text}");
    assert!(text.contains("> Mcp-Name: greet") && text.contains("\"requestState\""), "{text}");
}

#[tokio::test]
async fn rounds_are_limited() {
    async fn ask(cx: Cx, _: NoArgs) -> String {
        for key in 0..20 {
            cx.elicit::<Confirm>(format!("q{key}"), "More?").await;
        }
        "done".to_owned()
    }
    let server = keys(Server::builder("s", "1").tool("ask", "Asks", ask).build().unwrap());
    let client = Client::in_process(&server).on_question(|question| Some(question.cancel()));
    let error = client.clone().max_rounds(3).call("ask", ()).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::TooManyRounds);
    let error = client.call("ask", ()).await.unwrap_err();
    assert_eq!(error.code(), Some(-32603), "the server's own limit: {error}");
}

#[tokio::test]
async fn every_request_of_a_fleet_goes_to_another_instance() {
    let turns = Arc::new(AtomicU32::new(0));
    let instances = (0..3).map(|number| {
        let turns = Arc::clone(&turns);
        let who = move |_: NoArgs| {
            turns.fetch_add(1, Ordering::Relaxed);
            async move { number.to_string() }
        };
        let server =
            Server::builder("s", "1").tool("who", "Who", who).tool("greet", "Greets", greet);
        keys(server.build().unwrap())
    });
    let client = named(Client::fleet(instances)).answer("right", json!({"yes": true}));
    let mut answered = Vec::new();
    for _ in 0..6 {
        answered.push(client.call("who", ()).await.unwrap().text());
    }
    assert_eq!(answered, ["0", "1", "2", "0", "1", "2"]);
    assert_eq!(turns.load(Ordering::Relaxed), 6);
    assert_eq!(client.call("greet", ()).await.unwrap().text(), "Hello, Ada!");
}

#[tokio::test]
async fn a_state_is_refused_by_an_instance_with_another_key() {
    let stranger = Server::builder("greeter", "1.0.0").tool("greet", "Greets", greet);
    let stranger = stranger.build().unwrap().with_sealer(KeyRing::new(1, &[8; 32]));
    let error = named(Client::fleet([greeter(), stranger])).call("greet", ()).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32602), "Invalid requestState"));
}

#[tokio::test(start_paused = true)]
async fn time_passes_between_rounds_as_the_test_says() {
    let client = Client::in_process(&greeter());
    let reply = client.round("tools/call", json!({"name": "greet"})).await.unwrap();
    let answers = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    tokio::time::advance(Duration::from_secs(3590)).await;
    let next = client.retry(&reply, answers.clone()).await.unwrap();
    assert_eq!(next.input_requests()[0].message(), "Is it Ada?");
    tokio::time::advance(Duration::from_secs(20)).await;
    let late = client.retry(&reply, answers).await.unwrap();
    assert_eq!(late.code(), Some(-32602), "{late}");
}

#[tokio::test]
async fn answers_fit_the_kind_of_the_question() {
    async fn ask(cx: Cx, _: NoArgs) -> String {
        let opened = cx.elicit_url("page", "Open it", "https://example.com/a").await;
        let params = SampleParams::new(10).user("Say hi");
        let sampled = cx.sample("words", params).await;
        let roots = cx.roots("roots").await;
        format!("{opened:?} {} {}", sampled.model, roots[0].uri)
    }
    let server = keys(Server::builder("s", "1").tool("ask", "Asks", ask).build().unwrap());
    let client = Client::in_process(&server)
        .strict()
        .answer("page", Value::Null)
        .answer(
            "words",
            json!({"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m1"}),
        )
        .answer("roots", json!({"roots": [{"uri": "file:///a"}]}));
    let called = client.call("ask", ()).await.unwrap();
    assert_eq!(called.text(), "Accepted(()) m1 file:///a");
    assert_eq!(called.rounds[0][0].url(), Some("https://example.com/a"));
    let error = client.capabilities(json!({"elicitation": {}})).call("ask", ()).await.unwrap_err();
    assert_eq!(error.code(), Some(-32021));
    assert_eq!(error.status(), Some(http::StatusCode::BAD_REQUEST));
    assert_eq!(error.data().unwrap()["requiredCapabilities"], json!({"elicitation": {"url": {}}}));
}

// Strict mode.

async fn strict_error(server: &Server) -> mcp_edge_test::CallError {
    let client = Client::in_process(server)
        .on_question(|question| Some(question.accept(json!({"yes": true}))));
    client.clone().call("ask", ()).await.expect("fine as long as nobody looks closely");
    client.strict().call("ask", ()).await.unwrap_err()
}

#[tokio::test]
async fn strict_mode_accepts_what_replays() {
    let client = named(Client::in_process(&greeter())).answer("right", json!({"yes": true}));
    let called = client.strict().call("greet", ()).await.unwrap();
    assert_eq!((called.text().as_str(), called.rounds.len()), ("Hello, Ada!", 2));
}

#[tokio::test]
async fn strict_mode_finds_a_key_that_changes() {
    // It counts the runs, as a clock or a random number would.
    let runs = Arc::new(AtomicU32::new(0));
    let ask = move |cx: Cx, _: NoArgs| {
        let run = runs.fetch_add(1, Ordering::Relaxed) / 2;
        async move {
            cx.elicit::<Confirm>(format!("q{run}"), "Well?").await;
            String::new()
        }
    };
    let server = keys(Server::builder("s", "1").tool("ask", "Asks", ask).build().unwrap());
    let error = strict_error(&server).await;
    assert_eq!(*error.fault(), Fault::Unstable);
    assert!(error.message().contains("question `q1` is not asked again"), "{error}");
    assert_eq!(error.to_string().matches("> POST /mcp").count(), 2, "both exchanges are shown");
}

#[tokio::test]
async fn strict_mode_finds_a_text_that_changes() {
    let runs = Arc::new(AtomicU32::new(0));
    let ask = move |cx: Cx, _: NoArgs| {
        let run = runs.fetch_add(1, Ordering::Relaxed) / 2;
        async move {
            cx.elicit::<Confirm>("sure", format!("Sure? ({run})")).await;
            String::new()
        }
    };
    let server = keys(Server::builder("s", "1").tool("ask", "Asks", ask).build().unwrap());
    let error = strict_error(&server).await;
    assert_eq!(*error.fault(), Fault::Unstable);
    assert!(error.message().contains("question `sure` is another one"), "{error}");
}

#[tokio::test]
async fn strict_mode_finds_a_plain_await_before_a_question() {
    async fn ask(cx: Cx, _: NoArgs) -> String {
        tokio::time::sleep(Duration::from_millis(1)).await;
        cx.elicit::<Confirm>("sure", "Sure?").await;
        String::new()
    }
    let server = keys(Server::builder("s", "1").tool("ask", "Asks", ask).build().unwrap());
    let error = strict_error(&server).await;
    assert_eq!(error.code(), Some(-32603));
    assert!(error.message().contains("a plain await came before question `sure`"), "{error}");
}

#[tokio::test]
async fn strict_mode_needs_the_servers_at_hand() {
    let error = Client::url("http://127.0.0.1:1/mcp").strict().discover().await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Misuse);
}
