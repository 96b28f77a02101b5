//! Messages of a listen stream (SUB-03 to SUB-08).

use std::collections::HashSet;

use http::StatusCode;
use serde_json::Value;

use super::{
    Envelope, Head, Message, Outcome, TaskMemory, Verdict, ensure, envelope, fail, optional,
    response, task,
};
use crate::{reply::Framing, request::Sent};

/// The messages of one listen stream.
#[derive(Debug, Default)]
pub(crate) struct ListenCheck {
    /// What the server honours, once it said so.
    acknowledged: Option<Value>,
    /// The ids of the tasks whose end was told.
    ended: HashSet<String>,
}

impl ListenCheck {
    /// The part of the filter that the server honours.
    pub(crate) const fn acknowledged(&self) -> Option<&Value> {
        self.acknowledged.as_ref()
    }

    /// Checks the next message.
    pub(crate) fn message(
        &mut self,
        sent: &Sent,
        message: &Value,
        memory: &mut TaskMemory,
    ) -> Verdict<Message> {
        match envelope(message)? {
            Envelope::Notification { method, params } => {
                self.notification(sent, method, params)?;
                if method == "notifications/tasks" {
                    self.task(params, memory)?;
                }
                Ok(Message::Notification)
            }
            Envelope::Response { id, outcome } => {
                if let Outcome::Result(result) = outcome {
                    ensure(self.acknowledged.is_some(), not_acknowledged)?;
                    tagged(sent, result)?;
                    ensure(result["resultType"] == "complete", || {
                        "a listen stream ends with a complete result (SUB-08)".to_owned()
                    })?;
                }
                response(sent, HEAD, id, outcome)?;
                Ok(Message::Response)
            }
        }
    }

    fn notification(&mut self, sent: &Sent, method: &str, params: &Value) -> Verdict {
        let is_acknowledgement = method == "notifications/subscriptions/acknowledged";
        let Some(honoured) = &self.acknowledged else {
            ensure(is_acknowledgement, not_acknowledged)?;
            tagged(sent, params)?;
            let honoured = &params["notifications"];
            subset(honoured, &sent.params["notifications"])?;
            self.acknowledged = Some(honoured.clone());
            return Ok(());
        };
        ensure(!is_acknowledgement, || "a stream is acknowledged once (SUB-03)".to_owned())?;
        tagged(sent, params)?;
        let asked = match method {
            "notifications/tools/list_changed" => honoured["toolsListChanged"] == true,
            "notifications/prompts/list_changed" => honoured["promptsListChanged"] == true,
            "notifications/resources/list_changed" => honoured["resourcesListChanged"] == true,
            "notifications/resources/updated" => {
                let uri = params["uri"].as_str().ok_or("uri must be a string (RES-17)")?;
                // It may lie below the one that is watched (RES-17).
                let watched = honoured["resourceSubscriptions"].as_array();
                let mut watched = watched.into_iter().flatten().filter_map(Value::as_str);
                watched.any(|watched| uri.starts_with(watched))
            }
            "notifications/tasks" => {
                let ids = honoured["taskIds"].as_array();
                ids.is_some_and(|ids| ids.contains(&params["taskId"]))
            }
            _ => return fail(format!("{method} does not belong on a listen stream (SUB-11)")),
        };
        ensure(asked, || format!("{method} was not asked for, or not acknowledged (SUB-05)"))
    }

    /// Checks the state of a task.
    fn task(&mut self, task: &Value, memory: &mut TaskMemory) -> Verdict {
        ensure(task.get("resultType").is_none(), || {
            "a notification of a task has no resultType (TASK-34)".to_owned()
        })?;
        task::detailed(task)?;
        let id = task["taskId"].as_str().unwrap_or_default();
        if memory.seen(task, self.ended.contains(id))? {
            self.ended.insert(id.to_owned());
        }
        Ok(())
    }
}

const HEAD: Head = Head { status: StatusCode::OK, framing: Framing::Sse };

fn not_acknowledged() -> String {
    "the first message of a listen stream acknowledges it (SUB-03)".to_owned()
}

/// Each message carries the id of the listen request, with its type (SUB-06).
fn tagged(sent: &Sent, params: &Value) -> Verdict {
    let tag = params["_meta"].get("io.modelcontextprotocol/subscriptionId");
    ensure(tag == Some(&sent.id), || match tag {
        None => "a message of a listen stream needs its subscriptionId (META-14)".to_owned(),
        Some(tag) => format!("the subscriptionId is {tag}, not {} (SUB-06)", sent.id),
    })
}

/// No more is honoured than was asked for (SUB-04).
fn subset(honoured: &Value, asked: &Value) -> Verdict {
    let members = honoured.as_object().ok_or("notifications must be an object (SUB-03)")?;
    for name in ["toolsListChanged", "promptsListChanged", "resourcesListChanged"] {
        optional(honoured, name, Value::is_boolean, "a boolean")?;
    }
    for name in ["resourceSubscriptions", "taskIds"] {
        optional(honoured, name, Value::is_array, "an array")?;
    }
    members.iter().try_for_each(|(name, value)| {
        let asked = &asked[name];
        let fits = match value {
            Value::Bool(false) => true,
            Value::Array(values) => values
                .iter()
                .all(|value| asked.as_array().is_some_and(|asked| asked.contains(value))),
            value => value == asked,
        };
        ensure(fits, || format!("{name} is acknowledged and was not asked for (SUB-05)"))
    })
}
