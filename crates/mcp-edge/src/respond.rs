//! How messages become bytes and responses.

use std::{
    sync::LazyLock,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use crate::{body::Body, platform::Platform, target::BoxFuture};

/// One JSON-RPC reply: `payload` is the JSON of its `member` (`result` or `error`).
pub(crate) fn envelope(id: Option<&str>, member: &str, payload: &[u8]) -> Vec<u8> {
    let id_len = id.map_or(0, str::len);
    let mut out = Vec::with_capacity(payload.len() + id_len + member.len() + 32);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        out.extend_from_slice(id.as_bytes());
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(member.as_bytes());
    out.extend_from_slice(br#"":"#);
    out.extend_from_slice(payload);
    out.push(b'}');
    out
}

/// A JSON response (HTTP-10, HTTP-16).
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    *response.headers_mut() = JSON_HEADERS.clone();
    response
}

/// Cloning a map costs half of filling one.
static JSON_HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
});

/// An SSE response (SSE-05, HTTP-16).
pub(crate) fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// 202 without a body (HTTP-11).
pub(crate) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Appends one SSE event that holds one message (SSE-07). The message is compact JSON, which has no
/// raw newline.
pub(crate) fn push_event(out: &mut Vec<u8>, message: &[u8]) {
    out.reserve(message.len() + 24);
    out.extend_from_slice(b"event: message\ndata: ");
    out.extend_from_slice(message);
    out.extend_from_slice(b"\n\n");
}

/// Appends one SSE event that holds a notification.
pub(crate) fn push_notification(out: &mut Vec<u8>, method: &str, params: &impl Serialize) {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'a str,
        method: &'a str,
        params: &'a P,
    }
    match serde_json::to_vec(&Notification { jsonrpc: "2.0", method, params }) {
        Ok(message) => push_event(out, &message),
        Err(error) => tracing::warn!("a notification was dropped: {error}"),
    }
}

/// Keeps a quiet stream open by comment lines (SSE-06, SUB-12).
#[derive(Default)]
pub(crate) struct KeepAlive(Option<BoxFuture<'static, ()>>);

impl KeepAlive {
    /// The next piece of a stream that has `out` to send: that, or a comment when there was nothing
    /// for an `interval`.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: Vec<u8>,
        platform: &dyn Platform,
        interval: Duration,
    ) -> Poll<Bytes> {
        if out.is_empty() {
            let timer = self.0.get_or_insert_with(|| platform.sleep(interval));
            ready!(timer.as_mut().poll(cx));
        }
        self.0 = None;
        let comment = Bytes::from_static(b": keep-alive\n\n");
        Poll::Ready(if out.is_empty() { comment } else { out.into() })
    }
}
