//! `input_required` results (MRTR-03 to MRTR-07, MRTR-25).

use serde_json::{Map, Value};

use super::{Verdict, ensure, fail, optional};

pub(super) fn check(capabilities: &Value, result: &Value) -> Verdict {
    for name in ["ttlMs", "cacheScope"] {
        ensure(result.get(name).is_none(), || {
            format!("input_required carries no {name} (MRTR-25)")
        })?;
    }
    optional(result, "requestState", Value::is_string, "a string")?;
    optional(result, "inputRequests", Value::is_object, "an object")?;
    let requests = result["inputRequests"].as_object().filter(|requests| !requests.is_empty());
    ensure(requests.is_some() || result["requestState"].is_string(), || {
        "input_required needs inputRequests or requestState (MRTR-04)".to_owned()
    })?;
    requests.map_or(Ok(()), |requests| entries(capabilities, requests))
}

/// Checks questions, and that `capabilities` declare their kinds.
pub(super) fn entries(capabilities: &Value, requests: &Map<String, Value>) -> Verdict {
    requests.iter().try_for_each(|(key, request)| {
        entry(capabilities, request).map_err(|text| format!("inputRequests[{key:?}]: {text}"))
    })
}

fn entry(capabilities: &Value, request: &Value) -> Verdict {
    for name in ["jsonrpc", "id"] {
        ensure(request.get(name).is_none(), || format!("it has no {name} (MRTR-03)"))?;
    }
    let params = request.get("params").unwrap_or(&Value::Null);
    optional(request, "params", Value::is_object, "an object")?;
    match request["method"].as_str() {
        Some("elicitation/create") => elicitation(capabilities, params),
        Some("sampling/createMessage") => sampling(capabilities, params),
        Some("roots/list") => declared(capabilities.get("roots"), "roots"),
        _ => fail(format!("{} is not a method for input (MRTR-05)", request["method"])),
    }
}

fn elicitation(capabilities: &Value, params: &Value) -> Verdict {
    let elicitation = capabilities.get("elicitation").filter(|elicitation| elicitation.is_object());
    let member = |name: &str| elicitation.and_then(|elicitation| elicitation.get(name));
    ensure(params["message"].is_string(), || "message must be a string (ELIC-01)".to_owned())?;
    match params.get("mode").map_or(Some("form"), Value::as_str) {
        Some("form") => {
            // An empty object declares forms (ELIC-02).
            let empty = elicitation
                .filter(|elicitation| *elicitation == &Value::Object(Default::default()));
            declared(member("form").or(empty), "elicitation.form")?;
            form(&params["requestedSchema"])
        }
        Some("url") => {
            declared(member("url"), "elicitation.url")?;
            let url = params["url"].as_str().unwrap_or_default();
            let sound = url
                .parse::<http::Uri>()
                .is_ok_and(|url| url.scheme().is_some() && url.host().is_some());
            ensure(sound, || format!("{} is not a URL (ELIC-07)", params["url"]))?;
            ensure(params.get("elicitationId").is_none(), || {
                "there is no elicitationId (ELIC-07)".to_owned()
            })
        }
        _ => fail(format!("{} is not a mode (ELIC-01)", params["mode"])),
    }
}

/// A flat object of primitives (ELIC-03, ELIC-04).
fn form(schema: &Value) -> Verdict {
    ensure(schema["type"] == "object", || {
        "requestedSchema must have type \"object\" (ELIC-03)".to_owned()
    })?;
    let properties = schema["properties"].as_object().ok_or("requestedSchema needs properties")?;
    properties.iter().try_for_each(|(name, property)| {
        let primitive = match property["type"].as_str() {
            Some("string" | "number" | "integer" | "boolean") => true,
            Some("array") => ["enum", "anyOf"].iter().any(|key| property["items"][key].is_array()),
            _ => false,
        };
        ensure(primitive, || format!("the form field {name:?} is not flat (ELIC-03)"))
    })
}

fn sampling(capabilities: &Value, params: &Value) -> Verdict {
    let sampling = capabilities.get("sampling");
    declared(sampling, "sampling")?;
    if params.get("tools").or_else(|| params.get("toolChoice")).is_some() {
        declared(sampling.and_then(|sampling| sampling.get("tools")), "sampling.tools")?;
    }
    ensure(params["messages"].is_array(), || "messages must be an array (SAMP-03)".to_owned())?;
    ensure(params["maxTokens"].is_u64(), || "maxTokens must be an integer (SAMP-03)".to_owned())
}

fn declared(capability: Option<&Value>, name: &str) -> Verdict {
    ensure(capability.is_some_and(Value::is_object), || {
        format!("the request did not declare {name} (MRTR-07)")
    })
}
