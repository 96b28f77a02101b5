//! One connection: HTTP/1.1 or HTTP/2, its time limits, and its end.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use mcp_edge::{Body, Platform as _, Server};
use tokio::net::TcpStream;

use crate::{
    options::ServeOptions,
    service::{BoxError, McpService, RequestBody},
    socket::Socket,
    watch::{Activity, Clock, Open, poll_always},
};

/// Speaks HTTP on accepted connections.
pub(crate) struct Http {
    service: McpService,
    options: ServeOptions,
    builder: Builder<TokioExecutor>,
}

impl Http {
    pub(crate) fn new(server: Server, options: ServeOptions) -> Self {
        let limits = server.limits();
        let mut builder = Builder::new(TokioExecutor::new());
        // Hyper's own bounds lie above the core's, so that it is the core that refuses.
        let head = limits.header_bytes + 32 * limits.header_count;
        builder.http1().max_buf_size(head.max(64 << 10));
        if limits.header_count > 100 {
            builder.http1().max_headers(limits.header_count);
        }
        builder.http2().max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX));
        // On HTTP/1, whatever is written finds out that the peer is dead.
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING);
        let service = McpService::new(server).body_read_timeout(options.body_read_timeout);
        Self { service, options, builder }
    }

    pub(crate) fn drain(&self) {
        self.service.drain();
    }

    /// Resolves once this instance is about to stop.
    pub(crate) async fn drained(&self) {
        self.service.platform().drained().await;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.service.platform().is_draining()
    }

    pub(crate) const fn max_connections(&self) -> usize {
        self.options.max_connections
    }

    /// Serves a connection until it ends, breaks a time limit, or is idle while the server drains.
    ///
    /// One that was accepted late, while the server drained already, may still ask once.
    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream, late: bool) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("TCP_NODELAY cannot be set: {error}");
        }
        let activity = Arc::new(Activity::default());
        let socket = Socket::new(stream, Arc::clone(&activity));
        let service = service_fn(|request| {
            let open = Open::new(&activity, &request);
            exchange(Arc::clone(&self), request, open)
        });
        let mut connection = pin!(self.builder.serve_connection(TokioIo::new(socket), service));
        let platform = self.service.platform();
        let mut drained = platform.drained();
        // As with the clock: what waits is not polled again before it is due.
        let (mut waits, mut told) = (false, false);
        let patience = if late { LATE } else { self.options.header_read_timeout };
        let mut clock = Clock::new(patience.min(self.options.header_read_timeout));
        let end = poll_fn(|cx| {
            loop {
                if let Poll::Ready(end) = connection.as_mut().poll(cx) {
                    return Poll::Ready(end);
                }
                let tell = !told && (!late || activity.has_begun());
                if !tell || waits && !platform.is_draining() {
                    break;
                }
                waits = true;
                if poll_always(drained.as_mut(), cx).is_pending() {
                    break;
                }
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            clock.poll(cx, &activity, &self.options).map(|()| Err("it is too slow".into()))
        });
        if let Err(error) = end.await {
            tracing::debug!("a connection was cut: {error}");
        }
    }
}

/// An error closes the connection (HTTP/2: the stream) without an answer.
async fn exchange(
    http: Arc<Http>,
    request: Request<Incoming>,
    open: Open,
) -> Result<Response<Answer>, BoxError> {
    let mut exchange = http.service.exchange(request).await;
    http.options.add_to(exchange.response.headers_mut());
    match exchange.body {
        RequestBody::Read => {}
        RequestBody::LeftUnread => open.leaves_unread(),
        RequestBody::Broken(error) => return Err(error),
    }
    Ok(exchange.response.map(|body| Answer { body, _open: open }))
}

/// A response body, which keeps its exchange under way.
struct Answer {
    body: Body,
    _open: Open,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How long a shutdown may be held up by a connection that asks for nothing.
const LATE: Duration = Duration::from_secs(1);
/// How often a quiet HTTP/2 peer is asked whether it is there.
const PING: Duration = Duration::from_secs(30);
