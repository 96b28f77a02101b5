//! What clients do with tasks: begin one, look at it, answer its questions, cancel it.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    id::{self, Named},
    record::{Given, Outstanding, Status, Task},
    store::{Created, TaskRecord},
    wire,
};
use crate::{
    call::Call,
    dispatch::{bad_answer, check_answer},
    error::RequestError,
    feed::Change,
    journal::entry::{Journal, Kind},
    platform::Platform,
    principal::Principal,
    rejection::Rejection,
    schema::Schema,
    server::{Server, Tasks},
};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 32;

/// Turns a call into a task, and returns the result that says so: the task is durable then (TASK-10).
/// A second retry of one state finds the task of the first.
///
/// # Errors
/// When its owner has too many, or there is no key or no store at the moment.
pub(crate) async fn create(
    call: &Call,
    arguments: Option<Bytes>,
    journal: Journal,
    status: String,
    ttl: Option<Duration>,
) -> Result<Vec<u8>, Rejection> {
    let (server, platform) = (&call.server, call.platform());
    let Some(tasks) = server.tasks_of(&call.principal) else {
        return Err(Rejection::internal("there is no task store"));
    };
    let limits = server.limits();
    let key = id::key_of(call, &journal.run_id);
    let arguments = arguments.as_deref().map(serde_json::from_slice::<Box<RawValue>>);
    let now = platform.now();
    let task = Task {
        id: id::seal_id(&Named::Record(key.clone()), server, platform, &call.principal).await?,
        tool: (*call.name).to_owned(),
        arguments: arguments.transpose().map_err(Rejection::internal)?,
        principal: (*call.principal).clone(),
        capabilities: call.capabilities.clone(),
        status: Status::Working,
        message: Some(status).filter(|status| !status.is_empty()),
        journal: Some(journal),
        questions: Vec::new(),
        shown: Default::default(),
        answers: Vec::new(),
        lease: None,
        attempts: 0,
        wakes_at: None,
        is_cancelled: false,
        outcome: None,
        created_at: now,
        updated_at: now,
        ttl_ms: limits.task_ttl_ms(ttl),
    };
    let owner = id::owner(server, &call.principal);
    let record = task.record(&key, &owner, 0).map_err(Rejection::internal)?;
    if record.body.len() > limits.task_bytes {
        return Err(too_large(&task, record.body.len(), limits.task_bytes));
    }
    let mut created = tasks.store.create(&record, limits.open_tasks, now).await;
    if let Err(error) = &created {
        // It may have been written all the same: then the second attempt finds it.
        tracing::warn!("a task is begun once more: {error}");
        created = tasks.store.create(&record, limits.open_tasks, now).await;
    }
    let task = match created.map_err(Rejection::internal)? {
        Created::Created => task,
        Created::Exists(Some(known)) => Task::read(&known).map_err(Rejection::internal)?,
        Created::Exists(None) => {
            tracing::warn!("a requestState was refused: the task that it began is past its time");
            return Err(Rejection::InvalidState);
        }
        Created::TooMany => {
            tracing::warn!(limit = limits.open_tasks, "an owner has too many open tasks");
            return Err(Rejection::Failed(RequestError::too_many_tasks()));
        }
    };
    schedule(tasks, &key, &task).await;
    Ok(wire::created(&task, server))
}

/// `tasks/get` (TASK-24).
///
/// # Errors
/// When there is no such task.
pub(crate) async fn get(
    server: &Server,
    platform: &dyn Platform,
    caller: &Principal,
    key: &str,
) -> Result<Vec<u8>, Rejection> {
    let found = read(server, platform, caller, key).await?;
    Ok(wire::detailed(&found.task, server))
}

/// `tasks/update`: takes in answers (TASK-28 to TASK-31).
///
/// # Errors
/// When there is no such task, or an answer is not what was asked for; then nothing is
/// stored.
pub(crate) async fn update(
    server: &Server,
    platform: &dyn Platform,
    caller: &Principal,
    key: &str,
    answers: BTreeMap<String, Box<RawValue>>,
) -> Result<Vec<u8>, Rejection> {
    change(server, platform, caller, key, |task| answer(task, &answers)).await
}

/// `tasks/cancel`: ends a task that nobody works on, and tells the one who does (TASK-32).
///
/// # Errors
/// When there is no such task.
pub(crate) async fn cancel(
    server: &Server,
    platform: &dyn Platform,
    caller: &Principal,
    key: &str,
) -> Result<Vec<u8>, Rejection> {
    let now = platform.now();
    change(server, platform, caller, key, |task| {
        let is_leased = task.lease.as_ref().is_some_and(|lease| lease.until > now);
        if task.is_cancelled {
            return Ok(false);
        }
        task.is_cancelled = true;
        if !is_leased {
            task.end(Status::Cancelled, None);
            task.message = None; // it said what was being done
        }
        Ok(true)
    })
    .await
}

/// A task, and where it was found.
pub(crate) struct Found<'s> {
    tasks: &'s Tasks,
    pub(crate) task: Task,
    pub(crate) record: TaskRecord,
}

/// Finds a task of the caller.
///
/// # Errors
/// [`id::unknown`], or an internal error when the store cannot be reached.
pub(crate) async fn find<'s>(
    server: &'s Server,
    platform: &dyn Platform,
    caller: &Principal,
    id: &str,
) -> Result<Found<'s>, Rejection> {
    match id::open_id(id, server, caller).await? {
        Named::Record(key) => read(server, platform, caller, &key).await,
        Named::Job(_) => Err(id::unknown()),
    }
}

/// Reads a task whose key the caller's id had.
async fn read<'s>(
    server: &'s Server,
    platform: &dyn Platform,
    caller: &Principal,
    key: &str,
) -> Result<Found<'s>, Rejection> {
    let tasks = server.tasks_of(caller).ok_or_else(id::unknown)?;
    let record = tasks.store.get(key, platform.now()).await.map_err(Rejection::internal)?;
    let record = record.ok_or_else(id::unknown)?;
    let task = Task::read(&record).map_err(Rejection::internal)?;
    Ok(Found { tasks, task, record })
}

/// Applies a change to a task that has not ended, against whatever else changes it.
async fn change(
    server: &Server,
    platform: &dyn Platform,
    caller: &Principal,
    key: &str,
    mut apply: impl FnMut(&mut Task) -> Result<bool, Rejection>,
) -> Result<Vec<u8>, Rejection> {
    for _ in 0..ATTEMPTS {
        let Found { tasks, task, record, .. } = read(server, platform, caller, key).await?;
        let mut next = task.clone();
        if task.status.is_terminal() || !apply(&mut next)? {
            return Ok(wire::acknowledgement(server));
        }
        let now = platform.now();
        next.updated_at = now;
        let written = next.record(key, &record.owner, record.version);
        let written = written.map_err(Rejection::internal)?;
        let limit = server.limits().task_bytes;
        if written.body.len() > limit {
            return Err(Rejection::params("params.inputResponses makes the task too large"));
        }
        if tasks.store.update(&written, now).await.map_err(Rejection::internal)? {
            schedule(tasks, key, &next).await;
            if !next.looks_like(&task) {
                publish(server, &next, key).await;
            }
            return Ok(wire::acknowledgement(server));
        }
    }
    Err(Rejection::internal("a task changed all the time; the client may try again"))
}

/// Puts the answers to open questions where the next run finds them. Other keys are ignored (TASK-30).
fn answer(task: &mut Task, answers: &BTreeMap<String, Box<RawValue>>) -> Result<bool, Rejection> {
    let mut given = Vec::new();
    for question in &task.questions {
        if let Some(value) = answers.get(&question.shown_as) {
            check(question, value)?;
            given.push(Given { to: question.clone(), value: value.clone() });
        }
    }
    task.questions.retain(|question| !answers.contains_key(&question.shown_as));
    task.set_status();
    let any = !given.is_empty();
    if any {
        task.wakes_at = None; // at once
    }
    task.answers.extend(given);
    Ok(any)
}

/// Judges an answer by the question as it was shown (TASK-31, ELIC-13).
fn check(question: &Outstanding, value: &RawValue) -> Result<(), Rejection> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Form {
        requested_schema: serde_json::Value,
    }
    #[derive(serde::Deserialize)]
    struct Answer {
        action: String,
        content: Option<serde_json::Value>,
    }
    let wrong = || bad_answer(&question.shown_as);
    if !check_answer(question.kind, value) {
        return Err(wrong());
    }
    if question.kind != Kind::Elicitation {
        return Ok(());
    }
    let form = question.params.as_ref().map(|params| serde_json::from_str::<Form>(params.get()));
    let Some(Ok(form)) = form else { return Ok(()) }; // a page to open
    let answer: Answer = serde_json::from_str(value.get()).map_err(|_| wrong())?;
    if answer.action != "accept" {
        return Ok(());
    }
    let content = answer.content.unwrap_or_else(|| serde_json::json!({}));
    let schema = Schema::compile(&form.requested_schema).map_err(Rejection::internal)?;
    schema.validate(&content).map_err(|_| wrong())
}

/// Sees to it that somebody looks at the task when it is due. What fails here, a sweep makes good.
pub(crate) async fn schedule(tasks: &Tasks, key: &str, task: &Task) {
    let Some(due) = task.due() else { return };
    report(tasks.driver.schedule(key, due).await, "could not be scheduled");
}

/// Tells the listeners of a task that it changed. What fails here, they find out by polling.
pub(crate) async fn publish(server: &Server, task: &Task, key: &str) {
    let publisher = server.publisher_of(&task.principal);
    report(publisher.publish(Change::Task(key.to_owned())).await, "could not be announced");
}

fn report<E: std::fmt::Display>(done: Result<(), E>, what: &str) {
    if let Err(error) = done {
        tracing::warn!("a task {what}: {error}");
    }
}

/// Why a task cannot be kept. The log says what takes the room.
pub(crate) fn too_large(task: &Task, bytes: usize, limit: usize) -> Rejection {
    let largest = task.journal.as_ref().and_then(|journal| journal.largest()).unwrap_or("?");
    Rejection::internal(format_args!(
        "the record of a task of `{}` would take {bytes} bytes, more than the {limit} of \
         Limits::task_bytes; the largest value in its journal is that of `{largest}`",
        task.tool
    ))
}
