//! The proxy before the processes.

use std::{
    convert::Infallible,
    error::Error,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version,
    header::{self, CONNECTION},
};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client, server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
    select,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::fleet::{Shared, lock, pool::Connected, process::Process};

/// Accepts connections until the fleet ends, then waits until they have ended.
pub(crate) async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let mut ending = shared.starter.ending();
    let mut connections = JoinSet::new();
    loop {
        select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&shared)));
                }
                Err(error) => {
                    // Mostly there are no more file descriptors.
                    eprintln!("the proxy cannot accept a connection: {error}");
                    sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = ending.comes() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection of a client.
async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let mut ending = shared.starter.ending();
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(exchange(&shared, request).await) }
    });
    let mut builder = server::conn::http1::Builder::new();
    // It is the instance that refuses, and that says when.
    builder.preserve_header_case(true).max_headers(HEADERS).auto_date_header(false);
    let connection = nodelay(stream).map(|io| builder.serve_connection(io, service));
    let Ok(connection) = connection else { return };
    let mut connection = pin!(connection);
    // Errors are between the client and its instance; nobody else is to be told.
    select! {
        _ = connection.as_mut() => return,
        () = ending.comes() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

type Answer = Either<Passing, Full<Bytes>>;

/// Carries one request to a process, and its answer back.
async fn exchange(shared: &Shared, request: Request<Incoming>) -> Response<Answer> {
    let Connected { stream, process_id, process } = match shared.pool.connect().await {
        Ok(connected) => connected,
        Err(fault) => return bad_gateway(&fault),
    };
    lock(&shared.served).push(process_id);
    let mut link = JoinSet::new();
    let response = match send(stream, request, &mut link).await {
        Ok(response) => response,
        Err(error) => {
            return bad_gateway(&format!("process {process_id} gave no answer: {error}"));
        }
    };
    let (mut parts, body) = response.into_parts();
    if parts.headers.get(PROCESS_ID).is_some_and(|said| *said != HeaderValue::from(process_id)) {
        return bad_gateway(&format!(
            "process {process_id} was asked, and another answered: the program must become the \
             server, for instance by `exec`, rather than start it"
        ));
    }
    end_to_end(&mut parts.headers);
    let body = Passing { body, _link: link, _process: process };
    Response::from_parts(parts, Either::Left(body))
}

/// Sends a request on a connection of its own, which lasts as long as `link`.
async fn send(
    stream: TcpStream,
    request: Request<Incoming>,
    link: &mut JoinSet<()>,
) -> Result<Response<Incoming>, Box<dyn Error + Send + Sync>> {
    let mut builder = client::conn::http1::Builder::new();
    builder.preserve_header_case(true).max_headers(HEADERS);
    let (mut sender, connection) = builder.handshake(nodelay(stream)?).await?;
    link.spawn(async move {
        // Whoever reads the answer gets the error as well.
        let _ = connection.await;
    });
    let (mut parts, body) = request.into_parts();
    parts.version = Version::HTTP_11;
    end_to_end(&mut parts.headers);
    let request = Request::from_parts(parts, Sending(Some(body)));
    Ok(sender.send_request(request).await?)
}

fn nodelay(stream: TcpStream) -> io::Result<TokioIo<TcpStream>> {
    stream.set_nodelay(true)?;
    Ok(TokioIo::new(stream))
}

fn bad_gateway(fault: &str) -> Response<Answer> {
    let mut response = Response::new(Either::Right(Full::from(format!("{fault}\n"))));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// Leaves the headers that are not between neighbours (RFC 9110, section 7.6.1).
fn end_to_end(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in BETWEEN_NEIGHBOURS {
        headers.remove(name);
    }
}

/// A response on its way to the client. Dropping it ends the connection to the process.
struct Passing {
    body: Incoming,
    _link: JoinSet<()>,
    _process: Option<Process>,
}

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request body on its way to the process, until its end.
///
/// A process may answer before it has all. To close the client's connection then would reset it, and
/// the client could lose the answer; so what it still sends is read for a while.
struct Sending(Option<Incoming>);

impl Body for Sending {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let rest = self.0.take().filter(|body| !body.is_end_stream());
        if let (Some(mut rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(timeout(
                LINGER,
                async move { while let Some(Ok(_)) = rest.frame().await {} },
            ));
        }
    }
}

/// What a process says of itself.
const PROCESS_ID: &str = "mcp-edge-process-id";

const BETWEEN_NEIGHBOURS: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Most headers of a message: more than instances take.
const HEADERS: usize = 1000;

/// How long nothing is accepted after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// Longer than a client needs to notice an answer.
const LINGER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_between_neighbours_are_taken_off_and_all_others_stay() {
        let headers = |lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            headers
        };
        let mut all = headers(&[
            ("host", "localhost"),
            ("origin", "https://example.com"),
            ("x-two", "one"),
            ("x-two", "two"),
            ("connection", "keep-alive, X-Mine"),
            ("connection", "not a name,, x-mine-too"),
            ("x-mine", "x"),
            ("x-mine-too", "x"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("trailer", "x-late"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "keep-alive"),
        ]);
        end_to_end(&mut all);
        let left = headers(&[
            ("host", "localhost"),
            ("origin", "https://example.com"),
            ("x-two", "one"),
            ("x-two", "two"),
        ]);
        assert_eq!(all, left);
    }
}
