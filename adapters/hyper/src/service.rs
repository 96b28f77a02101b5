//! One exchange: asks the core, reads the body, lets the core answer.

use std::{
    convert::Infallible,
    error::Error,
    fmt,
    future::poll_fn,
    mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{Request, Response};
use mcp_edge::{Body, BoxFuture, Platform, Server};
use tokio::time::Sleep;

use crate::{options::BODY_READ_TIMEOUT, platform::HyperPlatform};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A [`Server`] as a [`tower_service::Service`], to mount inside an existing application.
///
/// The core compares the whole path with [`Server::endpoint`], so mount it where the path is left
/// as it is: in axum by `route_service`, at the endpoint and at `/healthz`, or as the fallback.
/// `nest_service` cuts off the prefix; there the endpoint is what is left of the path.
///
/// ```
/// # async fn app() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, routing::get};
/// use mcp_edge_hyper::McpService;
///
/// let server = mcp_edge::Server::builder("mounted", "1.0.0").build()?;
/// let mcp = McpService::new(server);
/// let app: Router = Router::new()
///     .route("/", get(async || "the rest of the application"))
///     .route_service("/mcp", mcp.clone())
///     .route_service("/healthz", mcp.clone());
/// # Ok(())
/// # }
/// ```
///
/// The application stays in charge of the rest: keys and a change feed for the server, connections
/// and their limits. When it is about to stop, it calls [`drain`](Self::drain), or listen streams
/// hold its graceful shutdown up.
#[derive(Clone)]
pub struct McpService {
    server: Server,
    platform: Arc<HyperPlatform>,
    body_read_timeout: Duration,
}

impl McpService {
    /// Makes a service of a server.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self {
            server,
            platform: Arc::new(HyperPlatform::new()),
            body_read_timeout: BODY_READ_TIMEOUT,
        }
    }

    /// How long the body of a request may take to arrive; 30 s by default.
    #[must_use]
    pub const fn body_read_timeout(mut self, timeout: Duration) -> Self {
        self.body_read_timeout = timeout;
        self
    }

    /// Says that this instance is about to stop: `/healthz` answers 503 from now on, and listen
    /// streams end with their final message.
    pub fn drain(&self) {
        self.platform.drain();
    }

    pub(crate) fn platform(&self) -> &HyperPlatform {
        &self.platform
    }

    pub(crate) async fn exchange<B>(&self, request: Request<B>) -> Exchange
    where
        B: http_body::Body,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let platform: Arc<dyn Platform> = Arc::clone(&self.platform) as _;
        let admission = match self.server.gate(&parts, platform).await {
            Ok(admission) => admission,
            Err(response) if body.is_end_stream() => return Exchange::read(response),
            Err(response) => return Exchange { response, body: RequestBody::LeftUnread },
        };
        match read(body, admission.body_limit(), self.body_read_timeout).await {
            Ok(bytes) => Exchange::read(admission.handle(bytes).await),
            Err(Unread::TooLarge) => {
                Exchange { response: admission.too_large(), body: RequestBody::LeftUnread }
            }
            Err(Unread::Broken(error)) => {
                tracing::debug!("a request body did not arrive: {error}");
                // Never a part of the body: it could be a whole message by chance.
                let response = admission.handle(Bytes::new()).await;
                Exchange { response, body: RequestBody::Broken(error) }
            }
        }
    }
}

impl<B> tower_service::Service<Request<B>> for McpService
where
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    /// Never. A body that cannot be read is answered like an empty one; mostly the client is gone.
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.exchange(request).await.response) })
    }
}

impl fmt::Debug for McpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpService").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A response, and what became of the request's body.
pub(crate) struct Exchange {
    pub(crate) response: Response<Body>,
    pub(crate) body: RequestBody,
}

impl Exchange {
    const fn read(response: Response<Body>) -> Self {
        Self { response, body: RequestBody::Read }
    }
}

pub(crate) enum RequestBody {
    Read,
    /// The core answered without it.
    LeftUnread,
    /// It did not arrive whole, or not in time.
    Broken(BoxError),
}

enum Unread {
    TooLarge,
    Broken(BoxError),
}

/// Reads the whole body. A body of one frame is not copied.
async fn read<B>(body: B, limit: usize, timeout: Duration) -> Result<Bytes, Unread>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut timer = Timer::Unset(timeout);
    let mut length = 0;
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while !body.is_end_stream() {
        let next = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => timer.poll(cx).map(Err),
        });
        let frame = match next.await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Err(Unread::Broken(error.into())),
            Err(late) => return Err(Unread::Broken(late)),
        };
        let Ok(mut data) = frame.into_data() else { continue }; // trailers
        length += data.remaining();
        if length > limit {
            return Err(Unread::TooLarge);
        }
        if length == data.remaining() {
            first = data.copy_to_bytes(length);
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&mem::take(&mut first));
        }
        joined.put(data);
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

/// The time limit of a body.
///
/// Nearly every body is there when its future is polled for the second time, for hyper reads it
/// just after the first: only then is a timer worth its cost.
enum Timer {
    Unset(Duration),
    Waiting(Duration),
    Running(Pin<Box<Sleep>>),
}

impl Timer {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<BoxError> {
        match *self {
            Self::Unset(timeout) => {
                *self = Self::Waiting(timeout);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Self::Waiting(timeout) => *self = Self::Running(Box::pin(tokio::time::sleep(timeout))),
            Self::Running(_) => {}
        }
        let Self::Running(sleep) = self else { return Poll::Pending };
        sleep.as_mut().poll(cx).map(|()| "it took too long".into())
    }
}
