//! Resources: text, bytes, one that changes, and a template for many.

use std::time::Duration;

use mcp_edge::{
    CacheHints, Cx, NoArgs, ServerBuilder, Vars,
    protocol::{Annotations, Role},
};
use serde::Deserialize;
use serde_json::json;

use crate::content::PNG;

/// The resource that clients can watch.
pub(crate) const WATCHED: &str = "test://watched-resource";

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    let hour = Duration::from_secs(3600);
    server
        .resource_with("test://static-text", "static-text", static_text, |resource| {
            resource
                .title("Static text")
                .description("A text that never changes")
                .mime_type("text/plain")
                .cache(CacheHints::public(hour))
        })
        .resource_with("test://static-binary", "static-binary", static_binary, |resource| {
            resource
                .description("A picture of one red pixel")
                .mime_type("image/png")
                .size(PNG.len() as u64)
                .annotations(Annotations::new().with_audience([Role::User]).with_priority(0.1))
                .cache(CacheHints::public(hour))
        })
        // Without cache hints nobody keeps what was read.
        .resource_with(WATCHED, "watched-resource", watched, |resource| {
            resource.description("A text that differs at each reading").mime_type("text/plain")
        })
        .template_with("test://template/{id}/data", "template", from_template, |template| {
            template
                .description("Data for whatever id stands in the URI")
                .mime_type("application/json")
                .cache(CacheHints::private(hour))
                .complete_values("id", ["1", "12", "123"])
        })
}

async fn static_text(_: NoArgs) -> &'static str {
    "This is the content of the static text resource."
}

async fn static_binary(_: NoArgs) -> Vec<u8> {
    PNG.to_vec()
}

async fn watched(cx: Cx, _: NoArgs) -> String {
    format!("Read {} ms after the beginning of 1970.", cx.started_at().as_millis())
}

/// A field for each variable of the template.
#[derive(Deserialize)]
struct Template {
    id: String,
}

async fn from_template(Vars(Template { id }): Vars<Template>) -> String {
    let data = format!("Data for ID: {id}");
    json!({ "id": id, "templateTest": true, "data": data }).to_string()
}
