//! What results and messages are made of (TOOL-16, RES-05, RES-19).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::{JsonObject, Resource, unit_interval};

/// One piece of content: `{type, ..., annotations?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text for a model or a person.
    Text(TextContent),
    /// An image.
    Image(MediaContent),
    /// A sound.
    Audio(MediaContent),
    /// A pointer to a resource that the client may read; it need not be listed (TOOL-17).
    ResourceLink(Box<Resource>),
    /// A resource with what it contains.
    Resource(EmbeddedResource),
}

impl ContentBlock {
    /// Makes a block of text.
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

    /// Makes a pointer to a resource. A [`Resource`] with more members converts with `into`.
    pub fn resource_link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::from(Resource::new(uri, name))
    }

    /// Makes a block that holds the contents of a resource.
    #[must_use]
    pub const fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource { resource: contents, annotations: None, meta: None })
    }

    /// Sets the annotations, which stand beside an embedded resource and not inside it.
    #[must_use]
    pub fn with_annotations(mut self, annotations: Annotations) -> Self {
        let slot = match &mut self {
            Self::Text(block) => &mut block.annotations,
            Self::Image(block) | Self::Audio(block) => &mut block.annotations,
            Self::ResourceLink(block) => &mut block.annotations,
            Self::Resource(block) => &mut block.annotations,
        };
        *slot = Some(annotations);
        self
    }

    /// Sets `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: JsonObject) -> Self {
        let slot = match &mut self {
            Self::Text(block) => &mut block.meta,
            Self::Image(block) | Self::Audio(block) => &mut block.meta,
            Self::ResourceLink(block) => &mut block.meta,
            Self::Resource(block) => &mut block.meta,
        };
        *slot = Some(meta);
        self
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            Self::Image(_) | Self::Audio(_) | Self::ResourceLink(_) | Self::Resource(_) => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<Resource> for ContentBlock {
    fn from(resource: Resource) -> Self {
        Self::ResourceLink(Box::new(resource))
    }
}

impl From<ResourceContents> for ContentBlock {
    fn from(contents: ResourceContents) -> Self {
        Self::resource(contents)
    }
}

/// The members of a text block: `{text, annotations?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// How to use or show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl TextContent {
    /// Makes the members of a text block.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), annotations: None, meta: None }
    }
}

/// The members of an image or sound: `{data, mimeType, annotations?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MediaContent {
    /// The bytes in base64.
    pub data: String,
    /// The MIME type, for example `image/png`.
    pub mime_type: String,
    /// How to use or show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl MediaContent {
    /// Makes the members of an image or sound from its bytes.
    pub fn new(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self {
            data: STANDARD.encode(bytes),
            mime_type: mime_type.into(),
            annotations: None,
            meta: None,
        }
    }

    /// Decodes the bytes; `None` if [`data`](Self::data) is no base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.data).ok()
    }
}

/// The members of a block with a resource inside: `{resource, annotations?, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// How to use or show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

/// What a resource contains: `{uri, mimeType?, text | blob, _meta?}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceContents {
    /// Where it is.
    pub uri: String,
    /// The MIME type, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The member `text` or `blob`.
    #[serde(flatten)]
    pub data: ResourceData,
    /// Further members under `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonObject>,
}

impl ResourceContents {
    /// Makes a text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri.into(), ResourceData::Text(text.into()))
    }

    /// Makes binary contents; the bytes are encoded as base64 (RES-12).
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::new(uri.into(), ResourceData::Blob(STANDARD.encode(bytes)))
    }

    setters! {
        /// Sets the MIME type; content of a prompt must have one (PROMPT-08).
        with_mime_type(mime_type: String);
        /// Sets `_meta`.
        with_meta(meta: JsonObject);
    }

    /// The text, unless the contents are binary.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            ResourceData::Text(text) => Some(text),
            ResourceData::Blob(_) => None,
        }
    }

    /// Decodes binary contents; `None` for text, and for a blob that is no base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.data {
            ResourceData::Text(_) => None,
            ResourceData::Blob(blob) => STANDARD.decode(blob).ok(),
        }
    }

    const fn new(uri: String, data: ResourceData) -> Self {
        Self { uri, mime_type: None, data, meta: None }
    }
}

/// The two forms of contents. Exhaustive: a client must know both to read anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceData {
    /// Plain text.
    Text(String),
    /// Bytes in base64.
    Blob(String),
}

/// Hints for the client on the use of content or of a resource (RES-19).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// For whom it is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// How important it is, from 0 (optional) to 1 (required).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it last changed, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Makes annotations that say nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets for whom it is meant.
        with_audience(audience: Vec<Role>);
        /// Sets when it last changed, in ISO 8601, for example `2025-01-12T15:00:58Z`.
        with_last_modified(last_modified: String);
    }

    /// Sets how important it is; values outside 0..=1 are clamped.
    #[must_use]
    pub fn with_priority(mut self, priority: f64) -> Self {
        self.priority = unit_interval(priority);
        self
    }
}

/// Who speaks, or is spoken to. Exhaustive: the protocol knows these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn bytes_travel_as_base64_and_come_back() {
        let ContentBlock::Image(image) = ContentBlock::image([0, 255, 16], "image/png") else {
            panic!("not an image");
        };
        assert_eq!(image.data, "AP8Q");
        assert_eq!(image.bytes(), Some(vec![0, 255, 16]));

        let blob = ResourceContents::blob("file:///a", b"ab");
        assert_eq!(to_value(&blob).unwrap(), json!({"uri": "file:///a", "blob": "YWI="}));
        assert_eq!(blob.bytes(), Some(b"ab".to_vec()));
        assert_eq!(blob.as_text(), None);
    }

    #[test]
    fn annotations_stand_beside_an_embedded_resource() {
        let block = ContentBlock::resource(
            ResourceContents::text("file:///a", "x").with_mime_type("text/plain"),
        )
        .with_annotations(Annotations::new().with_audience([Role::User]).with_priority(7.0));
        assert_eq!(
            to_value(block).unwrap(),
            json!({
                "type": "resource",
                "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "x"},
                "annotations": {"audience": ["user"], "priority": 1.0},
            })
        );
    }

    #[test]
    fn a_priority_that_is_not_a_number_is_left_out() {
        assert_eq!(Annotations::new().with_priority(f64::NAN).priority, None);
    }

    #[test]
    fn every_kind_takes_annotations_and_meta() {
        let meta = JsonObject::from_iter([("example.com/k".to_owned(), json!(1))]);
        for block in [
            ContentBlock::text("t"),
            ContentBlock::image(b"i", "image/png"),
            ContentBlock::audio(b"a", "audio/wav"),
            ContentBlock::resource_link("file:///a", "a"),
            ContentBlock::resource(ResourceContents::text("file:///a", "x")),
        ] {
            let block = block.with_annotations(Annotations::new().with_last_modified("2025-01-12"));
            let value = to_value(block.with_meta(meta.clone())).unwrap();
            assert_eq!(value["annotations"], json!({"lastModified": "2025-01-12"}));
            assert_eq!(value["_meta"], json!({"example.com/k": 1}));
            let again: ContentBlock = from_value(value.clone()).unwrap();
            assert_eq!(to_value(again).unwrap(), value);
        }
    }

    #[test]
    fn unknown_members_are_skipped_and_unknown_kinds_refused() {
        let block: ContentBlock =
            from_value(json!({"type": "text", "text": "t", "later": [1]})).unwrap();
        assert_eq!(block.as_text(), Some("t"));
        from_value::<ContentBlock>(json!({"type": "hologram"})).unwrap_err();
        from_value::<ResourceContents>(json!({"uri": "file:///a"})).unwrap_err();
        let contents: ResourceContents =
            from_value(json!({"uri": "file:///a", "later": 1, "text": "t"})).unwrap();
        assert_eq!(contents.as_text(), Some("t"));
    }
}
