//! Notifications of one call on their way to its SSE reply.

use std::{mem, task::Waker, time::Duration};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{platform::Timestamp, protocol::LogLevel, respond};

/// Shortest time between two progress notifications (PROG-07).
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);

/// Most bytes that wait for the client; beyond it log messages are dropped (LOG-09).
const MAX_WAITING: usize = 256 << 10;

/// Notifications of one call on their way to its SSE reply.
///
/// Nothing is written for a request that asked for nothing (PROG-01, LOG-03), or whose reply cannot
/// be a stream (LOG-10).
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// JSON of the progress token, if the request has one (PROG-02).
    token: Option<Bytes>,
    /// The lowest level that the request asked for.
    level: Option<LogLevel>,
    /// Made at the first notification: most calls send none.
    waiting: Option<Box<Waiting>>,
    waker: Option<Waker>,
}

/// What waits for the client.
#[derive(Debug, Default)]
struct Waiting {
    /// Events, ready for the wire.
    events: Vec<u8>,
    /// How far it was at last.
    last: Option<f64>,
    last_sent: Option<Timestamp>,
    /// The newest progress, held back because the one before is too recent.
    held: Option<Progress>,
    dropped_logs: u64,
}

#[derive(Debug)]
struct Progress {
    progress: f64,
    total: Option<f64>,
    message: String,
}

impl Outbox {
    pub(crate) fn new(token: Option<Bytes>, level: Option<LogLevel>) -> Self {
        Self { token, level, waiting: None, waker: None }
    }

    /// Whether the request can be sent notifications at all.
    const fn is_open(&self) -> bool {
        self.token.is_some() || self.level.is_some()
    }

    pub(crate) fn progress(
        &mut self,
        now: Timestamp,
        progress: f64,
        total: Option<f64>,
        message: &str,
    ) {
        if self.token.is_none() || !progress.is_finite() {
            return;
        }
        let waiting = self.waiting.get_or_insert_default();
        if waiting.last.is_some_and(|last| progress <= last) {
            return; // PROG-03: strictly increasing
        }
        waiting.last = Some(progress);
        let total = total.filter(|total| total.is_finite());
        waiting.held = Some(Progress { progress, total, message: message.to_owned() });
        self.release(now);
        self.wake();
    }

    pub(crate) fn log(&mut self, level: LogLevel, logger: &str, data: &Value) {
        if self.level.is_none_or(|lowest| level < lowest) {
            return;
        }
        let waiting = self.waiting.get_or_insert_default();
        if waiting.events.len() > MAX_WAITING {
            waiting.dropped_logs += 1;
            return;
        }
        #[derive(Serialize)]
        struct Params<'a> {
            level: LogLevel,
            logger: &'a str,
            data: &'a Value,
        }
        let params = Params { level, logger, data };
        respond::push_notification(&mut waiting.events, "notifications/message", &params);
        self.wake();
    }

    /// Whether progress waits for its time, and for how long.
    pub(crate) fn held_for(&self, now: Timestamp) -> Option<Duration> {
        let waiting = self.waiting.as_ref().filter(|waiting| waiting.held.is_some())?;
        Some(PROGRESS_INTERVAL.saturating_sub(now.since(waiting.last_sent?)))
    }

    /// Sends the progress that was held back, if its time has come.
    fn release(&mut self, now: Timestamp) {
        if self.held_for(now).is_none_or(|left| left.is_zero()) {
            self.flush(now);
        }
    }

    /// Sends the progress that was held back: the newest always arrives.
    pub(crate) fn flush(&mut self, now: Timestamp) {
        let (Some(waiting), Some(token)) = (&mut self.waiting, &self.token) else { return };
        let Some(held) = waiting.held.take() else { return };
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            progress_token: &'a RawValue,
            progress: Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            total: Option<Value>,
            #[serde(skip_serializing_if = "str::is_empty")]
            message: &'a str,
        }
        if let Ok(progress_token) = serde_json::from_slice(token) {
            let (progress, total) = (number(held.progress), held.total.map(number));
            let params = Params { progress_token, progress, total, message: &held.message };
            respond::push_notification(&mut waiting.events, "notifications/progress", &params);
        }
        waiting.last_sent = Some(now);
    }

    /// What is ready for the wire.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.waiting.as_mut().map_or_else(Vec::new, |waiting| mem::take(&mut waiting.events))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.as_ref().is_none_or(|waiting| waiting.events.is_empty())
    }

    /// Remembers who to wake when something is written from outside the handler's own poll.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if self.is_open() {
            match &mut self.waker {
                Some(known) => known.clone_from(waker),
                None => self.waker = Some(waker.clone()),
            }
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.dropped_logs > 0 {
            tracing::warn!(count = self.dropped_logs, "log messages dropped: the client is slow");
        }
    }
}

/// A JSON number, written as an integer where it is one.
fn number(value: f64) -> Value {
    // Within 2^53 every integral f64 is exact.
    #[allow(clippy::cast_possible_truncation)]
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        Value::from(value as i64)
    } else {
        Value::from(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn text(outbox: &mut Outbox) -> String {
        String::from_utf8(outbox.take()).unwrap()
    }

    #[test]
    fn prog_02_progress_echoes_the_token_with_its_type() {
        for token in ["7", "\"7\""] {
            let mut outbox = Outbox::new(Some(token.into()), None);
            outbox.progress(at(0), 0.5, Some(2.0), "half");
            let params =
                format!(r#"{{"progressToken":{token},"progress":0.5,"total":2,"message":"half"}}"#);
            assert!(text(&mut outbox).contains(&params));
        }
    }

    #[test]
    fn prog_03_progress_that_does_not_grow_is_ignored() {
        let mut outbox = Outbox::new(Some("1".into()), None);
        outbox.progress(at(0), 2.0, None, "");
        outbox.take();
        for (time, done) in [(100, 2.0), (200, 1.0), (300, f64::NAN), (400, f64::INFINITY)] {
            outbox.progress(at(time), done, None, "");
        }
        assert!(outbox.is_empty());
    }

    #[test]
    fn prog_07_progress_is_rate_limited_and_the_newest_always_arrives() {
        let mut outbox = Outbox::new(Some("1".into()), None);
        for done in 1..=10 {
            outbox.progress(at(1000 + done), f64::from(done as u32), None, "");
        }
        assert_eq!(text(&mut outbox).matches("notifications/progress").count(), 1);
        assert_eq!(outbox.held_for(at(1011)), Some(Duration::from_millis(10)));
        outbox.release(at(1021));
        assert!(text(&mut outbox).contains(r#""progress":10}"#));
    }

    #[test]
    fn log_03_nothing_is_sent_below_the_level_or_without_one() {
        let mut outbox = Outbox::new(Some("1".into()), None);
        outbox.log(LogLevel::Emergency, "t", &Value::Null);
        assert!(outbox.is_empty());
        let mut outbox = Outbox::new(None, Some(LogLevel::Warning));
        outbox.log(LogLevel::Notice, "t", &Value::Null);
        assert!(outbox.is_empty());
        outbox.log(LogLevel::Warning, "t", &Value::from("x"));
        let params = r#""params":{"level":"warning","logger":"t","data":"x"}"#;
        assert!(text(&mut outbox).contains(params));
    }

    #[test]
    fn log_09_messages_that_wait_are_bounded() {
        let mut outbox = Outbox::new(None, Some(LogLevel::Debug));
        let data = Value::from("x".repeat(1000));
        for _ in 0..10_000 {
            outbox.log(LogLevel::Error, "t", &data);
        }
        assert!(outbox.take().len() < MAX_WAITING + 2000);
    }
}
