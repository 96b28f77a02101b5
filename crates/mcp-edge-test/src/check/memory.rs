//! What a client remembers of tasks, to see that they keep to what they said.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Verdict, ensure, input};
use crate::request::Sent;

/// The tasks that a client has seen, by id.
#[derive(Debug, Default)]
pub(crate) struct TaskMemory {
    tasks: HashMap<String, Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What the request that created the task declared, if this client sent it.
    declared: Option<Value>,
    created_at: Option<Value>,
    /// All questions so far.
    questions: Map<String, Value>,
    /// The keys of those that were answered.
    answered: HashSet<String>,
    end: Option<End>,
}

/// How a task ended.
#[derive(Debug)]
struct End {
    status: Value,
    /// Its result or its error. A task that has just been created shows neither.
    payload: Option<Value>,
}

impl TaskMemory {
    /// Whether the task is known to have ended.
    pub(crate) fn is_over(&self, id: &Value) -> bool {
        id.as_str().and_then(|id| self.tasks.get(id)).is_some_and(|known| known.end.is_some())
    }

    /// Whether the client has answered this question of the task.
    pub(crate) fn is_answered(&self, id: &str, key: &str) -> bool {
        self.tasks.get(id).is_some_and(|known| known.answered.contains(key))
    }

    /// Checks an answer that was found sound in itself. `was_over` is whether the task had ended
    /// before it was asked for.
    pub(crate) fn reply(&mut self, sent: &Sent, result: &Value, was_over: bool) -> Verdict {
        if result["resultType"] == "task" {
            let known = self.known(&result["taskId"]);
            known.declared.get_or_insert_with(|| sent.capabilities().clone());
            return self.seen(result, false).map(drop);
        }
        match sent.method.as_str() {
            "tasks/get" => self.seen(result, was_over).map(drop),
            "tasks/update" => {
                let answers = sent.params.get("inputResponses").and_then(Value::as_object);
                let keys = answers.into_iter().flatten().map(|(key, _)| key.clone());
                let id = sent.params.get("taskId").unwrap_or(&Value::Null);
                self.known(id).answered.extend(keys);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks a state that was found sound in itself. `was_over` is whether the task had ended
    /// before: what comes late by another way may be older than what is known. Returns whether it
    /// is an end.
    pub(super) fn seen(&mut self, task: &Value, was_over: bool) -> Verdict<bool> {
        let known = self.known(&task["taskId"]);
        let created_at = known.created_at.get_or_insert_with(|| task["createdAt"].clone());
        ensure(*created_at == task["createdAt"], || {
            format!("createdAt was {created_at} and is {} now (TASK-22)", task["createdAt"])
        })?;
        if let Some(questions) = task["inputRequests"].as_object() {
            known.ask(questions)?;
        }
        let end = End::of(task);
        ensure(end.is_some() || !was_over, || {
            format!("a task that ended is {} again (TASK-15)", task["status"])
        })?;
        let is_end = end.is_some();
        end.map_or(Ok(()), |end| known.end(end))?;
        Ok(is_end)
    }

    fn known(&mut self, id: &Value) -> &mut Known {
        self.tasks.entry(id.as_str().unwrap_or_default().to_owned()).or_default()
    }
}

impl Known {
    fn ask(&mut self, questions: &Map<String, Value>) -> Verdict {
        if let Some(declared) = &self.declared {
            input::entries(declared, questions).map_err(|text| {
                format!(
                    "the request that created the task did not allow for this (TASK-23): {text}"
                )
            })?;
        }
        for (key, question) in questions {
            let first = self.questions.entry(key.clone()).or_insert_with(|| question.clone());
            ensure(first == question, || {
                format!("the question {key:?} was another one before (TASK-20)")
            })?;
        }
        Ok(())
    }

    fn end(&mut self, end: End) -> Verdict {
        let Some(first) = &mut self.end else {
            self.end = Some(end);
            return Ok(());
        };
        ensure(first.status == end.status, || {
            format!("a task that was {} is {} now (TASK-15)", first.status, end.status)
        })?;
        let Some(payload) = end.payload else {
            return Ok(());
        };
        let first = first.payload.get_or_insert_with(|| payload.clone());
        ensure(*first == payload, || "what a task ended with has changed (TASK-15)".to_owned())
    }
}

impl End {
    /// How the task ended, if it did.
    fn of(task: &Value) -> Option<Self> {
        let status = &task["status"];
        let payload = match status.as_str()? {
            "completed" => task.get("result"),
            "failed" => task.get("error"),
            "cancelled" => None,
            _ => return None,
        };
        Some(Self { status: status.clone(), payload: payload.cloned() })
    }
}
