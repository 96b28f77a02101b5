//! The body of a request, read in one strict pass that borrows from it. Raw JSON is `&str`.
//!
//! The good path pays for nothing but itself: whatever that pass cannot read is read once more by
//! [`explain`], only to find out what to say.

use std::borrow::Cow;

use crate::{rejection::Rejection, scan::Scanner};

mod explain;

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// One JSON-RPC request or notification.
#[derive(Debug, Default)]
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
    pub(crate) arguments: Option<&'a str>,
    pub(crate) cursor: Option<Cow<'a, str>>,
    pub(crate) task_id: Option<Cow<'a, str>>,
    pub(crate) input_responses: Option<&'a str>,
    pub(crate) request_state: Option<Cow<'a, str>>,
    pub(crate) notifications: Option<&'a str>,
    pub(crate) r#ref: Option<&'a str>,
    pub(crate) argument: Option<&'a str>,
    pub(crate) context: Option<&'a str>,
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
    pub(crate) log_level: Option<&'a str>,
    pub(crate) progress_token: Option<&'a str>,
    pub(crate) traceparent: Option<&'a str>,
    pub(crate) tracestate: Option<&'a str>,
    pub(crate) baggage: Option<&'a str>,
}

/// `ClientCapabilities` as far as the core looks at them (META-15).
#[derive(Clone, Debug, Default)]
pub(crate) struct Capabilities<'a> {
    pub(crate) roots: Option<Declared>,
    pub(crate) sampling: Option<Sampling>,
    pub(crate) elicitation: Option<Elicitation>,
    pub(crate) extensions: Option<&'a str>,
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
    /// Reads the one message in `body`, which is nested `depth` deep at most.
    ///
    /// # Errors
    /// The refusal, and the id if it could be read.
    pub(crate) fn read(body: &'a [u8], depth: usize) -> Result<Self, (Rejection, Option<&'a str>)> {
        let Ok(text) = std::str::from_utf8(body) else {
            let fault = "the body is not UTF-8".to_owned();
            return Err((Rejection::Unreadable { fault }, None));
        };
        match read(text, depth) {
            Some(envelope) => Ok(envelope),
            None => explain::explain(text, depth),
        }
    }
}

// The strict pass. Whatever is not as it should be ends it: a member of another type, a member that
// occurs twice, a key with escapes. Objects are read into place, so nothing large is moved.

fn read(text: &str, depth: usize) -> Option<Envelope<'_>> {
    let mut envelope = Envelope::default();
    let (mut jsonrpc, mut method, mut params) = (None, None, None);
    let mut scanner = Scanner::new(text, depth);
    scanner.object(|scanner, key| match key {
        b"jsonrpc" => once(&mut jsonrpc, scanner.string()?),
        b"method" => once(&mut method, scanner.string()?),
        b"id" => once(&mut envelope.id, scanner.value().filter(|id| is_id(id))?),
        b"params" => {
            once(&mut params, ())?;
            read_params(scanner, &mut envelope.params)
        }
        b"result" | b"error" => None,
        _ => skip(scanner),
    })?;
    scanner.end()?;
    envelope.method = method?;
    (jsonrpc? == "2.0").then_some(envelope)
}

fn read_params<'a>(scanner: &mut Scanner<'a>, params: &mut Params<'a>) -> Option<()> {
    scanner.object(|scanner, key| match key {
        b"_meta" => {
            once(&mut params.meta, Meta::default())?;
            read_meta(scanner, params.meta.as_mut()?)
        }
        b"name" => once(&mut params.name, scanner.string()?),
        b"uri" => once(&mut params.uri, scanner.string()?),
        b"arguments" => once(&mut params.arguments, scanner.value()?),
        b"cursor" => once(&mut params.cursor, scanner.string()?),
        b"taskId" => once(&mut params.task_id, scanner.string()?),
        b"inputResponses" => once(&mut params.input_responses, scanner.value()?),
        b"requestState" => once(&mut params.request_state, scanner.string()?),
        b"notifications" => once(&mut params.notifications, scanner.value()?),
        b"ref" => once(&mut params.r#ref, scanner.value()?),
        b"argument" => once(&mut params.argument, scanner.value()?),
        b"context" => once(&mut params.context, scanner.value()?),
        b"protocolVersion" => once(&mut params.protocol_version, scanner.string()?),
        _ => skip(scanner),
    })
}

fn read_meta<'a>(scanner: &mut Scanner<'a>, meta: &mut Meta<'a>) -> Option<()> {
    const VERSION: &[u8] = VERSION_KEY.as_bytes();
    const CAPABILITIES: &[u8] = CAPABILITIES_KEY.as_bytes();
    const LOG_LEVEL: &[u8] = LOG_LEVEL_KEY.as_bytes();
    scanner.object(|scanner, key| match key {
        VERSION => once(&mut meta.version, scanner.string()?),
        CAPABILITIES => {
            once(&mut meta.capabilities, Capabilities::default())?;
            read_capabilities(scanner, meta.capabilities.as_mut()?)
        }
        LOG_LEVEL => once(&mut meta.log_level, scanner.value()?),
        b"progressToken" => once(&mut meta.progress_token, scanner.value()?),
        b"traceparent" => once(&mut meta.traceparent, scanner.value()?),
        b"tracestate" => once(&mut meta.tracestate, scanner.value()?),
        b"baggage" => once(&mut meta.baggage, scanner.value()?),
        _ => skip(scanner),
    })
}

fn read_capabilities<'a>(
    scanner: &mut Scanner<'a>,
    capabilities: &mut Capabilities<'a>,
) -> Option<()> {
    scanner.object(|scanner, key| match key {
        b"roots" => once(&mut capabilities.roots, read_declared(scanner)?),
        b"sampling" => {
            let mut sampling = Sampling::default();
            scanner.object(|scanner, key| match key {
                b"context" => once(&mut sampling.context, read_declared(scanner)?),
                b"tools" => once(&mut sampling.tools, read_declared(scanner)?),
                _ => skip(scanner),
            })?;
            once(&mut capabilities.sampling, sampling)
        }
        b"elicitation" => {
            let mut elicitation = Elicitation::default();
            scanner.object(|scanner, key| match key {
                b"form" => once(&mut elicitation.form, read_declared(scanner)?),
                b"url" => once(&mut elicitation.url, read_declared(scanner)?),
                _ => skip(scanner),
            })?;
            once(&mut capabilities.elicitation, elicitation)
        }
        b"extensions" => {
            let extensions = scanner.value().filter(|value| value.starts_with('{'))?;
            once(&mut capabilities.extensions, extensions)
        }
        _ => skip(scanner),
    })
}

fn read_declared(scanner: &mut Scanner<'_>) -> Option<Declared> {
    scanner.object(|scanner, _| skip(scanner)).map(|()| Declared)
}

fn skip(scanner: &mut Scanner<'_>) -> Option<()> {
    scanner.value().map(|_| ())
}

/// Keeps a member that may occur once.
fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

/// Whether a JSON value is an id: a string or an integer (BASE-04, A-32).
fn is_id(json: &str) -> bool {
    match json.as_bytes() {
        [b'"', ..] => Scanner::new(json, 0).string().is_some(),
        [b'-', digits @ ..] | digits => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests;
