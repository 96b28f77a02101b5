//! What a tool may answer with: text, images, audio, resources, several of those, or an error.

use mcp_edge::{
    NoArgs, ServerBuilder, ToolError,
    protocol::{ContentBlock, ResourceContents},
};

/// One red pixel.
pub(crate) const PNG: &[u8] = include_bytes!("media/red-pixel.png");
/// Ten milliseconds of silence.
const WAV: &[u8] = include_bytes!("media/silence.wav");

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool("test_simple_text", "Answers with a text", simple_text)
        .tool("test_image_content", "Answers with an image", image)
        .tool("test_audio_content", "Answers with a sound", audio)
        .tool("test_embedded_resource", "Answers with the text of a resource", resource)
        .tool("test_multiple_content_types", "Answers with text, image and resource", mixed)
        .tool("test_error_handling", "Always fails", failure)
}

async fn simple_text(_: NoArgs) -> &'static str {
    "This is a simple text response for testing."
}

async fn image(_: NoArgs) -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}

async fn audio(_: NoArgs) -> ContentBlock {
    ContentBlock::audio(WAV, "audio/wav")
}

async fn resource(_: NoArgs) -> ContentBlock {
    let text = "This is an embedded resource content.";
    let contents = ResourceContents::text("test://embedded-resource", text);
    ContentBlock::resource(contents.with_mime_type("text/plain"))
}

async fn mixed(_: NoArgs) -> Vec<ContentBlock> {
    let json = r#"{"test":"data","value":123}"#;
    let contents = ResourceContents::text("test://mixed-content-resource", json);
    vec![
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::image(PNG, "image/png"),
        ContentBlock::resource(contents.with_mime_type("application/json")),
    ]
}

/// The model reads this text, as a result with `isError`. For an error of another type `?` is
/// enough: its text stays in the log and the model reads a neutral one.
async fn failure(_: NoArgs) -> Result<String, ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}
