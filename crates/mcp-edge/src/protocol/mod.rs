//! The shapes that travel: content, definitions, results, and what a client is asked for.
//!
//! Each type is the members of one JSON object of the protocol revision 2026-07-28, spelled in
//! camelCase on the wire. Absent members are left out rather than written as null, unknown members
//! are skipped when reading (BASE-14), and `_meta` is the field `meta`. What surrounds them is written
//! elsewhere: `resultType`, caching fields and the server's identity are no part of these types.
//!
//! Values are made by constructors and `with_*` methods:
//!
//! ```
//! use mcp_edge::protocol::{Annotations, ContentBlock, Role, ToolResult};
//!
//! let note = ContentBlock::text("3 orders are open")
//!     .with_annotations(Annotations::new().with_audience([Role::User]));
//! let result = ToolResult::from(vec![note]);
//! assert!(!result.is_error);
//! ```

// Setters for optional members; above the modules, since the order of the text decides who sees it.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($field:ident: $type:ty);)+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $field: impl Into<$type>) -> Self {
            self.$field = Some($field.into());
            self
        }
    )+};
}

mod content;
mod definition;
mod elicit;
mod level;
mod result;
mod sampling;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer};

pub use content::{
    Annotations, ContentBlock, EmbeddedResource, MediaContent, ResourceContents, ResourceData,
    Role, TextContent,
};
pub use definition::{
    Icon, IconTheme, Implementation, Prompt, PromptArgument, Resource, ResourceTemplate, Tool,
    ToolAnnotations,
};
pub use elicit::{ElicitAction, ElicitResult, Root, RootsResult};
pub use level::{LogLevel, UnknownLogLevel};
pub use result::{Completion, PromptMessage, PromptResult, ToolResult};
pub use sampling::{
    IncludeContext, ModelHint, ModelPreferences, SampleParams, SampleResult, SamplingBlocks,
    SamplingContent, SamplingMessage, ToolChoice, ToolChoiceMode, ToolResultContent,
    ToolUseContent,
};

/// A JSON object of free form, as in `_meta`.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// Reads a member that is there, so that an explicit null is a value and not an absence (A-43).
fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// For members that are left out when they have their default, `false`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Keeps a weight within 0..=1; one that is not a number is dropped.
fn unit_interval(weight: f64) -> Option<f64> {
    (!weight.is_nan()).then(|| weight.clamp(0.0, 1.0))
}
