//! Bounds and times of a server, each with a default and a reason.

use std::time::Duration;

use crate::task::store::RECORD_BYTES;

/// Bounds and times of a server. Start from [`Limits::default`] and change what you need.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Largest request body in bytes; more is 413. Default 4 MiB.
    pub body_bytes: usize,
    /// Most header fields of a request; more is 431. Default 100.
    pub header_count: usize,
    /// Largest sum of header names and values in bytes; more is 431. Default 32 KiB.
    pub header_bytes: usize,
    /// Deepest nesting of a request body; more is `-32700` (HTTP-17). Default 64, at most 127.
    pub json_depth: usize,
    /// Largest answer in bytes; a call whose result is larger fails with `-32603`. Default 16 MiB.
    pub response_bytes: usize,
    /// Most rounds of questions of one call (MRTR-29). Default 16.
    pub rounds: u32,
    /// Largest sealed journal in bytes, checked when a call suspends, and the longest token that is
    /// looked at when it comes back. Default 32 KiB.
    pub journal_bytes: usize,
    /// How long a client may take to come back with a `requestState` (MRTR-14). Default one hour.
    pub state_ttl: Duration,
    /// Longest [`Cx::sleep`](crate::Cx::sleep) that is waited for inside a request. Default 20 s.
    pub inline_sleep: Duration,
    /// How long a step may hold back a question beside it before the round ends without waiting for
    /// the step, which then runs again. Default 20 s, and always two seconds before the deadline.
    pub settle: Duration,
    /// How long a call may run, unless its definition says otherwise (CANC-07). Default 60 s.
    pub call_timeout: Duration,
    /// After how long without an event a silent call is answered as SSE with keep-alives, so that
    /// nothing between client and server gives up. Default 2 s.
    pub stream_after: Duration,
    /// Interval between keep-alive comments on an SSE reply (SSE-06, SUB-12). Default 15 s.
    pub keep_alive: Duration,
    /// Longest life of a listen stream, which then ends gracefully (SUB-15). Default one hour.
    pub listen: Duration,
    /// Most listen streams that an instance holds open; one more is 503 (SUB-15). Default 10,000.
    pub listeners: usize,
    /// Most URIs in the filter of a listen stream; more is `-32602` (SUB-15). Default 256.
    pub listen_uris: usize,
    /// Most bytes of the id and the filter of a listen stream, which are kept as long as it is open;
    /// more is `-32602` (SUB-15). Default 64 KiB.
    pub listen_bytes: usize,
    /// Most entries of one page of a list. Default 1,000.
    pub page_size: usize,
    /// How long a task lives, from its creation on (TASK-38), unless its tool says otherwise. Default
    /// 24 hours.
    pub task_ttl: Duration,
    /// Longest life that a tool may give its tasks. Default 30 days.
    pub task_ttl_max: Duration,
    /// Most open tasks of one owner; a call that would be one more fails with `-32603`. Default 100.
    pub open_tasks: u32,
    /// Largest record of a task in bytes, with its journal, arguments and result; a task that would
    /// need more fails with `-32603`. Default 256 KiB, and at most that.
    pub task_bytes: usize,
    /// Most questions that a task asks in its life; one more fails it. Default 256.
    pub task_questions: usize,
    /// How often a task is taken up without getting any further, before it fails. Default 5.
    pub task_attempts: u32,
    /// How long whoever advances a task has it for itself without renewing that; after a crash the task
    /// goes on so much later. Default 10 s; where a request is cut off, until five seconds after that.
    pub task_lease: Duration,
    /// How often a lease is renewed. Default 3 s.
    pub task_heartbeat: Duration,
    /// How often clients are asked to look at a task at most (`pollIntervalMs`). Default one second.
    pub poll_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            header_count: 100,
            header_bytes: 32 << 10,
            json_depth: 64,
            response_bytes: 16 << 20,
            rounds: 16,
            journal_bytes: 32 << 10,
            state_ttl: Duration::from_secs(3600),
            inline_sleep: Duration::from_secs(20),
            settle: Duration::from_secs(20),
            call_timeout: Duration::from_secs(60),
            stream_after: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            listen: Duration::from_secs(3600),
            listeners: 10_000,
            listen_uris: 256,
            listen_bytes: 64 << 10,
            page_size: 1000,
            task_ttl: Duration::from_secs(24 * 3600),
            task_ttl_max: Duration::from_secs(30 * 24 * 3600),
            open_tasks: 100,
            task_bytes: RECORD_BYTES,
            task_questions: 256,
            task_attempts: 5,
            task_lease: Duration::from_secs(10),
            task_heartbeat: Duration::from_secs(3),
            poll_interval: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// How long a task lives whose tool asks for `asked`, in milliseconds (TASK-38).
    pub(crate) fn task_ttl_ms(&self, asked: Option<Duration>) -> u64 {
        let ttl = asked.unwrap_or(self.task_ttl).min(self.task_ttl_max);
        u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
    }
}
