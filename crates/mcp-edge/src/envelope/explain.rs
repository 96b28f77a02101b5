//! The slow path: reads a body once more, member by member, to find out what is wrong with it.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    CAPABILITIES_KEY, Capabilities, Declared, Elicitation, Envelope, Fault, LOG_LEVEL_KEY, Meta,
    Params, Sampling, VERSION_KEY, is_id,
};
use crate::{rejection::Rejection, scan::Scanner};

/// Reads what the strict pass could not.
///
/// # Errors
/// The refusal that fits, and the id if it could be read. A body whose envelope is sound comes back
/// as an [`Envelope`] with a [`Fault`], since headers and version are checked before its params.
pub(super) fn explain(text: &str, depth: usize) -> Result<Envelope<'_>, (Rejection, Option<&str>)> {
    if nesting(text) > depth {
        let fault = format!("the body is nested more than {depth} deep");
        return Err((Rejection::Unreadable { fault }, None));
    }
    if let Err(error) = serde_json::from_str::<&RawValue>(text) {
        return Err((Rejection::Unreadable { fault: error.to_string() }, None));
    }
    let refuse = |fault, id| Err((Rejection::NotARequest { fault }, id));
    if text.trim_start().starts_with('[') {
        return refuse("batches are not accepted", None);
    }
    let members = match object(text, &MESSAGE) {
        Ok(Some(members)) => members,
        Ok(None) => return refuse("the body must be one JSON object", None),
        Err(fault) => return Err((fault, None)),
    };
    let id = members.get("id").copied();
    if id.is_some_and(|id| !is_id(id)) {
        return refuse("id must be a string or an integer", None);
    }
    let member = |name: &str| members.get(name).and_then(|json| string(json));
    if member("jsonrpc").is_none_or(|version| version != "2.0") {
        return refuse("jsonrpc must be \"2.0\"", id);
    }
    if members.contains_key("result") || members.contains_key("error") {
        return refuse("responses are not accepted", id);
    }
    let Some(method) = member("method") else {
        return refuse("method must be a string", id);
    };
    let params = match members.get("params").filter(|params| **params != "null") {
        None => Params::default(),
        Some(params) => explain_params(params).map_err(|fault| (fault, id))?,
    };
    Ok(Envelope { id, method, params })
}

fn explain_params(text: &str) -> Result<Params<'_>, Rejection> {
    let Some(members) = object(text, &PARAMS)? else {
        return Ok(Params { fault: Some(Fault::Meta("_meta")), ..Params::default() });
    };
    let mut fault = None;
    let meta = match members.get("_meta") {
        None => None,
        Some(meta) => match explain_meta(meta)? {
            Ok(meta) => Some(meta),
            Err(key) => {
                fault = Some(Fault::Meta(key));
                None
            }
        },
    };
    let mut text = |name: &'static str| {
        let text = string(members.get(name)?);
        if text.is_none() {
            fault = fault.or(Some(Fault::Member { name, expected: "a string" }));
        }
        text
    };
    let raw = |name: &str| members.get(name).copied();
    Ok(Params {
        meta,
        name: text("name"),
        uri: text("uri"),
        cursor: text("cursor"),
        task_id: text("taskId"),
        request_state: text("requestState"),
        protocol_version: text("protocolVersion"),
        arguments: raw("arguments"),
        input_responses: raw("inputResponses"),
        notifications: raw("notifications"),
        r#ref: raw("ref"),
        argument: raw("argument"),
        context: raw("context"),
        fault,
    })
}

/// The metadata, or the key that is wrong.
fn explain_meta(text: &str) -> Result<Result<Meta<'_>, &'static str>, Rejection> {
    let Some(members) = object(text, &META)? else {
        return Ok(Err("_meta"));
    };
    let version = members.get(VERSION_KEY).and_then(|version| string(version));
    let capabilities = match members.get(CAPABILITIES_KEY) {
        None => None,
        Some(value) => object(value, &CAPABILITIES)?.map(|members| explain_capabilities(&members)),
    };
    // A required key that is absent is found by the ladder; here one may be of the wrong type.
    if version.is_none() && members.contains_key(VERSION_KEY) {
        return Ok(Err("_meta[\"io.modelcontextprotocol/protocolVersion\"]"));
    }
    if capabilities.is_none() && members.contains_key(CAPABILITIES_KEY) {
        return Ok(Err("_meta[\"io.modelcontextprotocol/clientCapabilities\"]"));
    }
    Ok(Ok(Meta {
        version,
        capabilities,
        log_level: members.get(LOG_LEVEL_KEY).copied(),
        progress_token: members.get("progressToken").copied(),
        traceparent: members.get("traceparent").copied(),
        tracestate: members.get("tracestate").copied(),
        baggage: members.get("baggage").copied(),
    }))
}

/// Capabilities of the wrong type count as not declared (A-33, META-13).
fn explain_capabilities<'a>(members: &BTreeMap<String, &'a str>) -> Capabilities<'a> {
    let nested = |name: &str, known: &[&str]| {
        members.get(name).and_then(|value| object(value, known).ok()?)
    };
    let declared = |members: &BTreeMap<String, &str>, name: &str| {
        let value = members.get(name)?;
        object(value, &[]).ok()?.map(|_| Declared)
    };
    Capabilities {
        roots: declared(members, "roots"),
        sampling: nested("sampling", &["context", "tools"]).map(|sampling| Sampling {
            context: declared(&sampling, "context"),
            tools: declared(&sampling, "tools"),
        }),
        elicitation: nested("elicitation", &["form", "url"]).map(|elicitation| Elicitation {
            form: declared(&elicitation, "form"),
            url: declared(&elicitation, "url"),
        }),
        extensions: nested("extensions", &[]).and_then(|_| members.get("extensions").copied()),
    }
}

// The members that the strict pass takes. It skips others without looking at their names, so these
// alone are refused when they repeat.
const MESSAGE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMS: [&str; 13] = [
    "_meta",
    "name",
    "uri",
    "arguments",
    "cursor",
    "taskId",
    "inputResponses",
    "requestState",
    "notifications",
    "ref",
    "argument",
    "context",
    "protocolVersion",
];
const META: [&str; 7] = [
    VERSION_KEY,
    CAPABILITIES_KEY,
    LOG_LEVEL_KEY,
    "progressToken",
    "traceparent",
    "tracestate",
    "baggage",
];
const CAPABILITIES: [&str; 4] = ["roots", "sampling", "elicitation", "extensions"];

/// The members of a JSON object, each of the `known` ones at most once; `None` for any other value.
/// Valid JSON is given.
fn object<'a>(
    text: &'a str,
    known: &[&str],
) -> Result<Option<BTreeMap<String, &'a str>>, Rejection> {
    struct Members<'k>(&'k [&'k str]);
    impl<'de> DeserializeSeed<'de> for Members<'_> {
        type Value = BTreeMap<String, &'de str>;

        fn deserialize<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_map(self)
        }
    }
    impl<'de> Visitor<'de> for Members<'_> {
        type Value = BTreeMap<String, &'de str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                if members.contains_key(&key) && self.0.contains(&key.as_str()) {
                    return Err(A::Error::custom(format_args!("duplicate member {key:?}")));
                }
                members.insert(key, map.next_value::<&RawValue>()?.get());
            }
            Ok(members)
        }
    }
    if !text.trim_start().starts_with('{') {
        return Ok(None);
    }
    match Members(known).deserialize(&mut serde_json::Deserializer::from_str(text)) {
        Ok(members) => Ok(Some(members)),
        Err(error) => Err(Rejection::Unreadable { fault: error.to_string() }),
    }
}

/// How deep a text is nested, whether or not it is JSON: brackets outside strings.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn string(json: &str) -> Option<Cow<'_, str>> {
    Scanner::new(json, 0).string()
}
