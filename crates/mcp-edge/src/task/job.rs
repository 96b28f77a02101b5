//! Jobs of another system, which has ids of its own: nothing of them is stored here.

use std::{
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use ring::digest::{SHA256, digest};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    id::{self, JobId, Named},
    record::Status,
    wire::JobView,
};
use crate::{
    call::{Call, Outcome, Output},
    cx::Cx,
    error::{RequestError, ToolError},
    execution::Kind,
    handler::{ToolArgs, ToolOutput, tool_failure},
    invoke::{Invoke, Invoked, tool_outcome},
    journal::run::panic_text,
    platform::Platform,
    principal::Principal,
    protocol::ToolResult,
    rejection::Rejection,
    schema::Schema,
    server::{Server, ToolEntry},
    target::{BoxFuture, MaybeSend, MaybeSync, boxed},
};

/// Longest handle of a job, in bytes.
const LONGEST_HANDLE: usize = 256;

/// Work that is done by a system which has ids of its own, such as a queue or a build service.
///
/// A client that can hold a task gets the sealed handle as its id; for others the tool waits inside
/// the request. Any instance can look at a job, and none has to remember it.
///
/// ```
/// use mcp_edge::{Cx, Job, JobStatus, RequestError, ToolError};
///
/// struct Builds;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Build {
///     commit: String,
/// }
///
/// impl Job for Builds {
///     type Args = Build;
///     type Out = String;
///
///     async fn start(&self, _: Cx, args: Build) -> Result<String, ToolError> {
///         Ok(format!("build-of-{}", args.commit)) // what the build service calls it
///     }
///
///     async fn poll(&self, handle: &str) -> Result<JobStatus<String>, RequestError> {
///         Ok(JobStatus::Done(format!("{handle} succeeded")))
///     }
///
///     async fn cancel(&self, _handle: &str) -> Result<(), RequestError> {
///         Ok(())
///     }
/// }
///
/// let server = mcp_edge::Server::builder("ci", "1.0.0").job("build", "Builds a commit", Builds);
/// # assert!(server.build().is_ok());
/// ```
pub trait Job: MaybeSend + MaybeSync + 'static {
    /// What the tool takes.
    type Args: ToolArgs;
    /// What it returns, in the end.
    type Out: ToolOutput + MaybeSend;

    /// Starts a job, and returns its handle, of at most 256 bytes. The client never reads it.
    fn start(
        &self,
        cx: Cx,
        args: Self::Args,
    ) -> impl Future<Output = Result<String, ToolError>> + MaybeSend;

    /// Looks how a job stands. An error answers the one who looked, and says nothing of the job.
    fn poll(
        &self,
        handle: &str,
    ) -> impl Future<Output = Result<JobStatus<Self::Out>, RequestError>> + MaybeSend;

    /// Asks a job to stop; one that has ended stays as it is.
    fn cancel(&self, handle: &str) -> impl Future<Output = Result<(), RequestError>> + MaybeSend;
}

/// How a [`Job`] stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "these are the states of a task")]
pub enum JobStatus<T> {
    /// It is under way; the text is for people.
    Working(Option<String>),
    /// It has ended.
    Done(T),
    /// It was stopped.
    Cancelled,
}

/// A job without its types.
trait RunJob: fmt::Debug + MaybeSend + MaybeSync {
    fn poll<'a>(
        &'a self,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<JobStatus<Outcome>, RequestError>>;

    fn cancel<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<(), RequestError>>;
}

/// The tool of a job.
pub(crate) struct JobTool<J>(Arc<J>);

impl<J> JobTool<J> {
    pub(crate) fn new(job: J) -> Self {
        Self(Arc::new(job))
    }
}

impl<J> fmt::Debug for JobTool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<J>())
    }
}

impl<J: Job> Invoke<&str> for JobTool<J> {
    fn invoke(&self, cx: Cx, input: &str) -> Invoked {
        let args = match J::Args::parse(input) {
            Ok(args) => args,
            Err(text) => return Invoked::Answered(Ok(Output::Tool(ToolResult::error(text)))),
        };
        let job = Arc::clone(&self.0);
        Invoked::Running(boxed(async move {
            let handle = match job.start(cx.clone(), args).await {
                Ok(handle) => handle,
                Err(error) => return tool_failure(error).map(Output::Tool),
            };
            if cx.can_hold_job() {
                return Ok(Output::Job(handle));
            }
            loop {
                match job.poll(&handle).await? {
                    JobStatus::Working(_) => cx.wait_for_job().await,
                    JobStatus::Done(out) => return tool_outcome(out.into_reply()),
                    JobStatus::Cancelled => {
                        return Ok(Output::Tool(ToolResult::error("The job was cancelled.")));
                    }
                }
            }
        }))
    }
}

impl<J: Job> RunJob for JobTool<J> {
    fn poll<'a>(
        &'a self,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<JobStatus<Outcome>, RequestError>> {
        boxed(async move {
            Ok(match self.0.poll(handle).await? {
                JobStatus::Working(message) => JobStatus::Working(message),
                JobStatus::Done(out) => JobStatus::Done(tool_outcome(out.into_reply())),
                JobStatus::Cancelled => JobStatus::Cancelled,
            })
        })
    }

    fn cancel<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<(), RequestError>> {
        boxed(self.0.cancel(handle))
    }
}

/// A tool that starts jobs, as their ids find it.
#[derive(Debug)]
pub(crate) struct JobEntry {
    pub(crate) name: Arc<str>,
    output: Option<Arc<Schema>>,
    job: Arc<dyn RunJob>,
}

impl JobEntry {
    pub(crate) fn new<J: Job>(tool: &ToolEntry, job: Arc<JobTool<J>>) -> Self {
        Self { name: Arc::clone(&tool.name), output: tool.output.clone(), job }
    }

    /// `tasks/get` of a job.
    ///
    /// # Errors
    /// What the job answered with.
    pub(crate) async fn get(
        &self,
        server: &Server,
        id: &str,
        job: &JobId,
    ) -> Result<Vec<u8>, Rejection> {
        let status = self.guard(self.job.poll(&job.handle)).await?;
        let view = JobView { id, job, status: Status::Working, message: None, outcome: None };
        Ok(match status {
            JobStatus::Working(message) => {
                JobView { message: message.as_deref(), ..view }.detailed(server)
            }
            JobStatus::Cancelled => JobView { status: Status::Cancelled, ..view }.detailed(server),
            JobStatus::Done(outcome) => {
                let (status, outcome) = match self.result(outcome) {
                    Ok(result) => (Status::Completed, Some(result)),
                    Err(rejection) => (Status::Failed, to_raw_value(&rejection.to_error()).ok()),
                };
                JobView { status, outcome: outcome.as_deref(), ..view }.detailed(server)
            }
        })
    }

    /// `tasks/cancel` of a job.
    ///
    /// # Errors
    /// What the job answered with.
    pub(crate) async fn cancel(&self, server: &Server, job: &JobId) -> Result<Vec<u8>, Rejection> {
        self.guard(self.job.cancel(&job.handle)).await?;
        Ok(super::wire::acknowledgement(server))
    }

    /// Awaits what a job does, whose panic is an error like that of a handler.
    async fn guard<T>(
        &self,
        mut work: BoxFuture<'_, Result<T, RequestError>>,
    ) -> Result<T, Rejection> {
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(polled) => polled.map_err(Rejection::Failed),
            Err(panic) => Poll::Ready(Err(Rejection::internal(format_args!(
                "the job `{}` panicked: {}",
                self.name,
                panic_text(panic.as_ref())
            )))),
        })
        .await
    }

    fn result(&self, outcome: Outcome) -> Result<Box<RawValue>, Rejection> {
        let kind = Kind::Tool { output: self.output.clone(), task_ttl: None };
        kind.result(&self.name, outcome)
    }
}

/// Seals the handle of a job that was started, and returns the result that says so.
///
/// # Errors
/// When the handle is too long, or there is no key.
pub(crate) async fn created(
    call: &Call,
    handle: &str,
    ttl: Option<Duration>,
) -> Result<Vec<u8>, Rejection> {
    let server = &call.server;
    if handle.len() > LONGEST_HANDLE {
        return Err(Rejection::internal(format_args!(
            "a job of `{}` has a handle of {} bytes, more than {LONGEST_HANDLE}",
            call.name,
            handle.len()
        )));
    }
    let job = JobId {
        tool: stands_for(&call.name),
        created_at: call.platform().now(),
        ttl_ms: server.limits().task_ttl_ms(ttl),
        handle: handle.to_owned(),
    };
    let named = Named::Job(job.clone());
    let id = id::seal_id(&named, server, call.platform(), &call.principal).await?;
    let view =
        JobView { id: &id, job: &job, status: Status::Working, message: None, outcome: None };
    Ok(view.created(server))
}

/// The tool that started a job.
///
/// # Errors
/// [`id::unknown`], when the caller may have none, or the job is past its time.
pub(crate) fn find<'s>(
    server: &'s Server,
    platform: &dyn Platform,
    caller: &Principal,
    job: &JobId,
) -> Result<&'s JobEntry, Rejection> {
    let is_over = platform.now().since(job.created_at) >= Duration::from_millis(job.ttl_ms);
    if is_over || !server.permits_tasks_of(caller) {
        return Err(id::unknown());
    }
    let tools = &server.definition().jobs;
    let tool = tools.iter().find(|tool| stands_for(&tool.name) == job.tool);
    tool.ok_or_else(id::unknown)
}

/// Eight bytes for the name of a tool: names are longer, and an id must not be.
fn stands_for(name: &str) -> [u8; 8] {
    let mut short = [0; 8];
    short.copy_from_slice(&digest(&SHA256, name.as_bytes()).as_ref()[..8]);
    short
}
