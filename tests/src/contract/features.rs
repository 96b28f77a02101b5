//! What the methods answer.

use super::*;

async fn result(client: &Client, method: &str, params: Value) -> Value {
    let reply = client.round(method, params).await.unwrap();
    reply.result().unwrap_or_else(|| panic!("no result: {:?}", reply.message)).clone()
}

async fn error(client: &Client, method: &str, params: Value) -> (u16, Value) {
    let reply = client.round(method, params).await.unwrap();
    let error = reply.error().unwrap_or_else(|| panic!("no error: {:?}", reply.message));
    (reply.status.as_u16(), error.clone())
}

pub async fn disc_03_discover(client: &Client) {
    let found = result(client, "server/discover", json!({})).await;
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["instructions"], "For tests.");
    assert_eq!((&found["ttlMs"], &found["cacheScope"]), (&json!(600_000), &json!("public")));
    let info = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info, &json!({ "name": "contract", "version": "1.0.0" }));
    let capabilities = found["capabilities"].as_object().unwrap();
    let mut names: Vec<_> = capabilities.keys().map(String::as_str).collect();
    names.sort_unstable();
    let all = ["completions", "extensions", "logging", "prompts", "resources", "tools"];
    assert_eq!(names, all, "DISC-07");
    for (name, capability) in capabilities.iter().filter(|(name, _)| *name != "extensions") {
        for (change, on) in capability.as_object().unwrap() {
            assert!(["listChanged", "subscribe"].contains(&change.as_str()), "{name}: {change}");
            assert_eq!(on, true);
        }
    }
}

pub async fn tool_calls(client: &Client) {
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let added = result(client, "tools/call", params).await;
    assert_eq!(added["resultType"], "complete");
    assert_eq!(added["structuredContent"], json!({ "sum": 3 }));
    assert_eq!(added["content"], json!([{ "type": "text", "text": "{\"sum\":3}" }]), "TOOL-13");
    assert!(added["_meta"]["io.modelcontextprotocol/serverInfo"].is_object(), "META-07");
    assert!(added.get("ttlMs").is_none() && added.get("isError").is_none(), "CACHE-10");
    // TOOL-10: absent arguments are an empty object.
    let quiet = result(client, "tools/call", json!({ "name": "quiet" })).await;
    assert_eq!(quiet["content"][0]["text"], "quiet");
}

pub async fn tool_14_and_15_what_goes_wrong_with_a_call(client: &Client) {
    let fail = |how: &str| json!({ "name": "fail", "arguments": { "how": how } });
    for (how, text) in [
        ("tool", "Try tomorrow"),
        ("hidden", "Internal error"),
        ("public", "invalid digit found in string"),
    ] {
        let failed = result(client, "tools/call", fail(how)).await;
        assert_eq!(
            (&failed["isError"], &failed["content"][0]["text"]),
            (&json!(true), &json!(text))
        );
    }
    assert_eq!(
        error(client, "tools/call", fail("protocol")).await,
        (200, json!({ "code": 7, "message": "Out of paper" }))
    );
    let (status, panicked) = error(client, "tools/call", fail("panic")).await;
    assert_eq!((status, panicked), (200, json!({ "code": -32603, "message": "Internal error" })));
    // values that are not of the tool's type are for the model, a broken call is not.
    let invalid = json!({ "name": "add", "arguments": { "a": "one" } });
    let invalid = result(client, "tools/call", invalid).await;
    assert_eq!(invalid["isError"], true);
    for params in [
        json!({ "name": "nothing", "arguments": {} }),
        json!({ "name": "add", "arguments": [] }),
        json!({ "name": "add", "arguments": null }),
        json!({ "name": "add", "arguments": "x" }),
    ] {
        let (status, error) = error(client, "tools/call", params).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)));
    }
}

pub async fn res_reads(client: &Client) {
    let text = result(client, "resources/read", json!({ "uri": "test://text" })).await;
    let contents = json!([{ "uri": "test://text", "mimeType": "text/plain", "text": "some text" }]);
    assert_eq!(text["contents"], contents);
    assert_eq!((&text["ttlMs"], &text["cacheScope"]), (&json!(5000), &json!("public")));
    let bytes = result(client, "resources/read", json!({ "uri": "test://bytes" })).await;
    assert_eq!(bytes["contents"], json!([{ "uri": "test://bytes", "blob": "AAEC" }]), "RES-12");
    assert_eq!((&bytes["ttlMs"], &bytes["cacheScope"]), (&json!(0), &json!("private")));
    let note = result(client, "resources/read", json!({ "uri": "test://notes/12" })).await;
    assert_eq!(note["contents"][0]["text"], "note 12");
}

pub async fn res_07_missing_resources(client: &Client) {
    for uri in [
        "test://nothing",
        "test://notes/0",
        "test://notes/x",
        "test://notes/1/2",
        "test://notes/%2e%2e",
        "other://text",
    ] {
        let (status, error) = error(client, "resources/read", json!({ "uri": uri })).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{uri}");
        assert_eq!(error["data"], json!({ "uri": uri }));
    }
    for uri in ["", "text", "no spaces://x y", "test://\u{e9}", "test://%zz"] {
        let (_, error) = error(client, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(error["code"], -32602, "RES-10: {uri}");
    }
}

pub async fn prompts(client: &Client) {
    let list = result(client, "prompts/list", json!({})).await;
    let arguments = &list["prompts"][0]["arguments"];
    assert_eq!(
        arguments[0],
        json!({ "name": "name", "description": "Whom to greet.", "required": true })
    );
    assert_eq!(arguments[1], json!({ "name": "style", "required": false }));
    let params = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let got = result(client, "prompts/get", params).await;
    let message = json!({ "role": "user",
        "content": { "type": "text", "text": "Greet Ada in plain style" } });
    assert_eq!(got["messages"], json!([message]));
    assert!(got.get("ttlMs").is_none(), "PROMPT-13");
    for params in [
        json!({ "name": "nothing" }),
        json!({ "name": "greet" }),
        json!({ "name": "greet", "arguments": {} }),
        json!({ "name": "greet", "arguments": { "name": 7 } }),
        json!({ "name": "greet", "arguments": ["Ada"] }),
    ] {
        let (status, error) = error(client, "prompts/get", params).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "PROMPT-05, PROMPT-12");
    }
}

pub async fn completions(client: &Client) {
    let ask = |reference: Value, name: &str, value: &str| json!({ "ref": reference, "argument": { "name": name, "value": value } });
    let prompt = json!({ "type": "ref/prompt", "name": "greet" });
    let params = ask(prompt.clone(), "name", "a");
    let found = result(client, "completion/complete", params).await;
    assert_eq!(found["completion"]["values"], json!(["Ada", "Alan"]));
    let mut params = ask(prompt.clone(), "style", "so");
    params["context"] = json!({ "arguments": { "name": "Ada" } });
    let found = result(client, "completion/complete", params).await;
    assert_eq!(found["completion"]["values"], json!(["so for 1"]));
    for uri in ["test://notes/{id}", "test://notes/1"] {
        let template = json!({ "type": "ref/resource", "uri": uri });
        let found = result(client, "completion/complete", ask(template, "id", "1")).await;
        assert_eq!(found["completion"]["values"], json!(["1", "12"]));
    }
    for params in [
        ask(json!({ "type": "ref/prompt", "name": "nothing" }), "name", ""),
        ask(json!({ "type": "ref/other", "name": "greet" }), "name", ""),
        ask(json!({ "type": "ref/resource", "uri": "test://nothing" }), "id", ""),
        ask(prompt.clone(), "nothing", ""),
        json!({ "ref": prompt.clone() }),
        json!({ "ref": 7, "argument": { "name": "name", "value": "" } }),
        json!({}),
    ] {
        let (status, error) = error(client, "completion/complete", params).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "COMP-04");
    }
}

pub async fn page_01_lists_come_in_pages(client: &Client) {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let page = result(client, "tools/list", params).await;
        let tools = page["tools"].as_array().unwrap();
        assert!(tools.len() <= 3);
        assert_eq!((&page["ttlMs"], &page["cacheScope"]), (&json!(60_000), &json!("public")));
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let others = ["add", "ask", "emit", "fail", "quiet", "touch", "mirror", "sample"];
    let defined = [&others[..], &["work", "survey", "enrol", "nightly"]].concat();
    assert_eq!(names, defined, "TOOL-04: in the order of definition, all of them once");
}

pub async fn page_04_foreign_cursors_are_refused(client: &Client) {
    let first = result(client, "tools/list", json!({})).await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let bent = format!("{}{}", &cursor[..cursor.len() - 2], "AA");
    for (method, cursor) in [
        ("tools/list", ""),
        ("tools/list", "0"),
        ("tools/list", bent.as_str()),
        ("prompts/list", cursor),
        ("resources/list", cursor),
    ] {
        let (status, error) = error(client, method, json!({ "cursor": cursor })).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{method} {cursor}");
    }
    let (_, error) = error(client, "tools/list", json!({ "cursor": 7 })).await;
    assert_eq!(error["code"], -32602);
}

pub async fn cache_01_hints(client: &Client) {
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "server/discover",
    ] {
        let found = result(client, method, json!({})).await;
        assert!(found["ttlMs"].is_u64(), "{method}");
        assert!(["public", "private"].contains(&found["cacheScope"].as_str().unwrap()));
        assert!(found.get("nextCursor").is_none_or(Value::is_string), "PAGE-02");
    }
}

pub async fn questions_over_rounds(client: &Client) {
    let client = client
        .clone()
        .answer("name", json!({ "name": "Ada" }))
        .answer("colour", json!({ "colour": "green" }));
    let called = client.call("ask", json!({})).await.unwrap();
    assert_eq!((called.text().as_str(), called.rounds.len()), ("Ada likes green", 2));
    let model = json!({ "role": "assistant", "model": "m",
        "content": { "type": "text", "text": "hi" } });
    let called = client.answer("model", model).call("sample", json!({})).await.unwrap();
    assert_eq!(called.text(), "hi");
}

pub async fn mrtr_18_altered_states_are_refused(client: &Client) {
    let params = json!({ "name": "ask", "arguments": {} });
    let first = client.round("tools/call", params.clone()).await.unwrap();
    assert!(first.result().unwrap().get("ttlMs").is_none(), "MRTR-25");
    let state = first.request_state().unwrap().to_owned();
    for altered in ["", "x", &format!("{state}-TAMPERED"), &state[1..], &"A".repeat(60_000)] {
        let mut params = params.clone();
        params["requestState"] = json!(altered);
        let (status, error) = error(client, "tools/call", params).await;
        let refusal = json!({ "code": -32602, "message": "Invalid requestState" });
        assert_eq!((status, error), (200, refusal), "one and the same");
    }
    let mut moved = params.clone();
    moved["name"] = json!("sample");
    moved["requestState"] = json!(state);
    assert_eq!(error(client, "tools/call", moved).await.1["code"], -32602, "another tool");
    let mut typed = params;
    typed["requestState"] = json!(7);
    assert_eq!(error(client, "tools/call", typed).await.1["code"], -32602);
}

pub async fn mrtr_26_a_read_with_answers_is_not_cached(client: &Client) {
    let params = json!({ "uri": "test://asks" });
    let first = client.round("resources/read", params).await.unwrap();
    assert_eq!(first.result().unwrap()["resultType"], "input_required", "RES-18");
    let answer = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let read = client.retry(&first, answer).await.unwrap();
    let read = read.result().unwrap();
    assert_eq!(read["contents"][0]["text"], "Ada");
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
}
