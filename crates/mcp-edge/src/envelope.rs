//! The body of a request, read in one strict pass that borrows from it.
//!
//! The good path pays for nothing but itself: whatever that pass cannot read is read once more by
//! [`explain`], only to find out what to say.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::rejection::Rejection;

mod explain;

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// One JSON-RPC request or notification.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// The id exactly as it was written; a notification has none (BASE-05, BASE-08).
    pub(crate) id: Option<&'a str>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
}

/// The members of `params` that any method uses; unknown ones are tolerated (BASE-14).
#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    pub(crate) meta: Option<Meta<'a>>,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) uri: Option<Cow<'a, str>>,
    pub(crate) arguments: Option<&'a RawValue>,
    pub(crate) cursor: Option<Cow<'a, str>>,
    pub(crate) input_responses: Option<&'a RawValue>,
    pub(crate) request_state: Option<Cow<'a, str>>,
    pub(crate) notifications: Option<&'a RawValue>,
    pub(crate) r#ref: Option<&'a RawValue>,
    pub(crate) argument: Option<&'a RawValue>,
    pub(crate) context: Option<&'a RawValue>,
    /// The version that a legacy `initialize` asks for.
    pub(crate) protocol_version: Option<Cow<'a, str>>,
    /// What the strict pass could not read.
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
#[derive(Debug, Default)]
pub(crate) struct Meta<'a> {
    pub(crate) version: Option<Cow<'a, str>>,
    pub(crate) capabilities: Option<Capabilities<'a>>,
    pub(crate) log_level: Option<&'a RawValue>,
    pub(crate) progress_token: Option<&'a RawValue>,
}

/// `ClientCapabilities` as far as the core looks at them (META-15).
#[derive(Clone, Debug, Default)]
pub(crate) struct Capabilities<'a> {
    pub(crate) roots: Option<Declared>,
    pub(crate) sampling: Option<Sampling>,
    pub(crate) elicitation: Option<Elicitation>,
    pub(crate) extensions: Option<&'a RawValue>,
}

/// A capability without settings that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declared;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampling {
    pub(crate) context: Option<Declared>,
    pub(crate) tools: Option<Declared>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Elicitation {
    pub(crate) form: Option<Declared>,
    pub(crate) url: Option<Declared>,
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
        let mut message = Message::default();
        let mut json = serde_json::Deserializer::from_str(text);
        let read = Fill(&mut message).deserialize(&mut json).and_then(|()| json.end());
        match read.ok().and_then(|()| message.into_envelope()) {
            Some(envelope) => Ok(envelope),
            None => explain::explain(text),
        }
    }
}

/// A whole message, before it is known to be a request or notification.
#[derive(Default)]
struct Message<'a> {
    jsonrpc: Option<Cow<'a, str>>,
    method: Option<Cow<'a, str>>,
    id: Option<&'a RawValue>,
    params: Option<Params<'a>>,
    /// It has a member of a response.
    is_response: bool,
}

impl<'a> Message<'a> {
    fn into_envelope(self) -> Option<Envelope<'a>> {
        if self.jsonrpc? != "2.0" || self.is_response {
            return None;
        }
        let id = self.id.map(RawValue::get);
        if id.is_some_and(|id| !is_id(id)) {
            return None;
        }
        Some(Envelope { id, method: self.method?, params: self.params.unwrap_or_default() })
    }
}

/// What reads the members of one kind of object into place.
///
/// Values are read where they will stay rather than returned: the good path moves nothing large.
trait Members<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;
}

impl<'de> Members<'de> for Message<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "jsonrpc" => text(&mut self.jsonrpc, map),
            "method" => text(&mut self.method, map),
            "id" => raw(&mut self.id, map),
            "params" => object(&mut self.params, map),
            "result" | "error" => {
                self.is_response = true;
                skip(map)
            }
            _ => skip(map),
        }
    }
}

impl<'de> Members<'de> for Params<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "_meta" => object(&mut self.meta, map),
            "name" => text(&mut self.name, map),
            "uri" => text(&mut self.uri, map),
            "arguments" => raw(&mut self.arguments, map),
            "cursor" => text(&mut self.cursor, map),
            "inputResponses" => raw(&mut self.input_responses, map),
            "requestState" => text(&mut self.request_state, map),
            "notifications" => raw(&mut self.notifications, map),
            "ref" => raw(&mut self.r#ref, map),
            "argument" => raw(&mut self.argument, map),
            "context" => raw(&mut self.context, map),
            "protocolVersion" => text(&mut self.protocol_version, map),
            _ => skip(map),
        }
    }
}

impl<'de> Members<'de> for Meta<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            VERSION_KEY => text(&mut self.version, map),
            CAPABILITIES_KEY => object(&mut self.capabilities, map),
            LOG_LEVEL_KEY => raw(&mut self.log_level, map),
            "progressToken" => raw(&mut self.progress_token, map),
            _ => skip(map),
        }
    }
}

impl<'de> Members<'de> for Capabilities<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "roots" => object(&mut self.roots, map),
            "sampling" => object(&mut self.sampling, map),
            "elicitation" => object(&mut self.elicitation, map),
            "extensions" => raw(&mut self.extensions, map),
            _ => skip(map),
        }
    }
}

impl<'de> Members<'de> for Sampling {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "context" => object(&mut self.context, map),
            "tools" => object(&mut self.tools, map),
            _ => skip(map),
        }
    }
}

impl<'de> Members<'de> for Elicitation {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "form" => object(&mut self.form, map),
            "url" => object(&mut self.url, map),
            _ => skip(map),
        }
    }
}

impl<'de> Members<'de> for Declared {
    fn member<A: MapAccess<'de>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        skip(map)
    }
}

/// Reads an object, and nothing else, into `T`.
struct Fill<'x, T>(&'x mut T);

impl<'de, T: Members<'de>> DeserializeSeed<'de> for Fill<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Members<'de>> Visitor<'de> for Fill<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(TextSeed)? {
            self.0.member(&key, &mut map)?;
        }
        Ok(())
    }
}

fn object<'de, T: Members<'de> + Default, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    if slot.is_some() {
        return Err(de::Error::custom("duplicate member"));
    }
    map.next_value_seed(Fill(slot.insert(T::default())))
}

fn text<'de, A: MapAccess<'de>>(
    slot: &mut Option<Cow<'de, str>>,
    map: &mut A,
) -> Result<(), A::Error> {
    let value = map.next_value_seed(TextSeed)?;
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(de::Error::custom("duplicate member")),
    }
}

/// Keeps an explicit `null` apart from an absent member.
fn raw<'de, A: MapAccess<'de>>(
    slot: &mut Option<&'de RawValue>,
    map: &mut A,
) -> Result<(), A::Error> {
    match slot.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(de::Error::custom("duplicate member")),
    }
}

fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// Reads a string, borrowed where it has no escapes.
struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Whether a JSON value is an id: a string or an integer (BASE-04, A-32).
fn is_id(json: &str) -> bool {
    match json.as_bytes() {
        [b'"', ..] => true,
        [b'-', digits @ ..] | digits => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests;
