//! Questions of a server, and what the test answers.

use std::{collections::HashMap, fmt, sync::Arc};

use serde_json::{Map, Value, json};

/// A question of the server: one of the `inputRequests` of a round.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The key that the server chose.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// What is asked; null where the request has no params.
    pub params: Value,
}

impl Question {
    /// What the user reads; empty for anything but an elicitation.
    #[must_use]
    pub fn message(&self) -> &str {
        self.params["message"].as_str().unwrap_or_default()
    }

    /// The schema of a form, if it is one.
    #[must_use]
    pub fn schema(&self) -> Option<&Value> {
        self.params.get("requestedSchema")
    }

    /// The page to open, if it asks for that.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.params["url"].as_str()
    }

    /// The result that accepts an elicitation, with the content of its form. It has none in URL
    /// mode.
    #[must_use]
    pub fn accept(&self, content: impl Into<Value>) -> Value {
        if self.params["mode"] == "url" {
            return json!({ "action": "accept" });
        }
        json!({ "action": "accept", "content": content.into() })
    }

    /// The result that declines an elicitation.
    #[must_use]
    pub fn decline(&self) -> Value {
        json!({ "action": "decline" })
    }

    /// The result that cancels an elicitation.
    #[must_use]
    pub fn cancel(&self) -> Value {
        json!({ "action": "cancel" })
    }

    pub(crate) fn is_elicitation(&self) -> bool {
        self.method == "elicitation/create"
    }

    /// The questions of an `input_required` result.
    pub(crate) fn all(result: &Value) -> Vec<Self> {
        let requests = result["inputRequests"].as_object();
        let question = |(key, request): (&String, &Value)| Self {
            key: key.clone(),
            method: request["method"].as_str().unwrap_or_default().to_owned(),
            params: request["params"].clone(),
        };
        requests.into_iter().flatten().map(question).collect()
    }
}

/// What the test answers.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    by_key: HashMap<String, Answer>,
    /// The newest first.
    closures: Vec<Arc<Closure>>,
}

type Closure = dyn Fn(&Question) -> Option<Value> + Send + Sync;

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Value(Value),
    Decline,
    Cancel,
}

impl Answers {
    pub(crate) fn add(&mut self, key: String, answer: Answer) {
        self.by_key.insert(key, answer);
    }

    pub(crate) fn add_closure(
        &mut self,
        closure: impl Fn(&Question) -> Option<Value> + Send + Sync + 'static,
    ) {
        self.closures.insert(0, Arc::new(closure));
    }

    /// The answers to one round, by key.
    ///
    /// # Errors
    /// The first question without one.
    pub(crate) fn to<'q>(&self, questions: &'q [Question]) -> Result<Value, &'q Question> {
        let answers: Result<Map<String, Value>, &Question> = questions
            .iter()
            .map(|question| {
                let answer = self.one(question).ok_or(question)?;
                Ok((question.key.clone(), answer))
            })
            .collect();
        answers.map(Value::Object)
    }

    fn one(&self, question: &Question) -> Option<Value> {
        match self.by_key.get(&question.key) {
            None => self.closures.iter().find_map(|closure| closure(question)),
            Some(Answer::Value(value)) if question.is_elicitation() => {
                Some(question.accept(value.clone()))
            }
            Some(Answer::Value(value)) => Some(value.clone()),
            Some(Answer::Decline) => Some(question.decline()),
            Some(Answer::Cancel) => Some(question.cancel()),
        }
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("by_key", &self.by_key)
            .field("closures", &self.closures.len())
            .finish()
    }
}
