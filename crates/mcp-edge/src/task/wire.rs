//! A task as its client reads it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    date::rfc_3339,
    id::JobId,
    record::{Status, Task},
};
use crate::{execution::InputRequest, server::Server};

/// The members of a task (TASK-09), and for `tasks/get` the one that belongs to its state (TASK-16 to
/// TASK-21).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    task_id: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: String,
    last_updated_at: String,
    ttl_ms: u64,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<BTreeMap<&'a str, InputRequest<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn flat(task: &'a Task, server: &Server) -> Self {
        Self {
            task_id: &task.id,
            status: task.status,
            status_message: task.message.as_deref(),
            created_at: rfc_3339(task.created_at),
            last_updated_at: rfc_3339(task.updated_at),
            ttl_ms: task.ttl_ms,
            poll_interval_ms: poll_interval(server),
            input_requests: None,
            result: None,
            error: None,
        }
    }

    fn detailed(task: &'a Task, server: &Server) -> Self {
        let flat = Self::flat(task, server);
        match task.status {
            Status::Working | Status::Cancelled => flat,
            Status::InputRequired => {
                let requests = task.questions.iter().map(|question| {
                    let params = question.params.as_ref().map(|params| params.get());
                    (question.shown_as.as_str(), InputRequest::new(question.kind, params))
                });
                Self { input_requests: Some(requests.collect()), ..flat }
            }
            Status::Completed => Self { result: task.outcome.as_deref(), ..flat },
            Status::Failed => Self { error: task.outcome.as_deref(), ..flat },
        }
    }
}

/// The result that says that a call goes on as a task (TASK-08).
pub(crate) fn created(task: &Task, server: &Server) -> Vec<u8> {
    result(&Members::flat(task, server), server, "task")
}

/// The result of `tasks/get` (TASK-24).
pub(crate) fn detailed(task: &Task, server: &Server) -> Vec<u8> {
    result(&Members::detailed(task, server), server, "complete")
}

/// How a job elsewhere stands. When it changed last is not known.
pub(crate) struct JobView<'a> {
    pub(crate) id: &'a str,
    pub(crate) job: &'a JobId,
    pub(crate) status: Status,
    pub(crate) message: Option<&'a str>,
    pub(crate) outcome: Option<&'a RawValue>,
}

impl JobView<'_> {
    /// The result that says that a call goes on as a task (TASK-08).
    pub(crate) fn created(&self, server: &Server) -> Vec<u8> {
        result(&self.members(server), server, "task")
    }

    /// The result of `tasks/get` (TASK-24).
    pub(crate) fn detailed(&self, server: &Server) -> Vec<u8> {
        result(&self.members(server), server, "complete")
    }

    fn members(&self, server: &Server) -> Members<'_> {
        let date = rfc_3339(self.job.created_at);
        Members {
            task_id: self.id,
            status: self.status,
            status_message: self.message,
            created_at: date.clone(),
            last_updated_at: date,
            ttl_ms: self.job.ttl_ms,
            poll_interval_ms: poll_interval(server),
            input_requests: None,
            result: self.outcome.filter(|_| self.status == Status::Completed),
            error: self.outcome.filter(|_| self.status == Status::Failed),
        }
    }
}

/// How often a client is asked to look, in milliseconds; at least 1 (TASK-14).
fn poll_interval(server: &Server) -> u64 {
    u64::try_from(server.limits().poll_interval.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// The params of `notifications/tasks` (TASK-34); `meta` is its `_meta`.
pub(crate) fn news(task: &Task, server: &Server, meta: impl Serialize) -> impl Serialize {
    #[derive(Serialize)]
    struct Params<T, M> {
        #[serde(flatten)]
        task: T,
        #[serde(rename = "_meta")]
        meta: M,
    }
    // Flattening needs a value: a raw one cannot be flattened.
    let task = serde_json::to_value(Members::detailed(task, server)).unwrap_or_default();
    Params { task, meta }
}

/// The result of `tasks/update` and `tasks/cancel` (TASK-28, TASK-32).
pub(crate) fn acknowledgement(server: &Server) -> Vec<u8> {
    let mut out = b"{".to_vec();
    let mut end = Vec::new();
    server.end_result(&mut end, "complete", None);
    out.extend_from_slice(end.strip_prefix(b",").unwrap_or(&end));
    out
}

fn result(members: &Members<'_>, server: &Server, kind: &str) -> Vec<u8> {
    // Plain data with string keys: writing it cannot fail.
    let mut out = serde_json::to_vec(members).unwrap_or_default();
    out.pop();
    server.end_result(&mut out, kind, None);
    out
}
