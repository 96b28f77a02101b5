//! Any request: method, path, headers and body.
//!
//! The input is the method, the path, which headers of a sound head are kept, and how many headers
//! are added, a byte each; then those headers, each as its name, its length and its value; then the
//! body.

#![no_main]

use bytes::Bytes;
use http::Method;
use libfuzzer_sys::fuzz_target;
use mcp_edge_fuzz::{HEADERS, Instance, TASKS, head_for, header, post};

const METHODS: [Method; 5] =
    [Method::GET, Method::DELETE, Method::OPTIONS, Method::HEAD, Method::PUT];
const PATHS: [&str; 4] = ["/healthz", "/", "/mcp/", "http://localhost/mcp?x=1"];
const KEPT: [&str; 7] = [
    "host",
    "content-type",
    "accept",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-param-region",
];
fuzz_target!(|data: &[u8]| {
    let [method, path, kept, added, rest @ ..] = data else { return };
    let mut rest = rest;
    let mut request = post(Vec::new());
    let mut more = Vec::new();
    for _ in 0..added % 32 {
        let [name, length, after @ ..] = rest else { break };
        let (value, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let name = HEADERS[usize::from(*name) % HEADERS.len()];
        more.extend(header(name.as_bytes(), value));
    }
    let body = TASKS.named(rest);
    let mut headers = head_for(&body);
    for (bit, name) in KEPT.iter().enumerate() {
        if kept >> bit & 1 == 0 {
            headers.remove(*name);
        }
    }
    for (name, value) in more {
        headers.append(name, value);
    }
    *request.headers_mut() = headers;
    if let Some(method) = METHODS.get(usize::from(*method)) {
        *request.method_mut() = method.clone();
    }
    if let Some(path) = PATHS.get(usize::from(*path)) {
        *request.uri_mut() = path.parse().expect("a path");
    }
    *request.body_mut() = Bytes::from(body);
    Instance::default().checked(request);
});
