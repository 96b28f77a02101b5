//! The contract once more, through a door at which every message of the server is validated.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mcp_edge::MemoryStore;
use mcp_edge_hyper::{McpService, with_tasks};
use mcp_edge_test::Client;
use serde_json::{Value, json};
use tower_service::Service as _;

use super::schema::Schema;

mcp_edge_tests::contract_suite!(client);

/// A client of the contract's server behind the door. What is found there fails the test when the
/// last clone of the client is dropped.
async fn client() -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let faults = Faults::default();
    let serving = with_tasks(mcp_edge_tests::server().unwrap(), MemoryStore::default());
    let (server, runner) = serving.into_parts();
    tokio::spawn(runner.unwrap().run(server.clone(), std::future::pending()));
    let door = Door { service: McpService::new(server), faults: faults.clone() };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let door = door.clone();
            let service = service_fn(move |request| door.clone().pass(request));
            let mut http = http1::Builder::new();
            http.max_headers(200); // the core counts them itself
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    let verdict = Verdict(faults);
    Client::url(&url).on_question(move |_| {
        let _lives_as_long_as_the_client = &verdict;
        None
    })
}

/// What was wrong with which message.
type Faults = Arc<Mutex<Vec<String>>>;

struct Verdict(Faults);

impl Drop for Verdict {
    fn drop(&mut self) {
        let faults = self.0.lock().unwrap();
        assert!(faults.is_empty() || std::thread::panicking(), "{}", faults.join("\n"));
    }
}

#[derive(Clone)]
struct Door {
    service: McpService,
    faults: Faults,
}

impl Door {
    async fn pass(
        mut self,
        request: Request<Incoming>,
    ) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let is_rpc = parts.uri.path() != "/healthz";
        let method = serde_json::from_slice::<Value>(&body)
            .ok()
            .and_then(|message| message["method"].as_str().map(str::to_owned));
        let response = self.service.call(Request::from_parts(parts, Full::new(body))).await?;
        let mut messages = is_rpc.then(|| Messages::of(response.headers()));
        let (schema, faults) = (Schema::load(), self.faults);
        Ok(response.map(|body| {
            body.map_frame(move |frame| {
                let Some((schema, messages)) = schema.as_ref().zip(messages.as_mut()) else {
                    return frame;
                };
                for message in messages.read(frame.data_ref().unwrap()) {
                    if let Err(fault) = check(schema, method.as_deref(), &message) {
                        let about = method.as_deref().unwrap_or("an unreadable request");
                        faults.lock().unwrap().push(format!("{about}: {fault}\n{message:#}"));
                    }
                }
                frame
            })
        }))
    }
}

/// Takes the messages out of a body.
enum Messages {
    Json,
    Events(Vec<u8>),
}

impl Messages {
    fn of(headers: &HeaderMap) -> Self {
        match headers.get("content-type") {
            Some(kind) if kind == "text/event-stream" => Self::Events(Vec::new()),
            _ => Self::Json,
        }
    }

    fn read(&mut self, piece: &[u8]) -> Vec<Value> {
        let waiting = match self {
            // The core hands out its JSON in one piece.
            Self::Json => return vec![serde_json::from_slice(piece).unwrap()],
            Self::Events(waiting) => waiting,
        };
        waiting.extend_from_slice(piece);
        let mut messages = Vec::new();
        while let Some(end) = waiting.windows(2).position(|window| window == b"\n\n") {
            let event: Vec<u8> = waiting.drain(..end + 2).collect();
            let event = String::from_utf8(event).unwrap();
            let data = event.lines().filter_map(|line| line.strip_prefix("data: "));
            messages.extend(data.map(|data| serde_json::from_str::<Value>(data).unwrap()));
        }
        messages
    }
}

/// Validates a message against its own definition, not against a union of all.
fn check(schema: &Schema, method: Option<&str>, message: &Value) -> Result<(), String> {
    if let Some(notification) = message.get("method") {
        if message.get("id").is_some() {
            return Err("servers send no requests (BASE-03)".to_owned());
        }
        let definition = match notification.as_str().unwrap_or_default() {
            "notifications/message" => "LoggingMessageNotification",
            "notifications/progress" => "ProgressNotification",
            "notifications/prompts/list_changed" => "PromptListChangedNotification",
            "notifications/resources/list_changed" => "ResourceListChangedNotification",
            "notifications/resources/updated" => "ResourceUpdatedNotification",
            "notifications/subscriptions/acknowledged" => {
                let honoured = &message["params"]["notifications"];
                schema.check("TaskSubscriptionAcknowledgedNotifications", honoured)?;
                "SubscriptionsAcknowledgedNotification"
            }
            "notifications/tasks" => {
                check_task(schema, &message["params"])?;
                "TaskStatusNotification"
            }
            "notifications/tools/list_changed" => "ToolListChangedNotification",
            other => return Err(format!("{other} is nothing that a server sends")),
        };
        return schema.check(definition, message);
    }
    if let Some(error) = message.get("error") {
        schema.check("JSONRPCErrorResponse", message)?;
        return match error["code"].as_i64().unwrap_or_default() {
            -32020 => schema.check("HeaderMismatchError", message),
            -32021 => schema.check("MissingRequiredClientCapabilityError", message),
            -32022 => schema.check("UnsupportedProtocolVersionError", message),
            _ => check_error(schema, error),
        };
    }
    let result = &message["result"];
    let definition = match method.unwrap_or_default() {
        "completion/complete" => "CompleteResult",
        "prompts/get" => "GetPromptResult",
        "prompts/list" => "ListPromptsResult",
        "resources/list" => "ListResourcesResult",
        "resources/read" => "ReadResourceResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "server/discover" => {
            let extensions = &result["capabilities"]["extensions"];
            schema
                .check("TasksExtensionCapability", &extensions["io.modelcontextprotocol/tasks"])?;
            "DiscoverResult"
        }
        "subscriptions/listen" => "SubscriptionsListenResult",
        "tools/call" if result["resultType"] == "task" => return check_created(schema, message),
        "tools/call" => "CallToolResult",
        "tools/list" => "ListToolsResult",
        "tasks/get" => {
            schema.check("JSONRPCResultResponse", message)?;
            check_task(schema, result)?;
            return schema.check("GetTaskResult", result);
        }
        "tasks/update" => return check_acknowledgement(schema, "UpdateTaskResult", message),
        "tasks/cancel" => return check_acknowledgement(schema, "CancelTaskResult", message),
        other => return Err(format!("{other} has no result")),
    };
    schema.check(&format!("{definition}Response"), message)?;
    // the definition of this one knows neither its type nor which methods may have it.
    match result["resultType"].as_str() {
        Some("complete") => schema.check(definition, result),
        Some("input_required") => {
            let may_ask = ["tools/call", "prompts/get", "resources/read"];
            if !may_ask.contains(&method.unwrap_or_default()) {
                return Err("this method cannot ask (MRTR-02)".to_owned());
            }
            schema.check("InputRequiredResult", result)
        }
        _ => Err("the type of the result is unknown (BASE-10)".to_owned()),
    }
}

/// Validates an error whose data are free.
fn check_error(schema: &Schema, error: &Value) -> Result<(), String> {
    match error["code"].as_i64().unwrap_or_default() {
        -32700 => schema.check("ParseError", error),
        -32600 => schema.check("InvalidRequestError", error),
        -32601 => schema.check("MethodNotFoundError", error),
        -32602 => schema.check("InvalidParamsError", error),
        -32603 => schema.check("InternalError", error),
        -32768..=-32000 => Err("the code is reserved".to_owned()),
        _ => schema.check("Error", error),
    }
}

// The definitions of tasks are open: what must not be there is looked for here.

/// The members that belong to one state each.
const OF_STATES: [(&str, &str); 3] =
    [("inputRequests", "input_required"), ("result", "completed"), ("error", "failed")];

fn check_created(schema: &Schema, message: &Value) -> Result<(), String> {
    schema.check("JSONRPCResultResponse", message)?;
    let result = &message["result"];
    if let Some((member, _)) = OF_STATES.iter().find(|(member, _)| result.get(member).is_some()) {
        return Err(format!("a new task has no {member} (TASK-09)"));
    }
    schema.check("CreateTaskResult", result)
}

/// Validates a task with what belongs to its state.
fn check_task(schema: &Schema, task: &Value) -> Result<(), String> {
    schema.check("DetailedTask", task)?;
    for (member, status) in OF_STATES {
        if task.get(member).is_some() != (task["status"] == status) {
            return Err(format!("{member} belongs to {status} (TASK-16 to TASK-21)"));
        }
    }
    match task["status"].as_str().unwrap_or_default() {
        "input_required" => schema.check("InputRequests", &task["inputRequests"]),
        "completed" => schema.check("CallToolResult", &task["result"]),
        "failed" => check_error(schema, &task["error"]),
        _ => Ok(()),
    }
}

fn check_acknowledgement(schema: &Schema, definition: &str, message: &Value) -> Result<(), String> {
    schema.check("JSONRPCResultResponse", message)?;
    let result = &message["result"];
    let mut members = result.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    if let Some(other) = members.find(|name| !["resultType", "_meta"].contains(name)) {
        return Err(format!("an acknowledgement has no {other} (TASK-28, TASK-32)"));
    }
    schema.check(definition, result)
}

#[test]
fn what_is_wrong_is_found_at_the_door() {
    let Some(schema) = Schema::load() else { return };
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let sound =
        json!({ "resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "public" });
    assert_eq!(check(&schema, Some("tools/list"), &result(sound.clone())), Ok(()));
    for (member, value) in [
        ("resultType", json!("task")),
        ("tools", json!([{ "name": "t" }])),
        ("ttlMs", json!("0")),
        ("cacheScope", json!("shared")),
        ("nextCursor", json!(null)),
    ] {
        let mut wrong = sound.clone();
        wrong[member] = value;
        assert!(check(&schema, Some("tools/list"), &result(wrong)).is_err(), "{member}");
    }
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "id": null }),
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": 1, "message": "x" } }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32021, "message": "x" } }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32042, "message": "x" } }),
        json!({ "id": 1, "error": { "code": 1, "message": "x" } }),
        result(json!({ "resultType": "input_required", "inputRequests": {} })),
    ] {
        assert!(check(&schema, Some("tools/list"), &message).is_err(), "{message}");
    }
    what_is_wrong_with_a_task_is_found(&schema);
    let mut events = Messages::Events(Vec::new());
    assert!(events.read(b"event: message\ndata: {\"a\"").is_empty());
    assert_eq!(events.read(b":1}\n\n: x\n\ndata: 2\n\n"), [json!({ "a": 1 }), json!(2)]);
}

fn what_is_wrong_with_a_task_is_found(schema: &Schema) {
    let task = |members: Value| {
        let mut task = json!({
            "resultType": "complete", "taskId": "t", "status": "working",
            "createdAt": "2026-08-01T09:00:00Z", "lastUpdatedAt": "2026-08-01T09:00:00Z",
            "ttlMs": 1,
        });
        let members = members.as_object().unwrap().clone();
        task.as_object_mut().unwrap().extend(members);
        task
    };
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let news = |mut task: Value| {
        task.as_object_mut().unwrap().remove("resultType");
        json!({ "jsonrpc": "2.0", "method": "notifications/tasks", "params": task })
    };
    let called = json!({ "resultType": "complete", "content": [] });
    let asked = json!({ "q": { "method": "roots/list" } });
    for sound in [
        json!({}),
        json!({ "status": "completed", "result": called }),
        json!({ "status": "failed", "error": { "code": 7, "message": "x" } }),
        json!({ "status": "input_required", "inputRequests": asked }),
        json!({ "status": "cancelled", "ttlMs": null }),
    ] {
        assert_eq!(check(schema, Some("tasks/get"), &result(task(sound.clone()))), Ok(()));
        assert_eq!(check(schema, None, &news(task(sound))), Ok(()));
    }
    for wrong in [
        json!({ "status": "done" }),
        json!({ "ttlMs": "1" }),
        json!({ "taskId": 7 }),
        json!({ "createdAt": 7 }),
        json!({ "status": "completed" }),
        json!({ "status": "completed", "result": { "content": 7 } }),
        json!({ "status": "failed", "error": { "code": -32001, "message": "x" } }),
        json!({ "status": "failed", "error": { "code": 7 } }),
        json!({ "status": "input_required", "inputRequests": { "q": { "method": "ping" } } }),
        json!({ "status": "cancelled", "result": called }),
        json!({ "inputRequests": asked }),
    ] {
        assert!(check(schema, Some("tasks/get"), &result(task(wrong.clone()))).is_err(), "{wrong}");
        assert!(check(schema, None, &news(task(wrong.clone()))).is_err(), "{wrong}");
    }
    let created = |members: Value| {
        let mut task = task(members);
        task["resultType"] = json!("task");
        result(task)
    };
    assert_eq!(check(schema, Some("tools/call"), &created(json!({}))), Ok(()));
    for wrong in [json!({ "result": called }), json!({ "status": 7 }), json!({ "ttlMs": 0.5 })] {
        assert!(check(schema, Some("tools/call"), &created(wrong.clone())).is_err(), "{wrong}");
    }
    for method in ["prompts/get", "resources/read", "tasks/get"] {
        assert!(check(schema, Some(method), &created(json!({}))).is_err(), "TASK-05: {method}");
    }
    for method in ["tasks/update", "tasks/cancel"] {
        let empty = json!({ "resultType": "complete" });
        assert_eq!(check(schema, Some(method), &result(empty)), Ok(()));
        assert!(check(schema, Some(method), &result(task(json!({})))).is_err(), "{method}");
    }
}
