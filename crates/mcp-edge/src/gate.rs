//! What is decided from the head of a request, before any of its body is read.

use std::sync::Arc;

use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};

use crate::{
    admission::{Admission, Mirrored, Slot},
    body::Body,
    headers::{self, Accept},
    platform::Platform,
    principal::{Challenge, Principal},
    rejection::Rejection,
    respond,
    server::Server,
};

/// Where the platform asks whether this instance is well.
const HEALTH: &str = "/healthz";

/// The checks, in this order:
///
/// 1. count and size of the header fields → 431
/// 2. `Host` and `Origin` → 403 (HTTP-02, HTTP-04)
/// 3. `/healthz` → answered here
/// 4. path → 404
/// 5. method → 405 (HTTP-07)
/// 6. authentication → 401, 403, 400 (AUTH-04, AUTH-06, AUTH-10)
/// 7. `Content-Type` → 415, `Accept` → 406, declared length → 413 (A-19)
pub(crate) async fn gate<'a>(
    server: &'a Server,
    parts: &'a Parts,
    platform: Arc<dyn Platform>,
) -> Result<Admission<'a>, Response<Body>> {
    let refuse = |rejection: Rejection| rejection.into_response(None);
    let definition = server.definition();
    let Some(head) = Head::read(parts, server) else {
        return Err(refuse(Rejection::HeadersTooLarge));
    };
    // HTTP/2 has the host in the URI.
    let host = match (head.host.value, parts.uri.authority()) {
        (Some(host), _) => host.as_bytes(),
        (None, Some(authority)) => authority.as_str().as_bytes(),
        (None, None) => b"",
    };
    if head.host.repeated || !definition.hosts.allows(host) {
        return Err(refuse(Rejection::HostForbidden));
    }
    let allowed = |origin: &HeaderValue| definition.origins.allows(origin.as_bytes());
    if head.origin.repeated || head.origin.value.is_some_and(|origin| !allowed(origin)) {
        return Err(refuse(Rejection::OriginForbidden));
    }
    let path = parts.uri.path();
    if path == HEALTH && definition.endpoint != HEALTH {
        return Err(health(&parts.method, platform.as_ref()));
    }
    if path != definition.endpoint {
        return Err(refuse(Rejection::NoSuchPath));
    }
    if parts.method != Method::POST {
        return Err(refuse(Rejection::MethodNotAllowed { allow: "POST" }));
    }
    let principal = authenticate(server, parts, platform.as_ref())
        .await
        .map_err(|challenge| refuse(Rejection::Challenged(challenge)))?;
    if head.content_type.is_some_and(|content_type| !headers::is_json(content_type)) {
        return Err(refuse(Rejection::UnsupportedMediaType));
    }
    let accept = if head.accept.repeated {
        Accept::parse(parts.headers.get_all(header::ACCEPT).iter())
    } else {
        Accept::parse(head.accept.value.into_iter())
    };
    if !accept.json && !accept.sse {
        return Err(refuse(Rejection::NotAcceptable));
    }
    let limit = definition.limits.body_bytes;
    if head.declared_length(limit).is_some_and(|length| length > limit) {
        return Err(refuse(Rejection::BodyTooLarge { limit }));
    }
    let Head { mirrored, traceparent, .. } = head;
    let headers = &parts.headers;
    Ok(Admission { server, headers, mirrored, traceparent, accept, principal, platform })
}

async fn authenticate(
    server: &Server,
    parts: &Parts,
    platform: &dyn Platform,
) -> Result<Arc<Principal>, Challenge> {
    match &server.definition().authenticator {
        None => Ok(Arc::clone(&server.definition().anonymous)),
        Some(authenticator) => authenticator.authenticate(parts, platform).await,
    }
}

/// The header fields that the core reads, found in one walk.
#[derive(Default)]
struct Head<'a> {
    host: Slot<'a>,
    origin: Slot<'a>,
    content_type: Option<&'a HeaderValue>,
    content_length: Option<&'a HeaderValue>,
    accept: Slot<'a>,
    mirrored: Mirrored<'a>,
    traceparent: Option<&'a HeaderValue>,
}

impl<'a> Head<'a> {
    /// `None` if there are too many fields, or too large ones (HTTP-17).
    fn read(parts: &'a Parts, server: &Server) -> Option<Self> {
        let limits = server.limits();
        if parts.headers.len() > limits.header_count {
            return None;
        }
        let mut head = Head::default();
        let mut size = 0;
        for (name, value) in &parts.headers {
            size += name.as_str().len() + value.len();
            match name.as_str() {
                "host" => head.host.add(value),
                "origin" => head.origin.add(value),
                "content-type" => head.content_type = Some(value),
                "content-length" => head.content_length = Some(value),
                "accept" => head.accept.add(value),
                "mcp-protocol-version" => head.mirrored.version.add(value),
                "mcp-method" => head.mirrored.method.add(value),
                "mcp-name" => head.mirrored.name.add(value),
                "traceparent" => head.traceparent = Some(value),
                _ => {}
            }
        }
        (size <= limits.header_bytes).then_some(head)
    }

    /// The declared length; one that does not fit a number is larger than any limit.
    fn declared_length(&self, limit: usize) -> Option<usize> {
        let length = self.content_length?.to_str().ok()?.trim();
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| length.parse().unwrap_or_else(|_| limit.saturating_add(1)))
    }
}

/// 200 while this instance takes requests, 503 once it is about to stop.
fn health(method: &Method, platform: &dyn Platform) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        return Rejection::MethodNotAllowed { allow: "GET, HEAD" }.into_response(None);
    }
    let (status, text) = if platform.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"draining"}"#)
    } else {
        (StatusCode::OK, r#"{"status":"ok"}"#)
    };
    respond::json(status, text.into())
}
