//! A platform that costs nothing: its time stands still.

use std::time::Duration;

use mcp_edge::{BoxFuture, Platform, Timestamp};

pub(crate) struct Still;

impl Platform for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_785_000_000_000)
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn fill_random(&self, out: &mut [u8]) {
        out.fill(4);
    }
}
