//! One request and what came back, to be read by a person.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use serde_json::Value;

/// One request and what came back so far.
#[derive(Clone)]
pub(crate) struct Exchange {
    request: Arc<Request<Bytes>>,
    response: Option<(StatusCode, HeaderMap)>,
    body: Vec<u8>,
}

impl Exchange {
    pub(crate) fn new(request: &Request<Bytes>) -> Self {
        Self { request: Arc::new(request.clone()), response: None, body: Vec::new() }
    }

    /// Notes the head of the response.
    pub(crate) fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.response = Some((status, headers.clone()));
    }

    /// Notes a piece of the response's body.
    pub(crate) fn received(&mut self, piece: &[u8]) {
        self.body.extend_from_slice(piece);
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, uri): (&Method, &Uri) = (self.request.method(), self.request.uri());
        writeln!(f, "> {method} {uri}")?;
        headers(f, ">", self.request.headers())?;
        body(f, self.request.headers(), self.request.body())?;
        writeln!(f)?;
        match &self.response {
            None => writeln!(f, "< (no response)"),
            Some((status, fields)) => {
                writeln!(f, "< {status}")?;
                headers(f, "<", fields)?;
                body(f, fields, &self.body)
            }
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn headers(f: &mut fmt::Formatter<'_>, mark: &str, fields: &HeaderMap) -> fmt::Result {
    for (name, value) in fields {
        writeln!(f, "{mark} {}: {}", title_case(name), readable(name, value))?;
    }
    Ok(())
}

/// The value of a header. Tokens are not printed: test logs are kept and shown around.
fn readable(name: &HeaderName, value: &HeaderValue) -> String {
    if name == header::AUTHORIZATION {
        let scheme = value.to_str().unwrap_or_default().split(' ').next().unwrap_or_default();
        return format!("{scheme} (hidden)");
    }
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn body(f: &mut fmt::Formatter<'_>, fields: &HeaderMap, bytes: &[u8]) -> fmt::Result {
    let content_type = fields.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let text = String::from_utf8_lossy(bytes);
    if text.is_empty() {
        return Ok(());
    }
    if !content_type.starts_with(b"text/event-stream") {
        return writeln!(f, "{}", pretty(&text));
    }
    for line in text.lines() {
        match line.strip_prefix("data:") {
            Some(data) => writeln!(f, "data: {}", pretty(data.trim_start()))?,
            None => writeln!(f, "{line}")?,
        }
    }
    Ok(())
}

/// JSON over several lines; anything else as it is.
fn pretty(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |json| format!("{json:#}"))
}

/// `content-type` as `Content-Type`; `http` keeps names in lower case.
fn title_case(name: &HeaderName) -> String {
    if name.as_str() == "mcp-protocol-version" {
        return "MCP-Protocol-Version".to_owned();
    }
    let mut start = true;
    name.as_str()
        .chars()
        .map(|letter| {
            let begins = std::mem::replace(&mut start, letter == '-');
            if begins { letter.to_ascii_uppercase() } else { letter }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_reads_like_http() {
        let request = Request::post("/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("authorization", "Bearer secret")
            .body(Bytes::from_static(br#"{"id":1}"#))
            .unwrap();
        let mut exchange = Exchange::new(&request);
        assert!(exchange.to_string().ends_with("\n< (no response)\n"));
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/event-stream"));
        exchange.answered(StatusCode::OK, &headers);
        exchange.received(b": hi\ndata: {\"a\":[]}\n\n");
        let expected = "\
> POST /mcp
> MCP-Protocol-Version: 2026-07-28
> Authorization: Bearer (hidden)
{
  \"id\": 1
}

< 200 OK
< Content-Type: text/event-stream
: hi
data: {
  \"a\": []
}

";
        assert_eq!(exchange.to_string(), expected);
    }
}
