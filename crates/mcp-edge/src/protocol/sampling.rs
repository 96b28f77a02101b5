//! What a client is asked to have its model say, and what it answers (SAMP-03, SAMP-08).
//!
//! New servers should not use it (SAMP-01); the types are here so that servers which do can.

use std::{collections::BTreeSet, ops::Deref};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use super::{
    ContentBlock, JsonObject, MediaContent, Role, TextContent, Tool, is_false, present,
    unit_interval,
};

/// A request to the client's model: `{messages, maxTokens, modelPreferences?, systemPrompt?,
/// includeContext?, temperature?, stopSequences?, metadata?, tools?, toolChoice?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SampleParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// How long the answer may be, in tokens.
    pub max_tokens: u32,
    /// Which model to prefer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt; the client may change or drop it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which context of the client to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely to choose, in the unit of the client's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Members for the provider of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools that the model may use; the server runs them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether the model may or must use them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
}

impl SampleParams {
    /// Makes a request without messages, for an answer of at most `max_tokens` tokens.
    #[must_use]
    pub const fn new(max_tokens: u32) -> Self {
        Self {
            messages: Vec::new(),
            max_tokens,
            model_preferences: None,
            system_prompt: None,
            include_context: None,
            temperature: None,
            stop_sequences: None,
            metadata: None,
            tools: None,
            tool_choice: None,
        }
    }

    /// Adds a message from the person.
    #[must_use]
    pub fn user(self, content: impl Into<SamplingBlocks>) -> Self {
        self.message(SamplingMessage::user(content))
    }

    /// Adds a message from the model.
    #[must_use]
    pub fn assistant(self, content: impl Into<SamplingBlocks>) -> Self {
        self.message(SamplingMessage::assistant(content))
    }

    /// Adds a message; an earlier [`SampleResult`] converts into one.
    #[must_use]
    pub fn message(mut self, message: impl Into<SamplingMessage>) -> Self {
        self.messages.push(message.into());
        self
    }

    setters! {
        /// Sets which model to prefer.
        model_preferences(model_preferences: ModelPreferences);
        /// Sets the system prompt.
        system_prompt(system_prompt: String);
        /// Sets which context of the client to add.
        include_context(include_context: IncludeContext);
        /// Sets how freely to choose, in the unit of the client's model.
        temperature(temperature: f64);
        /// Sets members for the provider of the model.
        metadata(metadata: JsonObject);
        /// Sets the tools that the model may use.
        tools(tools: Vec<Tool>);
        /// Sets whether the model may or must use tools.
        tool_choice(tool_choice: ToolChoice);
    }

    /// Sets the texts that end the answer.
    #[must_use]
    pub fn stop_sequences<S: Into<String>>(
        mut self,
        sequences: impl IntoIterator<Item = S>,
    ) -> Self {
        self.stop_sequences = Some(sequences.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the client must have declared `sampling.tools` (SAMP-02). Messages about the use of
    /// tools count too.
    #[must_use]
    pub fn needs_tools(&self) -> bool {
        self.tools.is_some()
            || self.tool_choice.is_some()
            || self.messages.iter().any(|message| message.content.iter().any(is_about_tools))
    }

    /// Whether the client should have declared `sampling.context` (SAMP-04).
    #[must_use]
    pub const fn needs_context(&self) -> bool {
        matches!(
            self.include_context,
            Some(IncludeContext::ThisServer | IncludeContext::AllServers)
        )
    }

    /// Checks that every use of a tool is answered by the very next message, which comes from the
    /// user and holds one result for each use and nothing else (SAMP-05, SAMP-06).
    ///
    /// # Errors
    /// A text for the log, which names the message by its index.
    pub fn check(&self) -> Result<(), String> {
        let mut open = BTreeSet::new();
        for (index, message) in self.messages.iter().enumerate() {
            let mut answered = BTreeSet::new();
            let mut uses = BTreeSet::new();
            for block in message.content.iter() {
                match (block, message.role) {
                    (SamplingContent::ToolUse(tool_use), Role::Assistant) => {
                        if !uses.insert(tool_use.id.as_str()) {
                            return fault(index, "two uses of a tool have the same id");
                        }
                    }
                    (SamplingContent::ToolUse(_), Role::User) => {
                        return fault(index, "a use of a tool is not from the assistant");
                    }
                    (SamplingContent::ToolResult(result), Role::User) => {
                        if !answered.insert(result.tool_use_id.as_str()) {
                            return fault(index, "a use of a tool has two results");
                        }
                    }
                    (SamplingContent::ToolResult(_), Role::Assistant) => {
                        return fault(index, "a tool's result is not from the user");
                    }
                    (
                        SamplingContent::Text(_)
                        | SamplingContent::Image(_)
                        | SamplingContent::Audio(_),
                        _,
                    ) => {}
                }
            }
            if !answered.is_empty() && answered.len() != message.content.len() {
                return fault(index, "tool results are mixed with other content");
            }
            if answered != open {
                return fault(index, "the tool results do not match the uses before them");
            }
            open = uses;
        }
        if open.is_empty() {
            Ok(())
        } else {
            fault(self.messages.len().saturating_sub(1), "a use of a tool has no result")
        }
    }
}

fn is_about_tools(block: &SamplingContent) -> bool {
    matches!(block, SamplingContent::ToolUse(_) | SamplingContent::ToolResult(_))
}

fn fault(index: usize, text: &str) -> Result<(), String> {
    Err(format!("message {index}: {text}"))
}

/// What the client's model said: `{role, content, model, stopReason?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SampleResult {
    /// Who speaks.
    pub role: Role,
    /// What was said.
    pub content: SamplingBlocks,
    /// The name of the model.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a word of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl SampleResult {
    /// Makes an answer of the named model.
    pub fn new(model: impl Into<String>, content: impl Into<SamplingBlocks>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
        }
    }

    setters! {
        /// Sets why it stopped.
        with_stop_reason(stop_reason: String);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }

    /// The first text in the answer.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.content.iter().find_map(SamplingContent::as_text)
    }

    /// The tools that the model wants to use, each of which needs a result (SAMP-06).
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUseContent> {
        self.content.iter().filter_map(|block| match block {
            SamplingContent::ToolUse(tool_use) => Some(tool_use),
            SamplingContent::Text(_)
            | SamplingContent::Image(_)
            | SamplingContent::Audio(_)
            | SamplingContent::ToolResult(_) => None,
        })
    }
}

/// One message of a conversation: `{role, content, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: SamplingBlocks,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl SamplingMessage {
    /// Makes a message from the person.
    pub fn user(content: impl Into<SamplingBlocks>) -> Self {
        Self { role: Role::User, content: content.into(), meta: None }
    }

    /// Makes a message from the model.
    pub fn assistant(content: impl Into<SamplingBlocks>) -> Self {
        Self { role: Role::Assistant, content: content.into(), meta: None }
    }

    setters! {
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

impl From<SampleResult> for SamplingMessage {
    fn from(result: SampleResult) -> Self {
        Self { role: result.role, content: result.content, meta: result.meta }
    }
}

/// The content of a message: one block, or an array of blocks. Which of the two it was is kept, and
/// written again.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingBlocks {
    blocks: Vec<SamplingContent>,
    /// One block that stands by itself, outside any array.
    is_bare: bool,
}

impl Deref for SamplingBlocks {
    type Target = [SamplingContent];

    fn deref(&self) -> &[SamplingContent] {
        &self.blocks
    }
}

impl IntoIterator for SamplingBlocks {
    type Item = SamplingContent;
    type IntoIter = std::vec::IntoIter<SamplingContent>;

    fn into_iter(self) -> Self::IntoIter {
        self.blocks.into_iter()
    }
}

impl<'a> IntoIterator for &'a SamplingBlocks {
    type Item = &'a SamplingContent;
    type IntoIter = std::slice::Iter<'a, SamplingContent>;

    fn into_iter(self) -> Self::IntoIter {
        self.blocks.iter()
    }
}

impl From<SamplingContent> for SamplingBlocks {
    fn from(block: SamplingContent) -> Self {
        Self { blocks: vec![block], is_bare: true }
    }
}

impl From<Vec<SamplingContent>> for SamplingBlocks {
    fn from(blocks: Vec<SamplingContent>) -> Self {
        Self { blocks, is_bare: false }
    }
}

impl From<&str> for SamplingBlocks {
    fn from(text: &str) -> Self {
        Self::from(SamplingContent::text(text))
    }
}

impl From<String> for SamplingBlocks {
    fn from(text: String) -> Self {
        Self::from(SamplingContent::text(text))
    }
}

impl Serialize for SamplingBlocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.blocks.as_slice() {
            [block] if self.is_bare => block.serialize(serializer),
            blocks => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.is_array() {
            serde_json::from_value::<Vec<_>>(value).map(Self::from)
        } else {
            serde_json::from_value::<SamplingContent>(value).map(Self::from)
        }
        .map_err(D::Error::custom)
    }
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingContent {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(MediaContent),
    /// A sound.
    Audio(MediaContent),
    /// The model wants a tool to be used.
    ToolUse(ToolUseContent),
    /// What the tool gave back.
    ToolResult(ToolResultContent),
}

impl SamplingContent {
    /// Makes a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Makes an image of its bytes, which are encoded as base64, and its MIME type.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(MediaContent::new(bytes, mime_type))
    }

    /// Makes a sound of its bytes, which are encoded as base64, and its MIME type.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(MediaContent::new(bytes, mime_type))
    }

    /// Makes a wish to use a tool.
    pub fn tool_use(id: impl Into<String>, name: impl Into<String>, input: JsonObject) -> Self {
        Self::ToolUse(ToolUseContent::new(id, name, input))
    }

    /// Makes the result of the use with the given id.
    pub fn tool_result(
        tool_use_id: impl Into<String>,
        content: impl Into<Vec<ContentBlock>>,
    ) -> Self {
        Self::ToolResult(ToolResultContent::new(tool_use_id, content))
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            Self::Image(_) | Self::Audio(_) | Self::ToolUse(_) | Self::ToolResult(_) => None,
        }
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for SamplingContent {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ToolResultContent> for SamplingContent {
    fn from(result: ToolResultContent) -> Self {
        Self::ToolResult(result)
    }
}

/// The model wants a tool to be used: `{id, name, input, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUseContent {
    /// What the result refers to.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    pub input: JsonObject,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl ToolUseContent {
    /// Makes a wish to use a tool.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: JsonObject) -> Self {
        Self { id: id.into(), name: name.into(), input, meta: None }
    }

    setters! {
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

/// What a tool gave back: `{toolUseId, content, structuredContent?, isError?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The id of the use that it belongs to.
    pub tool_use_id: String,
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// Any JSON value; `Some` of `null` is not the same as `None`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl ToolResultContent {
    /// Makes the result of the use with the given id.
    pub fn new(tool_use_id: impl Into<String>, content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: content.into(),
            structured_content: None,
            is_error: false,
            meta: None,
        }
    }

    /// Says that the tool failed.
    #[must_use]
    pub const fn with_error(mut self) -> Self {
        self.is_error = true;
        self
    }

    setters! {
        /// Sets the structured value.
        with_structured_content(structured_content: Value);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

/// Which model to prefer: `{hints?, costPriority?, speedPriority?, intelligencePriority?}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names or parts of names, most wanted first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much low cost matters, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

impl ModelPreferences {
    /// Makes preferences that say nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name or a part of one, less wanted than those before.
    #[must_use]
    pub fn with_hint(mut self, name: impl Into<String>) -> Self {
        self.hints.get_or_insert_default().push(ModelHint::new(name));
        self
    }

    /// Sets how much low cost matters; values outside 0..=1 are clamped.
    #[must_use]
    pub fn with_cost_priority(mut self, priority: f64) -> Self {
        self.cost_priority = unit_interval(priority);
        self
    }

    /// Sets how much speed matters; values outside 0..=1 are clamped.
    #[must_use]
    pub fn with_speed_priority(mut self, priority: f64) -> Self {
        self.speed_priority = unit_interval(priority);
        self
    }

    /// Sets how much ability matters; values outside 0..=1 are clamped.
    #[must_use]
    pub fn with_intelligence_priority(mut self, priority: f64) -> Self {
        self.intelligence_priority = unit_interval(priority);
        self
    }
}

/// A wish for a model: `{name?}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// A model's name, or a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// Makes a wish for a model by its name, or a part of it.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()) }
    }
}

/// Which context of the client to add to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IncludeContext {
    /// None; the default.
    None,
    /// That of this server; deprecated by the protocol.
    ThisServer,
    /// That of all servers; deprecated by the protocol.
    AllServers,
}

/// Whether a model may or must use tools: `{mode?}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// The mode; `auto` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

impl ToolChoice {
    /// Makes a choice of the given mode.
    #[must_use]
    pub const fn new(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode) }
    }
}

impl From<ToolChoiceMode> for ToolChoice {
    fn from(mode: ToolChoiceMode) -> Self {
        Self::new(mode)
    }
}

/// Whether a model may or must use tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoiceMode {
    /// It decides by itself.
    Auto,
    /// It uses at least one.
    Required,
    /// It uses none.
    None,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    fn tool_use(id: &str) -> SamplingContent {
        SamplingContent::tool_use(id, "weather", JsonObject::new())
    }

    fn tool_result(id: &str) -> SamplingContent {
        SamplingContent::tool_result(id, [ContentBlock::text("rain")])
    }

    #[test]
    fn a_request_holds_what_was_set_and_nothing_else() {
        let params = SampleParams::new(100)
            .user("Rain?")
            .assistant("Where?")
            .system_prompt("Be brief.")
            .temperature(0.5)
            .stop_sequences(["."])
            .model_preferences(ModelPreferences::new().with_hint("small").with_cost_priority(2.0))
            .include_context(IncludeContext::None)
            .tool_choice(ToolChoiceMode::None);
        assert_eq!(
            to_value(&params).unwrap(),
            json!({
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "Rain?"}},
                    {"role": "assistant", "content": {"type": "text", "text": "Where?"}},
                ],
                "maxTokens": 100,
                "systemPrompt": "Be brief.",
                "temperature": 0.5,
                "stopSequences": ["."],
                "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 1.0},
                "includeContext": "none",
                "toolChoice": {"mode": "none"},
            })
        );
    }

    #[test]
    fn one_block_and_an_array_of_one_stay_apart() {
        let block = json!({"type": "text", "text": "t"});
        for content in [block.clone(), json!([block]), json!([])] {
            let value = json!({"role": "assistant", "content": content, "model": "m"});
            let result: SampleResult = from_value(value.clone()).unwrap();
            assert_eq!(to_value(&result).unwrap(), value);
        }
        from_value::<SamplingBlocks>(json!("t")).unwrap_err();
        let fault = from_value::<SamplingBlocks>(json!([{"type": "hologram"}])).unwrap_err();
        assert!(fault.to_string().contains("hologram"), "{fault}");
    }

    #[test]
    fn a_null_tool_result_is_kept_apart_from_none() {
        let value = json!({
            "type": "tool_result", "toolUseId": "a", "content": [], "structuredContent": null,
        });
        let block: SamplingContent = from_value(value.clone()).unwrap();
        assert_eq!(to_value(&block).unwrap(), value);
        let failed = ToolResultContent::new("a", []).with_error();
        assert_eq!(
            to_value(SamplingContent::from(failed)).unwrap(),
            json!({"type": "tool_result", "toolUseId": "a", "content": [], "isError": true})
        );
    }

    #[test]
    fn tools_are_needed_where_a_request_mentions_them() {
        let plain = SampleParams::new(1).user("x");
        assert!(!plain.needs_tools());
        assert!(plain.clone().tools([]).needs_tools());
        assert!(plain.clone().tool_choice(ToolChoiceMode::Auto).needs_tools());
        assert!(plain.assistant(tool_use("a")).user(tool_result("a")).needs_tools());
    }

    #[test]
    fn context_is_needed_only_where_some_is_asked_for() {
        let plain = SampleParams::new(1);
        assert!(!plain.needs_context());
        assert!(!plain.clone().include_context(IncludeContext::None).needs_context());
        assert!(plain.clone().include_context(IncludeContext::ThisServer).needs_context());
        assert!(plain.include_context(IncludeContext::AllServers).needs_context());
    }

    #[test]
    fn answered_uses_of_tools_pass_the_check_in_any_order() {
        let params = SampleParams::new(1)
            .user("Rain in Paris and London?")
            .message(SampleResult::new(
                "m",
                vec![SamplingContent::text("Looking"), tool_use("a"), tool_use("b")],
            ))
            .user(vec![tool_result("b"), tool_result("a")])
            .assistant(tool_use("a"))
            .user(tool_result("a"))
            .assistant("Yes.");
        assert_eq!(params.check(), Ok(()));
        assert_eq!(SampleParams::new(1).check(), Ok(()));
    }

    #[test]
    fn uses_and_results_that_do_not_pair_fail_the_check() {
        let asked = SampleParams::new(1).user("?").assistant(vec![tool_use("a"), tool_use("b")]);
        let mixed = vec![tool_result("a"), tool_result("b"), SamplingContent::text("and")];
        let repeated = vec![tool_result("a"), tool_result("a"), tool_result("b")];
        for (why, params) in [
            ("never answered", asked.clone()),
            ("not answered at once", asked.clone().user("wait")),
            ("answered in part", asked.clone().user(tool_result("a"))),
            ("answered in two messages", {
                asked.clone().user(tool_result("a")).user(tool_result("b"))
            }),
            ("mixed", asked.clone().user(mixed)),
            ("answered twice", asked.clone().user(repeated)),
            ("a stranger's result", SampleParams::new(1).user(tool_result("a"))),
            ("used by the user", SampleParams::new(1).user(tool_use("a")).user(tool_result("a"))),
            (
                "answered by the assistant",
                asked.assistant(vec![tool_result("a"), tool_result("b")]),
            ),
            (
                "one id for two uses",
                SampleParams::new(1)
                    .assistant(vec![tool_use("a"), tool_use("a")])
                    .user(tool_result("a")),
            ),
        ] {
            assert!(params.check().is_err(), "{why}");
        }
    }

    #[test]
    fn an_answer_gives_its_text_and_the_tools_it_wants() {
        let result = SampleResult::new("m", vec![tool_use("a"), "t".into(), tool_use("b")])
            .with_stop_reason("toolUse");
        assert_eq!(result.as_text(), Some("t"));
        let ids: Vec<_> = result.tool_uses().map(|tool_use| tool_use.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
    }
}
