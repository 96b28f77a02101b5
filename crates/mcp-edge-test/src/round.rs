//! One request and its answer.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use crate::{
    check::{self, Check, Message},
    client::Client,
    error::CallError,
    raw::RawBody,
    reply::{Framing, Reply},
    request::Sent,
};

impl Client {
    /// Sends one request and checks its answer. Questions are left to the caller, see
    /// [`retry`](Self::retry); a JSON-RPC error is a reply like others.
    ///
    /// ```
    /// use mcp_edge::Server;
    /// use mcp_edge_test::{Client, Framing};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::in_process(&Server::builder("empty", "1.0.0").build()?);
    /// let reply = client.round("server/discover", json!({})).await?;
    /// assert_eq!(reply.framing, Framing::Json);
    /// assert_eq!(reply.result().unwrap()["supportedVersions"], json!(["2026-07-28"]));
    ///
    /// let reply = client.round("ping", json!({})).await?;
    /// assert_eq!((reply.status.as_u16(), reply.code()), (404, Some(-32601)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When no answer arrives, or a conforming client refuses it.
    pub async fn round(&self, method: &str, params: Value) -> Result<Reply, CallError> {
        self.exchange(self.compose(method, params)).await
    }

    /// Sends the request of `reply` again, with the state that `reply` gave, if any, and `answers`:
    /// an object of results by key, or null for none.
    ///
    /// # Errors
    /// When no answer arrives, or a conforming client refuses it.
    pub async fn retry(&self, reply: &Reply, answers: Value) -> Result<Reply, CallError> {
        let mut params = again(&reply.sent);
        if !answers.is_null() {
            params.insert("inputResponses".to_owned(), answers);
        }
        if let Some(state) = reply.request_state() {
            params.insert("requestState".to_owned(), state.into());
        }
        self.round(&reply.sent.method, Value::Object(params)).await
    }

    async fn exchange(&self, sent: Sent) -> Result<Reply, CallError> {
        let was_over = sent.params.get("taskId").is_some_and(|id| self.shared.tasks().is_over(id));
        let response = self.raw(sent.http.clone()).await?;
        let (status, headers, extensions, mut body) = response.into_parts();
        let read = read(&sent, status, &headers, &mut body).await?;
        let Read { framing, notifications, message } = read;
        if let Err(text) = check::framing(&sent, status, framing, message.as_ref()) {
            return Err(body.refused(text));
        }
        if let Some(result) = message.as_ref().and_then(|message| message.get("result"))
            && let Err(text) = self.shared.tasks().reply(&sent, result, was_over)
        {
            return Err(body.refused(text));
        }
        let exchange = body.exchange;
        Ok(Reply { status, headers, framing, notifications, message, extensions, sent, exchange })
    }
}

/// The params of a request without those of its round.
fn again(sent: &Sent) -> Map<String, Value> {
    let mut params = sent.params.clone();
    params.remove("inputResponses");
    params.remove("requestState");
    if let (Some(Value::Object(meta)), Some(id)) = (params.get_mut("_meta"), sent.id.as_u64())
        && meta.get("progressToken").is_some_and(|token| *token == format!("progress-{id}"))
    {
        meta.remove("progressToken"); // the new request has a token of its own
    }
    params
}

/// What was read of a body.
struct Read {
    framing: Framing,
    notifications: Vec<Value>,
    message: Option<Value>,
}

async fn read(
    sent: &Sent,
    status: StatusCode,
    headers: &HeaderMap,
    body: &mut RawBody,
) -> Result<Read, CallError> {
    let framing = Framing::of(headers);
    let mut check = Check::new(sent, status, framing);
    if framing == Framing::Sse {
        let (notifications, message) = read_events(&mut check, body).await?;
        return Ok(Read { framing, notifications, message: Some(message) });
    }
    let bytes = body.bytes().await?;
    if bytes.is_empty() {
        return Ok(Read { framing: Framing::Empty, notifications: Vec::new(), message: None });
    }
    let mut message = None;
    if framing == Framing::Json {
        let json: Value = serde_json::from_slice(&bytes)
            .map_err(|error| body.refused(format!("the body is not JSON: {error}")))?;
        if !check::is_of_a_gateway(status, &json) {
            match check.message(&json) {
                Ok(Message::Response) => {}
                Ok(Message::Notification) => {
                    return Err(body.refused("a notification is no answer to a request"));
                }
                Err(text) => return Err(body.refused(text)),
            }
            message = Some(json);
        }
    }
    Ok(Read { framing, notifications: Vec::new(), message })
}

/// Reads to the response, and on to the end of the stream, to see that nothing follows (SSE-04).
async fn read_events(
    check: &mut Check<'_>,
    body: &mut RawBody,
) -> Result<(Vec<Value>, Value), CallError> {
    let mut notifications = Vec::new();
    let response = loop {
        let Some(message) = next_message(body).await? else {
            return Err(body.refused("the stream ended without a response"));
        };
        match check.message(&message) {
            Ok(Message::Notification) => notifications.push(message),
            Ok(Message::Response) => break message,
            Err(text) => return Err(body.refused(text)),
        }
    };
    nothing_more(body).await?;
    Ok((notifications, response))
}

/// The next message of a stream; `None` at its end.
pub(crate) async fn next_message(body: &mut RawBody) -> Result<Option<Value>, CallError> {
    loop {
        let Some(event) = body.next_event().await? else {
            return Ok(None);
        };
        if !body.is_utf8() {
            return Err(body.refused("the stream is not UTF-8 (BASE-01)"));
        }
        // Clients skip events of other names.
        if event.event == "message" {
            let message = serde_json::from_str(&event.data)
                .map_err(|error| body.refused(format!("an event is not JSON: {error}")))?;
            return Ok(Some(message));
        }
    }
}

/// Waits for the end of a stream after its last message. A server should close it; one that does
/// not is left alone after a second.
pub(crate) async fn nothing_more(body: &mut RawBody) -> Result<(), CallError> {
    match tokio::time::timeout(Duration::from_secs(1), next_message(body)).await {
        Ok(Ok(Some(_))) => Err(body.refused("something follows the response (SSE-04)")),
        Ok(Err(error)) if error.is_refusal() => Err(error),
        _ => Ok(()),
    }
}
