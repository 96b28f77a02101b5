//! Catalogues that depend on who asks.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use mcp_edge::{
    BoxFuture, Cx, DynamicPrompt, DynamicResource, DynamicTool, KeyRing, Limits, NoArgs, Page,
    Principal, Provider, RawArgs, RequestError, ResourceUri, Server, ToolError,
};
use mcp_edge_test::Client;
use mcp_edge_tests::Tokens;
use serde_json::{Value, json};

/// Tools by owner and name, in the order of their names.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<BTreeMap<(String, String), u32>>>);

impl Shelf {
    fn put(&self, owner: &str, names: impl IntoIterator<Item = String>) {
        let mut shelf = self.0.lock().unwrap();
        shelf.extend(names.into_iter().map(|name| ((owner.to_owned(), name), 0)));
    }

    fn remove(&self, owner: &str, name: &str) {
        self.0.lock().unwrap().remove(&(owner.to_owned(), name.to_owned()));
    }

    fn names(&self, owner: &str) -> Vec<String> {
        let shelf = self.0.lock().unwrap();
        shelf.keys().filter(|key| key.0 == owner).map(|key| key.1.clone()).collect()
    }

    fn page<T: Item>(
        &self,
        caller: &Principal,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<T>, RequestError> {
        let names = self.names(&caller.subject);
        let rest: Vec<&String> =
            names.iter().filter(|name| after.is_none_or(|after| name.as_str() > after)).collect();
        let items =
            rest.iter().take(limit).map(|name| T::make(name)).collect::<Result<Vec<_>, _>>()?;
        let next = (rest.len() > limit).then(|| rest[limit - 1].clone());
        Ok(Page { items, next })
    }

    fn has(&self, caller: &Principal, name: &str) -> bool {
        self.0.lock().unwrap().contains_key(&(caller.subject.clone(), name.to_owned()))
    }
}

fn tool(name: &str) -> Result<DynamicTool, RequestError> {
    let handler = |cx: Cx, _: RawArgs| async move {
        let sure = cx.elicit_schema("sure", "Sure?", form()).await.required()?;
        Ok::<_, ToolError>(format!("{} {sure}", cx.principal().subject))
    };
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
    } });
    Ok(DynamicTool::with(name, "A tool of one caller", handler, |t| t.input_schema(schema))?)
}

fn form() -> Value {
    json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } })
}

type Listed<'a, T> = BoxFuture<'a, Result<Page<T>, RequestError>>;
type Found<'a, T> = BoxFuture<'a, Result<Option<T>, RequestError>>;

/// What a shelf can hold.
trait Item: Sized + 'static {
    fn make(name: &str) -> Result<Self, RequestError>;

    /// The name that a key stands for.
    fn name(key: &str) -> &str {
        key
    }
}

impl Item for DynamicTool {
    fn make(name: &str) -> Result<Self, RequestError> {
        tool(name)
    }
}

impl Item for DynamicPrompt {
    fn make(name: &str) -> Result<Self, RequestError> {
        let hello = async |who: Who| format!("Hello, {}", who.name.unwrap_or_default());
        Ok(Self::with(name, "A prompt", hello, |prompt| {
            prompt.complete_values("name", ["Ada", "Alan", "Grace"])
        })?)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Who {
    name: Option<String>,
}

impl Item for DynamicResource {
    fn make(name: &str) -> Result<Self, RequestError> {
        let uri = format!("own://{name}");
        Ok(Self::with(uri, name, |ResourceUri(uri)| async { uri }, |r| r)?)
    }

    fn name(key: &str) -> &str {
        key.strip_prefix("own://").unwrap_or_default()
    }
}

impl<T: Item> Provider<T> for Shelf {
    fn list<'a>(
        &'a self,
        caller: &'a Principal,
        after: Option<&'a str>,
        limit: usize,
    ) -> Listed<'a, T> {
        Box::pin(async move { self.page(caller, after, limit) })
    }

    fn find<'a>(&'a self, caller: &'a Principal, key: &'a str) -> Found<'a, T> {
        let name = T::name(key);
        Box::pin(async move { self.has(caller, name).then(|| T::make(name)).transpose() })
    }
}

/// Lists what a function says to the end of the page before; finds nothing, or fails as that does.
struct Pages(fn(Option<&str>) -> Result<Page<DynamicTool>, RequestError>);

impl Provider<DynamicTool> for Pages {
    fn list<'a>(
        &'a self,
        _: &'a Principal,
        after: Option<&'a str>,
        _: usize,
    ) -> Listed<'a, DynamicTool> {
        Box::pin(async move { (self.0)(after) })
    }

    fn find<'a>(&'a self, _: &'a Principal, _: &'a str) -> Found<'a, DynamicTool> {
        Box::pin(async { (self.0)(None).map(|_| None) })
    }
}

fn server(shelf: &Shelf) -> Server {
    let mut limits = Limits::default();
    limits.page_size = 3;
    Server::builder("providers", "1.0.0")
        .tool("common", "For all", |_: NoArgs| async { "common" })
        .tools_from(shelf.clone())
        .prompts_from(shelf.clone())
        .resources_from(shelf.clone())
        .authenticator(Tokens)
        .public_url("https://mcp.example.com/mcp")
        .limits(limits)
        .sealer(KeyRing::new(1, &[7; 32]))
        .build()
        .unwrap()
        .with_change_feed(mcp_edge::InProcessFeed::default())
}

fn shelf() -> Shelf {
    let shelf = Shelf::default();
    shelf.put("ada", (0..7).map(|n| format!("a{n}")));
    shelf.put("alan", ["b0".to_owned()]);
    shelf
}

#[tokio::test]
async fn each_caller_lists_its_own_after_what_is_defined() {
    let server = server(&shelf());
    let names = |token: &'static str| {
        let client = Client::in_process(&server).bearer(token);
        async move {
            let tools = client.list_tools().await.unwrap();
            tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
        }
    };
    assert_eq!(names("ada").await, ["common", "a0", "a1", "a2", "a3", "a4", "a5", "a6"]);
    assert_eq!(names("alan").await, ["common", "b0"]);
    assert_eq!(names("nobody").await, ["common"]);
    let client = Client::in_process(&server).bearer("ada");
    assert_eq!(client.list_prompts().await.unwrap().len(), 7);
    assert_eq!(client.list_resources().await.unwrap().len(), 7);
}

#[tokio::test]
async fn s15_a_keyset_cursor_neither_repeats_nor_hides_what_comes_and_goes() {
    let shelf = shelf();
    let client = Client::in_process(&server(&shelf)).bearer("ada");
    let page = |cursor: Option<Value>| {
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let client = client.clone();
        async move { client.round("tools/list", params).await.unwrap().result().unwrap().clone() }
    };
    let names = |page: &Value| -> Vec<String> {
        let tools = page["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = page(None).await;
    assert_eq!(names(&first), ["common", "a0", "a1"]);
    assert_eq!(first["cacheScope"], "private", "CACHE-09");
    shelf.remove("ada", "a0");
    shelf.put("ada", ["a00".to_owned(), "a15".to_owned()]);
    let second = page(first.get("nextCursor").cloned()).await;
    assert_eq!(names(&second), ["a15", "a2", "a3"]);
}

#[tokio::test]
async fn page_07_a_cursor_of_one_caller_is_refused_for_another() {
    let server = server(&shelf());
    let ada = Client::in_process(&server).bearer("ada");
    let first = ada.round("tools/list", json!({})).await.unwrap();
    let params = json!({ "cursor": first.result().unwrap()["nextCursor"] });
    let alan = Client::in_process(&server).bearer("alan");
    let refused = alan.round("tools/list", params.clone()).await.unwrap();
    assert_eq!(refused.error().unwrap()["message"], "Invalid cursor");
    let refused = ada.round("prompts/list", params).await.unwrap();
    assert_eq!(refused.code(), Some(-32602), "another list");
}

#[tokio::test]
async fn a_provider_may_go_on_at_the_empty_string() {
    let pages = Pages(|after| match after {
        None => Ok(Page { items: vec![tool("one")?], next: Some(String::new()) }),
        Some("") => Ok(Page::last(vec![tool("two")?])),
        Some(other) => Err(RequestError::internal(other)),
    });
    let server = Server::builder("s", "1").tools_from(pages).build().unwrap();
    let tools = Client::in_process(&server).list_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
}

#[tokio::test]
async fn page_04_a_cursor_that_would_be_refused_is_never_given_out() {
    let long = Pages(|after| match after {
        None => Ok(Page { items: vec![tool("one")?], next: Some("n".repeat(2000)) }),
        Some(_) => Ok(Page::last(Vec::new())),
    });
    let mut limits = Limits::default();
    limits.journal_bytes = 2000;
    let builder = Server::builder("s", "1").tools_from(long).limits(limits);
    let client = Client::in_process(&builder.build().unwrap());
    let reply = client.round("tools/list", json!({})).await.unwrap();
    assert_eq!(reply.code(), Some(-32603), "the log names Page::next");
    let params = json!({ "cursor": "A".repeat(3000) });
    let reply = client.round("tools/list", params).await.unwrap();
    assert_eq!(reply.error().unwrap()["message"], "Invalid cursor");
}

#[tokio::test]
async fn comp_02_a_provided_prompt_completes_for_those_who_see_it() {
    let server = server(&shelf());
    let (ada, alan) =
        (Client::in_process(&server).bearer("ada"), Client::in_process(&server).bearer("alan"));
    assert!(ada.discover().await.unwrap().capabilities["completions"].is_object(), "DISC-07");
    let completion = ada.complete_prompt("a0", "name", "a").await.unwrap();
    assert_eq!(completion.values(), ["Ada", "Alan"]);
    assert_eq!(ada.complete_prompt("a0", "other", "").await.unwrap_err().code(), Some(-32602));
    assert_eq!(alan.complete_prompt("a0", "name", "").await.unwrap_err().code(), Some(-32602));
}

#[tokio::test]
async fn what_a_caller_may_not_see_is_not_found() {
    let server = server(&shelf());
    let (ada, alan) = (
        Client::in_process(&server).bearer("ada").answer("sure", json!({ "yes": true })),
        Client::in_process(&server).bearer("alan"),
    );
    let called = ada.call("a0", json!({})).await.unwrap();
    assert_eq!(called.text(), "ada {\"yes\":true}", "questions work as in any tool");
    let refused = alan.call("a0", json!({})).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Some(-32602), "Unknown tool"));
    assert_eq!(ada.read("own://a0").await.unwrap().text(), "own://a0");
    assert_eq!(alan.read("own://a0").await.unwrap_err().code(), Some(-32602));
    assert!(ada.get_prompt("a0", json!({})).await.is_ok());
    assert_eq!(alan.get_prompt("a0", json!({})).await.unwrap_err().code(), Some(-32602));
}

#[tokio::test]
async fn param_20_mirrored_arguments_follow_the_schema_that_the_caller_sees() {
    let client = Client::in_process(&server(&shelf())).bearer("ada");
    let params = json!({ "name": "a0", "arguments": { "region": "eu" } });
    let missing = client.round("tools/call", params).await.unwrap();
    assert_eq!(missing.code(), Some(-32020));
    client.learn_tools().await.unwrap();
    let params = json!({ "name": "a0", "arguments": { "region": "eu" } });
    assert!(client.round("tools/call", params).await.unwrap().is_input_required());
}

#[tokio::test]
async fn listeners_hear_of_changes_of_what_they_may_see() {
    let server = server(&shelf());
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["own://a0"] });
    let ada = Client::in_process(&server).bearer("ada");
    let mut listening = ada.listen(filter.clone()).await.unwrap();
    assert_eq!(listening.acknowledged(), &filter);
    let alan = Client::in_process(&server).bearer("alan").listen(filter).await.unwrap();
    assert_eq!(alan.acknowledged(), &json!({ "toolsListChanged": true }));
    server.publisher().publish(mcp_edge::Change::Tools).await.unwrap();
    let news = listening.next().await.unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn the_error_of_a_provider_answers_the_request() {
    let down = Pages(|_| Err(RequestError::internal("the shelf is down")));
    let server = Server::builder("s", "1").tools_from(down).build().unwrap();
    let client = Client::in_process(&server);
    for (method, params) in [("tools/list", json!({})), ("tools/call", json!({ "name": "x" }))] {
        let reply = client.round(method, params).await.unwrap();
        let error = json!({ "code": -32603, "message": "Internal error" });
        assert_eq!(reply.error(), Some(&error), "{method}");
    }
}
