//! Why a request is refused, and the one table from reason to status and code.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::{
    body::Body,
    error::{RequestError, code},
    principal::Challenge,
    respond,
};

/// Why a request was refused. A refusal is an ordinary value; [`Rejection::wire`] gives its numbers.
///
/// The response of a refused request carries it in its extensions, for tests and logs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Rejection {
    // In the order of the checks.
    /// More header fields, or larger ones, than the limits allow.
    HeadersTooLarge,
    /// The `Host` header names a host that is not on the allow-list (HTTP-04).
    HostForbidden,
    /// The `Origin` header names a site that is not on the allow-list (HTTP-02).
    OriginForbidden,
    /// There is no endpoint at this path.
    NoSuchPath,
    /// The endpoint takes `POST` alone (HTTP-07); other paths say what they take.
    MethodNotAllowed {
        /// The value of the `Allow` header.
        allow: &'static str,
    },
    /// The authenticator turned the caller away (AUTH-04, AUTH-06, AUTH-10).
    Challenged(Challenge),
    /// The `Content-Type` is not JSON (A-19).
    UnsupportedMediaType,
    /// `Accept` excludes the type that this answer needs (A-19, HTTP-15).
    NotAcceptable,
    /// The body is larger than the limit.
    BodyTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The body is not JSON in UTF-8, or repeats a member.
    Unreadable {
        /// What is wrong with it.
        fault: String,
    },
    /// The body is JSON and not one JSON-RPC 2.0 request or notification (BASE-02, BASE-04).
    NotARequest {
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A mirrored header is missing, unreadable, repeated, or disagrees with the body (HDR-01).
    HeaderMismatch {
        /// The header.
        header: HeaderName,
        /// What is wrong with it.
        fault: HeaderFault,
    },
    /// A required `_meta` key is missing or of the wrong type (META-03, META-04).
    InvalidMeta {
        /// The key, or `_meta` itself.
        key: &'static str,
    },
    /// The protocol version is not served (VER-02).
    UnsupportedVersion {
        /// The version that the client named.
        requested: String,
    },
    /// The method is unknown, removed, or its capability is not advertised (ERR-06, ERR-07).
    MethodNotFound {
        /// The method.
        method: String,
    },
    /// The work needs a capability that the request does not declare (META-09).
    MissingCapability {
        /// A `ClientCapabilities` object that holds what is missing.
        required: Box<Map<String, Value>>,
    },
    /// A parameter is ill-formed; found before the handler ran.
    InvalidParams {
        /// What is wrong with it.
        message: String,
    },
    /// The `requestState` does not verify. The wire never says why (MRTR-18).
    InvalidState,
    /// This instance holds as many listen streams as it may (SUB-15).
    TooManyListeners,
    /// The handler, or what it needed, answered with an error.
    Failed(RequestError),
}

/// What is wrong with a mirrored header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderFault {
    /// It says something else than the body.
    Mismatch,
    /// It is absent.
    Missing,
    /// It occurs more than once (HDR-14).
    Repeated,
    /// It has characters or an encoding that it must not have (HDR-10, HDR-11).
    Unreadable,
}

impl Rejection {
    /// The only place where a reason becomes numbers: HTTP status and JSON-RPC code.
    #[must_use]
    pub fn wire(&self) -> (StatusCode, i64) {
        match self {
            Self::HeadersTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, code::INVALID_REQUEST)
            }
            Self::HostForbidden | Self::OriginForbidden => {
                (StatusCode::FORBIDDEN, code::INVALID_REQUEST)
            }
            Self::NoSuchPath => (StatusCode::NOT_FOUND, code::INVALID_REQUEST),
            Self::MethodNotAllowed { .. } => {
                (StatusCode::METHOD_NOT_ALLOWED, code::INVALID_REQUEST)
            }
            Self::Challenged(challenge) => (challenge.status(), code::INVALID_REQUEST),
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, code::INVALID_REQUEST)
            }
            Self::NotAcceptable => (StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST),
            Self::BodyTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST),
            Self::Unreadable { .. } => (StatusCode::BAD_REQUEST, code::PARSE_ERROR),
            Self::NotARequest { .. } => (StatusCode::BAD_REQUEST, code::INVALID_REQUEST),
            Self::HeaderMismatch { .. } => (StatusCode::BAD_REQUEST, code::HEADER_MISMATCH),
            Self::InvalidMeta { .. } => (StatusCode::BAD_REQUEST, code::INVALID_PARAMS),
            Self::UnsupportedVersion { .. } => (StatusCode::BAD_REQUEST, code::UNSUPPORTED_VERSION),
            Self::MethodNotFound { .. } => (StatusCode::NOT_FOUND, code::METHOD_NOT_FOUND),
            Self::MissingCapability { .. } => (StatusCode::BAD_REQUEST, code::MISSING_CAPABILITY),
            // A-04: what is found after the ladder goes out with 200.
            Self::InvalidParams { .. } | Self::InvalidState => {
                (StatusCode::OK, code::INVALID_PARAMS)
            }
            Self::TooManyListeners => (StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR),
            Self::Failed(error) => (StatusCode::OK, error.code()),
        }
    }

    /// One short sentence for the caller (BASE-12). It repeats no header or body value of others
    /// (HDR-18).
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::HeadersTooLarge => "Too many or too large header fields".to_owned(),
            Self::HostForbidden => "Host not allowed".to_owned(),
            Self::OriginForbidden => "Origin not allowed".to_owned(),
            Self::NoSuchPath => "There is no MCP endpoint at this path".to_owned(),
            Self::MethodNotAllowed { allow } => format!("This path takes {allow} only"),
            Self::Challenged(challenge) => match challenge.status() {
                StatusCode::FORBIDDEN => "Insufficient scope".to_owned(),
                StatusCode::UNAUTHORIZED => "Authorization required".to_owned(),
                _ => "Malformed authorization".to_owned(),
            },
            Self::UnsupportedMediaType => "Content-Type must be application/json".to_owned(),
            Self::NotAcceptable => {
                "Accept must list application/json and text/event-stream".to_owned()
            }
            Self::BodyTooLarge { limit } => format!("The body is larger than {limit} bytes"),
            Self::Unreadable { fault } => format!("Parse error: {fault}"),
            Self::NotARequest { fault } => format!("Invalid request: {fault}"),
            Self::HeaderMismatch { header, fault } => {
                let header = wire_case(header);
                match fault {
                    HeaderFault::Mismatch => format!("{header} does not match the request body"),
                    HeaderFault::Missing => format!("{header} is missing"),
                    HeaderFault::Repeated => format!("{header} occurs more than once"),
                    HeaderFault::Unreadable => format!("{header} has invalid characters"),
                }
            }
            Self::InvalidMeta { key } => format!("Missing or ill-typed params.{key}"),
            Self::UnsupportedVersion { .. } => "Unsupported protocol version".to_owned(),
            Self::MethodNotFound { method } => format!("Unknown method {}", short(method)),
            Self::MissingCapability { required } => {
                format!(
                    "The request must declare the client capability {}",
                    capability_names(required).join(", ")
                )
            }
            Self::InvalidParams { message } => message.clone(),
            Self::InvalidState => "Invalid requestState".to_owned(),
            Self::TooManyListeners => "Too many listen streams are open".to_owned(),
            Self::Failed(error) => error.message().to_owned(),
        }
    }

    pub(crate) fn internal(source: impl std::fmt::Display) -> Self {
        Self::Failed(RequestError::internal(source))
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::InvalidParams { message: message.into() }
    }

    fn data(&self) -> Option<Value> {
        match self {
            Self::UnsupportedVersion { requested } => {
                Some(json!({ "supported": crate::MODERN_VERSIONS, "requested": requested }))
            }
            Self::MissingCapability { required } => {
                Some(json!({ "requiredCapabilities": required }))
            }
            Self::Failed(error) => error.data().cloned(),
            _ => None,
        }
    }

    /// The reply, with the id of the request if it could be read (BASE-06, ERR-10).
    pub(crate) fn to_json(&self, id: Option<&str>) -> Vec<u8> {
        respond::envelope(id, "error", self.to_error().to_string().as_bytes())
    }

    /// The JSON-RPC error. What is for the log goes there.
    pub(crate) fn to_error(&self) -> Value {
        let (_, code) = self.wire();
        if let Self::Failed(error) = self
            && let Some(source) = error.source()
        {
            tracing::error!(code, "request failed: {source}");
        }
        let mut error = json!({ "code": code, "message": self.message() });
        if let (Some(data), Some(members)) = (self.data(), error.as_object_mut()) {
            members.insert("data".to_owned(), data);
        }
        error
    }

    /// The whole response.
    pub(crate) fn into_response(self, id: Option<&str>) -> Response<Body> {
        let (status, code) = self.wire();
        tracing::debug!(status = status.as_u16(), code, "refused: {}", self.message());
        let mut response = respond::json(status, self.to_json(id));
        match &self {
            Self::MethodNotAllowed { allow } => {
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
            }
            Self::Challenged(challenge) => {
                if let Some(value) = challenge.header() {
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, value.clone());
                }
            }
            _ => {}
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The capabilities in a `ClientCapabilities` object; extensions by their ids.
fn capability_names(required: &Map<String, Value>) -> Vec<&str> {
    let names = required.iter().flat_map(|(name, settings)| match (name.as_str(), settings) {
        ("extensions", Value::Object(extensions)) => extensions.keys().collect(),
        _ => vec![name],
    });
    names.map(String::as_str).collect()
}

/// A header name as the specification spells it; `http` keeps them in lower case.
fn wire_case(name: &HeaderName) -> String {
    match name.as_str() {
        "mcp-protocol-version" => "MCP-Protocol-Version".to_owned(),
        name => name
            .split('-')
            .map(|part| {
                let mut letters = part.chars();
                letters.next().map_or_else(String::new, |first| {
                    first.to_uppercase().chain(letters).collect::<String>()
                })
            })
            .collect::<Vec<_>>()
            .join("-"),
    }
}

/// At most 64 characters of a text that a caller chose.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_are_spelled_as_in_the_specification() {
        let spell = |name| wire_case(&HeaderName::from_static(name));
        assert_eq!(spell("mcp-protocol-version"), "MCP-Protocol-Version");
        assert_eq!(spell("mcp-param-dry-run"), "Mcp-Param-Dry-Run");
    }

    #[test]
    fn err_10_an_error_echoes_the_id_and_leaves_it_out_when_unknown() {
        let refused = Rejection::NotARequest { fault: "no method" };
        let with = String::from_utf8(refused.to_json(Some("\"a\""))).unwrap();
        assert!(with.starts_with(r#"{"jsonrpc":"2.0","id":"a","error":{"#), "{with}");
        let without = String::from_utf8(refused.to_json(None)).unwrap();
        assert!(without.starts_with(r#"{"jsonrpc":"2.0","error":{"#), "{without}");
    }
}
