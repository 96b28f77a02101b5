//! What differs between native targets and wasm32: whether things must be `Send`.
//!
//! Handlers, streams and stores are `Send` on native targets and need not be on wasm32, where one
//! thread runs everything and the platform's own handles are not `Send`. The difference follows the
//! target, never a feature, so one user trait can be implemented on both.

use std::pin::Pin;

use futures_core::Stream;

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    /// `Send` on native targets, nothing on wasm32.
    pub trait MaybeSend: Send {}
    impl<T: Send + ?Sized> MaybeSend for T {}

    /// `Sync` on native targets, nothing on wasm32.
    pub trait MaybeSync: Sync {}
    impl<T: Sync + ?Sized> MaybeSync for T {}

    pub(crate) type DynFuture<'a, T> = dyn Future<Output = T> + Send + 'a;
    pub(crate) type DynStream<'a, T> = dyn futures_core::Stream<Item = T> + Send + 'a;
    pub(crate) type DynAny = dyn std::any::Any + Send + Sync;
}

#[cfg(target_arch = "wasm32")]
mod imp {
    /// `Send` on native targets, nothing on wasm32.
    pub trait MaybeSend {}
    impl<T: ?Sized> MaybeSend for T {}

    /// `Sync` on native targets, nothing on wasm32.
    pub trait MaybeSync {}
    impl<T: ?Sized> MaybeSync for T {}

    pub(crate) type DynFuture<'a, T> = dyn Future<Output = T> + 'a;
    pub(crate) type DynStream<'a, T> = dyn futures_core::Stream<Item = T> + 'a;
    pub(crate) type DynAny = dyn std::any::Any;
}

pub(crate) use imp::DynAny;
pub use imp::{MaybeSend, MaybeSync};

/// A boxed future, `Send` on native targets.
pub type BoxFuture<'a, T> = Pin<Box<imp::DynFuture<'a, T>>>;

/// A boxed stream, `Send` on native targets.
pub type BoxStream<'a, T> = Pin<Box<imp::DynStream<'a, T>>>;

/// Boxes a future; the bound is the target's.
pub(crate) fn boxed<'a, F>(future: F) -> BoxFuture<'a, F::Output>
where
    F: Future + MaybeSend + 'a,
{
    Box::pin(future)
}

/// Boxes a stream; the bound is the target's.
pub(crate) fn boxed_stream<'a, S>(stream: S) -> BoxStream<'a, S::Item>
where
    S: Stream + MaybeSend + 'a,
{
    Box::pin(stream)
}
