//! The ways by which requests reach a server.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response, Uri, uri};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use mcp_edge::{BoxFuture, KeyRing, Server};

use crate::platform::TestPlatform;

/// A body as it arrives.
pub(crate) type Incoming = UnsyncBoxBody<Bytes, Cause>;

/// What goes wrong below HTTP.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Carries one request to a server.
pub(crate) trait Transport: fmt::Debug + Send + Sync {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, Cause>>;

    /// Where requests go.
    fn uri(&self) -> Uri;
}

/// Servers in this process. Each request goes to the next of them.
#[derive(Clone, Debug)]
pub(crate) struct Instances {
    pub(crate) servers: Vec<Server>,
    pub(crate) platform: TestPlatform,
    next: Arc<AtomicUsize>,
}

impl Instances {
    pub(crate) fn new(servers: impl IntoIterator<Item = Server>) -> Self {
        Self {
            servers: servers.into_iter().map(with_key).collect(),
            platform: TestPlatform::new(),
            next: Arc::default(),
        }
    }
}

/// Gives a server the key of all tests, unless it has one: adapters bring keys along, and a test need
/// not.
fn with_key(server: Server) -> Server {
    if server.has_sealer() { server } else { server.with_sealer(KeyRing::new(0, &[0x7e; 32])) }
}

impl Transport for Instances {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, Cause>> {
        Box::pin(async move {
            let turn = self.next.fetch_add(1, Ordering::Relaxed);
            let index = turn.checked_rem(self.servers.len()).ok_or("the fleet has no servers")?;
            let platform = Arc::new(self.platform.begin());
            let response = self.servers[index].respond(request, platform).await;
            Ok(response.map(|body| body.map_err(Cause::from).boxed_unsync()))
        })
    }

    fn uri(&self) -> Uri {
        let endpoint = self.servers.first().map_or("/", Server::endpoint);
        endpoint.parse().unwrap_or_default()
    }
}

/// A server behind an `http:` URL.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    base: Uri,
    client: legacy::Client<HttpConnector, Full<Bytes>>,
}

impl Remote {
    /// Whether the URL is one is found out here; requests to one that is not fail.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let base: Uri = url.parse().map_err(|error| format!("`{url}` is not a URL: {error}"))?;
        if base.scheme() != Some(&uri::Scheme::HTTP) || base.host().is_none() {
            return Err(format!("`{url}` is not a URL of the form http://host:port/path"));
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { base, client })
    }

    /// Requests made by hand may name the path alone.
    fn absolute(&self, uri: Uri) -> Uri {
        let base = self.base.clone().into_parts();
        let mut parts = uri.into_parts();
        parts.scheme = parts.scheme.or(base.scheme);
        parts.authority = parts.authority.or(base.authority);
        parts.path_and_query = parts.path_and_query.or(base.path_and_query);
        Uri::from_parts(parts).unwrap_or_else(|_| self.base.clone())
    }
}

impl Transport for Remote {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, Cause>> {
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            parts.uri = self.absolute(parts.uri);
            let request = Request::from_parts(parts, Full::new(body));
            let response = self.client.request(request).await?;
            Ok(response.map(|body| body.map_err(Cause::from).boxed_unsync()))
        })
    }

    fn uri(&self) -> Uri {
        self.base.clone()
    }
}

/// Answers that were written down beforehand.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Canned {
    responses: std::sync::Mutex<std::collections::VecDeque<Response<Vec<String>>>>,
}

#[cfg(test)]
impl Canned {
    pub(crate) fn new(responses: impl IntoIterator<Item = Response<Vec<String>>>) -> Self {
        Self { responses: std::sync::Mutex::new(responses.into_iter().collect()) }
    }
}

#[cfg(test)]
impl Transport for Canned {
    fn send(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, Cause>> {
        let response = self.responses.lock().unwrap().pop_front().ok_or("nothing more to say");
        Box::pin(async move {
            let (parts, pieces) = response?.into_parts();
            let body = pieces.concat();
            let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
            Ok(Response::from_parts(parts, body.boxed_unsync()))
        })
    }

    fn uri(&self) -> Uri {
        Uri::from_static("/mcp")
    }
}

/// Results that were written down beforehand, each for the request that comes when it is its turn.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripted {
    results: Arc<std::sync::Mutex<std::collections::VecDeque<serde_json::Value>>>,
    requests: Arc<std::sync::Mutex<Vec<Request<Bytes>>>>,
}

#[cfg(test)]
impl Scripted {
    pub(crate) fn new(results: impl IntoIterator<Item = serde_json::Value>) -> Self {
        let results: std::collections::VecDeque<_> = results.into_iter().collect();
        Self { results: Arc::new(results.into()), requests: Arc::default() }
    }

    /// The requests that came.
    pub(crate) fn requests(&self) -> Vec<Request<Bytes>> {
        self.requests.lock().unwrap().clone()
    }

    /// The methods of the requests that came.
    pub(crate) fn methods(&self) -> Vec<String> {
        let requests = self.requests();
        let method =
            |request: &Request<Bytes>| request.headers()["mcp-method"].to_str().unwrap().to_owned();
        requests.iter().map(method).collect()
    }
}

#[cfg(test)]
impl Transport for Scripted {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, Cause>> {
        Box::pin(async move {
            let sent: serde_json::Value = serde_json::from_slice(request.body())?;
            self.requests.lock().unwrap().push(request);
            let result = self.results.lock().unwrap().pop_front().ok_or("nothing more to say")?;
            let message = serde_json::json!({"jsonrpc": "2.0", "id": sent["id"], "result": result});
            let body = Full::new(Bytes::from(message.to_string())).map_err(|never| match never {});
            let response = Response::builder().header("content-type", "application/json");
            Ok(response.body(body.boxed_unsync())?)
        })
    }

    fn uri(&self) -> Uri {
        Uri::from_static("/mcp")
    }
}
