//! Goes on with a task: takes it, replays its journal, writes after every step before anything else
//! happens, and leaves it when nothing is left to do for now.

use std::{collections::HashSet, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use serde_json::value::RawValue;
use tracing::Instrument as _;

use super::{
    record::{Lease, Status, Task},
    serve::{publish, too_large},
    store::{StoreError, TaskRecord},
};
use crate::{
    call::{Call, Outcome},
    cx::Cx,
    encode,
    execution::{self, Kind},
    invoke::Invoked,
    journal::{
        engine::{Engine, Snapshot},
        run::{End, Run},
    },
    outbox::Outbox,
    platform::{ANSWER_MARGIN, Platform, Timestamp, time_left},
    provider::{self, DynamicTool},
    rejection::Rejection,
    server::{Server, Tasks, ToolEntry},
};

/// How long a task rests that another version of its tool has to go on with.
const GIVEN_BACK: Duration = Duration::from_secs(1);

/// How long a lease goes on after the moment at which the platform cuts its holder off.
const AFTER_DEADLINE: Duration = Duration::from_secs(5);

/// How often the record is looked at while a handler runs: for a wish to cancel, and for answers.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_FOR_ANSWERS: Duration = Duration::from_millis(250);

/// How often the end of a task is tried again that another change came before.
const ATTEMPTS: usize = 32;

/// Advances a task as far as it goes. Returns when it is due again, if that is known.
///
/// # Errors
/// When the store cannot be reached. The task is due again when its lease is over.
pub(super) async fn advance(
    server: &Server,
    tasks: &Tasks,
    key: &str,
    platform: Arc<dyn Platform>,
) -> Result<Option<Timestamp>, StoreError> {
    let now = platform.now();
    let Some(record) = tasks.store.get(key, now).await? else { return Ok(None) };
    let task = match Task::read(&record) {
        Ok(task) => task,
        Err(error) => {
            tracing::error!(key, "the record of a task cannot be read: {error}");
            return Ok(None);
        }
    };
    match task.due() {
        None => return Ok(None),
        Some(at) if at > now => return Ok(Some(at)),
        Some(_) => {}
    }
    let mut random = [0; 12];
    platform.fill_random(&mut random);
    let TaskRecord { key, owner, version, .. } = record;
    let span = tracing::info_span!("task", tool = task.tool, key);
    let mut work = Work {
        server,
        tasks,
        platform,
        holder: encode(&random),
        key,
        owner,
        version,
        task,
        renewed_at: now,
        withdrawn: HashSet::new(),
        delivered: HashSet::new(),
    };
    work.run().instrument(span).await
}

/// A task in the hands of this instance.
struct Work<'s> {
    server: &'s Server,
    tasks: &'s Tasks,
    platform: Arc<dyn Platform>,
    holder: String,
    key: String,
    owner: String,
    /// Of the record that `task` is.
    version: u64,
    task: Task,
    renewed_at: Timestamp,
    /// The keys of questions of this run that nobody waits for any more.
    withdrawn: HashSet<String>,
    /// The answers that this run was given, by the keys under which their questions were shown.
    delivered: HashSet<String>,
}

/// What becomes of the lease with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasts {
    /// The handler runs on.
    On,
    /// Nothing is left to do before an answer comes, or a sleep is over.
    Waiting,
    /// Somebody else is to go on.
    Interrupted,
}

/// What became of a write.
#[derive(Debug)]
enum Written {
    Yes,
    /// Something else changed the task first, and the run has learned of it.
    Changed,
    /// The client wants the task to stop.
    Cancelled,
    /// The task ended, or is in other hands.
    Lost,
    Refused(Rejection),
}

/// A task as it is to be written.
struct Next {
    task: Task,
    record: TaskRecord,
    /// Whether its client sees a difference.
    is_seen: bool,
}

impl Work<'_> {
    async fn run(&mut self) -> Result<Option<Timestamp>, StoreError> {
        if self.task.is_cancelled {
            return self.end(Status::Cancelled, None, None).await;
        }
        let Some(journal) = self.task.journal.as_ref() else {
            return self.fail(&Rejection::internal("the task has no journal")).await;
        };
        let version = journal.version;
        let mut provided = None;
        let server = self.server;
        let Some(tool) = find_tool(server, &self.task, &mut provided).await else {
            return self.give_back().await;
        };
        if !tool.policy.accepts(version) {
            if version > tool.policy.version {
                return self.give_back().await;
            }
            let rejection = Rejection::params(format!(
                "`{}` changed since this task began (version {version} is no longer accepted); \
                 call it anew",
                self.task.tool
            ));
            return self.fail(&rejection).await;
        }
        let limit = self.server.limits().task_attempts;
        if self.task.attempts >= limit {
            let rejection = Rejection::internal(format_args!(
                "a task of `{}` was taken up {limit} times without getting any further",
                self.task.tool
            ));
            return self.fail(&rejection).await;
        }
        if self.is_out_of_time() {
            return Ok(Some(self.platform.now())); // the next invocation has time for it
        }
        if !self.take().await? {
            // Whoever was quicker looks after it, or nobody does and it is still due.
            return Ok(Some(self.platform.now() + LOOK_FOR_ANSWERS));
        }
        self.go_on(tool).await
    }

    /// Runs the handler until it has to wait for longer than a task is held.
    async fn go_on(&mut self, tool: &ToolEntry) -> Result<Option<Timestamp>, StoreError> {
        let journal = self.task.journal.clone().unwrap_or_default();
        let now = self.platform.now();
        let mut engine = Engine::resume(journal, tool.policy.version, now).in_task();
        engine.set_rules(self.server.services().deny_replay_lints, now);
        let call = Arc::new(self.call(tool, engine));
        let kind = Kind::Tool { output: tool.output.clone(), task_ttl: None };
        let arguments = self.task.arguments.clone();
        let arguments = arguments.as_deref().map_or("{}", RawValue::get);
        let handler = match tool.handler.invoke(Cx::new(Arc::clone(&call)), arguments) {
            Invoked::Running(handler) => handler,
            Invoked::Answered(outcome) => return self.complete(&kind, &call, outcome).await,
        };
        let mut run = Run::new(Arc::clone(&call), handler);
        loop {
            let lasts = match self.next(&mut run).await {
                Some(End::Done(outcome)) => return self.complete(&kind, &call, outcome).await,
                Some(End::Fatal(fatal)) => {
                    return self.fail(&execution::refusal(&call, fatal)).await;
                }
                Some(End::Panicked(text)) => {
                    return self.fail(&execution::panicked(&call, &text)).await;
                }
                Some(End::Suspended) => {
                    let askable = call.engine().refuse_unaskable();
                    if let Err(fatal) = askable {
                        return self.fail(&execution::refusal(&call, fatal)).await;
                    }
                    Lasts::Waiting
                }
                Some(End::Background | End::Unwritten)
                    if self.platform.is_draining() || self.is_out_of_time() =>
                {
                    Lasts::Interrupted
                }
                Some(End::Background | End::Unwritten) => Lasts::On,
                None if self.is_out_of_time() => Lasts::Interrupted,
                None => match self.look(&call).await? {
                    Some(written) => match self.after(written, Lasts::On).await? {
                        Some(due) => return Ok(due),
                        None => continue,
                    },
                    None => continue,
                },
            };
            let written = self.write(&call, lasts).await?;
            if let Some(due) = self.after(written, lasts).await? {
                return Ok(due);
            }
        }
    }

    /// What follows a write; `None` if the handler runs on.
    async fn after(
        &mut self,
        written: Written,
        lasts: Lasts,
    ) -> Result<Option<Option<Timestamp>>, StoreError> {
        Ok(match written {
            Written::Yes if lasts == Lasts::On => None,
            Written::Yes => Some(self.task.due()),
            Written::Changed => None,
            Written::Cancelled => Some(self.end(Status::Cancelled, None, None).await?),
            Written::Lost => Some(None),
            Written::Refused(rejection) => Some(self.fail(&rejection).await?),
        })
    }

    /// Polls the handler until something is to be done for it; `None` when it is time to look at the
    /// record.
    async fn next(&self, run: &mut Run) -> Option<End> {
        let wait = match self.task.status {
            Status::InputRequired => LOOK_FOR_ANSWERS,
            _ => LOOK,
        };
        let wait = wait.min(self.server.limits().task_heartbeat);
        let wait = time_left(self.platform.as_ref(), wait, ANSWER_MARGIN);
        let mut timer = None;
        poll_fn(|cx| {
            if let Poll::Ready(end) = run.poll(cx) {
                return Poll::Ready(Some(end));
            }
            let timer = timer.get_or_insert_with(|| self.platform.sleep(wait));
            timer.as_mut().poll(cx).map(|()| None)
        })
        .await
    }

    /// Whether the platform is about to end this.
    fn is_out_of_time(&self) -> bool {
        let now = self.platform.now();
        self.platform.deadline().is_some_and(|deadline| now >= deadline - ANSWER_MARGIN)
    }

    fn call(&self, tool: &ToolEntry, engine: Engine) -> Call {
        Call {
            server: self.server.clone(),
            platform: Arc::clone(&self.platform),
            principal: Arc::new(self.task.principal.clone()),
            capabilities: self.task.capabilities.clone(),
            name: Arc::clone(&tool.name),
            may_ask: true,
            may_become_task: true,
            deadline: self.platform.deadline(),
            trace: None,
            outbox: Outbox::default().into(),
            engine: engine.into(),
        }
    }

    // The record.

    /// Takes the lease, and counts the attempt. False if somebody else was quicker.
    async fn take(&mut self) -> Result<bool, StoreError> {
        let now = self.platform.now();
        let mut next = self.task.clone();
        self.delivered.extend(next.answers.iter().map(|given| given.to.shown_as.clone()));
        next.take_answers();
        next.attempts += 1;
        next.wakes_at = None;
        next.lease = Some(self.lease(now));
        self.renewed_at = now;
        self.replace(self.next_record(next, now)?).await
    }

    fn lease(&self, now: Timestamp) -> Lease {
        let until = match self.platform.deadline() {
            Some(deadline) => deadline + AFTER_DEADLINE,
            None => now + self.server.limits().task_lease,
        };
        Lease { holder: self.holder.clone(), until }
    }

    /// Looks whether something happened to the record, and renews the lease when it is time. `None` if
    /// there was nothing to do.
    async fn look(&mut self, call: &Call) -> Result<Option<Written>, StoreError> {
        let now = self.platform.now();
        let record = match self.tasks.store.get(&self.key, now).await {
            // The handler runs on, and the next look may succeed.
            Err(error) if self.may_try_again() => {
                tracing::warn!("a task cannot be looked at: {error}");
                return Ok(None);
            }
            record => record?,
        };
        let Some(record) = record else { return Ok(Some(Written::Lost)) };
        if record.version != self.version {
            return Ok(Some(self.learn(&record, call)));
        }
        let heartbeat = self.server.limits().task_heartbeat;
        if !call.engine().has_message() && now.since(self.renewed_at) < heartbeat {
            return Ok(None);
        }
        self.write(call, Lasts::On).await.map(Some)
    }

    /// Writes what happened in the run.
    async fn write(&mut self, call: &Call, lasts: Lasts) -> Result<Written, StoreError> {
        let now = self.platform.now();
        let Snapshot { journal, open, wakes_at, grown, message, withdrawn } =
            call.engine().snapshot();
        self.withdrawn.extend(withdrawn);
        let mut next = self.task.clone();
        next.journal = Some(journal);
        next.answers.clear();
        if message.is_some() {
            next.message = message;
        }
        // What was shown stays so while the handler has not come to it again.
        let waits = lasts == Lasts::Waiting;
        next.ask(&open, |shown| !waits && !self.withdrawn.contains(&shown.key));
        if grown > 0 || waits {
            next.attempts = 0;
        }
        next.wakes_at = None;
        next.lease = None;
        match lasts {
            Lasts::On => {
                next.lease = Some(self.lease(now));
                self.renewed_at = now;
            }
            Lasts::Waiting => next.wakes_at = wakes_at,
            Lasts::Interrupted => next.wakes_at = Some(now),
        }
        let asked = next.shown.len();
        if asked > self.server.limits().task_questions {
            return Ok(Written::Refused(Rejection::internal(format_args!(
                "a task of `{}` asked {asked} questions: are its keys the same in every run?",
                self.task.tool
            ))));
        }
        let limit = self.server.limits().task_bytes;
        let next = match self.next_record(next, now) {
            Ok(next) if next.record.body.len() <= limit => next,
            Ok(Next { task, record, .. }) => {
                return Ok(Written::Refused(too_large(&task, record.body.len(), limit)));
            }
            Err(error) => return Ok(Written::Refused(Rejection::internal(error))),
        };
        let told = next.task.message.clone();
        if self.replace(next).await? {
            call.engine().written(grown);
            return Ok(Written::Yes);
        }
        call.engine().unwritten(told);
        let Some(record) = self.read().await? else { return Ok(Written::Lost) };
        Ok(self.learn(&record, call))
    }

    /// Takes over what others wrote: answers, and a wish to cancel.
    fn learn(&mut self, record: &TaskRecord, call: &Call) -> Written {
        if !self.adopt(record) {
            return Written::Lost;
        }
        if self.task.is_cancelled {
            return Written::Cancelled;
        }
        for given in &self.task.answers {
            if self.delivered.insert(given.to.shown_as.clone()) {
                call.engine().deliver(given.entry());
            }
        }
        Written::Changed
    }

    /// Goes on from what is stored, if this instance still has the task.
    fn adopt(&mut self, record: &TaskRecord) -> bool {
        let Ok(task) = Task::read(record) else { return false };
        let is_ours = task.lease.as_ref().is_some_and(|lease| lease.holder == self.holder);
        if is_ours && record.is_open {
            self.version = record.version;
            self.task = task;
        }
        is_ours && record.is_open
    }

    /// The record that puts `task` in the place of what was read or written last.
    fn next_record(&self, mut task: Task, now: Timestamp) -> Result<Next, StoreError> {
        let is_seen = !task.looks_like(&self.task);
        if is_seen {
            task.updated_at = now;
        }
        let record = task.record(&self.key, &self.owner, self.version);
        let record = record.map_err(|error| StoreError::new(error.to_string()))?;
        Ok(Next { task, record, is_seen })
    }

    /// Writes a task in the place of what was read or written last. False if that is not there any
    /// more.
    async fn replace(&mut self, next: Next) -> Result<bool, StoreError> {
        loop {
            match self.tasks.store.update(&next.record, self.platform.now()).await {
                Ok(true) => break,
                Ok(false) => return Ok(false),
                Err(error) => self.rest(error).await?,
            }
        }
        self.version += 1;
        self.task = next.task;
        if next.is_seen {
            publish(self.server, &self.task, &self.key).await;
        }
        Ok(true)
    }

    async fn read(&self) -> Result<Option<TaskRecord>, StoreError> {
        loop {
            match self.tasks.store.get(&self.key, self.platform.now()).await {
                Err(error) => self.rest(error).await?,
                record => return record,
            }
        }
    }

    /// Before the store is tried again: to give up is to drop the step in flight, which then runs
    /// again, and to forget what the last one returned.
    async fn rest(&self, error: StoreError) -> Result<(), StoreError> {
        if !self.may_try_again() {
            return Err(error);
        }
        tracing::warn!("the record of a task is tried again: {error}");
        self.platform.sleep(LOOK_FOR_ANSWERS).await;
        Ok(())
    }

    /// Whether the lease lasts until the next try.
    fn may_try_again(&self) -> bool {
        let next = self.platform.now() + LOOK_FOR_ANSWERS;
        let lease = self.task.lease.as_ref().filter(|lease| lease.holder == self.holder);
        lease.is_some_and(|lease| lease.until > next) && !self.is_out_of_time()
    }

    // How it ends.

    /// Leaves the task to an instance that knows its tool, or the version that began it.
    async fn give_back(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let now = self.platform.now();
        let mut next = self.task.clone();
        next.lease = None;
        next.wakes_at = Some(now + GIVEN_BACK);
        tracing::info!(tool = self.task.tool, "a task is left to a newer version of its tool");
        self.replace(self.next_record(next, now)?).await?;
        Ok(Some(now + GIVEN_BACK))
    }

    async fn complete(
        &mut self,
        kind: &Kind,
        call: &Call,
        outcome: Outcome,
    ) -> Result<Option<Timestamp>, StoreError> {
        let result = kind.result(&call.name, outcome);
        match result {
            Ok(result) => self.end(Status::Completed, Some(result), None).await,
            Err(rejection) => self.fail(&rejection).await,
        }
    }

    async fn fail(&mut self, rejection: &Rejection) -> Result<Option<Timestamp>, StoreError> {
        let message = rejection.message();
        let error = serde_json::value::to_raw_value(&rejection.to_error()).ok();
        self.end(Status::Failed, error, Some(message)).await
    }

    /// Ends the task, whatever else happened to it meanwhile.
    async fn end(
        &mut self,
        status: Status,
        outcome: Option<Box<RawValue>>,
        message: Option<String>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let limit = self.server.limits().task_bytes;
        let (mut status, mut outcome, mut message) = (status, outcome, message);
        let mut is_short = status == Status::Cancelled;
        for _ in 0..ATTEMPTS {
            let now = self.platform.now();
            let mut next = self.task.clone();
            next.end(status, outcome.clone());
            next.message.clone_from(&message);
            let length = outcome.as_ref().map_or(0, |outcome| outcome.get().len());
            let next = self.next_record(next, now)?;
            let bytes = next.record.body.len();
            if bytes > limit && !is_short {
                is_short = true;
                let error = Rejection::internal(format_args!(
                    "the outcome of a task of `{}` takes {length} bytes; its record would take \
                     {bytes}, more than the {limit} of Limits::task_bytes",
                    self.task.tool
                ));
                status = Status::Failed;
                message = Some(error.message());
                outcome = serde_json::value::to_raw_value(&error.to_error()).ok();
                continue;
            }
            if self.replace(next).await? {
                tracing::info!(tool = self.task.tool, ?status, "a task ended");
                return Ok(None);
            }
            let Some(record) = self.read().await? else { return Ok(None) };
            if !self.adopt(&record) {
                return Ok(None);
            }
        }
        Err(StoreError::new("a task changed all the time; it goes on when its lease is over"))
    }
}

/// The tool of a task, if this instance has it; a provided one is kept in `provided`.
async fn find_tool<'t>(
    server: &'t Server,
    task: &Task,
    provided: &'t mut Option<DynamicTool>,
) -> Option<&'t ToolEntry> {
    let definition = server.definition();
    if let Some(tool) = definition.tools.get(&task.tool) {
        return Some(tool);
    }
    match provider::find(definition.more.tools.as_ref(), &task.principal, &task.tool).await {
        Ok(found) => *provided = found,
        Err(error) => tracing::warn!("a tool provider failed: {}", error.message()),
    }
    provided.as_ref().map(DynamicTool::entry)
}
