//! The body of a response: bytes, or events made while they are sent.

use std::{
    convert::Infallible,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::target::BoxStream;

/// The body of every response of this crate.
///
/// Dropping a streamed body cancels the handler that feeds it (CANC-01), since the handler's future
/// lives inside.
pub struct Body(Kind);

enum Kind {
    Full(Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    pub(crate) fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self(Kind::Stream(stream))
    }

    /// Whether the body is made while it is sent.
    #[must_use]
    pub const fn is_stream(&self) -> bool {
        matches!(self.0, Kind::Stream(_))
    }

    /// The whole body at once, unless it is a stream.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes),
            Kind::Stream(_) => None,
        }
    }

    /// Waits for the next piece; `None` at the end.
    pub async fn next_chunk(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(mem::take(bytes))),
            Kind::Stream(stream) => stream.as_mut().poll_next(cx),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::full(Bytes::new())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => f.debug_tuple("Body").field(&bytes.len()).finish(),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(ready!(self.poll_chunk(cx)).map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}
