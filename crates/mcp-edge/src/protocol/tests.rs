//! The example files of the specification pass through the types unchanged.
//!
//! The files are not part of this repository. They are looked for in `$MCP_SPEC_DIR/examples`, by
//! default `../shared/spec` beside the workspace; the test is skipped where there are none.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_str, to_value};

use super::*;

/// One kind of example file, and what of it the types cover.
struct Kind {
    folder: &'static str,
    /// JSON pointers of the covered values; a trailing `*` stands for every item of an array.
    pointers: &'static [&'static str],
    round_trip: fn(&str) -> serde_json::Result<Value>,
}

const fn kind<T: DeserializeOwned + Serialize>(
    folder: &'static str,
    pointers: &'static [&'static str],
) -> Kind {
    Kind {
        folder,
        pointers,
        round_trip: |text| {
            let value: T = from_str(text)?;
            to_value(value)
        },
    }
}

const KINDS: &[Kind] = &[
    kind::<ContentBlock>("AudioContent", &[""]),
    kind::<ContentBlock>("EmbeddedResource", &[""]),
    kind::<ContentBlock>("ImageContent", &[""]),
    kind::<ContentBlock>("ResourceLink", &[""]),
    kind::<ContentBlock>("TextContent", &[""]),
    kind::<ResourceContents>("BlobResourceContents", &[""]),
    kind::<ResourceContents>("TextResourceContents", &[""]),
    kind::<ResourceContents>("ReadResourceResult", &["/contents/*"]),
    kind::<ResourceContents>("ReadResourceResultResponse", &["/result/contents/*"]),
    kind::<Implementation>("DiscoverResult", &["/_meta/io.modelcontextprotocol~1serverInfo"]),
    kind::<Tool>("Tool", &[""]),
    kind::<Tool>("ListToolsResult", &["/tools/*"]),
    kind::<Tool>("ListToolsResultResponse", &["/result/tools/*"]),
    kind::<Prompt>("ListPromptsResult", &["/prompts/*"]),
    kind::<Prompt>("ListPromptsResultResponse", &["/result/prompts/*"]),
    kind::<Resource>("Resource", &[""]),
    kind::<Resource>("ListResourcesResult", &["/resources/*"]),
    kind::<Resource>("ListResourcesResultResponse", &["/result/resources/*"]),
    kind::<ResourceTemplate>("ListResourceTemplatesResult", &["/resourceTemplates/*"]),
    kind::<ResourceTemplate>(
        "ListResourceTemplatesResultResponse",
        &["/result/resourceTemplates/*"],
    ),
    kind::<ToolResult>("CallToolResult", &[""]),
    kind::<ToolResult>("CallToolResultResponse", &["/result"]),
    kind::<PromptResult>("GetPromptResult", &[""]),
    kind::<PromptResult>("GetPromptResultResponse", &["/result"]),
    kind::<Completion>("CompleteResult", &["/completion"]),
    kind::<Completion>("CompleteResultResponse", &["/result/completion"]),
    kind::<LogLevel>("LoggingMessageNotification", &["/params/level"]),
    kind::<LogLevel>("LoggingMessageNotificationParams", &["/level"]),
    kind::<SampleParams>("CreateMessageRequest", &["/params"]),
    kind::<SampleParams>("CreateMessageRequestParams", &[""]),
    kind::<SampleParams>("InputRequests", &["/capital_of_france/params"]),
    kind::<ModelPreferences>("ModelPreferences", &[""]),
    kind::<SamplingMessage>("SamplingMessage", &[""]),
    kind::<SamplingContent>("ToolResultContent", &[""]),
    kind::<SamplingContent>("ToolUseContent", &[""]),
    kind::<SampleResult>("CreateMessageResult", &[""]),
    kind::<SampleResult>("InputResponses", &["/capital_of_france"]),
    kind::<ElicitResult>("ElicitResult", &[""]),
    kind::<ElicitResult>("InputResponses", &["/github_login"]),
    kind::<RootsResult>("ListRootsResult", &[""]),
    kind::<Root>("Root", &[""]),
];

#[test]
fn examples_of_the_specification_pass_unchanged() {
    let Some(examples) = examples() else {
        eprintln!("SKIPPED: no examples of the specification; set MCP_SPEC_DIR to their parent");
        return;
    };
    for kind in KINDS {
        for path in files(&examples.join(kind.folder)) {
            let document: Value = from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            for value in kind.pointers.iter().flat_map(|pointer| select(&document, pointer)) {
                let again = (kind.round_trip)(&value.to_string())
                    .unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
                assert_eq!(again, covered(value), "{}", path.display());
            }
        }
    }
}

#[test]
fn sampling_examples_pair_their_tool_results() {
    let Some(examples) = examples() else {
        eprintln!("SKIPPED: no examples of the specification; set MCP_SPEC_DIR to their parent");
        return;
    };
    for path in files(&examples.join("CreateMessageRequestParams")) {
        let params: SampleParams = from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(params.check(), Ok(()), "{}", path.display());
    }
}

fn examples() -> Option<PathBuf> {
    let spec = std::env::var_os("MCP_SPEC_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec"),
        PathBuf::from,
    );
    Some(spec.join("examples")).filter(|folder| folder.is_dir())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|fault| {
        panic!("{}: {fault}", folder.display());
    });
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.sort();
    files
}

fn select<'a>(document: &'a Value, pointer: &str) -> Vec<&'a Value> {
    match pointer.strip_suffix("/*") {
        Some(list) => document.pointer(list).unwrap().as_array().unwrap().iter().collect(),
        None => vec![document.pointer(pointer).unwrap()],
    }
}

/// The members that the types cover: without `resultType`, which is added when the response is
/// written, and without an `isError` that says what its absence says.
fn covered(value: &Value) -> Value {
    let mut value = value.clone();
    if let Value::Object(members) = &mut value {
        members.remove("resultType");
        if members.get("isError") == Some(&Value::Bool(false)) {
            members.remove("isError");
        }
    }
    value
}
