//! Times and bounds of a listener.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Times and bounds of a listener, each with a default and a reason; for
/// [`serve_on_with`](crate::serve_on_with) and [`serve_with`](crate::serve_with).
///
/// Those of a request's content are [`Limits`](mcp_edge::Limits), on the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    pub(crate) header_read_timeout: Duration,
    pub(crate) body_read_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_connections: usize,
    pub(crate) grace: Duration,
    pub(crate) response_headers: HeaderMap,
}

impl ServeOptions {
    /// How long the head of a request may take: on a new connection from the moment it is accepted,
    /// later from its first byte. 10 s by default.
    #[must_use]
    pub const fn header_read_timeout(mut self, timeout: Duration) -> Self {
        self.header_read_timeout = timeout;
        self
    }

    /// How long the body of a request may take. Then the connection is closed without an answer.
    /// 30 s by default.
    #[must_use]
    pub const fn body_read_timeout(mut self, timeout: Duration) -> Self {
        self.body_read_timeout = timeout;
        self
    }

    /// How long a connection may stay without a request, and a response without its client reading
    /// on. 75 s by default, which is more than common load balancers keep a connection for: the
    /// side that sends requests must be the one to close it, or some requests are lost.
    #[must_use]
    pub const fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Most connections at a time; more wait in the accept queue of the system. 1,024 by default,
    /// the number of files that a process may open on many systems.
    #[must_use]
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// How long calls under way may still run once the server shuts down. 10 s by default.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Adds a header to each response: what a deployment says of itself, such as which instance
    /// answered. None by default.
    ///
    /// A response that has a header of this name keeps its own, and the same name given again
    /// replaces the value. Requests that are no HTTP are answered without it.
    #[must_use]
    pub fn response_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.response_headers.insert(name, value);
        self
    }

    /// Adds the headers that are chosen for each response.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.response_headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
    }
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            header_read_timeout: Duration::from_secs(10),
            body_read_timeout: BODY_READ_TIMEOUT,
            idle_timeout: Duration::from_secs(75),
            max_connections: 1024,
            grace: Duration::from_secs(10),
            response_headers: HeaderMap::new(),
        }
    }
}

pub(crate) const BODY_READ_TIMEOUT: Duration = Duration::from_secs(30);
