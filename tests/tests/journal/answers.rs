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
async fn mrtr_19_garbage_that_a_first_call_brings_along_is_refused_for_every_kind() {
    use mcp_edge::protocol::SampleParams;
    let sample = |cx: Cx, _: NoArgs| async move {
        let said = cx.sample("q", SampleParams::new(10).user("hi")).await;
        said.as_text().unwrap_or_default().to_owned()
    };
    let roots = |cx: Cx, _: NoArgs| async move { cx.roots("q").await.len().to_string() };
    let form = |cx: Cx, _: NoArgs| async move { cx.elicit::<Text>("q", "?").await.required() };
    let form = move |cx: Cx, args: NoArgs| async move { form(cx, args).await.map(|it| it.text) };
    let url = |cx: Cx, _: NoArgs| async move {
        cx.elicit_url("q", "Open", "https://example.com/x").await;
    };
    let content = json!({ "type": "text", "text": "hi" });
    let said = json!({ "role": "assistant", "model": "m", "content": content });
    let form_answer = json!({ "action": "accept", "content": { "text": "a" } });
    let roots_answer = json!({ "roots": [{ "uri": "file:///a" }] });
    let with = |key: &str, wrong: serde_json::Value| {
        let mut said = said.clone();
        said[key] = wrong;
        said
    };
    let any = [json!(null), json!(7), json!("x"), json!([]), json!([{}])];
    for (server, good, wrong) in [
        (
            server(sample),
            said.clone(),
            vec![
                json!({}),
                form_answer.clone(),
                roots_answer.clone(),
                with("role", json!("nobody")),
                with("model", json!(7)),
                with("content", json!({ "type": "text" })),
            ],
        ),
        (
            server(roots),
            roots_answer.clone(),
            vec![
                json!({}),
                form_answer.clone(),
                said.clone(),
                json!({ "roots": {} }),
                json!({ "roots": [7] }),
                json!({ "roots": [{ "name": "a" }] }),
            ],
        ),
        (server(form), form_answer.clone(), vec![json!({}), roots_answer.clone(), said.clone()]),
        (server(url), json!({ "action": "accept" }), vec![json!({}), roots_answer, said.clone()]),
    ] {
        let client = client(&server);
        for wrong in any.iter().cloned().chain(wrong) {
            let cold = json!({ "name": "t", "inputResponses": { "q": wrong } });
            let reply = client.round("tools/call", cold).await.unwrap();
            assert_eq!(reply.code(), Some(-32602), "{wrong} for {good}");
        }
        let cold = json!({ "name": "t", "inputResponses": { "q": good } });
        let reply = client.round("tools/call", cold).await.unwrap();
        assert_eq!(reply.result().unwrap()["resultType"], "complete", "{good}");
    }
}

/// Retries with answers as they are written.
async fn retry_as_written(
    client: &Client,
    reply: &mcp_edge_test::Reply,
    answers: &str,
) -> serde_json::Value {
    let params = json!({
        "name": "t",
        "requestState": reply.request_state().unwrap(),
        "inputResponses": "@",
    });
    let mut request = client.request("tools/call", params);
    let body = String::from_utf8(request.body().to_vec()).unwrap();
    *request.body_mut() = body.replace("\"@\"", answers).into();
    let mut response = client.raw(request).await.unwrap();
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn of_an_answer_that_is_repeated_the_last_one_is_judged_and_counts() {
    let client = client(&server(two_questions));
    let call = json!({ "name": "t", "arguments": {} });
    let first = client.round("tools/call", call).await.unwrap();
    let accept = |text: &str| json!({ "action": "accept", "content": { "text": text } });
    let (a, b) = (accept("a"), accept("b"));
    let answer = retry_as_written(&client, &first, &format!(r#"{{"first":{a},"first":7}}"#)).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let twice = format!(r#"{{"first":7,"first":{a},"fir\u0073t":{b}}}"#);
    let answer = retry_as_written(&client, &first, &twice).await;
    let asked = &answer["result"]["inputRequests"]["second"]["params"]["message"];
    assert_eq!(asked, "After b?", "{answer}");
    for two_things in [
        r#"{"action":"decline","action":"accept","content":{"text":"a"}}"#,
        r#"{"action":"accept","content":{"text":"a"},"content":{"text":"b"}}"#,
    ] {
        let answers = format!(r#"{{"first":{two_things}}}"#);
        let answer = retry_as_written(&client, &first, &answers).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test]
async fn mrtr_20_thousands_of_unknown_keys_are_carried_nowhere() {
    let client = client(&server(two_questions));
    let call = json!({ "name": "t", "arguments": {} });
    let first = client.round("tools/call", call).await.unwrap();
    let accept = |text: &str| json!({ "action": "accept", "content": { "text": text } });
    let few = client.retry(&first, json!({ "first": accept("a") })).await.unwrap();
    let mut answers: serde_json::Map<_, _> =
        (0..10_000).map(|number| (format!("x{number}"), accept("x"))).collect();
    let nothing = client.retry(&first, json!(answers)).await.unwrap();
    assert_eq!(keys(&nothing), ["first"]);
    answers.insert("first".to_owned(), accept("a"));
    let many = client.retry(&first, json!(answers)).await.unwrap();
    assert_eq!(keys(&many), ["second"]);
    let length = |reply: &mcp_edge_test::Reply| reply.request_state().unwrap().len();
    assert_eq!(length(&many), length(&few));
    assert!(length(&nothing) <= length(&few));
}

#[tokio::test]
async fn an_answer_that_the_journal_cannot_hold_is_an_error_and_the_state_stays_good() {
    let client = client(&server(two_questions));
    let call = json!({ "name": "t", "arguments": {} });
    let first = client.round("tools/call", call).await.unwrap();
    let accept = |text: &str| json!({ "action": "accept", "content": { "text": text } });
    let large = json!({ "first": accept(&"x".repeat(40 << 10)) });
    let refused = client.retry(&first, large).await.unwrap();
    assert_eq!(refused.code(), Some(-32603));
    let second = client.retry(&first, json!({ "first": accept("a") })).await.unwrap();
    let last = client.retry(&second, json!({ "second": accept("b") })).await.unwrap();
    assert_eq!(last.result().unwrap()["content"][0]["text"], "a, b");
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
