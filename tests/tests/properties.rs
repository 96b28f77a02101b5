//! Arbitrary bytes, headers, JSON and tokens: never a panic, always one well-formed answer with a
//! status and a code of the requirements (tables 1.3 and 1.4).
//!
//! Each case has a seed of its own, which a failure prints: `PROPERTY_SEED` set to it makes that case
//! the first one. The fuzz targets (`scripts/fuzz`) look for the same, longer and less blindly.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of it is test code")]

#[allow(dead_code, unreachable_pub, reason = "the fuzz targets use it too")]
#[path = "../../fuzz/src/answer.rs"]
mod answer;

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use mcp_edge::{BoxFuture, MemoryStore, Server, StoreError, TaskDriver, Timestamp};
use serde_json::{Map, Value, json};

use crate::answer::{HEADERS, checked, header, message, post, token_result};

/// A server with tasks, to which nobody comes back.
fn server() -> Result<Server, mcp_edge::BuildError> {
    struct Nobody;
    impl TaskDriver for Nobody {
        fn schedule<'a>(
            &'a self,
            _: &'a str,
            _: Timestamp,
        ) -> BoxFuture<'a, Result<(), StoreError>> {
            Box::pin(std::future::ready(Ok(())))
        }
    }
    mcp_edge_tests::server().map(|server| server.with_tasks(MemoryStore::default(), Nobody))
}

const DEFAULT_SEED: u64 = 0x6d63_702d_6564_6765;

/// Runs `case` with as many random sources, and names the one that it fails with.
fn cases(count: u64, mut case: impl FnMut(&mut Random)) {
    struct Named(u64);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("to see this case again: PROPERTY_SEED={}", self.0);
            }
        }
    }
    let seed = std::env::var("PROPERTY_SEED");
    let first: u64 =
        seed.map_or(DEFAULT_SEED, |seed| seed.parse().expect("PROPERTY_SEED: a number"));
    for number in 0..count {
        let named = Named(first.wrapping_add(number));
        case(&mut Random(named.0));
    }
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.byte()).collect()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn text(&mut self) -> String {
        match self.below(3) {
            0 => self.pick(&WORDS).to_owned(),
            1 => String::from_utf8_lossy(&self.bytes(12)).into_owned(),
            _ => {
                let length = self.below(8);
                (0..length)
                    .map(|_| self.pick(&['a', 'é', '"', '\\', '\n', '\0', '😀', ' ']))
                    .collect()
            }
        }
    }

    fn json(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => json!(self.next().cast_signed() >> self.below(64)),
            3 => json!(f64::from_bits(self.next())),
            4 | 5 => json!(self.text()),
            6 => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
            _ => (0..self.below(4)).map(|_| (self.text(), self.json(depth - 1))).collect(),
        }
    }

    /// Some small changes.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(6) {
                0 => bytes.insert(at, self.byte()),
                1 => bytes.truncate(at),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                3 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                4 if at < bytes.len() => bytes[at] = self.pick(b"\"\\{}[],:0-e. \n\xff"),
                5 => {
                    let piece = bytes[at..bytes.len().min(at + 20)].to_vec();
                    let to = self.below(bytes.len() + 1);
                    drop(bytes.splice(to..to, piece));
                }
                _ => {}
            }
        }
    }
}

/// What the protocol gives a meaning.
const WORDS: [&str; 42] = [
    "jsonrpc",
    "2.0",
    "id",
    "method",
    "params",
    "_meta",
    "name",
    "arguments",
    "uri",
    "cursor",
    "inputResponses",
    "requestState",
    "notifications",
    "taskId",
    "taskIds",
    "extensions",
    "ref",
    "argument",
    "context",
    "type",
    "value",
    "action",
    "accept",
    "content",
    "result",
    "error",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/tasks",
    "progressToken",
    "2026-07-28",
    "2025-11-25",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "add",
    "ask",
    "greet",
    "test://text",
    "ref/prompt",
    "info",
];

/// A sound request of each kind.
fn sound() -> Vec<(&'static str, Value)> {
    vec![
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "AQ" })),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } })),
        ("tools/call", json!({ "name": "ask" })),
        (
            "tools/call",
            json!({ "name": "ask", "requestState": "AQ", "inputResponses": {
            "name": { "action": "accept", "content": { "name": "Ada" } },
        } }),
        ),
        ("tools/call", json!({ "name": "emit" })),
        ("tools/call", json!({ "name": "mirror", "arguments": { "region": "eu", "count": 3 } })),
        ("tools/call", json!({ "name": "sample" })),
        ("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } })),
        ("resources/read", json!({ "uri": "test://text" })),
        ("resources/read", json!({ "uri": "test://asks" })),
        ("resources/read", json!({ "uri": "test://notes/7" })),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "greet" },
                "argument": { "name": "style", "value": "p" },
            }),
        ),
        ("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })),
        ("subscriptions/listen", json!({ "notifications": { "taskIds": ["AQ"] } })),
        ("tools/call", json!({ "name": "survey" })),
        ("tasks/get", json!({ "taskId": "AQ" })),
        ("tasks/update", json!({ "taskId": "AQ", "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": "AQ" })),
        ("initialize", json!({ "protocolVersion": "2025-11-25" })),
    ]
}

fn sound_body(random: &mut Random, requests: &[(&str, Value)]) -> Vec<u8> {
    let (method, params) = &requests[random.below(requests.len())];
    message(method, params.clone())
}

#[test]
fn any_bytes_have_one_answer() {
    let (server, requests) = (server().unwrap(), sound());
    cases(4000, |random| {
        let mut body = sound_body(random, &requests);
        let mut request = post(body.clone());
        if random.one_in(4) {
            body = random.bytes(200);
        } else {
            random.change(&mut body);
        }
        // Under the head of what it was, or of what it became.
        if random.one_in(2) {
            request = post(body);
        } else {
            *request.body_mut() = Bytes::from(body);
        }
        checked(&server, request);
    });
}

#[test]
fn any_headers_have_one_answer() {
    const VALUES: [&str; 17] = [
        "",
        "localhost",
        "evil.example",
        "http://localhost:1",
        "null",
        "application/json; charset=utf-8",
        "text/plain",
        "*/*;q=0",
        "text/event-stream",
        "application/json",
        "99999999999999999999",
        "2026-07-28",
        "tools/call",
        "=?base64?YWRk?=",
        "=?base64?_?=",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        " \t eu \t",
    ];
    let (server, requests) = (server().unwrap(), sound());
    cases(4000, |random| {
        let mut request = post(sound_body(random, &requests));
        if random.one_in(8) {
            let methods = [Method::GET, Method::DELETE, Method::OPTIONS, Method::HEAD, Method::PUT];
            *request.method_mut() = methods[random.below(methods.len())].clone();
        }
        if random.one_in(8) {
            let path = random.pick(&["/", "/healthz", "/mcp/", "/mcp?x", "//", "http://[::1]/mcp"]);
            *request.uri_mut() = path.parse().unwrap();
        }
        let many = if random.one_in(50) { 200 } else { 4 };
        for _ in 0..random.below(many) {
            let name = random.pick(&HEADERS);
            let value = if random.one_in(2) {
                random.pick(&VALUES).as_bytes().to_vec()
            } else if random.one_in(20) {
                vec![b'x'; 40 << 10]
            } else {
                random.bytes(24)
            };
            let Some((name, value)) = header(name.as_bytes(), &value) else { continue };
            match random.below(3) {
                0 => drop(request.headers_mut().append(name, value)),
                1 => drop(request.headers_mut().insert(name, value)),
                _ => drop(request.headers_mut().remove(name)),
            }
        }
        checked(&server, request);
    });
}

#[test]
fn any_json_has_one_answer() {
    let (server, requests) = (server().unwrap(), sound());
    cases(4000, |random| {
        let mut body: Value = serde_json::from_slice(&sound_body(random, &requests)).unwrap();
        for _ in 0..=random.below(3) {
            let place = place(random, &mut body);
            *place = random.json(4);
        }
        if random.one_in(10) {
            body = random.json(6);
        }
        checked(&server, post(body.to_string().into_bytes()));
    });
}

/// Some value inside of `value`, at times a new one.
fn place<'v>(random: &mut Random, value: &'v mut Value) -> &'v mut Value {
    let goes_on = match &*value {
        Value::Object(members) => !members.is_empty() && !random.one_in(12),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if !goes_on {
        return value;
    }
    match value {
        Value::Object(members) => {
            let at = random.below(members.len() + 1);
            let key = members.keys().nth(at).cloned().unwrap_or_else(|| random.text());
            place(random, Map::entry(members, key).or_insert(Value::Null))
        }
        Value::Array(items) => {
            let at = random.below(items.len());
            place(random, &mut items[at])
        }
        _ => value,
    }
}

#[test]
fn any_nesting_has_one_answer() {
    let server = server().unwrap();
    cases(200, |random| {
        let depth = random.below(200);
        let (open, close) = random.pick(&[("[", "]"), ("{\"a\":", "}")]);
        let inner = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        let body = random.pick(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":@}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","x":@}"#,
            r#"{"id":@,"jsonrpc":"2.0","method":"tools/list"}"#,
            "@",
        ]);
        checked(&server, post(body.replace('@', &inner).into_bytes()));
    });
}

/// Makes a request that presents a token.
type Presents<'a> = &'a dyn Fn(&str) -> Request<Bytes>;

fn result_of(server: &Server, request: Request<Bytes>) -> Option<Value> {
    token_result(&checked(server, request))
}

#[test]
fn any_token_is_the_genuine_one_or_refused() {
    let server = server().unwrap();
    let page = |cursor: &str| post(message("tools/list", json!({ "cursor": cursor })));
    let round = |state: &str| {
        post(message(
            "tools/call",
            json!({ "name": "ask", "arguments": {}, "requestState": state }),
        ))
    };
    let first = result_of(&server, post(message("tools/list", json!({})))).unwrap();
    let cursor = first["nextCursor"].as_str().unwrap();
    let asked = message("tools/call", json!({ "name": "ask", "arguments": {} }));
    let asked = result_of(&server, post(asked)).unwrap();
    let state = asked["requestState"].as_str().unwrap();
    let begun = message("tools/call", json!({ "name": "survey", "arguments": {} }));
    let begun = result_of(&server, post(begun)).unwrap();
    let id = begun["taskId"].as_str().unwrap();
    let task = |id: &str| post(message("tasks/get", json!({ "taskId": id })));
    let kinds: [(&str, Presents<'_>); 3] = [(cursor, &page), (state, &round), (id, &task)];
    // Each belongs to its own kind of request.
    for (token, _) in &kinds {
        for (genuine, request) in &kinds {
            let opened = result_of(&server, request(token)).is_some();
            assert_eq!(opened, token == genuine, "{token} for {genuine}");
        }
    }
    cases(1500, |random| {
        for (genuine, request) in &kinds {
            let mut token = genuine.as_bytes().to_vec();
            if random.one_in(4) {
                token = random.bytes(100);
            } else {
                random.change(&mut token);
            }
            let token = String::from_utf8_lossy(&token);
            let opened = result_of(&server, request(&token)).is_some();
            assert_eq!(opened, token == *genuine, "{token:?}");
        }
    });
}

#[test]
fn any_answer_to_a_question_is_taken_or_refused() {
    let server = server().unwrap();
    let asked = message("tools/call", json!({ "name": "ask", "arguments": {} }));
    let asked = result_of(&server, post(asked)).unwrap();
    let sound = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    cases(1500, |random| {
        let mut answers = sound.clone();
        *place(random, &mut answers) = random.json(3);
        let params = json!({
            "name": "ask",
            "arguments": {},
            "requestState": asked["requestState"],
            "inputResponses": answers,
        });
        let body = message("tools/call", params);
        result_of(&server, post(body));
    });
}

#[test]
fn the_properties_see_what_is_wrong() {
    let right = checked(&server().unwrap(), post(message("tools/list", json!({}))));
    let body = message("tools/list", json!({}));
    let fails = |change: &dyn Fn(&mut answer::Answer)| {
        let mut wrong = answer::Answer {
            status: right.status,
            headers: right.headers.clone(),
            body: right.body.clone(),
        };
        change(&mut wrong);
        std::panic::catch_unwind(|| answer::check(&body, false, &wrong)).is_err()
    };
    assert!(!fails(&|_| {}));
    assert!(fails(&|wrong| wrong.status = http::StatusCode::IM_A_TEAPOT));
    assert!(fails(&|wrong| wrong.body.truncate(10)));
    assert!(fails(&|wrong| wrong.body = br#"{"jsonrpc":"2.0","id":2,"result":{}}"#.to_vec()));
    assert!(fails(&|wrong| {
        wrong.body = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":""}}"#.to_vec();
    }));
    assert!(fails(&|wrong| {
        wrong.headers.insert("content-type", HeaderValue::from_static("text/event-stream"));
    }));
}

#[test]
fn the_properties_see_what_is_wrong_with_a_task() {
    let server = server().unwrap();
    let begun = message("tools/call", json!({ "name": "survey", "arguments": {} }));
    let begun = result_of(&server, post(begun)).unwrap();
    let body = message("tasks/get", json!({ "taskId": begun["taskId"] }));
    let right = checked(&server, post(body.clone()));
    let fails = |body: &[u8], change: &dyn Fn(&mut Value)| {
        let mut wrong: Value = serde_json::from_slice(&right.body).unwrap();
        change(&mut wrong);
        let wrong = answer::Answer {
            status: right.status,
            headers: right.headers.clone(),
            body: wrong.to_string().into_bytes(),
        };
        std::panic::catch_unwind(|| answer::check(body, false, &wrong)).is_err()
    };
    assert!(!fails(&body, &|_| {}));
    assert!(fails(&body, &|wrong| wrong["result"]["taskId"] = json!("another")));
    assert!(fails(&body, &|wrong| wrong["result"]["status"] = json!("paused")));
    assert!(fails(&body, &|wrong| wrong["result"]["status"] = json!("completed")));
    assert!(fails(&body, &|wrong| wrong["result"]["result"] = json!({})));
    assert!(fails(&body, &|wrong| wrong["result"]["resultType"] = json!("task")));
    assert!(fails(&body, &|wrong| wrong["result"]["ttlMs"] = json!(null)));
    let fault = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": "" } });
    assert!(fails(&body, &|wrong| *wrong = fault.clone()));
    // The same answer to other requests.
    let undeclared = String::from_utf8(body).unwrap().replace("modelcontextprotocol/tasks", "x");
    assert!(fails(undeclared.as_bytes(), &|_| {}));
    for method in ["tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": begun["taskId"], "inputResponses": {} });
        assert!(fails(&message(method, params), &|_| {}), "{method}");
    }
}
