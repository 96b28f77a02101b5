//! Every example of the specification is valid, and every example of what a server sends passes
//! through types unchanged.
//!
//! What a message is made of are the public types of `mcp_edge::protocol`, of which a unit test there
//! reads the examples too. What surrounds them is written by the core, and spelled out here.

use std::collections::{BTreeMap, BTreeSet};

use mcp_edge::protocol::{
    Completion, ContentBlock, Implementation, JsonObject, LogLevel, ModelPreferences, Prompt,
    PromptMessage, Resource, ResourceContents, ResourceTemplate, SampleParams, SamplingContent,
    SamplingMessage, Tool,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{schema::Schema, *};

/// Makes types that know their members and no others.
macro_rules! shapes {
    ($($name:ident $(<$t:ident>)? { $($field:ident: $type:ty,)* })*) => { $(
        #[derive(Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        #[allow(non_snake_case, reason = "spelled as on the wire")]
        struct $name $(<$t>)? { $(
            #[serde(skip_serializing_if = "is_null")]
            $field: $type,
        )* }
    )* };
}

shapes! {
    Response<T> { jsonrpc: Version, id: Option<Id>, result: Option<T>, error: Option<Fault>, }
    Notification<T> { jsonrpc: Version, method: String, params: Option<T>, }
    Fault { code: i64, message: String, data: Option<Value>, }

    Discover {
        resultType: String, supportedVersions: Vec<String>, capabilities: Capabilities,
        instructions: Option<String>, ttlMs: u64, cacheScope: String, _meta: Option<Meta>,
    }
    Capabilities {
        experimental: Option<JsonObject>, logging: Option<JsonObject>, completions: Option<JsonObject>,
        prompts: Option<Changes>, resources: Option<Changes>, tools: Option<Changes>,
        extensions: Option<BTreeMap<String, JsonObject>>,
    }
    Changes { subscribe: Option<bool>, listChanged: Option<bool>, }
    Called {
        resultType: String, content: Vec<ContentBlock>, structuredContent: Option<Value>,
        isError: Option<bool>, _meta: Option<Meta>,
    }
    Got {
        resultType: String, description: Option<String>, messages: Vec<PromptMessage>,
        _meta: Option<Meta>,
    }
    // one example lacks the caching fields.
    Read {
        resultType: String, contents: Vec<ResourceContents>, ttlMs: Option<u64>,
        cacheScope: Option<String>, _meta: Option<Meta>,
    }
    Completed { resultType: String, completion: Completion, _meta: Option<Meta>, }
    Tools {
        resultType: String, tools: Vec<Tool>, nextCursor: Option<String>, ttlMs: u64,
        cacheScope: String, _meta: Option<Meta>,
    }
    Prompts {
        resultType: String, prompts: Vec<Prompt>, nextCursor: Option<String>, ttlMs: u64,
        cacheScope: String, _meta: Option<Meta>,
    }
    Resources {
        resultType: String, resources: Vec<Resource>, nextCursor: Option<String>, ttlMs: u64,
        cacheScope: String, _meta: Option<Meta>,
    }
    Templates {
        resultType: String, resourceTemplates: Vec<ResourceTemplate>, nextCursor: Option<String>,
        ttlMs: u64, cacheScope: String, _meta: Option<Meta>,
    }
    Asks {
        resultType: String, inputRequests: Option<BTreeMap<String, Question>>,
        requestState: Option<String>, _meta: Option<Meta>,
    }
    Form { mode: Option<String>, message: String, requestedSchema: Value, }
    Page { mode: String, message: String, url: String, }
    Ended { resultType: String, _meta: Meta, }

    Progress {
        progressToken: Option<Id>, progress: Value, total: Option<Value>, message: Option<String>,
        _meta: Option<Meta>,
    }
    Log { level: Option<LogLevel>, logger: Option<String>, data: Value, _meta: Option<Meta>, }
    Acknowledged { _meta: Option<Meta>, notifications: Filter, }
    Filter {
        toolsListChanged: Option<bool>, promptsListChanged: Option<bool>,
        resourcesListChanged: Option<bool>, resourceSubscriptions: Option<Vec<String>>,
    }
    ListChanged { _meta: Meta, }
    Updated { uri: String, _meta: Option<Meta>, }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    #[serde(
        rename = "io.modelcontextprotocol/serverInfo",
        skip_serializing_if = "Option::is_none"
    )]
    server_info: Option<Implementation>,
    #[serde(
        rename = "io.modelcontextprotocol/subscriptionId",
        skip_serializing_if = "Option::is_none"
    )]
    subscription_id: Option<Id>,
}

#[derive(Deserialize, Serialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(i64),
}

/// An entry of `inputRequests` (MRTR-03).
#[derive(Deserialize, Serialize)]
#[serde(tag = "method", content = "params", deny_unknown_fields)]
enum Question {
    #[serde(rename = "elicitation/create")]
    Elicit(Elicit),
    #[serde(rename = "sampling/createMessage")]
    Sample(Box<SampleParams>),
    #[serde(rename = "roots/list")]
    Roots,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Elicit {
    Page(Page),
    Form(Form),
}

fn is_null(value: &impl Serialize) -> bool {
    serde_json::to_value(value).is_ok_and(|value| value.is_null())
}

/// Reads a value into a type and writes it again.
type RoundTrip = fn(&Value) -> serde_json::Result<Value>;

fn through<T: DeserializeOwned + Serialize>(value: &Value) -> serde_json::Result<Value> {
    // From text, since JSON of free form is kept as it was written.
    serde_json::to_value(serde_json::from_str::<T>(&value.to_string())?)
}

/// What a server sends, by folder.
const SENT: &[(&str, RoundTrip)] = &[
    ("AudioContent", through::<ContentBlock>),
    ("BlobResourceContents", through::<ResourceContents>),
    ("CallToolResult", through::<Called>),
    ("CallToolResultResponse", through::<Response<Called>>),
    ("CompleteResult", through::<Completed>),
    ("CompleteResultResponse", through::<Response<Completed>>),
    ("CreateMessageRequest", through::<Question>),
    ("CreateMessageRequestParams", through::<SampleParams>),
    ("DiscoverResult", through::<Discover>),
    ("DiscoverResultResponse", through::<Response<Discover>>),
    ("ElicitRequest", through::<Question>),
    ("ElicitRequestFormParams", through::<Form>),
    ("ElicitRequestURLParams", through::<Page>),
    ("EmbeddedResource", through::<ContentBlock>),
    ("GetPromptResult", through::<Got>),
    ("GetPromptResultResponse", through::<Response<Got>>),
    ("HeaderMismatchError", through::<Response<Value>>),
    ("ImageContent", through::<ContentBlock>),
    ("InputRequests", through::<BTreeMap<String, Question>>),
    ("InputRequiredResult", through::<Asks>),
    ("InternalError", through::<Fault>),
    ("InvalidParamsError", through::<Fault>),
    ("ListPromptsResult", through::<Prompts>),
    ("ListPromptsResultResponse", through::<Response<Prompts>>),
    ("ListResourceTemplatesResult", through::<Templates>),
    ("ListResourceTemplatesResultResponse", through::<Response<Templates>>),
    ("ListResourcesResult", through::<Resources>),
    ("ListResourcesResultResponse", through::<Response<Resources>>),
    ("ListToolsResult", through::<Tools>),
    ("ListToolsResultResponse", through::<Response<Tools>>),
    ("LoggingMessageNotification", through::<Notification<Log>>),
    ("LoggingMessageNotificationParams", through::<Log>),
    ("MethodNotFoundError", through::<Fault>),
    ("MissingRequiredClientCapabilityError", through::<Response<Value>>),
    ("ModelPreferences", through::<ModelPreferences>),
    ("ParseError", through::<Fault>),
    ("ProgressNotification", through::<Notification<Progress>>),
    ("ProgressNotificationParams", through::<Progress>),
    ("PromptListChangedNotification", through::<Notification<ListChanged>>),
    ("ReadResourceResult", through::<Read>),
    ("ReadResourceResultResponse", through::<Response<Read>>),
    ("Resource", through::<Resource>),
    ("ResourceLink", through::<ContentBlock>),
    ("ResourceListChangedNotification", through::<Notification<ListChanged>>),
    ("ResourceUpdatedNotification", through::<Notification<Updated>>),
    ("ResourceUpdatedNotificationParams", through::<Updated>),
    ("SamplingMessage", through::<SamplingMessage>),
    ("ServerCapabilities", through::<Capabilities>),
    ("SubscriptionsAcknowledgedNotification", through::<Notification<Acknowledged>>),
    ("SubscriptionsListenResult", through::<Ended>),
    ("SubscriptionsListenResultResponse", through::<Response<Ended>>),
    ("TextContent", through::<ContentBlock>),
    ("TextResourceContents", through::<ResourceContents>),
    ("Tool", through::<Tool>),
    ("ToolListChangedNotification", through::<Notification<ListChanged>>),
    ("ToolResultContent", through::<SamplingContent>),
    ("ToolUseContent", through::<SamplingContent>),
    ("UnsupportedProtocolVersionError", through::<Response<Value>>),
];

/// The members of forms, which [`questions`] sends.
const FORM_MEMBERS: &[&str] = &[
    "BooleanSchema",
    "NumberSchema",
    "StringSchema",
    "TitledMultiSelectEnumSchema",
    "TitledSingleSelectEnumSchema",
    "UntitledMultiSelectEnumSchema",
    "UntitledSingleSelectEnumSchema",
];

/// What no server sends: messages of clients, `notifications/cancelled` (over HTTP: A-01), and the
/// question for roots as a request with an id, which it no longer is (MRTR-03).
const NOT_SENT: &[&str] = &[
    "CallToolRequest",
    "CallToolRequestParams",
    "CancelledNotification",
    "CancelledNotificationParams",
    "ClientCapabilities",
    "CompleteRequest",
    "CompleteRequestParams",
    "CreateMessageResult",
    "DiscoverRequest",
    "ElicitResult",
    "GetPromptRequest",
    "GetPromptRequestParams",
    "InputResponses",
    "ListPromptsRequest",
    "ListResourceTemplatesRequest",
    "ListResourcesRequest",
    "ListRootsRequest",
    "ListRootsResult",
    "ListToolsRequest",
    "PaginatedRequestParams",
    "ReadResourceRequest",
    "Root",
    "SubscriptionsListenRequest",
];

#[test]
fn every_kind_of_example_is_known() {
    let Some(spec) = spec() else { return };
    let known = SENT.iter().map(|(folder, _)| folder).chain(FORM_MEMBERS).chain(NOT_SENT);
    let known: BTreeSet<String> = known.map(|folder| (*folder).to_owned()).collect();
    let found = entries(&spec.join("examples")).iter().map(|folder| name(folder)).collect();
    assert_eq!(known, found);
}

#[test]
fn every_example_is_valid() {
    let Some((schema, spec)) = Schema::load().zip(spec()) else { return };
    for folder in entries(&spec.join("examples")) {
        for path in entries(&folder) {
            let valid = schema.check(&name(&folder), &read(&path));
            valid.unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        }
    }
}

#[test]
fn what_a_server_sends_passes_through_types_unchanged() {
    let Some(spec) = spec() else { return };
    for (folder, round_trip) in SENT {
        for path in entries(&spec.join("examples").join(folder)) {
            let example = read(&path);
            let again =
                round_trip(&example).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
            assert_eq!(again, example, "{}", path.display());
        }
    }
}
