//! The exchanges that are written down in `fixtures/`, one behaviour to a file. `fixtures/README.md`
//! says how to read and write them.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use http::{HeaderName, HeaderValue};

use super::*;

/// Between the request and what is expected.
const RULE: &str = "\n====\n";

/// As the last line of an expected stream: it does not end here.
const GOES_ON: &str = "...";

pub async fn every_fixture_file_is_answered_as_it_says(client: &Client) {
    let mut wrong = Vec::new();
    for fixture in all(client).await {
        let answered = fixture.send(client).await;
        wrong.extend(fixture.expected.complaint(&fixture.name, &answered));
    }
    assert!(wrong.is_empty(), "{} files:\n\n{}", wrong.len(), wrong.join("\n"));
}

/// One file.
struct Fixture {
    name: String,
    request: Message,
    expected: Expected,
}

/// A start line, header fields and a body, markers included.
struct Message {
    start: String,
    headers: Vec<(String, String)>,
    body: String,
}

struct Expected {
    /// As it is written.
    text: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Pattern,
}

enum Pattern {
    Anything,
    Empty,
    Json(Value),
    Events { messages: Vec<Value>, goes_on: bool },
}

/// What came back, and the whole exchange to be printed.
struct Answered {
    status: u16,
    headers: HeaderMap,
    body: Came,
    exchange: String,
}

enum Came {
    Bytes(Bytes),
    Events { messages: Vec<Value>, ended: bool },
}

/// All files, by name; the tasks that they speak of are begun.
async fn all(client: &Client) -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut paths: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap()
        .map(|area| area.unwrap().path())
        .filter(|area| area.is_dir())
        .flat_map(|area| fs::read_dir(area).unwrap().map(|file| file.unwrap().path()))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no files in {}", root.display());
    let mut all = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        assert!(name.ends_with(".http"), "{name} is no fixture");
        let text = with_task(client, fs::read_to_string(&path).unwrap()).await;
        all.push(Fixture::parse(&name, &text));
    }
    all
}

/// Begins the task that a file speaks of, and writes its id in the place of `{{task STATE}}`.
async fn with_task(client: &Client, text: String) -> String {
    let Some((_, rest)) = text.split_once("{{task ") else { return text };
    let (status, _) = rest.split_once("}}").expect("a marker ends in `}}`");
    let id = tasks::in_state(client, status).await;
    let text = text.replace(&format!("{{{{task {status}}}}}"), &id);
    assert!(!text.contains("{{task "), "one task to a file");
    text
}

impl Fixture {
    fn parse(name: &str, text: &str) -> Self {
        let (request, expected) =
            text.split_once(RULE).unwrap_or_else(|| panic!("{name}: no line of `====`"));
        let comments = request.lines().take_while(|line| line.starts_with('#')).count();
        assert!(comments > 0, "{name}: the first line is `# ID: what this shows`");
        let request: Vec<_> = request.lines().skip(comments).collect();
        Self {
            name: name.to_owned(),
            request: Message::parse(name, &request.join("\n")),
            expected: Expected::parse(name, expected.trim()),
        }
    }

    async fn send(&self, client: &Client) -> Answered {
        let (method, path) = self.request.start.split_once(' ').unwrap();
        let mut request = Request::new(Bytes::from(unmark(&self.request.body)));
        *request.method_mut() = method.parse().unwrap();
        *request.uri_mut() = path.parse().unwrap();
        // Who the server is, only the client knows.
        let own = client.request("server/discover", json!({}));
        if let Some(host) = own.headers().get("host") {
            request.headers_mut().insert("host", host.clone());
        }
        let mut first = std::collections::HashSet::new();
        for (name, value) in &self.request.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            let value = HeaderValue::from_bytes(&unmark(value)).unwrap();
            if first.insert(name.clone()) {
                request.headers_mut().insert(name, value);
            } else {
                request.headers_mut().append(name, value);
            }
        }
        let sent = client.raw(request).await;
        let mut response = sent.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let is_stream = response.headers.get("content-type").is_some_and(|it| it == SSE);
        let body = if is_stream {
            // An open stream is read as far as is expected; any other to its end.
            let wanted = match &self.expected.body {
                Pattern::Events { messages, goes_on: true } => messages.len(),
                Pattern::Events { .. } => usize::MAX,
                _ => 0,
            };
            let (mut messages, mut ended) = (Vec::new(), false);
            while messages.len() < wanted && !ended {
                match response.next_event().await.unwrap() {
                    Some(event) => messages.push(serde_json::from_str(&event.data).unwrap()),
                    None => ended = true,
                }
            }
            Came::Events { messages, ended }
        } else {
            Came::Bytes(response.bytes().await.unwrap())
        };
        let (status, headers) = (response.status.as_u16(), response.headers.clone());
        Answered { status, headers, body, exchange: format!("{response:?}") }
    }
}

const SSE: &str = "text/event-stream";

impl Message {
    fn parse(name: &str, text: &str) -> Self {
        let (head, body) = text.trim().split_once("\n\n").unwrap_or_else(|| (text.trim(), ""));
        let mut lines = head.lines();
        let start = lines.next().unwrap_or_else(|| panic!("{name}: nothing here")).to_owned();
        let field = |line: &str| {
            let (field, value) =
                line.split_once(':').unwrap_or_else(|| panic!("{name}: no header: {line}"));
            (field.to_owned(), value.trim().to_owned())
        };
        Self { start, headers: lines.map(field).collect(), body: body.trim().to_owned() }
    }
}

impl Expected {
    fn parse(name: &str, text: &str) -> Self {
        let Message { start, headers, body } = Message::parse(name, text);
        let status = start.split(' ').next().and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{name}: no status: {start}"));
        let json = |text: &str| {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
        };
        let body = match body.as_str() {
            "" => Pattern::Anything,
            "empty" => Pattern::Empty,
            events if events.starts_with("data:") => {
                let (events, goes_on) = match events.strip_suffix(GOES_ON) {
                    Some(events) => (events, true),
                    None => (events, false),
                };
                let messages = format!("\n{events}").split("\ndata:").skip(1).map(json).collect();
                Pattern::Events { messages, goes_on }
            }
            body => Pattern::Json(json(body)),
        };
        Self { text: text.to_owned(), status, headers, body }
    }

    /// What is wrong with an answer; the whole text for a person.
    fn complaint(&self, name: &str, answered: &Answered) -> Option<String> {
        let faults = self.faults(answered);
        if faults.is_empty() {
            return None;
        }
        let mut text = format!("fixtures/{name}\n");
        for fault in faults {
            writeln!(text, "  {fault}").unwrap();
        }
        writeln!(text, "-- expected --\n{}\n-- actual --\n{}", self.text, answered.exchange)
            .unwrap();
        Some(text)
    }

    fn faults(&self, answered: &Answered) -> Vec<String> {
        let mut faults = Vec::new();
        if self.status != answered.status {
            faults.push(format!("the status is {}", answered.status));
        }
        for (name, wanted) in &self.headers {
            let values: Vec<_> =
                answered.headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
            let as_wanted = match wanted.as_str() {
                "{{absent}}" => values.is_empty(),
                wanted => values == [wanted.as_bytes()],
            };
            if !as_wanted {
                let values: Vec<_> = values.into_iter().map(String::from_utf8_lossy).collect();
                faults.push(format!("{name} is {values:?}"));
            }
        }
        match (&self.body, &answered.body) {
            (Pattern::Anything, _) => {}
            (Pattern::Empty, Came::Bytes(bytes)) if bytes.is_empty() => {}
            (Pattern::Json(pattern), Came::Bytes(bytes)) => match serde_json::from_slice(bytes) {
                Ok(json) => compare("", pattern, Some(&json), &mut faults),
                Err(error) => faults.push(format!("the body is not JSON: {error}")),
            },
            (Pattern::Events { messages, goes_on }, Came::Events { messages: came, ended }) => {
                if messages.len() != came.len() {
                    faults.push(format!("there are {} events", came.len()));
                }
                if *goes_on && *ended {
                    faults.push("the stream ended".to_owned());
                }
                for (n, (pattern, message)) in messages.iter().zip(came).enumerate() {
                    compare(&format!("event {n} "), pattern, Some(message), &mut faults);
                }
            }
            (_, Came::Events { .. }) => faults.push("the body is a stream".to_owned()),
            (_, Came::Bytes(bytes)) => faults.push(format!("the body has {} bytes", bytes.len())),
        }
        faults
    }
}

/// Whether a value has what the pattern says: objects may have more members, everything else is
/// equal. `{{absent}}`, `{{any}}` and `{{string}}` stand for what they say.
fn compare(at: &str, pattern: &Value, found: Option<&Value>, faults: &mut Vec<String>) {
    let as_wanted = match (pattern, found) {
        (Value::String(marker), _) if marker == "{{absent}}" => found.is_none(),
        (_, None) => false,
        (Value::String(marker), Some(_)) if marker == "{{any}}" => true,
        (Value::String(marker), Some(found)) if marker == "{{string}}" => found.is_string(),
        (Value::Object(members), Some(Value::Object(found))) => {
            for (name, pattern) in members {
                compare(&format!("{at}/{name}"), pattern, found.get(name), faults);
            }
            true
        }
        (Value::Array(items), Some(Value::Array(found))) if items.len() == found.len() => {
            for (n, (pattern, found)) in items.iter().zip(found).enumerate() {
                compare(&format!("{at}/{n}"), pattern, Some(found), faults);
            }
            true
        }
        (pattern, Some(found)) => pattern == found,
    };
    if !as_wanted {
        let found = found.map_or_else(|| "absent".to_owned(), Value::to_string);
        faults.push(format!("{at}: {pattern} is wanted, and it is {found}"));
    }
}

/// Writes out `{{byte E9}}` and `{{repeat x 70000}}`.
fn unmark(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once("{{") {
        let (marker, after) = marked.split_once("}}").expect("a marker ends in `}}`");
        bytes.extend_from_slice(before.as_bytes());
        match marker.split(' ').collect::<Vec<_>>()[..] {
            ["byte", byte] => bytes.push(u8::from_str_radix(byte, 16).unwrap()),
            ["repeat", what, times] => {
                bytes.extend_from_slice(what.repeat(times.parse().unwrap()).as_bytes());
            }
            _ => panic!("no such marker: {marker}"),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of a pattern in turn replaced by one that nothing is.
    fn falsified(pattern: &Value) -> Vec<Value> {
        match pattern {
            Value::Object(members) if !members.is_empty() => {
                let with = |name: &str, value: Value| {
                    let mut members = members.clone();
                    members[name] = value;
                    members.into()
                };
                let each = members.iter().flat_map(|(name, value)| {
                    falsified(value).into_iter().map(move |value| (name, value))
                });
                each.map(|(name, value)| with(name, value)).collect()
            }
            Value::Array(items) if !items.is_empty() => {
                let with = |n: usize, value: Value| {
                    let mut items = items.clone();
                    items[n] = value;
                    items.into()
                };
                let each = items.iter().enumerate().flat_map(|(n, value)| {
                    falsified(value).into_iter().map(move |value| (n, value))
                });
                each.map(|(n, value)| with(n, value)).collect()
            }
            Value::String(marker) if marker == "{{absent}}" => vec![json!("{{any}}")],
            Value::String(marker) if marker.starts_with("{{") => vec![json!("{{absent}}")],
            _ => vec![json!("nothing is this")],
        }
    }

    #[tokio::test]
    async fn a_falsified_expectation_fails_whatever_is_falsified() {
        let server = mcp_edge_test::with_tasks(crate::server().unwrap());
        let client = Client::in_process(&server);
        let mut tried = 0;
        for mut fixture in all(&client).await {
            let answered = fixture.send(&client).await;
            let name = fixture.name.clone();
            let mut fails = |expected: &Expected, what: &str| {
                let complaint = expected.complaint(&name, &answered);
                let complaint = complaint.unwrap_or_else(|| panic!("{name}: {what} is not seen"));
                assert!(complaint.contains(&name) && complaint.contains("-- actual --"));
                tried += 1;
            };
            let expected = &mut fixture.expected;
            expected.status += 1;
            fails(expected, "the status");
            expected.status -= 1;
            for n in 0..expected.headers.len() {
                let wanted = std::mem::replace(&mut expected.headers[n].1, "no/thing".to_owned());
                fails(expected, &wanted);
                expected.headers[n].1 = wanted;
            }
            match std::mem::replace(&mut expected.body, Pattern::Anything) {
                Pattern::Anything => {}
                Pattern::Empty => {
                    expected.body = Pattern::Json(json!({}));
                    fails(expected, "a body");
                }
                Pattern::Json(pattern) => {
                    for wrong in falsified(&pattern) {
                        let what = wrong.to_string();
                        expected.body = Pattern::Json(wrong);
                        fails(expected, &what);
                    }
                    expected.body = Pattern::Empty;
                    fails(expected, "no body");
                }
                Pattern::Events { mut messages, goes_on } => {
                    for n in 0..messages.len() {
                        for wrong in falsified(&messages[n]) {
                            let what = wrong.to_string();
                            let mut messages = messages.clone();
                            messages[n] = wrong;
                            expected.body = Pattern::Events { messages, goes_on };
                            fails(expected, &what);
                        }
                    }
                    messages.pop();
                    expected.body = Pattern::Events { messages, goes_on };
                    fails(expected, "another event");
                }
            }
        }
        assert!(tried > 200, "{tried}");
    }

    #[test]
    fn markers_are_written_out() {
        assert_eq!(unmark("a{{byte E9}}b{{repeat xy 2}}"), b"a\xe9bxyxy");
    }
}
