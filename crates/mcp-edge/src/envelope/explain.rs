//! The slow path: reads a body once more, member by member, to find out what is wrong with it.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, de::DeserializeSeed as _};
use serde_json::value::RawValue;

use super::{
    CAPABILITIES_KEY, Capabilities, Declared, Elicitation, Envelope, Fault, LOG_LEVEL_KEY, Meta,
    Params, Sampling, TextSeed, VERSION_KEY, is_id,
};
use crate::rejection::Rejection;

/// Reads what the strict pass could not.
///
/// # Errors
/// The refusal that fits, and the id if it could be read. A body whose envelope is sound comes back
/// as an [`Envelope`] with a [`Fault`], since headers and version are checked before its params.
pub(super) fn explain(text: &str) -> Result<Envelope<'_>, (Rejection, Option<&str>)> {
    if let Err(error) = serde_json::from_str::<&RawValue>(text) {
        return Err((Rejection::Unreadable { fault: error.to_string() }, None));
    }
    let refuse = |fault, id| Err((Rejection::NotARequest { fault }, id));
    if text.trim_start().starts_with('[') {
        return refuse("batches are not accepted", None);
    }
    let members = match object(text) {
        Ok(Some(members)) => members,
        Ok(None) => return refuse("the body must be one JSON object", None),
        Err(fault) => return Err((fault, None)),
    };
    let id = members.get("id").map(|id| id.get());
    if id.is_some_and(|id| !is_id(id)) {
        return refuse("id must be a string or an integer", None);
    }
    let string = |name: &str| members.get(name).and_then(|value| text_of(value));
    if string("jsonrpc").is_none_or(|version| version != "2.0") {
        return refuse("jsonrpc must be \"2.0\"", id);
    }
    if members.contains_key("result") || members.contains_key("error") {
        return refuse("responses are not accepted", id);
    }
    let Some(method) = string("method") else {
        return refuse("method must be a string", id);
    };
    let params = match members.get("params").filter(|params| params.get() != "null") {
        None => Params::default(),
        Some(params) => explain_params(params.get()).map_err(|fault| (fault, id))?,
    };
    Ok(Envelope { id, method, params })
}

fn explain_params(text: &str) -> Result<Params<'_>, Rejection> {
    let Some(members) = object(text)? else {
        return Ok(Params { fault: Some(Fault::Meta("_meta")), ..Params::default() });
    };
    let mut fault = None;
    let meta = match members.get("_meta") {
        None => None,
        Some(meta) => match explain_meta(meta.get())? {
            Ok(meta) => Some(meta),
            Err(key) => {
                fault = Some(Fault::Meta(key));
                None
            }
        },
    };
    let mut string = |name: &'static str| {
        let value = members.get(name)?;
        let text = text_of(value);
        if text.is_none() {
            fault = fault.or(Some(Fault::Member { name, expected: "a string" }));
        }
        text
    };
    let raw = |name: &str| members.get(name).copied();
    Ok(Params {
        meta,
        name: string("name"),
        uri: string("uri"),
        cursor: string("cursor"),
        request_state: string("requestState"),
        protocol_version: string("protocolVersion"),
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
    let Some(members) = object(text)? else {
        return Ok(Err("_meta"));
    };
    let version = members.get(VERSION_KEY).and_then(|version| text_of(version));
    let capabilities = match members.get(CAPABILITIES_KEY) {
        None => None,
        Some(value) => object(value.get())?.map(|members| explain_capabilities(&members)),
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
    }))
}

/// Capabilities of the wrong type count as not declared (A-33, META-13).
fn explain_capabilities<'a>(members: &BTreeMap<String, &'a RawValue>) -> Capabilities<'a> {
    let nested = |name: &str| members.get(name).and_then(|value| object(value.get()).ok()?);
    let declared = |members: &BTreeMap<String, &RawValue>, name: &str| {
        let value = members.get(name)?;
        object(value.get()).ok()?.map(|_| Declared)
    };
    Capabilities {
        roots: declared(members, "roots"),
        sampling: nested("sampling").map(|sampling| Sampling {
            context: declared(&sampling, "context"),
            tools: declared(&sampling, "tools"),
        }),
        elicitation: nested("elicitation").map(|elicitation| Elicitation {
            form: declared(&elicitation, "form"),
            url: declared(&elicitation, "url"),
        }),
        extensions: nested("extensions").and_then(|_| members.get("extensions").copied()),
    }
}

/// The members of a JSON object; `None` for any other value. Valid JSON is given.
fn object(text: &str) -> Result<Option<BTreeMap<String, &RawValue>>, Rejection> {
    struct Members<'a>(BTreeMap<String, &'a RawValue>);
    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct MembersVisitor;
            impl<'de> serde::de::Visitor<'de> for MembersVisitor {
                type Value = Members<'de>;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Members<'de>, A::Error> {
                    let mut members = BTreeMap::new();
                    while let Some(key) = map.next_key::<String>()? {
                        if members.contains_key(&key) {
                            let fault = format_args!("duplicate member {key:?}").to_string();
                            return Err(serde::de::Error::custom(fault));
                        }
                        members.insert(key, map.next_value()?);
                    }
                    Ok(Members(members))
                }
            }
            deserializer.deserialize_map(MembersVisitor)
        }
    }
    if !text.trim_start().starts_with('{') {
        return Ok(None);
    }
    match serde_json::from_str::<Members<'_>>(text) {
        Ok(Members(members)) => Ok(Some(members)),
        Err(error) => Err(Rejection::Unreadable { fault: error.to_string() }),
    }
}

fn text_of(value: &RawValue) -> Option<Cow<'_, str>> {
    TextSeed.deserialize(&mut serde_json::Deserializer::from_str(value.get())).ok()
}
