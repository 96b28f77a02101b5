//! What the client answers when it is asked for input or for its roots (ELIC-10, ROOT-02).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonObject;

/// An answer to a question: `{action, content?}`.
///
/// Where a page was to be opened, `accept` means that the person agreed to open it, not that anything
/// was done there (ELIC-11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// What the person did.
    pub action: ElicitAction,
    /// The filled-in form, when it was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
}

impl ElicitResult {
    /// Makes an answer without content.
    #[must_use]
    pub const fn new(action: ElicitAction) -> Self {
        Self { action, content: None }
    }

    /// Makes an accepted form.
    #[must_use]
    pub const fn accept(content: JsonObject) -> Self {
        Self { action: ElicitAction::Accept, content: Some(content) }
    }

    /// Checks that every value is one that a form can hold: a string, any number, a boolean,
    /// or an array of strings.
    ///
    /// # Errors
    /// A text for the log, which names the member and not its value.
    pub fn check(&self) -> Result<(), String> {
        for (name, value) in self.content.iter().flatten() {
            let fits = match value {
                Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
                Value::Array(items) => items.iter().all(Value::is_string),
                Value::Null | Value::Object(_) => false,
            };
            if !fits {
                return Err(format!("the value of {name:?} fits no form field"));
            }
        }
        Ok(())
    }
}

/// What a person did with a question. Exhaustive: a handler must deal with each (ELIC-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Agreed, with content if it was a form.
    Accept,
    /// Said no.
    Decline,
    /// Went away without an answer.
    Cancel,
}

/// The folders that a client works on: `{roots}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RootsResult {
    /// The folders; may be empty.
    pub roots: Vec<Root>,
}

impl RootsResult {
    /// Makes an answer of folders.
    pub fn new(roots: impl IntoIterator<Item = Root>) -> Self {
        Self { roots: roots.into_iter().collect() }
    }
}

/// A folder or file that a client works on: `{uri, name?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// Where it is: a `file://` URI.
    pub uri: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl Root {
    /// Makes a root from its `file://` URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, meta: None }
    }

    setters! {
        /// Sets the name for people.
        with_name(name: String);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn forms_hold_text_numbers_flags_and_lists_of_text() {
        let answer: ElicitResult = from_value(json!({
            "action": "accept",
            "content": {"s": "x", "i": 30, "f": 0.5, "b": false, "l": ["a"], "e": []},
        }))
        .unwrap();
        assert_eq!(answer.check(), Ok(()));
    }

    #[test]
    fn other_values_are_refused_without_repeating_them() {
        for value in [json!(null), json!({"secret": 1}), json!(["secret", 1]), json!([["secret"]])]
        {
            let content = JsonObject::from_iter([("field".to_owned(), value)]);
            let fault = ElicitResult::accept(content).check().unwrap_err();
            assert!(fault.contains("field") && !fault.contains("secret"), "{fault}");
        }
    }

    #[test]
    fn an_answer_without_content_has_no_such_member() {
        assert_eq!(
            to_value(ElicitResult::new(ElicitAction::Decline)).unwrap(),
            json!({"action": "decline"})
        );
        assert_eq!(ElicitResult::new(ElicitAction::Cancel).check(), Ok(()));
        from_value::<ElicitResult>(json!({"action": "maybe"})).unwrap_err();
    }

    #[test]
    fn roots_may_be_empty_or_named() {
        assert_eq!(to_value(RootsResult::default()).unwrap(), json!({"roots": []}));
        assert_eq!(
            to_value(RootsResult::new([Root::new("file:///w").with_name("w")])).unwrap(),
            json!({"roots": [{"uri": "file:///w", "name": "w"}]})
        );
    }
}
