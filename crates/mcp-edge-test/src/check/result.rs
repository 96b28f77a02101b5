//! Results, by method.

use serde_json::Value;

use super::{Verdict, ensure, fail, input, optional, task};
use crate::{
    mirror,
    request::{Sent, TASKS, VERSION},
};

pub(super) fn check(sent: &Sent, result: &Value) -> Verdict {
    let kind = result["resultType"].as_str().ok_or("a result needs resultType (BASE-09)")?;
    meta(result)?;
    let method = sent.method.as_str();
    match kind {
        "complete" => complete(sent, result),
        "input_required" => {
            let may_ask = matches!(method, "tools/call" | "prompts/get" | "resources/read");
            ensure(may_ask, || format!("{method} cannot ask for input (MRTR-02)"))?;
            input::check(sent.capabilities(), result)
        }
        "task" => {
            let declared = sent.capabilities()["extensions"].get(TASKS).is_some();
            ensure(method == "tools/call" && declared, || {
                format!("{method} cannot answer with a task here (TASK-02, TASK-05)")
            })?;
            task::created(result)
        }
        _ => fail(format!("the resultType {kind:?} is unknown (BASE-10)")),
    }
}

pub(super) fn meta(result: &Value) -> Verdict {
    optional(result, "_meta", Value::is_object, "an object")?;
    let Some(info) = result["_meta"].get("io.modelcontextprotocol/serverInfo") else {
        return Ok(());
    };
    ensure(info["name"].is_string() && info["version"].is_string(), || {
        "serverInfo needs name and version (META-07)".to_owned()
    })
}

fn complete(sent: &Sent, result: &Value) -> Verdict {
    match sent.method.as_str() {
        "server/discover" => discover(result),
        "tools/list" => list(result, "tools", tool),
        "prompts/list" => list(result, "prompts", named),
        "resources/list" => list(result, "resources", |resource| {
            named(resource)?;
            string(resource, "uri")
        }),
        "resources/templates/list" => list(result, "resourceTemplates", |template| {
            named(template)?;
            string(template, "uriTemplate")
        }),
        "resources/read" => {
            let contents = array(result, "contents")?;
            ensure(!contents.is_empty(), || "contents is empty (RES-08)".to_owned())?;
            contents.iter().try_for_each(resource_contents)?;
            caching(result)
        }
        "tools/call" => of_a_tool(result),
        "prompts/get" => array(result, "messages")?.iter().try_for_each(|message| {
            let role = &message["role"];
            ensure(role == "user" || role == "assistant", || format!("{role} is not a role"))?;
            block(&message["content"])
        }),
        "completion/complete" => completion(&result["completion"]),
        "tasks/get" => task::got(sent, result),
        "tasks/update" => task::acknowledged(result, "TASK-28"),
        "tasks/cancel" => task::acknowledged(result, "TASK-32"),
        _ => Ok(()),
    }
}

pub(super) fn of_a_tool(result: &Value) -> Verdict {
    array(result, "content")?.iter().try_for_each(block)?;
    optional(result, "isError", Value::is_boolean, "a boolean")
}

fn discover(result: &Value) -> Verdict {
    let versions = array(result, "supportedVersions")?;
    ensure(versions.iter().all(Value::is_string), || {
        "supportedVersions must be strings (DISC-03)".to_owned()
    })?;
    ensure(versions.iter().any(|version| version == VERSION), || {
        format!("supportedVersions lacks {VERSION}, which was answered (VER-04)")
    })?;
    ensure(result["capabilities"].is_object(), || {
        "capabilities must be an object (DISC-03)".to_owned()
    })?;
    optional(result, "instructions", Value::is_string, "a string")?;
    caching(result)
}

fn list(result: &Value, member: &str, entry: fn(&Value) -> Verdict) -> Verdict {
    array(result, member)?.iter().try_for_each(entry)?;
    optional(result, "nextCursor", Value::is_string, "a string")?;
    caching(result)
}

fn tool(tool: &Value) -> Verdict {
    named(tool)?;
    let (name, schema) = (&tool["name"], &tool["inputSchema"]);
    ensure(schema["type"] == "object", || {
        format!("the inputSchema of tool {name} must have type \"object\" (TOOL-07)")
    })?;
    mirror::check(schema).map_err(|text| format!("clients drop tool {name}: {text}"))
}

fn named(entry: &Value) -> Verdict {
    string(entry, "name")
}

/// CACHE-01 to CACHE-03.
fn caching(result: &Value) -> Verdict {
    ensure(result["ttlMs"].is_u64(), || {
        "ttlMs must be an integer from 0 on (CACHE-02)".to_owned()
    })?;
    let scope = &result["cacheScope"];
    ensure(scope == "public" || scope == "private", || {
        "cacheScope must be \"public\" or \"private\" (CACHE-03)".to_owned()
    })
}

/// TOOL-16.
fn block(block: &Value) -> Verdict {
    match block["type"].as_str() {
        Some("text") => string(block, "text"),
        Some("image" | "audio") => {
            string(block, "data")?;
            string(block, "mimeType")
        }
        Some("resource_link") => {
            named(block)?;
            string(block, "uri")
        }
        Some("resource") => resource_contents(&block["resource"]),
        _ => fail(format!("{} is not a kind of content (TOOL-16)", block["type"])),
    }
}

/// RES-05.
fn resource_contents(contents: &Value) -> Verdict {
    string(contents, "uri")?;
    optional(contents, "mimeType", Value::is_string, "a string")?;
    ensure(contents["text"].is_string() != contents["blob"].is_string(), || {
        "contents have either text or blob (RES-05)".to_owned()
    })
}

/// COMP-03.
fn completion(completion: &Value) -> Verdict {
    let values = array(completion, "values")?;
    ensure(values.len() <= 100, || "more than 100 values (COMP-03)".to_owned())?;
    ensure(values.iter().all(Value::is_string), || "values must be strings".to_owned())?;
    optional(completion, "total", Value::is_u64, "an integer")?;
    optional(completion, "hasMore", Value::is_boolean, "a boolean")
}

fn array<'v>(object: &'v Value, name: &str) -> Verdict<&'v Vec<Value>> {
    object[name].as_array().ok_or_else(|| format!("{name} must be an array"))
}

fn string(object: &Value, name: &str) -> Verdict {
    ensure(object[name].is_string(), || format!("{name} must be a string"))
}
