//! The reference request, and variations of it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, header, request::Parts};
use serde_json::{Value, json};

use crate::Result;

pub(crate) const BODY: &str = include_str!("../reference/request.json");
pub(crate) const HEADERS: &str = include_str!("../reference/headers.txt");
/// What it is answered.
pub(crate) const ANSWER: &str = include_str!("../reference/answer.json");

/// Name and value of each header field.
pub(crate) fn headers() -> impl Iterator<Item = (&'static str, &'static str)> {
    HEADERS.lines().filter_map(|line| line.split_once(": "))
}

/// A request as an adapter gives it to the core.
pub(crate) struct Call {
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
}

impl Call {
    /// The reference request itself.
    pub(crate) fn reference() -> Result<Self> {
        let mut request = Request::post("/mcp").body(())?;
        for (name, value) in headers() {
            let name = HeaderName::from_bytes(name.as_bytes())?;
            request.headers_mut().append(name, HeaderValue::from_static(value));
        }
        let (parts, ()) = request.into_parts();
        Ok(Self { parts, body: Bytes::from_static(BODY.as_bytes()) })
    }

    /// The same request for another tool.
    pub(crate) fn of_tool(tool: &str, arguments: Value) -> Result<Self> {
        let mut call = Self::reference()?;
        call.parts.headers.insert("mcp-name", HeaderValue::from_str(tool)?);
        call.with_params([("name", json!(tool)), ("arguments", arguments)])
    }

    /// The same request with other members of `params`.
    pub(crate) fn with_params(
        mut self,
        members: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<Self> {
        let mut message: Value = serde_json::from_slice(&self.body)?;
        for (name, value) in members {
            message["params"][name] = value;
        }
        self.body = serde_json::to_vec(&message)?.into();
        self.parts.headers.insert(header::CONTENT_LENGTH, self.body.len().into());
        Ok(self)
    }
}

/// The reference request as it goes over the wire.
pub(crate) fn wire() -> String {
    let mut text = "POST /mcp HTTP/1.1\r\n".to_owned();
    for (name, value) in headers() {
        text += &format!("{name}: {value}\r\n");
    }
    text + "\r\n" + BODY
}
