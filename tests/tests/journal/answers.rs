//! Questions and their answers: rules 1, 3 and D.

use futures_util::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use mcp_edge::{Answer, Cx, NoArgs, ToolError};
use serde_json::json;

use super::*;

fn keys(reply: &mcp_edge_test::Reply) -> Vec<String> {
    reply.input_requests().into_iter().map(|question| question.key).collect()
}

async fn two_questions(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    let first = cx.elicit::<Text>("first", "First?").await.required()?.text;
    let second = cx.elicit::<Text>("second", format!("After {first}?")).await.required()?.text;
    Ok(format!("{first}, {second}"))
}

#[tokio::test]
async fn one_question_after_another() {
    let client = client(&server(two_questions))
        .answer("first", json!({ "text": "a" }))
        .answer("second", json!({ "text": "b" }));
    let called = client.call("t", json!({})).await.unwrap();
    assert_eq!(called.text(), "a, b");
    assert_eq!(called.rounds.len(), 2);
}

#[tokio::test]
async fn every_round_may_go_to_another_server_with_the_same_keys() {
    let servers = (0..3).map(|_| server(two_questions));
    let client = Client::fleet(servers)
        .answer("first", json!({ "text": "a" }))
        .answer("second", json!({ "text": "b" }));
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "a, b");
}

#[tokio::test]
async fn mrtr_27_declining_and_cancelling_are_outcomes_that_the_handler_sees() {
    let tool = |cx: Cx, _: NoArgs| async move {
        match cx.elicit::<Text>("q", "?").await {
            Answer::Accepted(_) => "accepted",
            Answer::Declined => "declined",
            Answer::Cancelled => "cancelled",
        }
    };
    let server = server(tool);
    let declined = client(&server).decline("q").call("t", json!({})).await.unwrap();
    assert_eq!(declined.text(), "declined");
    let cancelled = client(&server).cancel("q").call("t", json!({})).await.unwrap();
    assert_eq!(cancelled.text(), "cancelled");
}

#[tokio::test]
async fn required_tells_the_model_that_the_user_declined() {
    let called =
        client(&server(two_questions)).decline("first").call("t", json!({})).await.unwrap();
    assert!(called.is_error());
    assert_eq!(called.text(), "The user declined.");
}

#[tokio::test]
async fn mrtr_20_and_21_unknown_keys_are_ignored_and_missing_answers_asked_for_again() {
    let client = client(&server(two_questions));
    let first = client.round("tools/call", json!({ "name": "t", "arguments": {} })).await.unwrap();
    let again = client.retry(&first, json!({ "wrong": { "action": "accept" } })).await.unwrap();
    assert_eq!(again.input_requests(), first.input_requests());
    assert_ne!(again.request_state(), first.request_state());
    let garbage = client.retry(&first, json!({ "wrong": 7 })).await.unwrap();
    assert_eq!(garbage.input_requests(), first.input_requests());
}

#[tokio::test]
async fn questions_side_by_side_go_out_in_one_round() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let (a, b) =
            futures_util::join!(cx.elicit::<Text>("a", "A?"), cx.elicit::<Text>("b", "B?"));
        Ok::<_, ToolError>(format!("{}{}", a.required()?.text, b.required()?.text))
    };
    let client = client(&server(tool))
        .answer("a", json!({ "text": "1" }))
        .answer("b", json!({ "text": "2" }));
    let called = client.call("t", json!({})).await.unwrap();
    assert_eq!((called.text().as_str(), called.rounds.len()), ("12", 1));
}

#[tokio::test]
async fn forty_questions_go_out_in_one_round() {
    for unordered in [false, true] {
        let tool = move |cx: Cx, _: NoArgs| async move {
            let ask = |n: usize| {
                let cx = cx.clone();
                async move { cx.elicit::<Text>(format!("q{n}"), "?").await }
            };
            let count = if unordered {
                let all: FuturesUnordered<_> = (0..40).map(ask).collect();
                all.filter_map(|answer| async { answer.accepted() }).count().await
            } else {
                join_all((0..40).map(ask)).await.len()
            };
            format!("{count}")
        };
        let client = client(&server(tool)).on_question(|question| {
            let text = question.key.clone();
            Some(json!({ "action": "accept", "content": { "text": text } }))
        });
        let called = client.call("t", json!({})).await.unwrap();
        assert_eq!(called.text(), "40");
        assert_eq!(called.rounds.len(), 1);
        assert_eq!(called.rounds[0].len(), 40);
    }
}

#[tokio::test]
async fn when_only_some_answers_came_the_rest_is_asked_again_and_the_given_ones_stay() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let (a, b) =
            futures_util::join!(cx.elicit::<Text>("a", "A?"), cx.elicit::<Text>("b", "B?"));
        Ok::<_, ToolError>(format!("{}{}", a.required()?.text, b.required()?.text))
    };
    let client = client(&server(tool));
    let accept = |text: &str| json!({ "action": "accept", "content": { "text": text } });
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let second = client.retry(&first, json!({ "b": accept("2") })).await.unwrap();
    assert_eq!(keys(&second), ["a"]);
    let last = client.retry(&second, json!({ "a": accept("1") })).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "12");
}

#[tokio::test]
async fn a_shared_question_is_one_question() {
    use futures_util::FutureExt as _;
    let tool = |cx: Cx, _: NoArgs| async move {
        let asked = cx.clone();
        let shared =
            async move { asked.elicit::<Text>("q", "?").await.accepted() }.boxed().shared();
        let (a, b, c) = futures_util::join!(shared.clone(), shared.clone(), shared);
        format!("{:?}", [a, b, c].iter().flatten().count())
    };
    let called =
        client(&server(tool)).answer("q", json!({ "text": "x" })).call("t", json!({})).await;
    let called = called.unwrap();
    assert_eq!((called.text().as_str(), called.rounds[0].len()), ("3", 1));
}

#[tokio::test]
async fn rule_d_an_answer_belongs_to_the_text_it_was_given_for() {
    let price = Counter::default();
    let asked = price.clone();
    let tool = move |cx: Cx, _: NoArgs| {
        let price = asked.clone();
        async move {
            let total = price.get() * 900; // not journalled, and it changes between the rounds
            let yes = cx.elicit::<Yes>("approve", format!("Refund {total}?")).await.required()?;
            Ok::<_, ToolError>(format!("{} {total}", yes.yes))
        }
    };
    let client = client(&server(tool));
    let yes = json!({ "approve": { "action": "accept", "content": { "yes": true } } });
    let cheap = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    price.bump();
    let dear = client.retry(&cheap, yes.clone()).await.unwrap();
    let question = &dear.input_requests()[0];
    assert_eq!(question.message(), "Refund 900?", "the yes was for another price");
    let paid = client.retry(&dear, yes).await.unwrap();
    assert_eq!(paid.result().unwrap()["content"][0]["text"], "true 900");
}

#[tokio::test]
async fn a_first_call_may_bring_answers_along() {
    let called = client(&server(two_questions))
        .round(
            "tools/call",
            json!({ "name": "t", "inputResponses": {
                "first": { "action": "accept", "content": { "text": "a" } },
                "second": { "action": "accept", "content": { "text": "b" } },
                "extra": { "action": "accept" },
            } }),
        )
        .await
        .unwrap();
    assert_eq!(called.result().unwrap()["content"][0]["text"], "a, b");
}

#[tokio::test]
async fn answers_need_state_ignores_what_a_first_call_brings_along() {
    let server = server_with(two_questions, |tool| tool.answers_need_state());
    let reply = client(&server)
        .round(
            "tools/call",
            json!({ "name": "t", "inputResponses": {
                "first": { "action": "accept", "content": { "text": "a" } },
            } }),
        )
        .await
        .unwrap();
    assert_eq!(keys(&reply), ["first"]);
}

#[tokio::test]
async fn nobody_answers_a_question_before_it_is_asked() {
    let client = client(&server(two_questions));
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    let accept = |text: &str| json!({ "action": "accept", "content": { "text": text } });
    let second = client
        .retry(&first, json!({ "first": accept("a"), "second": accept("too early") }))
        .await
        .unwrap();
    assert_eq!(keys(&second), ["second"]);
}

#[tokio::test]
async fn mrtr_19_garbage_in_place_of_an_answer_is_refused() {
    let client = client(&server(two_questions));
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    for garbage in [
        json!({ "first": 12345 }),
        json!({ "first": null }),
        json!({ "first": { "action": "perhaps" } }),
        json!({ "first": { "action": "accept", "content": { "text": { "nested": 1 } } } }),
    ] {
        let reply = client.retry(&first, garbage.clone()).await.unwrap();
        assert_eq!(reply.code(), Some(-32602), "{garbage}");
    }
    for garbage in [json!(null), json!(7), json!([]), json!({ "first": 12345 })] {
        let cold = json!({ "name": "t", "inputResponses": garbage });
        let reply = client.round("tools/call", cold).await.unwrap();
        assert_eq!(reply.code(), Some(-32602), "{garbage}");
    }
}

#[tokio::test]
async fn elic_13_an_answer_that_does_not_fit_the_form_is_asked_for_again() {
    let client = client(&server(two_questions));
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    for content in [json!({}), json!({ "text": 7 })] {
        let answer = json!({ "first": { "action": "accept", "content": content } });
        let again = client.retry(&first, answer).await.unwrap();
        assert_eq!(again.input_requests(), first.input_requests());
    }
}

#[tokio::test]
async fn mrtr_08_undeclared_questions_are_left_out_while_another_makes_progress() {
    let tool = |cx: Cx, _: NoArgs| async move {
        let (form, roots) = futures_util::join!(cx.elicit::<Text>("form", "?"), cx.roots("roots"));
        Ok::<_, ToolError>(format!("{} {}", form.required()?.text, roots.len()))
    };
    let client = client(&server(tool)).capabilities(json!({ "roots": {} }));
    let first = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
    assert_eq!(keys(&first), ["roots"]);
    let last = client.retry(&first, json!({ "roots": { "roots": [] } })).await.unwrap();
    assert_eq!((last.status.as_u16(), &last.error().unwrap()["code"]), (400, &json!(-32021)));
    let missing = &last.error().unwrap()["data"]["requiredCapabilities"];
    assert_eq!(missing, &json!({ "elicitation": {} }));
}

#[tokio::test]
async fn meta_09_what_is_missing_is_named_down_to_the_mode() {
    use mcp_edge::protocol::{SampleParams, Tool};
    let url = |cx: Cx, _: NoArgs| async move {
        cx.elicit_url("q", "Open", "https://example.com/x").await;
    };
    let form = |cx: Cx, _: NoArgs| async move {
        cx.elicit::<Text>("q", "?").await;
    };
    let tools = |cx: Cx, _: NoArgs| async move {
        let tool = Tool::new("x", json!({ "type": "object" }));
        cx.sample("q", SampleParams::new(10).user("hi").tools([tool])).await;
    };
    let form_only = json!({ "elicitation": {} });
    let url_only = json!({ "elicitation": { "url": {} } });
    let sampling = json!({ "sampling": {} });
    for (server, declared, missing) in [
        (server(url), &form_only, json!({ "elicitation": { "url": {} } })),
        (server(form), &url_only, json!({ "elicitation": { "form": {} } })),
        (server(tools), &sampling, json!({ "sampling": { "tools": {} } })),
    ] {
        let client = client(&server).capabilities(declared.clone());
        let reply = client.round("tools/call", json!({ "name": "t" })).await.unwrap();
        assert_eq!(reply.error().unwrap()["data"]["requiredCapabilities"], missing);
    }
}
