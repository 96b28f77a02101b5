//! What must hold of every answer, whatever was asked. The property tests of the workspace include
//! this file too.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use mcp_edge::{BoxFuture, Platform, Server, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

const VERSION: &str = "2026-07-28";
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The deepest nesting that servers read, unless they are told otherwise.
const DEPTH: usize = 64;

/// Headers that a server may look at, and one that it does not.
pub const HEADERS: [&str; 17] = [
    "host",
    "origin",
    "content-type",
    "content-length",
    "accept",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-param-region",
    "mcp-param-count",
    "mcp-session-id",
    "last-event-id",
    "authorization",
    "traceparent",
    "tracestate",
    "baggage",
    "x-other",
];

/// The clock of one request: whoever sleeps moves it on, and nobody waits.
#[derive(Debug)]
pub struct Clock {
    now: Arc<AtomicU64>,
    /// All that is random.
    random: u8,
}

impl Clock {
    pub fn with_random(random: u8) -> Self {
        Self { now: Arc::new(AtomicU64::new(1_800_000_000_000)), random }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::with_random(9)
    }
}

impl Platform for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = Arc::clone(&self.now);
        let until = self.now() + duration;
        Box::pin(async move {
            clock.fetch_max(until.as_millis(), Ordering::Relaxed);
        })
    }

    fn fill_random(&self, out: &mut [u8]) {
        out.fill(self.random);
    }
}

/// An answer to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Sends a request and reads the answer. Nothing waits for anything here, so all of it comes at
/// once.
pub fn answer(server: &Server, request: Request<Bytes>, clock: Clock) -> Answer {
    let whole = async {
        let (parts, mut body) = server.respond(request, Arc::new(clock)).await.into_parts();
        let mut bytes = Vec::new();
        let mut chunks = 0;
        while let Some(chunk) = body.next_chunk().await {
            bytes.extend_from_slice(&chunk);
            chunks += 1;
            assert!(chunks < 1000, "an answer without an end");
        }
        Answer { status: parts.status, headers: parts.headers, body: bytes }
    };
    let mut whole = pin!(whole);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if let Poll::Ready(answer) = whole.as_mut().poll(&mut cx) {
            return answer;
        }
    }
    panic!("no answer");
}

/// The head that a conforming client sends with this body.
pub fn head_for(body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", VERSION),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        headers.insert("mcp-method", HeaderValue::from_static("tools/list"));
        return headers;
    };
    let params = &message["params"];
    let is_of_tasks = message["method"].as_str().is_some_and(|name| name.starts_with("tasks/"));
    let named = match is_of_tasks {
        true => params["taskId"].as_str(),
        false => params["name"].as_str().or_else(|| params["uri"].as_str()),
    };
    let arguments = &params["arguments"];
    let count = arguments["count"].as_i64().map(|count| count.to_string());
    for (name, text) in [
        ("mcp-method", message["method"].as_str()),
        ("mcp-name", named),
        ("mcp-param-region", arguments["region"].as_str()),
        ("mcp-param-count", count.as_deref()),
    ] {
        if let Some(value) = text.and_then(mirrored) {
            headers.insert(name, value);
        }
    }
    headers
}

fn mirrored(text: &str) -> Option<HeaderValue> {
    use base64::Engine as _;
    let plain = text.bytes().all(|byte| matches!(byte, b'!'..=b'~')) && !text.starts_with("=?");
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    HeaderValue::from_str(&format!("=?base64?{encoded}?=")).ok()
}

/// A request with a sound head.
pub fn post(body: Vec<u8>) -> Request<Bytes> {
    let headers = head_for(&body);
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = "/mcp".parse().expect("a path");
    *request.headers_mut() = headers;
    request
}

/// The body of a request that lacks nothing.
pub fn message(method: &str, mut params: Value) -> Vec<u8> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": { "form": {} }, "sampling": {}, "roots": {},
            "extensions": { TASKS: {} },
        },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
        .to_string()
        .into_bytes()
}

/// Sends a request, and checks all that must hold of the answer to any.
pub fn checked(server: &Server, request: Request<Bytes>) -> Answer {
    let body = request.body().clone();
    let health = request.uri().path() == "/healthz";
    let answer = answer(server, request, Clock::default());
    check(&body, health, &answer);
    answer
}

/// The result, or `None` for the one refusal of tokens (MRTR-18, PAGE-04).
pub fn token_result(answer: &Answer) -> Option<Value> {
    assert_eq!(answer.headers["content-type"], "application/json");
    let mut body: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(answer.status, 200, "{body}");
    if body["error"].is_null() {
        return Some(body["result"].take());
    }
    assert_eq!(body["error"]["code"], -32602, "{body}");
    assert!(body["error"]["data"].is_null(), "{body}");
    None
}

type Members = BTreeMap<String, Box<RawValue>>;

/// Panics unless `answer` is one well-formed answer to a request with this body.
pub fn check(body: &[u8], health: bool, answer: &Answer) {
    let Answer { status, headers, body: sent } = answer;
    let content_type = headers.get("content-type").map(HeaderValue::as_bytes);
    if health && status.is_success() {
        assert_eq!(sent, br#"{"status":"ok"}"#);
        return;
    }
    let readable = readable_id(body);
    let id = readable.as_deref();
    let asked = Asked::of(body);
    match (status.as_u16(), content_type) {
        (202, None) => {
            assert!(sent.is_empty(), "202 with a body");
            assert!(id.is_none(), "a request was taken for a notification");
        }
        (200, Some(b"text/event-stream")) => check_events(sent, id, &asked),
        (status, Some(b"application/json")) => {
            let members = members(sent);
            let code = check_response(&members, &asked);
            let told = members.get("id").map(|id| id.get());
            let allowed: &[i64] = match status {
                200 => &[-32602, -32603],
                400 => &[-32700, -32600, -32602, -32020, -32021, -32022],
                403 | 405 | 413 | 415 | 431 => &[-32600],
                404 => &[-32600, -32601],
                406 => &[-32600],
                _ => panic!("status {status} is not in the table"),
            };
            match code {
                None => assert_eq!(status, 200, "a result"),
                Some(code) => assert!(allowed.contains(&code), "{code} with {status}"),
            }
            // Whether the body was read before the refusal.
            let head_alone = code == Some(-32600) && status != 400;
            if status == 406 {
                // Only listening is refused so late.
                assert!(told.is_none() || told == id, "{told:?} for {id:?}");
            } else if head_alone {
                assert_eq!(told, None, "the body was not to be read");
            } else {
                assert_eq!(told, id, "the id");
            }
        }
        other => panic!("an answer of no known form: {other:?}"),
    }
}

fn members(json: &[u8]) -> Members {
    serde_json::from_slice(json)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(json)))
}

/// What was asked for, as far as it can be read.
#[derive(Default)]
struct Asked {
    method: String,
    params: Value,
}

impl Asked {
    fn of(body: &[u8]) -> Self {
        let mut body: Value = serde_json::from_slice(body).unwrap_or_default();
        let method = body["method"].as_str().unwrap_or_default().to_owned();
        let params = body.get_mut("params").map(Value::take).unwrap_or_default();
        Self { method, params }
    }

    fn is_of_tasks(&self) -> bool {
        ["tasks/get", "tasks/update", "tasks/cancel"].contains(&self.method.as_str())
    }

    /// Whether the client says that it can hold a task.
    fn declares_tasks(&self) -> bool {
        let capabilities = &self.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        capabilities["extensions"][TASKS].is_object()
    }

    /// Checks a result by the method that it answers.
    fn check_result(&self, result: &Value) {
        let kind = result["resultType"].as_str().expect("a resultType");
        let kinds: &[&str] = match self.method.as_str() {
            "tools/call" => &["complete", "input_required", "task"],
            "prompts/get" | "resources/read" => &["complete", "input_required"],
            _ => &["complete"],
        };
        assert!(kinds.contains(&kind), "{kind} for {}", self.method);
        if self.is_of_tasks() || kind == "task" {
            assert!(self.declares_tasks(), "a task for a client that cannot hold one");
        }
        match self.method.as_str() {
            "tasks/get" => {
                check_task(result, true);
                assert_eq!(result["taskId"], self.params["taskId"]);
            }
            "tasks/update" | "tasks/cancel" => check_names(result, &["resultType", "_meta"]),
            _ if kind == "task" => check_task(result, false),
            _ => {}
        }
        if self.method == "tasks/update" {
            assert!(self.params["inputResponses"].is_object(), "answers that are none were taken");
        }
    }

    /// Checks news of a task by what was listened to.
    fn check_news(&self, params: &Value) {
        check_task(params, true);
        assert_eq!(self.method, "subscriptions/listen");
        assert!(self.declares_tasks(), "a task for a client that cannot hold one");
        let ids = self.params["notifications"]["taskIds"].as_array().expect("task ids");
        assert!(ids.contains(&params["taskId"]), "news of another task");
        assert!(!params["_meta"]["io.modelcontextprotocol/subscriptionId"].is_null(), "{params}");
    }
}

fn check_names(object: &Value, known: &[&str]) {
    for name in object.as_object().expect("an object").keys() {
        assert!(known.contains(&name.as_str()), "{name} in {object}");
    }
}

/// Checks the members of a task: those of each, and if it is told in full that of its state.
fn check_task(task: &Value, in_full: bool) {
    let id = task["taskId"].as_str().expect("a task id");
    assert!(!id.is_empty() && id.len() <= 512, "{task}");
    for date in ["createdAt", "lastUpdatedAt"] {
        let date = task[date].as_str().expect("a date");
        assert!(date.len() >= 20 && date.ends_with('Z'), "{task}");
    }
    assert!(task["ttlMs"].is_u64() && task["pollIntervalMs"].as_u64() > Some(0), "{task}");
    let own = match task["status"].as_str() {
        Some("working" | "cancelled") => None,
        Some("input_required") => Some("inputRequests"),
        Some("completed") => Some("result"),
        Some("failed") => Some("error"),
        _ => panic!("no status of a task: {task}"),
    };
    let own = own.filter(|_| in_full);
    assert!(own.is_none_or(|name| task[name].is_object()), "{task}");
    let mut known = vec!["taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"];
    known.extend(["status", "statusMessage", "resultType", "_meta"]);
    known.extend(own);
    check_names(task, &known);
}

/// Checks a JSON-RPC response; its code, if it is an error.
fn check_response(members: &Members, asked: &Asked) -> Option<i64> {
    for name in members.keys() {
        assert!(["jsonrpc", "id", "result", "error"].contains(&name.as_str()), "{name}");
    }
    assert_eq!(members.get("jsonrpc").map(|version| version.get()), Some("\"2.0\""));
    let value = |name: &str| {
        members.get(name).map(|json| serde_json::from_str::<Value>(json.get()).expect("JSON"))
    };
    match (value("result"), value("error")) {
        (Some(result), None) => {
            asked.check_result(&result);
            assert!(members.contains_key("id"), "a result without an id");
            None
        }
        (None, Some(error)) => {
            assert!(error["message"].is_string(), "{error}");
            let code = error["code"].as_i64().expect("a code");
            let data = &error["data"];
            if asked.is_of_tasks() {
                // Whatever a client sends, it is not a fault of the server.
                assert_ne!(code, -32603, "{error}");
                assert!(code != -32021 || !asked.declares_tasks(), "{error}");
            }
            match code {
                -32021 => assert!(data["requiredCapabilities"].is_object(), "{error}"),
                -32022 => {
                    assert!(data["supported"].is_array() && data["requested"].is_string());
                }
                _ => {}
            }
            Some(code)
        }
        _ => panic!("not exactly one of result and error"),
    }
}

/// Events of one message each; the last one, and it alone, is the response.
fn check_events(stream: &[u8], id: Option<&str>, asked: &Asked) {
    let text = std::str::from_utf8(stream).expect("UTF-8");
    let events: Vec<&str> =
        text.strip_suffix("\n\n").expect("the end of an event").split("\n\n").collect();
    let mut ended = false;
    for event in events {
        if event.starts_with(':') {
            continue;
        }
        assert!(!ended, "an event after the response");
        let data = event.strip_prefix("event: message\ndata: ").expect("a message");
        assert!(!data.contains(['\n', '\r']), "a message of several lines");
        let members = members(data.as_bytes());
        if members.contains_key("method") {
            assert!(!members.contains_key("id"), "a request to the client");
            assert_eq!(members.get("jsonrpc").map(|version| version.get()), Some("\"2.0\""));
            if members["method"].get() == "\"notifications/tasks\"" {
                let params = serde_json::from_str(members["params"].get()).expect("JSON");
                asked.check_news(&params);
            }
            continue;
        }
        let code = check_response(&members, asked);
        assert!(matches!(code, None | Some(-32602 | -32603 | -32021)), "{code:?} as an event");
        assert_eq!(members.get("id").map(|id| id.get()), id, "the id");
        ended = true;
    }
    assert!(ended, "no response");
}

/// The id of a body, where the requirements let it be read: one JSON object, each member once.
fn readable_id(body: &[u8]) -> Option<String> {
    struct Pairs(Vec<(String, Box<RawValue>)>);
    impl<'de> Deserialize<'de> for Pairs {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Pairs;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Pairs, A::Error> {
                    let mut pairs = Vec::new();
                    while let Some(pair) = map.next_entry()? {
                        pairs.push(pair);
                    }
                    Ok(Pairs(pairs))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }
    let text = std::str::from_utf8(body).ok()?;
    if nesting(text) > DEPTH {
        return None;
    }
    let Pairs(pairs) = serde_json::from_str(text).ok()?;
    let twice = |name: &str| pairs.iter().filter(|(other, _)| other == name).count() > 1;
    if ["jsonrpc", "id", "method", "params", "result", "error"].into_iter().any(twice) {
        return None;
    }
    let (_, id) = pairs.iter().find(|(name, _)| name == "id")?;
    let id = id.get();
    let digits = id.strip_prefix('-').unwrap_or(id);
    let sound = serde_json::from_str::<String>(id).is_ok()
        || digits.bytes().all(|byte| byte.is_ascii_digit());
    sound.then(|| id.to_owned())
}

fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A header from bytes, if they can be one.
pub fn header(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?))
}
