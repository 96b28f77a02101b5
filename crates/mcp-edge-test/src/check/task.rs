//! Tasks: how one begins, its states, and acknowledgements (TASK-08 to TASK-35).

use serde_json::Value;

use super::{Verdict, ensure, error_object, fail, input, optional, result, time};
use crate::request::{Sent, all_capabilities};

/// Checks a result that says that the call became a task.
pub(super) fn created(result: &Value) -> Verdict {
    for name in ["result", "error", "inputRequests"] {
        ensure(result.get(name).is_none(), || {
            format!("a new task is flat, without {name} (TASK-09)")
        })?;
    }
    common(result).map(drop)
}

/// Checks the answer to `tasks/get`.
pub(super) fn got(sent: &Sent, result: &Value) -> Verdict {
    let asked = sent.params.get("taskId");
    ensure(result.get("taskId") == asked, || {
        let asked = asked.unwrap_or(&Value::Null);
        format!("the task {} is not the one asked for, {asked} (TASK-24)", result["taskId"])
    })?;
    detailed(result)
}

/// Checks a task with the payload of its state.
///
/// Which kinds of questions it may ask is left to the memory, which knows what the request that
/// created it declared.
pub(super) fn detailed(task: &Value) -> Verdict {
    let status = common(task)?;
    let (payload, source) = match status {
        "completed" => (Some("result"), "TASK-18"),
        "failed" => (Some("error"), "TASK-18"),
        "input_required" => (Some("inputRequests"), "TASK-19"),
        _ => (None, "TASK-21"),
    };
    for name in ["result", "error", "inputRequests"] {
        ensure(payload == Some(name) || task.get(name).is_none(), || {
            format!("a task that is {status} has no {name} ({source})")
        })?;
    }
    match status {
        "completed" => outcome(&task["result"]),
        "failed" => error_object(&task["error"]).map(drop).map_err(|text| {
            format!("a failed task has the error it failed with (TASK-17): {text}")
        }),
        "input_required" => {
            let requests = task["inputRequests"].as_object();
            let requests = requests.filter(|requests| !requests.is_empty());
            let requests = requests.ok_or("input_required needs inputRequests (TASK-19)")?;
            input::entries(&all_capabilities(), requests)
        }
        _ => Ok(()),
    }
}

/// Checks the answer to `tasks/update` or `tasks/cancel`, which says nothing.
pub(super) fn acknowledged(result: &Value, source: &str) -> Verdict {
    let members = result.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let mut others = members.filter(|name| !matches!(*name, "resultType" | "_meta"));
    match others.next() {
        None => Ok(()),
        Some(name) => fail(format!("an acknowledgement is empty, without {name} ({source})")),
    }
}

/// Checks what all tasks have, and returns the status.
fn common(task: &Value) -> Verdict<&str> {
    for (name, source) in [
        ("task", "TASK-09"),
        ("requestState", "TASK-09, TASK-11"),
        ("ttl", "TASK-09, TASK-14"),
        ("pollInterval", "TASK-09, TASK-14"),
        ("cacheScope", "TASK-42"),
    ] {
        ensure(task.get(name).is_none(), || format!("a task has no {name} ({source})"))?;
    }
    let id = task["taskId"].as_str().ok_or("taskId must be a string (TASK-09)")?;
    ensure(!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()), || {
        format!("the taskId {id:?} does not fit in a header as it is (TASK-12)")
    })?;
    ensure(id.len() <= 512, || format!("the taskId is {} bytes long (TASK-12)", id.len()))?;
    let status = task["status"].as_str().unwrap_or_default();
    ensure(STATUSES.contains(&status), || {
        format!("{} is not the status of a task (TASK-15)", task["status"])
    })?;
    optional(task, "statusMessage", Value::is_string, "a string")?;
    let (created, updated) = (moment(task, "createdAt")?, moment(task, "lastUpdatedAt")?);
    ensure(created <= updated, || {
        let (created, updated) = (&task["createdAt"], &task["lastUpdatedAt"]);
        format!("lastUpdatedAt {updated} lies before createdAt {created} (TASK-09)")
    })?;
    let ttl = task.get("ttlMs").ok_or("a task needs ttlMs, which may be null (TASK-09)")?;
    ensure(ttl.is_null() || is_positive(ttl), || {
        format!("ttlMs must be null or an integer above 0, not {ttl} (TASK-14)")
    })?;
    ensure(task.get("pollIntervalMs").is_none_or(is_positive), || {
        format!(
            "pollIntervalMs must be an integer above 0, not {} (TASK-14)",
            task["pollIntervalMs"]
        )
    })?;
    Ok(status)
}

/// Checks the result of the call that became the task: what the request would have returned.
fn outcome(result: &Value) -> Verdict {
    let faulty = |text: String| format!("the result of a task: {text}");
    ensure(result.is_object(), || "a completed task has its result (TASK-16)".to_owned())?;
    let kind = result.get("resultType");
    ensure(kind.is_none_or(|kind| kind == "complete"), || {
        format!("the result of a task is complete, not {} (TASK-08, TASK-16)", result["resultType"])
    })?;
    result::meta(result).map_err(faulty)?;
    ensure(result["_meta"].get(RELATED_TASK).is_none(), || {
        format!("the result of a task has no {RELATED_TASK} (TASK-26)")
    })?;
    result::of_a_tool(result).map_err(faulty)
}

fn moment(task: &Value, name: &str) -> Verdict<time::Moment> {
    task[name]
        .as_str()
        .and_then(time::parse)
        .ok_or_else(|| format!("{name} must be an ISO 8601 time, not {} (TASK-09)", task[name]))
}

/// Whether it is a whole number from 1 on that every client can hold.
fn is_positive(number: &Value) -> bool {
    number.as_u64().is_some_and(|number| (1..=MAX_SAFE_INTEGER).contains(&number))
}

const STATUSES: [&str; 5] = ["working", "input_required", "completed", "failed", "cancelled"];
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
