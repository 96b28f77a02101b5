//! Requests as a conforming client sends them.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use mcp_edge::{encode_mirrored, protocol::LogLevel};
use serde_json::{Map, Value, json};

use crate::{
    client::{Client, Door},
    mirror,
};

/// The revision that the client speaks.
pub(crate) const VERSION: &str = "2026-07-28";

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// The extension by which calls become tasks (TASK-01).
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// All capabilities of the specification, and no extension.
pub(crate) fn all_capabilities() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": { "tools": {}, "context": {} },
        "roots": {},
    })
}

/// A request, and what was put into it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) id: Value,
    pub(crate) method: String,
    /// With `_meta`.
    pub(crate) params: Map<String, Value>,
    pub(crate) http: Request<Bytes>,
}

impl Sent {
    pub(crate) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    pub(crate) fn capabilities(&self) -> &Value {
        self.meta(CAPABILITIES_KEY).unwrap_or(&Value::Null)
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.meta(LOG_LEVEL_KEY)?.as_str()?.parse().ok()
    }

    /// Whether the client said that it takes this media type.
    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        let Some(Ok(accept)) = self.http.headers().get(header::ACCEPT).map(HeaderValue::to_str)
        else {
            return true;
        };
        let group = media_type.split('/').next().unwrap_or_default();
        accept.split(',').any(|range| {
            let range = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            range == media_type || range == "*/*" || range == format!("{group}/*")
        })
    }
}

impl Client {
    /// Makes the request that the client would send, for a test to alter and then give to
    /// [`raw`](Self::raw).
    ///
    /// `params` is an object, or null for none. Members of its `_meta` stand in place of the
    /// client's own.
    ///
    /// ```
    /// use mcp_edge::Server;
    /// use mcp_edge_test::Client;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::in_process(&Server::builder("empty", "1.0.0").build()?);
    /// let mut request = client.request("tools/call", json!({"name": "café"}));
    /// assert_eq!(request.headers()["mcp-name"], "=?base64?Y2Fmw6k=?=");
    ///
    /// request.headers_mut().remove("mcp-name");
    /// assert_eq!(client.raw(request).await?.status, 400);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn request(&self, method: &str, params: Value) -> Request<Bytes> {
        self.compose(method, params).http
    }

    pub(crate) fn compose(&self, method: &str, params: Value) -> Sent {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let mut params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        let own = params.remove("_meta");
        let mut meta = self.meta(id);
        if let Some(Value::Object(own)) = own {
            meta.extend(own);
        }
        params.insert("_meta".to_owned(), Value::Object(meta));
        let id = Value::from(id);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut http = Request::new(Bytes::from(message.to_string()));
        *http.method_mut() = http::Method::POST;
        *http.uri_mut() = self.transport().map(|door| door.uri()).unwrap_or_default();
        *http.headers_mut() = self.headers(method, &params);
        Sent { id, method: method.to_owned(), params, http }
    }

    fn meta(&self, id: u64) -> Map<String, Value> {
        let mut meta = Map::new();
        let mut put = |key: &str, value: Value| meta.insert(key.to_owned(), value);
        put(VERSION_KEY, VERSION.into());
        put(CAPABILITIES_KEY, self.capabilities_to_declare());
        put(CLIENT_INFO_KEY, json!({ "name": NAME, "version": env!("CARGO_PKG_VERSION") }));
        if let Some(level) = self.options.log_level {
            put(LOG_LEVEL_KEY, level.as_str().into());
        }
        if self.options.progress {
            put("progressToken", format!("progress-{id}").into());
        }
        meta
    }

    fn capabilities_to_declare(&self) -> Value {
        let mut capabilities = self.options.capabilities.clone();
        if self.options.tasks
            && let Some(members) = capabilities.as_object_mut()
            && let Some(extensions) =
                members.entry("extensions").or_insert_with(|| json!({})).as_object_mut()
        {
            extensions.entry(TASKS).or_insert_with(|| json!({}));
        }
        capabilities
    }

    fn headers(&self, method: &str, params: &Map<String, Value>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if matches!(self.door, Door::InProcess(_)) {
            headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, self.options.accept.clone());
        headers.insert("mcp-protocol-version", HeaderValue::from_static(VERSION));
        // A method that no header can carry is sent without one.
        if let Ok(method) = HeaderValue::from_str(method) {
            headers.insert("mcp-method", method);
        }
        if let Some(Value::String(name)) = name_member(method).and_then(|name| params.get(name)) {
            insert(&mut headers, HeaderName::from_static("mcp-name"), name);
        }
        if method == "tools/call"
            && let Some(Value::String(name)) = params.get("name")
            && let Some(schema) = self.shared.tools().get(name)
        {
            let arguments = params.get("arguments").unwrap_or(&Value::Null);
            for (name, value) in mirror::headers(schema, arguments) {
                insert(&mut headers, name, &value);
            }
        }
        headers.extend(self.options.headers.clone());
        headers
    }
}

/// The member of params that `Mcp-Name` mirrors (HDR-05, HDR-06).
fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // Whatever the text, its mirrored form is visible ASCII and spaces.
    if let Ok(value) = HeaderValue::from_str(&encode_mirrored(text)) {
        headers.insert(name, value);
    }
}

const NAME: &str = "mcp-edge-test";
