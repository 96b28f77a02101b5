//! Changes to the requests of a conforming client.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use serde_json::Value;

/// Changes the body of a request as JSON.
pub fn edit(mut request: Request<Bytes>, change: impl FnOnce(&mut Value)) -> Request<Bytes> {
    let mut body: Value = serde_json::from_slice(request.body()).unwrap();
    change(&mut body);
    *request.body_mut() = Bytes::from(body.to_string());
    request
}

/// Sets a header of a request; `None` removes it.
pub fn header<V: AsRef<[u8]> + ?Sized>(
    mut request: Request<Bytes>,
    name: &'static str,
    value: Option<&V>,
) -> Request<Bytes> {
    let name = HeaderName::from_static(name);
    match value {
        Some(value) => drop(
            request.headers_mut().insert(name, HeaderValue::from_bytes(value.as_ref()).unwrap()),
        ),
        None => drop(request.headers_mut().remove(name)),
    }
    request
}
