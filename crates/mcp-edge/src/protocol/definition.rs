//! What the lists describe: tools, prompts, resources, and the server itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Annotations, JsonObject};

/// A tool as listed (TOOL-05): `{name, title?, description?, icons?, inputSchema, outputSchema?,
/// annotations?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// Its name: 1 to 128 characters of `A-Za-z0-9_.-` (TOOL-06).
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// The JSON Schema of its arguments, with `type: "object"` at the root (TOOL-07).
    pub input_schema: Value,
    /// The JSON Schema of its structured result, of any type (SCHEMA-10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints on what it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl Tool {
    /// Makes a tool from its name and the JSON Schema of its arguments.
    pub fn new(name: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            icons: None,
            input_schema,
            output_schema: None,
            annotations: None,
            meta: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Sets what it does.
        with_description(description: String);
        /// Sets the icons.
        with_icons(icons: Vec<Icon>);
        /// Sets the JSON Schema of the structured result.
        with_output_schema(output_schema: Value);
        /// Sets the hints.
        with_annotations(annotations: ToolAnnotations);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

/// Hints on what a tool does, which nobody may rely on (TOOL-21).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Its name for people; [`Tool::title`] comes first (TOOL-22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it leaves everything as it is; false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether it may destroy something; true if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether a second call with the same arguments changes nothing more; false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether it deals with things outside a closed set; true if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Makes hints that say nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Sets whether it leaves everything as it is.
        with_read_only_hint(read_only_hint: bool);
        /// Sets whether it may destroy something.
        with_destructive_hint(destructive_hint: bool);
        /// Sets whether a second call with the same arguments changes nothing more.
        with_idempotent_hint(idempotent_hint: bool);
        /// Sets whether it deals with things outside a closed set.
        with_open_world_hint(open_world_hint: bool);
    }
}

/// A prompt as listed (PROMPT-03): `{name, title?, description?, arguments?, icons?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What can be filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<PromptArgument>>,
    /// Its icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl Prompt {
    /// Makes a prompt without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: None,
            icons: None,
            meta: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Sets what it is for.
        with_description(description: String);
        /// Sets what can be filled in.
        with_arguments(arguments: Vec<PromptArgument>);
        /// Sets the icons.
        with_icons(icons: Vec<Icon>);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

/// What can be filled in to a prompt: `{name, title?, description?, required?}`. Values are strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be there; false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// Makes an argument that may be left out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, required: None }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Sets what it means.
        with_description(description: String);
        /// Sets whether it must be there.
        with_required(required: bool);
    }
}

/// A resource as listed or linked (RES-04): `{uri, name, title?, description?, mimeType?, size?,
/// icons?, annotations?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its MIME type, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes, before any encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Its icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// How to use or show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl Resource {
    /// Makes a resource from its URI (RFC 3986) and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: None,
            annotations: None,
            meta: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Sets what it holds.
        with_description(description: String);
        /// Sets the MIME type.
        with_mime_type(mime_type: String);
        /// Sets the icons.
        with_icons(icons: Vec<Icon>);
        /// Sets how to use or show it.
        with_annotations(annotations: Annotations);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }

    /// Sets the size in bytes, before any encoding.
    #[must_use]
    pub const fn with_size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }
}

/// A family of resources (RES-03): `{uriTemplate, name, title?, description?, mimeType?, icons?,
/// annotations?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The template (RFC 6570) that gives the URIs.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resources hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type, if all resources have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// How to use or show the resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl ResourceTemplate {
    /// Makes a family of resources from its URI template (RFC 6570) and name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            icons: None,
            annotations: None,
            meta: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Sets what the resources hold.
        with_description(description: String);
        /// Sets the MIME type that all resources have.
        with_mime_type(mime_type: String);
        /// Sets the icons.
        with_icons(icons: Vec<Icon>);
        /// Sets how to use or show the resources.
        with_annotations(annotations: Annotations);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }
}

/// Who a server or client is: `{name, version, title?, description?, websiteUrl?, icons?}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Its icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
}

impl Implementation {
    /// Makes an identity from name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            description: None,
            website_url: None,
            icons: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Sets what it is for.
        with_description(description: String);
        /// Sets where to read more.
        with_website_url(website_url: String);
        /// Sets the icons.
        with_icons(icons: Vec<Icon>);
    }
}

/// A picture to show beside a name: `{src, mimeType?, sizes?, theme?}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// Where it is: an HTTP(S) or `data:` URI.
    pub src: String,
    /// Its MIME type, if the source does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes it is good for, as `48x48` or `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background it is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl Icon {
    /// Makes an icon from its URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: None, theme: None }
    }

    setters! {
        /// Sets the MIME type.
        with_mime_type(mime_type: String);
        /// Sets the background it is made for.
        with_theme(theme: IconTheme);
    }

    /// Sets the sizes it is good for, as `48x48` or `any`.
    #[must_use]
    pub fn with_sizes<S: Into<String>>(mut self, sizes: impl IntoIterator<Item = S>) -> Self {
        self.sizes = Some(sizes.into_iter().map(Into::into).collect());
        self
    }
}

/// The background that an icon is made for. Exhaustive: the protocol knows these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn a_tool_passes_its_schemas_through_untouched() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"a": {"$anchor": "a"}},
            "x-vendor": {"k": null},
        });
        let tool = Tool::new("t", schema.clone())
            .with_title("T")
            .with_output_schema(json!(true))
            .with_annotations(ToolAnnotations::new().with_read_only_hint(true));
        assert_eq!(
            to_value(&tool).unwrap(),
            json!({
                "name": "t",
                "title": "T",
                "inputSchema": schema,
                "outputSchema": true,
                "annotations": {"readOnlyHint": true},
            })
        );
    }

    #[test]
    fn optional_members_are_left_out() {
        assert_eq!(to_value(Prompt::new("p")).unwrap(), json!({"name": "p"}));
        assert_eq!(
            to_value(ResourceTemplate::new("file:///{p}", "f")).unwrap(),
            json!({"uriTemplate": "file:///{p}", "name": "f"})
        );
        assert_eq!(
            to_value(Implementation::new("n", "1").with_website_url("https://example.com"))
                .unwrap(),
            json!({"name": "n", "version": "1", "websiteUrl": "https://example.com"})
        );
    }

    #[test]
    fn an_icon_names_its_sizes_and_theme() {
        let icon = Icon::new("https://example.com/i.png")
            .with_sizes(["48x48", "any"])
            .with_theme(IconTheme::Dark);
        assert_eq!(
            to_value(icon).unwrap(),
            json!({"src": "https://example.com/i.png", "sizes": ["48x48", "any"], "theme": "dark"})
        );
    }
}
