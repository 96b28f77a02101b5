//! Listen streams.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

use crate::{
    check::{Check, ListenCheck, Message},
    client::{Client, Shared},
    error::{CallError, Fault},
    raw::RawBody,
    reply::{Framing, Reply},
    request::Sent,
    round::{next_message, nothing_more},
    task::Task,
};

/// An open listen stream; made by [`Client::listen`]. Dropping it closes the stream.
pub struct Listening {
    sent: Sent,
    body: RawBody,
    check: ListenCheck,
    shared: Arc<Shared>,
    result: Option<Value>,
    over: bool,
}

impl Client {
    /// Opens a listen stream, and waits until the server acknowledges it. `filter` is the
    /// `notifications` of the request.
    ///
    /// ```
    /// use mcp_edge::{Change, InProcessFeed, NoArgs, Server};
    /// use mcp_edge_test::Client;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("news", "1.0.0")
    ///     .tool("noop", "Does nothing", async |_: NoArgs| "")
    ///     .build()?
    ///     .with_change_feed(InProcessFeed::default());
    ///
    /// let client = Client::in_process(&server);
    /// let mut listening = client.listen(json!({"toolsListChanged": true})).await?;
    /// assert_eq!(listening.acknowledged(), &json!({"toolsListChanged": true}));
    ///
    /// server.publisher().publish(Change::Tools).await?;
    /// let news = listening.next().await.unwrap();
    /// assert_eq!(news["method"], "notifications/tools/list_changed");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server answers with an error, or with something that a conforming client refuses;
    /// when no answer arrives.
    pub async fn listen(&self, filter: Value) -> Result<Listening, CallError> {
        let sent = self.compose("subscriptions/listen", json!({ "notifications": filter }));
        let response = self.raw(sent.http.clone()).await?;
        let (status, headers, extensions, mut body) = response.into_parts();
        let framing = Framing::of(&headers);
        if framing != Framing::Sse || !status.is_success() {
            let bytes = body.bytes().await?;
            let message: Option<Value> = serde_json::from_slice(&bytes).ok();
            let Some(message) = message.filter(|message| message["error"].is_object()) else {
                if status.is_success() {
                    return Err(body.refused("a listen stream must be text/event-stream (SUB-02)"));
                }
                let text = format!("the server answered {status} without a message");
                return Err(CallError::new(Fault::Status(status), text, &body.exchange));
            };
            if let Err(text) = Check::new(&sent, status, framing).message(&message) {
                return Err(body.refused(text));
            }
            let message = Some(message);
            let (notifications, exchange) = (Vec::new(), body.exchange);
            let reply = Reply {
                status,
                headers,
                framing,
                notifications,
                message,
                extensions,
                sent,
                exchange,
            };
            let text = "the server answers a listen request with a result that is no stream";
            return Err(reply.outcome().err().unwrap_or_else(|| reply.refused(text)));
        }
        let (check, shared) = (ListenCheck::default(), Arc::clone(&self.shared));
        let mut listening = Listening { sent, body, check, shared, result: None, over: false };
        match listening.read().await? {
            Some(_) if listening.check.acknowledged().is_some() => Ok(listening),
            _ => {
                Err(listening.body.refused("the stream ended before it was acknowledged (SUB-03)"))
            }
        }
    }
}

impl Listening {
    /// The part of the filter that the server honours.
    #[must_use]
    pub fn acknowledged(&self) -> &Value {
        self.check.acknowledged().unwrap_or(&Value::Null)
    }

    /// Waits for the next notification; `None` once the stream has ended.
    ///
    /// # Panics
    /// When a conforming client refuses what comes, or the stream breaks off. The message shows the
    /// exchange. See [`try_next`](Self::try_next).
    #[allow(clippy::panic, reason = "a failed test")]
    pub async fn next(&mut self) -> Option<Value> {
        match self.try_next().await {
            Ok(notification) => notification,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for the next notification; `None` once the stream has ended.
    ///
    /// # Errors
    /// When a conforming client refuses what comes, or the stream breaks off.
    pub async fn try_next(&mut self) -> Result<Option<Value>, CallError> {
        if self.over {
            return Ok(None);
        }
        self.read().await
    }

    /// Waits for the next state of a task that the stream listens to (`taskIds`), and skips all
    /// other notifications; `None` once the stream has ended.
    ///
    /// ```
    /// use mcp_edge_test::{CallError, Client, TaskStatus};
    /// use serde_json::json;
    ///
    /// async fn wait(client: Client) -> Result<(), CallError> {
    ///     let client = client.with_tasks();
    ///     let task = client.start("report", ()).await?;
    ///     let mut listening = client.listen(json!({"taskIds": [task.id]})).await?;
    ///     while let Some(task) = listening.next_task().await {
    ///         if task.status.is_terminal() {
    ///             assert_eq!(task.status, TaskStatus::Completed);
    ///             break;
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Panics
    /// As [`next`](Self::next).
    #[allow(clippy::panic, reason = "a failed test")]
    pub async fn next_task(&mut self) -> Option<Task> {
        match self.try_next_task().await {
            Ok(task) => task,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for the next state of a task that the stream listens to (`taskIds`), and skips all
    /// other notifications; `None` once the stream has ended.
    ///
    /// # Errors
    /// When a conforming client refuses what comes, or the stream breaks off.
    pub async fn try_next_task(&mut self) -> Result<Option<Task>, CallError> {
        while let Some(notification) = self.try_next().await? {
            if notification["method"] == "notifications/tasks" {
                let task = Task::read(&notification["params"]);
                let task = task.map_err(|_| self.body.refused("the task is ill-formed"))?;
                return Ok(Some(task));
            }
        }
        Ok(None)
    }

    /// The result with which the server ended the stream. There is none while it is open, nor when
    /// it was cut.
    #[must_use]
    pub const fn result(&self) -> Option<&Value> {
        self.result.as_ref()
    }

    /// Whether the server ended the stream as it should, with a result (SUB-08).
    #[must_use]
    pub const fn ended_gracefully(&self) -> bool {
        self.result.is_some()
    }

    async fn read(&mut self) -> Result<Option<Value>, CallError> {
        let Some(mut message) = next_message(&mut self.body).await? else {
            self.over = true;
            return Ok(None);
        };
        let verdict = self.check.message(&self.sent, &message, &mut self.shared.tasks());
        match verdict {
            Err(text) => Err(self.body.refused(text)),
            Ok(Message::Notification) => Ok(Some(message)),
            Ok(Message::Response) => {
                self.over = true;
                nothing_more(&mut self.body).await?;
                self.result = Some(message["result"].take());
                Ok(None)
            }
        }
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.body.fmt(f)
    }
}
