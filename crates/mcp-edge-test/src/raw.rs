//! Responses as they come, unchecked.

use std::{collections::VecDeque, fmt};

use bytes::Bytes;
use http::{Extensions, HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use mcp_edge::Rejection;
use serde_json::Value;

use crate::{
    client::Client,
    error::CallError,
    exchange::Exchange,
    sse::{Event, Parser},
    transport::Incoming,
};

/// A response as it comes, of which nothing is checked. Made by [`Client::raw`].
///
/// Dropping it before its end closes the stream, which cancels the request (CANC-01).
#[non_exhaustive]
pub struct RawResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: RawBody,
    extensions: Extensions,
}

/// The body of a [`RawResponse`], to be read whole or piece by piece.
pub struct RawBody {
    pub(crate) incoming: Incoming,
    pub(crate) exchange: Exchange,
    parser: Parser,
    events: VecDeque<Event>,
}

impl Client {
    /// Sends a request as it is, and checks nothing of the response.
    ///
    /// ```
    /// use mcp_edge::{Cx, NoArgs, Server};
    /// use mcp_edge_test::Client;
    /// use serde_json::json;
    ///
    /// async fn count(cx: Cx, _: NoArgs) -> &'static str {
    ///     cx.progress(1.0, 2.0, "half");
    ///     "done"
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("counter", "1.0.0").tool("count", "Counts", count).build()?;
    /// let client = Client::in_process(&server).with_progress();
    /// let request = client.request("tools/call", json!({"name": "count"}));
    /// let mut response = client.raw(request).await?;
    /// assert_eq!(response.headers["content-type"], "text/event-stream");
    /// let event = response.next_event().await?.expect("an event");
    /// assert!(event.data.contains("notifications/progress"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When no response arrives, or the client was set up wrongly.
    pub async fn raw(&self, request: Request<Bytes>) -> Result<RawResponse, CallError> {
        if let Some(misuse) = &self.options.misuse {
            return Err(CallError::misuse(misuse));
        }
        let Some(transport) = self.transport() else {
            return Err(CallError::misuse("there is no server"));
        };
        let mut exchange = Exchange::new(&request);
        let response = match transport.send(request).await {
            Ok(response) => response,
            Err(fault) => return Err(CallError::transport(fault, &exchange)),
        };
        let (head, incoming) = response.into_parts();
        exchange.answered(head.status, &head.headers);
        let body =
            RawBody { incoming, exchange, parser: Parser::default(), events: VecDeque::new() };
        Ok(RawResponse {
            status: head.status,
            headers: head.headers,
            body,
            extensions: head.extensions,
        })
    }
}

impl RawResponse {
    /// Reads the rest of the body.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn bytes(&mut self) -> Result<Bytes, CallError> {
        self.body.bytes().await
    }

    /// Reads the rest of the body as text; what is not UTF-8 is replaced.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn text(&mut self) -> Result<String, CallError> {
        Ok(String::from_utf8_lossy(&self.bytes().await?).into_owned())
    }

    /// Reads the rest of the body as JSON.
    ///
    /// # Errors
    /// When it breaks off, or is not JSON.
    pub async fn json(&mut self) -> Result<Value, CallError> {
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| self.body.refused(format!("the body is not JSON: {error}")))
    }

    /// Waits for the next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        self.body.next_chunk().await
    }

    /// Waits for the next event of a `text/event-stream`; `None` at its end.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn next_event(&mut self) -> Result<Option<Event>, CallError> {
        self.body.next_event().await
    }

    /// Why a server in this process refused the request, if it did.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        self.extensions.get()
    }

    pub(crate) fn into_parts(self) -> (StatusCode, HeaderMap, Extensions, RawBody) {
        (self.status, self.headers, self.extensions, self.body)
    }
}

impl RawBody {
    /// Reads the rest.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn bytes(&mut self) -> Result<Bytes, CallError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.next_chunk().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.into())
    }

    /// Waits for the next piece; `None` at the end.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            match self.incoming.frame().await {
                None => return Ok(None),
                Some(Err(fault)) => return Err(CallError::transport(fault, &self.exchange)),
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.exchange.received(&piece);
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }

    /// Waits for the next event of a `text/event-stream`; `None` at its end. Events and pieces are
    /// not to be mixed.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn next_event(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let Some(piece) = self.next_chunk().await? else {
                return Ok(None);
            };
            self.events.extend(self.parser.feed(&piece));
        }
    }

    /// Whether all events so far were UTF-8.
    pub(crate) const fn is_utf8(&self) -> bool {
        self.parser.is_utf8()
    }

    pub(crate) fn refused(&self, text: impl Into<String>) -> CallError {
        CallError::refused(text, &self.exchange)
    }
}

impl fmt::Debug for RawResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.body.fmt(f)
    }
}

impl fmt::Debug for RawBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.exchange, f)
    }
}
