//! What handlers return.
//!
//! The types hold the members of a result alone; `resultType` and the server's identity are added
//! when the response is written.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{ContentBlock, JsonObject, Role, is_false, present};

/// What a tool gives back (TOOL-11): `{content, structuredContent?, isError?, _meta?}`.
///
/// It is not comparable, since [`structured_content`](Self::structured_content) is JSON text as
/// written. For the same reason it cannot be read through an untagged or flattened type.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResult {
    /// What a model or a person reads; may be empty.
    pub content: Vec<ContentBlock>,
    /// Any JSON value; `Some` of `null` is not the same as `None` (A-43).
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the call failed in a way that the model may act on (TOOL-15).
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl ToolResult {
    /// Makes a result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::from(ContentBlock::text(text))
    }

    /// Makes a failed result, with a text that the model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Makes a result of one structured value and its text; see
    /// [`with_structured`](Self::with_structured).
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn structured(value: impl Serialize) -> Result<Self, serde_json::Error> {
        Self::default().with_structured(value)
    }

    /// Sets the structured value, and adds its JSON as a text block, for clients that read text
    /// only (TOOL-13).
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn with_structured(mut self, value: impl Serialize) -> Result<Self, serde_json::Error> {
        let json = to_raw_value(&value)?;
        self.content.push(ContentBlock::text(json.get()));
        self.structured_content = Some(json);
        Ok(self)
    }

    /// Adds a block.
    #[must_use]
    pub fn with_content(mut self, block: impl Into<ContentBlock>) -> Self {
        self.content.push(block.into());
        self
    }

    setters! {
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

impl From<Vec<ContentBlock>> for ToolResult {
    fn from(content: Vec<ContentBlock>) -> Self {
        Self { content, ..Self::default() }
    }
}

impl From<ContentBlock> for ToolResult {
    fn from(block: ContentBlock) -> Self {
        Self::from(vec![block])
    }
}

impl From<&str> for ToolResult {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A prompt with its arguments filled in (PROMPT-04): `{description?, messages, _meta?}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptResult {
    /// What the prompt is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The conversation to start with.
    pub messages: Vec<PromptMessage>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl PromptResult {
    /// Makes a result of messages.
    pub fn new(messages: impl IntoIterator<Item = PromptMessage>) -> Self {
        Self { description: None, messages: messages.into_iter().collect(), meta: None }
    }

    setters! {
        /// Sets what the prompt is for.
        with_description(description: String);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

impl From<Vec<PromptMessage>> for PromptResult {
    fn from(messages: Vec<PromptMessage>) -> Self {
        Self::new(messages)
    }
}

impl From<PromptMessage> for PromptResult {
    fn from(message: PromptMessage) -> Self {
        Self::new([message])
    }
}

/// One message of a prompt: `{role, content}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// Makes a message from the person.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// Makes a message from the model.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// Suggestions for an argument (COMP-03): `{values, total?, hasMore?}`.
///
/// No instance holds more than [`Completion::MAX_VALUES`]: the rest is cut off, and `hasMore` is set
/// (COMP-08).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Uncut")]
pub struct Completion {
    values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
}

impl Completion {
    /// How many values fit in one answer.
    pub const MAX_VALUES: usize = 100;

    /// Makes an answer of suggestions, best first. Reads at most 101 of them.
    pub fn new<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut rest = values.into_iter();
        let values = rest.by_ref().take(Self::MAX_VALUES).map(Into::into).collect();
        Self { values, total: None, has_more: rest.next().is_some().then_some(true) }
    }

    /// Sets how many suggestions there are, including those not in this answer.
    #[must_use]
    pub const fn with_total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets whether there are more suggestions than in this answer. Where some were cut off there
    /// are, whatever is said here.
    #[must_use]
    pub fn with_has_more(mut self, has_more: bool) -> Self {
        self.has_more = Some(has_more || self.has_more == Some(true));
        self
    }

    /// The suggestions, best first.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// How many suggestions there are, if that is known.
    #[must_use]
    pub const fn total(&self) -> Option<u64> {
        self.total
    }

    /// Whether there are more suggestions, if that is known.
    #[must_use]
    pub const fn has_more(&self) -> Option<bool> {
        self.has_more
    }
}

impl From<Vec<String>> for Completion {
    fn from(values: Vec<String>) -> Self {
        Self::new(values)
    }
}

impl From<Uncut> for Completion {
    fn from(uncut: Uncut) -> Self {
        let cut = Self::new(uncut.values);
        Self { total: uncut.total, has_more: cut.has_more.or(uncut.has_more), ..cut }
    }
}

/// A [`Completion`] as read, of any length.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Uncut {
    values: Vec<String>,
    total: Option<u64>,
    has_more: Option<bool>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_str, from_value, json, to_value};

    use super::*;

    #[test]
    fn a_null_result_is_kept_apart_from_none() {
        let read: ToolResult = from_str(r#"{"content":[],"structuredContent": null}"#).unwrap();
        assert_eq!(read.structured_content.as_deref().map(RawValue::get), Some("null"));
        assert_eq!(to_value(&read).unwrap(), json!({"content": [], "structuredContent": null}));
        let read: ToolResult =
            from_value(json!({"content": [], "structuredContent": null})).unwrap();
        assert!(read.structured_content.is_some());
        let read: ToolResult = from_str(r#"{"content":[]}"#).unwrap();
        assert!(read.structured_content.is_none());
        assert_eq!(to_value(&read).unwrap(), json!({"content": []}));
    }

    #[test]
    fn a_structured_value_is_also_a_text() {
        let result = ToolResult::structured(json!({"sum": 3})).unwrap();
        assert_eq!(
            to_value(result).unwrap(),
            json!({
                "content": [{"type": "text", "text": "{\"sum\":3}"}],
                "structuredContent": {"sum": 3},
            })
        );
        let result = ToolResult::text("none").with_structured(None::<u8>).unwrap();
        assert_eq!(result.content.len(), 2);
        assert_eq!(to_value(result).unwrap()["structuredContent"], Value::Null);
    }

    #[test]
    fn a_value_that_is_no_json_is_an_error() {
        let keyed = std::collections::BTreeMap::from([((1, 2), 3)]);
        ToolResult::structured(keyed).unwrap_err();
    }

    #[test]
    fn only_failures_say_whether_they_failed() {
        assert_eq!(
            to_value(ToolResult::error("no such order")).unwrap(),
            json!({"content": [{"type": "text", "text": "no such order"}], "isError": true})
        );
        let read: ToolResult = from_value(json!({"content": [], "isError": false})).unwrap();
        assert_eq!(to_value(read).unwrap(), json!({"content": []}));
    }

    #[test]
    fn prompts_are_made_of_messages() {
        let result = PromptResult::new([
            PromptMessage::user("review this"),
            PromptMessage::assistant(ContentBlock::text("gladly")),
        ])
        .with_description("review");
        assert_eq!(
            to_value(result).unwrap(),
            json!({
                "description": "review",
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "review this"}},
                    {"role": "assistant", "content": {"type": "text", "text": "gladly"}},
                ],
            })
        );
    }

    #[test]
    fn suggestions_are_cut_at_one_hundred() {
        let exact = Completion::new((0..100).map(|n| n.to_string()));
        assert_eq!((exact.values().len(), exact.has_more()), (100, None));

        let cut = Completion::new((0_u64..).map(|n| n.to_string())).with_has_more(false);
        assert_eq!((cut.values().len(), cut.has_more()), (100, Some(true)));

        let read: Completion =
            from_value(json!({"values": vec!["x"; 101], "total": 101, "hasMore": false})).unwrap();
        assert_eq!((read.values().len(), read.has_more()), (100, Some(true)));
        assert_eq!(read.total(), Some(101));
    }

    #[test]
    fn suggestions_say_what_is_known() {
        assert_eq!(to_value(Completion::new(["a"])).unwrap(), json!({"values": ["a"]}));
        assert_eq!(
            to_value(Completion::from(vec![]).with_total(0).with_has_more(false)).unwrap(),
            json!({"values": [], "total": 0, "hasMore": false})
        );
    }
}
