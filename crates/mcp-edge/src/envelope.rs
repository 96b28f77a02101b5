//! The body of a request, read in one strict pass that borrows from it.
//!
//! The good path pays for nothing but itself: whatever that pass cannot read is read once more by
//! [`explain`], only to find out what to say.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use crate::rejection::Rejection;

mod explain;

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// One JSON-RPC request or notification.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// The id exactly as it was written; a notification has none (BASE-05, BASE-08).
    pub(crate) id: Option<&'a str>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
}

/// The members of `params` that any method uses; unknown ones are tolerated (BASE-14).
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    pub(crate) meta: Option<Object<Meta<'a>>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) uri: Option<Text<'a>>,
    #[serde(borrow, deserialize_with = "present")]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) cursor: Option<Text<'a>>,
    #[serde(borrow, deserialize_with = "present")]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) request_state: Option<Text<'a>>,
    #[serde(borrow, deserialize_with = "present")]
    pub(crate) notifications: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(crate) r#ref: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(crate) argument: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(crate) context: Option<&'a RawValue>,
    /// The version that a legacy `initialize` asks for.
    #[serde(borrow)]
    pub(crate) protocol_version: Option<Text<'a>>,
    /// What the strict pass could not read.
    #[serde(skip)]
    pub(crate) fault: Option<Fault>,
}

/// A member of `params` that is not of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `params` itself, `_meta`, or one of its required keys (META-04).
    Meta(&'static str),
    /// Any other member.
    Member { name: &'static str, expected: &'static str },
}

/// `params._meta` (META-01, META-02); optional keys of the wrong type are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<Text<'a>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) capabilities: Option<Object<Capabilities<'a>>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel", deserialize_with = "present")]
    pub(crate) log_level: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken", deserialize_with = "present")]
    pub(crate) progress_token: Option<&'a RawValue>,
}

/// `ClientCapabilities` as far as the core looks at them (META-15).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Capabilities<'a> {
    pub(crate) roots: Option<Object<Declared>>,
    pub(crate) sampling: Option<Object<Sampling>>,
    pub(crate) elicitation: Option<Object<Elicitation>>,
    #[serde(borrow)]
    pub(crate) extensions: Option<&'a RawValue>,
}

/// A capability without settings that matter here.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Declared {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sampling {
    pub(crate) context: Option<Object<Declared>>,
    pub(crate) tools: Option<Object<Declared>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Elicitation {
    pub(crate) form: Option<Object<Declared>>,
    pub(crate) url: Option<Object<Declared>>,
}

impl<'a> Envelope<'a> {
    /// Reads the one message in `body`.
    ///
    /// # Errors
    /// The refusal, and the id if it could be read.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, (Rejection, Option<&'a str>)> {
        let Ok(text) = std::str::from_utf8(body) else {
            let fault = "the body is not UTF-8".to_owned();
            return Err((Rejection::Unreadable { fault }, None));
        };
        match serde_json::from_str::<Object<Message<'a>>>(text) {
            Ok(Object(message)) => match message.into_envelope() {
                Some(envelope) => Ok(envelope),
                None => explain::explain(text),
            },
            Err(_) => explain::explain(text),
        }
    }
}

/// A whole message, before it is known to be a request or notification.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: Text<'a>,
    #[serde(borrow)]
    method: Text<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<Object<Params<'a>>>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl<'a> Message<'a> {
    fn into_envelope(self) -> Option<Envelope<'a>> {
        let id = match self.id {
            Some(id) if is_id(id.get()) => Some(id.get()),
            Some(_) => return None,
            None => None,
        };
        let plain = self.jsonrpc.0 == "2.0" && self.result.is_none() && self.error.is_none();
        plain.then(|| Envelope {
            id,
            method: self.method.0,
            params: self.params.map_or_else(Params::default, |params| params.0),
        })
    }
}

/// Whether a JSON value is an id: a string or an integer (BASE-04, A-32).
fn is_id(json: &str) -> bool {
    match json.as_bytes() {
        [b'"', ..] => true,
        [b'-', digits @ ..] | digits => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
    }
}

/// A string, borrowed where it has no escapes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// A JSON object, and nothing that serde would also take for a struct (an array).
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(std::marker::PhantomData))
    }
}

/// Keeps an explicit `null` apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
