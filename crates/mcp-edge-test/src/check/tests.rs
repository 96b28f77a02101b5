//! What is refused, fed in as canned responses. The id of a client's first request is 1.

#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use http::{Response, StatusCode};
use mcp_edge::protocol::LogLevel;
use serde_json::{Value, json};

use crate::{CallError, Client, Fault, Framing, Reply, transport::Canned};

mod tasks;

fn json_response(status: u16, body: &Value) -> Response<Vec<String>> {
    typed(status, "application/json", vec![body.to_string()])
}

fn events(messages: &[Value]) -> Response<Vec<String>> {
    let event = |message| format!("event: message\ndata: {message}\n\n");
    typed(200, "text/event-stream", messages.iter().map(event).collect())
}

fn typed(status: u16, content_type: &str, body: Vec<String>) -> Response<Vec<String>> {
    Response::builder().status(status).header("content-type", content_type).body(body).unwrap()
}

fn client(responses: impl IntoIterator<Item = Response<Vec<String>>>) -> Client {
    Client::over(Canned::new(responses))
}

async fn round(client: &Client, method: &str) -> Result<Reply, CallError> {
    client.round(method, json!({"name": "t", "uri": "x://y"})).await
}

async fn answer(method: &str, response: Response<Vec<String>>) -> Result<Reply, CallError> {
    round(&client([response]), method).await
}

#[track_caller]
fn assert_refused<T>(outcome: Result<T, CallError>, part: &str) {
    let Err(error) = outcome else { panic!("accepted, although {part}") };
    assert_eq!(*error.fault(), Fault::Refused, "{error}");
    assert!(error.message().contains(part), "expected {part:?}: {error}");
}

fn result(result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
}

fn error(code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m"}})
}

fn done() -> Value {
    result(json!({"resultType": "complete", "content": []}))
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[tokio::test]
async fn a_message_that_is_no_sound_response_is_refused() {
    for (message, part) in [
        (json!([done()]), "BASE-02"),
        (json!("x"), "an object"),
        (json!({"id": 1, "result": {"resultType": "complete", "content": []}}), "jsonrpc"),
        (json!({"jsonrpc": "1.0", "id": 1, "result": {}}), "jsonrpc"),
        (json!({"jsonrpc": "2.0", "id": 2, "result": {}}), "the id is 2, not 1"),
        (json!({"jsonrpc": "2.0", "id": "1", "result": {}}), "the id is \"1\", not 1"),
        (json!({"jsonrpc": "2.0", "id": 1.0, "result": {}}), "the id is 1.0, not 1"),
        (json!({"jsonrpc": "2.0", "id": null, "result": {}}), "never null"),
        (json!({"jsonrpc": "2.0", "result": {}}), "needs its id"),
        (json!({"jsonrpc": "2.0", "id": 1}), "either"),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}), "either"),
        (result(json!({"content": []})), "BASE-09"),
        (result(json!({"resultType": "partial", "content": []})), "BASE-10"),
        (result(json!({"resultType": "task", "taskId": "t"})), "TASK-02"),
        (result(json!({"resultType": "complete", "content": [], "_meta": 1})), "_meta"),
        (result(json!({"resultType": "complete"})), "content"),
        (result(json!({"resultType": "complete", "content": [{"type": "x"}]})), "TOOL-16"),
        (result(json!({"resultType": "complete", "content": [], "isError": "no"})), "isError"),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}), "BASE-03"),
        (notification("notifications/message", json!({})), "log level"),
        (notification("x/y", json!({})), "no answer"),
    ] {
        assert_refused(answer("tools/call", json_response(200, &message)).await, part);
    }
    answer("tools/call", json_response(200, &done())).await.unwrap();
}

#[tokio::test]
async fn the_status_and_the_media_type_must_fit() {
    for (response, part) in [
        (json_response(400, &done()), "cannot come with 400"),
        (json_response(202, &done()), "cannot come with 202"),
        (typed(200, "application/json", vec![]), "HTTP-10"),
        (typed(202, "application/json", vec![]), "answered with 200"),
        (typed(200, "text/html", vec![done().to_string()]), "HTTP-10"),
        (typed(200, "application/json", vec!["{".to_owned()]), "not JSON"),
        (typed(500, "text/event-stream", events(&[error(-32603)]).into_body()), "cannot come with"),
    ] {
        assert_refused(answer("tools/call", response).await, part);
    }
    let stream = client([events(&[done()])]).accept("application/json");
    assert_refused(round(&stream, "tools/call").await, "HTTP-15");
    let plain = client([json_response(200, &done())]).accept("text/event-stream");
    assert_refused(round(&plain, "tools/call").await, "HTTP-15");
    let case = typed(200, "Application/JSON; charset=UTF-8", vec![done().to_string()]);
    assert_eq!(answer("tools/call", case).await.unwrap().framing, Framing::Json);
}

#[tokio::test]
async fn errors_have_known_codes_with_their_status_and_data() {
    for (status, message, part) in [
        (200, json!({"jsonrpc": "2.0", "id": 1, "error": {"message": "m"}}), "BASE-11"),
        (
            200,
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": "m"}}),
            "BASE-11",
        ),
        (200, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}), "message"),
        (200, json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "m"}}), "BASE-06"),
        (400, json!({"jsonrpc": "2.0", "error": {"code": -32602, "message": "m"}}), "BASE-06"),
        (400, json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600}}), "never null"),
        (200, error(-32002), "reserved"),
        (200, error(-32042), "reserved"),
        (200, error(-32000), "reserved"),
        (200, error(-32019), "reserved"),
        (200, error(-32023), "reserved"),
        (200, error(-32700 + 1), "reserved"),
        (200, error(-32601), "comes with 404"),
        (200, error(-32020), "comes with 400"),
        (400, error(-32021), "META-09"),
        (400, error(-32022), "VER-03"),
    ] {
        assert_refused(answer("tools/call", json_response(status, &message)).await, part);
    }
    for (status, message) in [
        (200, error(-32602)),
        (400, error(-32602)),
        (404, error(-32601)),
        (200, error(7)),
        (400, json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "m"}})),
        (403, json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "m"}})),
    ] {
        let reply = answer("tools/call", json_response(status, &message)).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.error()), (status, Some(&message["error"])));
    }
    let mut missing = error(-32021);
    missing["error"]["data"] = json!({"requiredCapabilities": {"roots": {}}});
    assert_refused(answer("tools/call", json_response(200, &missing)).await, "comes with 400");
    answer("tools/call", json_response(400, &missing)).await.unwrap();
    answer("tools/call", events(&[missing])).await.unwrap();
}

#[tokio::test]
async fn a_gateway_may_fail_without_a_message() {
    for response in [
        typed(502, "text/html", vec!["<h1>".to_owned()]),
        typed(502, "text/plain", vec![]),
        json_response(502, &json!({"message": "Internal server error"})),
    ] {
        let client = client([response]);
        let error = client.call("t", ()).await.unwrap_err();
        assert_eq!(*error.fault(), Fault::Status(StatusCode::BAD_GATEWAY));
        assert_eq!(error.status(), Some(StatusCode::BAD_GATEWAY));
    }
    let error = client([]).call("t", ()).await.unwrap_err();
    assert_eq!((error.fault(), error.code()), (&Fault::Transport, None));
    assert!(format!("{error:?}").contains("nothing more to say"));
}

#[tokio::test]
async fn streams_carry_the_notifications_of_their_request_alone() {
    let progress = |progress: Value| {
        notification(
            "notifications/progress",
            json!({"progressToken": "progress-1", "progress": progress}),
        )
    };
    let log =
        |level: &str| notification("notifications/message", json!({"level": level, "data": 1}));
    for (messages, part) in [
        (vec![], "without a response"),
        (vec![log("error")], "without a response"),
        (vec![progress(json!("1")), done()], "a number"),
        (vec![progress(json!(1)), progress(json!(1)), done()], "PROG-03"),
        (vec![progress(json!(2)), progress(json!(1.5)), done()], "PROG-03"),
        (
            vec![notification(
                "notifications/progress",
                json!({"progressToken": "progress-2", "progress": 1}),
            )],
            "PROG-02",
        ),
        (vec![log("info")], "LOG-04"),
        (vec![log("loud")], "not a log level"),
        (vec![notification("notifications/message", json!({"level": "error"}))], "LOG-07"),
        (vec![notification("notifications/cancelled", json!({"requestId": 1}))], "A-01"),
        (vec![notification("notifications/tools/list_changed", json!({}))], "listen stream"),
        (vec![notification("notifications/initialized", json!({}))], "does not exist"),
        (vec![json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}), done()], "BASE-03"),
        (vec![done(), done()], "SSE-04"),
        (vec![done(), log("error")], "SSE-04"),
    ] {
        let client = client([events(&messages)]).with_progress().log_level(LogLevel::Warning);
        assert_refused(round(&client, "tools/call").await, part);
    }
    assert_refused(answer("tools/call", events(&[progress(json!(1)), done()])).await, "PROG-01");
    assert_refused(answer("tools/call", events(&[log("error"), done()])).await, "LOG-03");
    let broken = typed(200, "text/event-stream", vec!["data: {\n\n".to_owned()]);
    assert_refused(answer("tools/call", broken).await, "not JSON");

    let messages = [progress(json!(1)), log("error"), progress(json!(1.5)), done()];
    let client = client([events(&messages)]).with_progress().log_level(LogLevel::Warning);
    let called = client.call("t", ()).await.unwrap();
    assert_eq!(called.notifications, messages[..3]);
    assert_eq!(called.progress().iter().map(|p| p.progress).collect::<Vec<_>>(), [1.0, 1.5]);
    assert_eq!(called.logs()[0].level, LogLevel::Error);
}

#[tokio::test]
async fn lists_reads_and_discover_carry_caching_fields() {
    let discover = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    for (method, members) in [
        ("server/discover", discover),
        ("tools/list", json!({"tools": []})),
        ("prompts/list", json!({"prompts": []})),
        ("resources/list", json!({"resources": []})),
        ("resources/templates/list", json!({"resourceTemplates": []})),
        ("resources/read", json!({"contents": [{"uri": "x://y", "text": ""}]})),
    ] {
        let with = |ttl: Value, scope: &str| {
            let mut members = members.clone();
            members["resultType"] = json!("complete");
            members["ttlMs"] = ttl;
            members["cacheScope"] = json!(scope);
            json_response(200, &result(members))
        };
        answer(method, with(json!(0), "private")).await.unwrap();
        assert_refused(answer(method, with(json!(null), "private")).await, "CACHE-02");
        assert_refused(answer(method, with(json!(-1), "private")).await, "CACHE-02");
        assert_refused(answer(method, with(json!(0.5), "public")).await, "CACHE-02");
        assert_refused(answer(method, with(json!(1), "shared")).await, "CACHE-03");
    }
}

#[tokio::test]
async fn ill_formed_results_are_refused() {
    for (method, members, part) in [
        ("server/discover", json!({"capabilities": {}}), "supportedVersions"),
        ("server/discover", json!({"supportedVersions": ["1"], "capabilities": {}}), "VER-04"),
        ("server/discover", json!({"supportedVersions": ["2026-07-28"]}), "capabilities"),
        ("tools/list", json!({"tools": [{"name": "t"}]}), "TOOL-07"),
        ("tools/list", json!({"tools": [], "nextCursor": null}), "nextCursor"),
        ("prompts/list", json!({"prompts": [{}]}), "name"),
        ("resources/list", json!({"resources": [{"name": "r"}]}), "uri"),
        ("resources/templates/list", json!({"resourceTemplates": [{"name": "r"}]}), "uriTemplate"),
        ("resources/read", json!({"contents": []}), "RES-08"),
        ("resources/read", json!({"contents": [{"uri": "x://y"}]}), "RES-05"),
        ("prompts/get", json!({"messages": [{"role": "system", "content": {}}]}), "role"),
        ("completion/complete", json!({"completion": {"values": [1]}}), "strings"),
        ("completion/complete", json!({"completion": {"values": vec!["x"; 101]}}), "COMP-03"),
    ] {
        let mut members = members;
        members["resultType"] = json!("complete");
        members["ttlMs"] = json!(0);
        members["cacheScope"] = json!("private");
        assert_refused(answer(method, json_response(200, &result(members))).await, part);
    }
}

#[tokio::test]
async fn pages_of_one_list_have_one_scope_and_end() {
    let page = |id: u64, scope: &str| {
        let mut page = result(json!({
            "resultType": "complete", "tools": [],
            "nextCursor": "c", "ttlMs": 0, "cacheScope": scope,
        }));
        page["id"] = json!(id);
        json_response(200, &page)
    };
    let differing = client([page(1, "public"), page(2, "private")]);
    assert_refused(differing.list_tools().await, "PAGE-06");
    let endless = client([page(1, "public"), page(2, "public")]);
    assert_refused(endless.list_tools().await, "names itself");
}

fn asks(requests: Value) -> Value {
    result(json!({"resultType": "input_required", "requestState": "s", "inputRequests": requests}))
}

fn form(params: Value) -> Value {
    let mut all = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
    json!({"k": {"method": "elicitation/create", "params": all}})
}

#[tokio::test]
async fn questions_are_well_formed() {
    let nested = json!({"type": "object", "properties": {"a": {"type": "object"}}});
    for (message, part) in [
        (result(json!({"resultType": "input_required"})), "MRTR-04"),
        (result(json!({"resultType": "input_required", "inputRequests": {}})), "MRTR-04"),
        (result(json!({"resultType": "input_required", "requestState": 1})), "requestState"),
        (
            result(json!({"resultType": "input_required", "requestState": "", "ttlMs": 0})),
            "MRTR-25",
        ),
        (
            result(
                json!({"resultType": "input_required", "requestState": "", "cacheScope": "public"}),
            ),
            "MRTR-25",
        ),
        (asks(json!({"k": {"method": "ping"}})), "MRTR-05"),
        (asks(json!({"k": {"method": "roots/list", "id": 1}})), "MRTR-03"),
        (asks(json!({"k": {"method": "roots/list", "jsonrpc": "2.0"}})), "MRTR-03"),
        (asks(form(json!({"message": null}))), "ELIC-01"),
        (asks(form(json!({"mode": "page"}))), "ELIC-01"),
        (asks(form(json!({"requestedSchema": {"properties": {}}}))), "ELIC-03"),
        (asks(form(json!({"requestedSchema": nested}))), "ELIC-03"),
        (asks(form(json!({"mode": "url", "url": "here"}))), "ELIC-07"),
        (
            asks(json!({"k": {"method": "sampling/createMessage", "params": {"messages": []}}})),
            "SAMP-03",
        ),
    ] {
        assert_refused(answer("tools/call", json_response(200, &message)).await, part);
    }
    let question = asks(form(json!({})));
    assert_refused(answer("tools/list", json_response(200, &question)).await, "MRTR-02");
    let reply = answer("tools/call", json_response(200, &question)).await.unwrap();
    assert_eq!((reply.request_state(), reply.is_input_required()), (Some("s"), true));
    assert_eq!(reply.input_requests()[0].message(), "m");
    let state_only = result(json!({"resultType": "input_required", "requestState": "s"}));
    let reply = answer("prompts/get", json_response(200, &state_only)).await.unwrap();
    assert_eq!(reply.input_requests(), []);
}

#[tokio::test]
async fn mrtr_07_questions_of_undeclared_kinds_are_refused() {
    let url = form(json!({"mode": "url", "url": "https://example.com/"}));
    let sample = |params: Value| {
        let mut all = json!({"messages": [], "maxTokens": 1});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        json!({"k": {"method": "sampling/createMessage", "params": all}})
    };
    let roots = json!({"k": {"method": "roots/list"}});
    for (capabilities, requests, accepted) in [
        (json!({}), form(json!({})), false),
        (json!({"elicitation": {}}), form(json!({})), true),
        (json!({"elicitation": {"form": {}}}), form(json!({"mode": "form"})), true),
        (json!({"elicitation": {"url": {}}}), form(json!({})), false),
        (json!({"elicitation": {}}), url.clone(), false),
        (json!({"elicitation": {"url": {}}}), url, true),
        (json!({}), sample(json!({})), false),
        (json!({"sampling": {}}), sample(json!({})), true),
        (json!({"sampling": {}}), sample(json!({"tools": []})), false),
        (json!({"sampling": {}}), sample(json!({"toolChoice": {"mode": "auto"}})), false),
        (json!({"sampling": {"tools": {}}}), sample(json!({"tools": []})), true),
        (json!({}), roots.clone(), false),
        (json!({"roots": {}}), roots, true),
    ] {
        let client = client([json_response(200, &asks(requests.clone()))]);
        let outcome = round(&client.capabilities(capabilities.clone()), "tools/call").await;
        if accepted {
            outcome.unwrap();
        } else {
            assert_refused(outcome, "MRTR-07");
        }
    }
}

#[tokio::test]
async fn listen_streams_are_acknowledged_and_tagged() {
    const TAG: &str = "io.modelcontextprotocol/subscriptionId";
    let tagged = |method: &str, id: Value, mut params: Value| {
        params["_meta"] = json!({ TAG: id });
        notification(&format!("notifications/{method}"), params)
    };
    let acknowledge = |filter: Value| {
        tagged("subscriptions/acknowledged", json!(1), json!({ "notifications": filter }))
    };
    let asked = json!({"toolsListChanged": true, "resourceSubscriptions": ["x://a"]});
    let changed = tagged("tools/list_changed", json!(1), json!({}));
    let end = result(json!({"resultType": "complete", "_meta": {TAG: 1}}));

    // Before or in the acknowledgement.
    for (messages, part) in [
        (vec![], "before it was acknowledged"),
        (vec![changed.clone()], "SUB-03"),
        (vec![end.clone()], "SUB-03"),
        (vec![notification("notifications/subscriptions/acknowledged", json!({}))], "META-14"),
        (
            vec![tagged("subscriptions/acknowledged", json!("1"), json!({"notifications": {}}))],
            "SUB-06",
        ),
        (vec![tagged("subscriptions/acknowledged", json!(1), json!({}))], "SUB-03"),
        (vec![acknowledge(json!({"promptsListChanged": true}))], "SUB-05"),
        (vec![acknowledge(json!({"resourceSubscriptions": ["x://b"]}))], "SUB-05"),
    ] {
        assert_refused(client([events(&messages)]).listen(asked.clone()).await, part);
    }
    assert_refused(client([json_response(200, &end)]).listen(asked.clone()).await, "SUB-02");

    // After it.
    for (message, part) in [
        (acknowledge(asked.clone()), "once"),
        (tagged("tools/list_changed", json!("1"), json!({})), "SUB-06"),
        (notification("notifications/tools/list_changed", json!({})), "META-14"),
        (tagged("prompts/list_changed", json!(1), json!({})), "SUB-05"),
        (tagged("resources/updated", json!(1), json!({"uri": "x://b"})), "SUB-05"),
        (tagged("resources/updated", json!(1), json!({})), "RES-17"),
        (tagged("progress", json!(1), json!({"progress": 1})), "SUB-11"),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), "BASE-03"),
        (result(json!({"resultType": "complete"})), "META-14"),
        (result(json!({"resultType": "input_required", "_meta": {TAG: 1}})), "SUB-08"),
    ] {
        let stream = events(&[acknowledge(asked.clone()), message]);
        let mut listening = client([stream]).listen(asked.clone()).await.unwrap();
        assert_refused(listening.try_next().await, part);
    }
    let stream = events(&[acknowledge(asked.clone()), end.clone(), changed.clone()]);
    let mut listening = client([stream]).listen(asked.clone()).await.unwrap();
    assert_refused(listening.try_next().await, "SSE-04");

    // As it should be.
    let updated = tagged("resources/updated", json!(1), json!({"uri": "x://a/b"}));
    let stream = events(&[acknowledge(asked.clone()), changed.clone(), updated.clone(), end]);
    let mut listening = client([stream]).listen(asked.clone()).await.unwrap();
    assert_eq!(listening.acknowledged(), &asked);
    assert_eq!(listening.next().await, Some(changed));
    assert!(!listening.ended_gracefully());
    assert_eq!(listening.next().await, Some(updated));
    assert_eq!(listening.next().await, None);
    assert!(listening.ended_gracefully());
    assert_eq!(listening.next().await, None);
}

#[tokio::test]
async fn a_listen_request_may_fail_like_others() {
    let failed = client([json_response(404, &error(-32601))]).listen(json!({})).await.unwrap_err();
    assert_eq!((failed.code(), failed.status()), (Some(-32601), Some(StatusCode::NOT_FOUND)));
    let failed = client([typed(503, "text/plain", vec![])]).listen(json!({})).await.unwrap_err();
    assert_eq!(*failed.fault(), Fault::Status(StatusCode::SERVICE_UNAVAILABLE));
    assert_refused(client([json_response(200, &error(-32601))]).listen(json!({})).await, "404");
}
