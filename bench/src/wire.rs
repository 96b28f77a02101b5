//! Requests to a hyper connection over a wire without a socket: it is the server alone that works.

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Body, Incoming},
    rt::{Read, ReadBufCursor, Write},
    server::conn::http1,
    service::{HttpService, service_fn},
};
use mcp_edge_hyper::McpService;
use tower_service::Service as _;

use crate::{Result, reference, server::server};

/// Hyper that reads the body and answers fixed bytes.
pub(crate) fn bare(times: usize) -> Result {
    serve(times, service_fn(fixed))
}

/// Hyper with the core behind it.
pub(crate) fn core(times: usize) -> Result {
    let service = McpService::new(server(20, false)?);
    serve(times, service_fn(move |request: Request<Incoming>| service.clone().call(request)))
}

/// Reads the body and answers what the core would.
pub(crate) async fn fixed(
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, hyper::Error> {
    request.into_body().collect().await?;
    let mut response = Response::new(Full::new(Bytes::from_static(reference::ANSWER.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn serve<S>(times: usize, service: S) -> Result
where
    S: HttpService<Incoming>,
    S::Error: std::error::Error + Send + Sync + 'static,
    S::ResBody: Body<Error: std::error::Error + Send + Sync> + 'static,
{
    let wire = Wire { request: reference::wire().into(), left: times, state: State::Answered };
    let mut connection = pin!(http1::Builder::new().serve_connection(wire, service));
    while connection.as_mut().poll(&mut Context::from_waker(Waker::noop()))?.is_pending() {}
    Ok(())
}

/// The server's end of a connection whose client sends the same request over and over.
struct Wire {
    request: Bytes,
    left: usize,
    state: State,
}

/// As on a socket, the next request comes after the server has looked for it in vain.
enum State {
    Asked,
    Answered,
    LookedFor,
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.state {
            State::Asked => Poll::Pending,
            State::Answered => {
                self.state = State::LookedFor;
                Poll::Pending
            }
            State::LookedFor if self.left == 0 => Poll::Ready(Ok(())),
            State::LookedFor => {
                self.left -= 1;
                self.state = State::Asked;
                buffer.put_slice(&self.request);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl Wire {
    /// Takes what ends with the answer.
    fn take(&mut self, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if !parts.last().is_some_and(|part| part.ends_with(reference::ANSWER.as_bytes())) {
            return Poll::Ready(Err(io::Error::other("not the answer of answer.json")));
        }
        self.state = State::Answered;
        Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()))
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.take(&[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.take(parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
