//! Tasks: how a client starts them, asks for them, and follows them to their end.

use std::time::Duration;

use http::StatusCode;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    answers::Question,
    called::Called,
    calls::{Path, tool_params, unanswered},
    client::Client,
    error::{CallError, Fault},
    exchange::Exchange,
    task::{Task, TaskStatus},
};

impl Client {
    /// Calls a tool that runs as a task, and leaves the task alone. Questions that come before it
    /// begins are answered.
    ///
    /// [`call`](Self::call) would go on until the task has ended, as [`follow`](Self::follow) does.
    ///
    /// ```
    /// use mcp_edge_test::{CallError, Client, TaskStatus};
    /// use serde_json::json;
    ///
    /// async fn approve(client: Client) -> Result<(), CallError> {
    ///     let client = client.with_tasks().answer("sure", json!({"yes": true}));
    ///     let task = client.start("deploy", json!({"version": 7})).await?;
    ///     assert_eq!(task.status, TaskStatus::Working);
    ///     let called = client.follow(&task).await?;
    ///     assert_eq!((called.text().as_str(), called.questions()), ("deployed", vec!["sure"]));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As for [`call`](Self::call). When the call is done at once, which is for the server to
    /// decide (TASK-03), the fault is [`Fault::NotATask`].
    pub async fn start(&self, tool: &str, arguments: impl Serialize) -> Result<Task, CallError> {
        let (reply, _) = self.ask("tools/call", tool_params(tool, arguments)?).await?;
        reply.task().ok_or_else(|| {
            let text =
                format!("the tool `{tool}` did not become a task: there is a result already");
            CallError::new(Fault::NotATask, text, &reply.exchange)
        })
    }

    /// Follows a task to its end: asks for it as often as it says, and answers its questions, each
    /// of them once.
    ///
    /// Between two requests it sleeps by tokio's clock for the interval that the task names, a
    /// second if it names none, and never more than five.
    ///
    /// # Errors
    /// As for [`call`](Self::call). A failed task gives its JSON-RPC error, with the status of the
    /// response that brought it; a cancelled one the fault [`Fault::Cancelled`]. When the task does
    /// not end, [`Fault::Unfinished`].
    pub async fn follow(&self, task: &Task) -> Result<Called, CallError> {
        Following::new(self, task.clone(), Path::default(), None).finish().await
    }

    /// Asks for a task (`tasks/get`), once.
    ///
    /// # Errors
    /// When the server answers with an error, or with something that a conforming client refuses;
    /// when no answer arrives.
    pub async fn task(&self, id: &str) -> Result<Task, CallError> {
        self.poll(id).await.map(|(task, _)| task)
    }

    /// Answers questions of a task (`tasks/update`). `answers` is an object of results by key, see
    /// [`Question::accept`](crate::Question::accept) and its like.
    ///
    /// # Errors
    /// As for [`task`](Self::task).
    pub async fn update_task(&self, id: &str, answers: Value) -> Result<(), CallError> {
        let params = json!({ "taskId": id, "inputResponses": answers });
        self.round("tasks/update", params).await?.outcome().map(drop)
    }

    /// Asks to cancel a task (`tasks/cancel`). Whether it is cancelled in the end is for its state
    /// to say.
    ///
    /// # Errors
    /// As for [`task`](Self::task).
    pub async fn cancel_task(&self, id: &str) -> Result<(), CallError> {
        self.round("tasks/cancel", json!({ "taskId": id })).await?.outcome().map(drop)
    }

    async fn poll(&self, id: &str) -> Result<(Task, Exchange), CallError> {
        let reply = self.round("tasks/get", json!({ "taskId": id })).await?;
        reply.outcome()?;
        let task = reply.task().ok_or_else(|| reply.refused("the task is ill-formed"))?;
        Ok((task, reply.exchange))
    }
}

/// A task on its way to its end.
pub(crate) struct Following<'c> {
    client: &'c Client,
    task: Task,
    path: Path,
    /// What showed the task last.
    exchange: Option<Exchange>,
    polls: usize,
}

impl<'c> Following<'c> {
    /// `path` is how the call came to be a task.
    pub(crate) fn new(
        client: &'c Client,
        task: Task,
        path: Path,
        exchange: Option<Exchange>,
    ) -> Self {
        Self { client, task, path, exchange, polls: 0 }
    }

    /// Goes from state to state until the task has ended.
    pub(crate) async fn finish<R: DeserializeOwned>(mut self) -> Result<Called<R>, CallError> {
        loop {
            if let Some(result) = self.task.result.take() {
                return self.called(result);
            }
            if let Some(error) = &self.task.error {
                let fault = Fault::error(error, StatusCode::OK);
                return Err(self.failed(fault, error["message"].as_str().unwrap_or_default()));
            }
            if self.task.status == TaskStatus::Cancelled {
                let mut text = format!("the task {} was cancelled", self.task.id);
                if let Some(message) = &self.task.status_message {
                    text = format!("{text}: {message}");
                }
                return Err(self.failed(Fault::Cancelled, text));
            }
            self.answer().await?;
            if self.polls == MAX_POLLS {
                let text =
                    format!("the task is still {} after {MAX_POLLS} polls", self.task.status);
                return Err(self.failed(Fault::Unfinished, text));
            }
            if !self.has_more_to_show() {
                tokio::time::sleep(self.interval()).await;
            }
            let (task, exchange) = self.client.poll(&self.task.id).await?;
            (self.task, self.exchange) = (task, Some(exchange));
            self.polls += 1;
        }
    }

    /// Answers the questions that are new.
    async fn answer(&mut self) -> Result<(), CallError> {
        let questions = self.new_questions();
        if questions.is_empty() {
            return Ok(());
        }
        let mut known = self.path.rounds.iter().flatten().map(|known| &known.key);
        if let Some(key) = known.find(|key| questions.iter().any(|new| new.key == **key)) {
            let text = format!("the question {key:?} was asked before the task began (TASK-11)");
            return Err(self.failed(Fault::Refused, text));
        }
        self.path.may_go_on(&self.client.options, &self.exchange)?;
        let answers = self.client.options.answers.to(&questions);
        let answers = answers.map_err(|question| unanswered(question, &self.exchange))?;
        self.client.update_task(&self.task.id, answers).await?;
        self.path.rounds.push(questions);
        Ok(())
    }

    fn new_questions(&self) -> Vec<Question> {
        let Task { id, questions, .. } = &self.task;
        let memory = self.client.shared.tasks();
        let questions = questions.iter().filter(|question| !memory.is_answered(id, &question.key));
        questions.cloned().collect()
    }

    /// Whether a poll would show more at once: a new task shows neither questions nor outcome.
    fn has_more_to_show(&self) -> bool {
        match self.task.status {
            TaskStatus::Working => false,
            TaskStatus::InputRequired => self.task.questions.is_empty(),
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled => true,
        }
    }

    fn interval(&self) -> Duration {
        let interval = self.task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
        interval.min(MAX_POLL_INTERVAL)
    }

    fn called<R: DeserializeOwned>(self, raw: Value) -> Result<Called<R>, CallError> {
        let result = R::deserialize(&raw).map_err(|error| {
            self.failed(Fault::Refused, format!("the result is ill-formed: {error}"))
        })?;
        let called = self.path.called(result, raw);
        Ok(Called { task_id: Some(self.task.id), polls: self.polls, ..called })
    }

    fn failed(&self, fault: Fault, text: impl Into<String>) -> CallError {
        CallError::between(fault, text, &self.exchange)
    }
}

const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// With a paused clock, a task that never ends would be polled for ever.
const MAX_POLLS: usize = 10_000;

#[cfg(test)]
mod tests;
