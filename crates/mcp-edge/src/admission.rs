//! A request that may be read: [`Admission`], and the checks from its body on.

use std::{future::poll_fn, pin::pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::{
    MODERN_VERSIONS,
    body::Body,
    catalogue::{Asker, List},
    dispatch::Incoming,
    envelope::{CAPABILITIES_KEY, Envelope, Fault, Meta, Params, VERSION_KEY},
    execution,
    headers::{self, Accept},
    listen,
    method::Method,
    observe::{CallOutcome, Observation, inside},
    platform::Platform,
    principal::Principal,
    provider::DynamicResource,
    rejection::{HeaderFault, Rejection},
    respond,
    server::Server,
    target::boxed,
};

/// A request whose head is sound: its body may be read, up to [`body_limit`](Self::body_limit).
#[must_use = "a request that was admitted is to be answered"]
pub struct Admission<'a> {
    pub(crate) server: &'a Server,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) mirrored: Mirrored<'a>,
    pub(crate) traceparent: Option<&'a HeaderValue>,
    pub(crate) accept: Accept,
    pub(crate) principal: Arc<Principal>,
    pub(crate) platform: Arc<dyn Platform>,
}

/// The headers that mirror the body (HDR-01).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mirrored<'a> {
    pub(crate) version: Slot<'a>,
    pub(crate) method: Slot<'a>,
    pub(crate) name: Slot<'a>,
}

/// A header that may occur once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot<'a> {
    pub(crate) value: Option<&'a HeaderValue>,
    pub(crate) repeated: bool,
}

impl<'a> Slot<'a> {
    pub(crate) fn add(&mut self, value: &'a HeaderValue) {
        self.repeated |= self.value.replace(value).is_some();
    }
}

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

impl Admission<'_> {
    /// How many bytes of the body to read at most.
    #[must_use]
    pub fn body_limit(&self) -> usize {
        self.server.limits().body_bytes
    }

    /// Who is calling.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The response when the body outgrows its limit.
    #[must_use]
    pub fn too_large(self) -> Response<Body> {
        Rejection::BodyTooLarge { limit: self.body_limit() }.into_response(None)
    }

    /// Answers the request.
    ///
    /// The response is complete when the handler was done at once. Otherwise its body runs the
    /// handler while it is sent; dropping it cancels the call.
    pub async fn handle(self, body: Bytes) -> Response<Body> {
        let envelope = match Envelope::read(&body, self.server.limits().json_depth) {
            Ok(envelope) => envelope,
            Err((rejection, id)) => return rejection.into_response(id),
        };
        let mut observation =
            Observation::begin(self.server, &self.platform, &self.principal, &envelope.method);
        let span = observation.span();
        let answered = match envelope.id {
            None => check_notification(&envelope).map(|()| respond::accepted()),
            Some(id) => {
                let mut answer = pin!(self.answer(&envelope, id, &body, &mut observation));
                poll_fn(|cx| inside(span.as_ref(), || answer.as_mut().poll(cx))).await
            }
        };
        // A call that goes on took the observation along, and these do nothing.
        match answered {
            Ok(response) => {
                observation.end(CallOutcome::Complete);
                response
            }
            Err(rejection) => {
                observation.refuse(&rejection);
                rejection.into_response(envelope.id)
            }
        }
    }

    /// The ladder (section 1.8 of the requirements), from the era on.
    async fn answer(
        &self,
        envelope: &Envelope<'_>,
        id: &str,
        body: &Bytes,
        observation: &mut Observation,
    ) -> Result<Response<Body>, Rejection> {
        let params = &envelope.params;
        let meta = self.check_version(envelope)?;
        self.check_names(envelope)?;
        let Some(method) = Method::of(&envelope.method).filter(|m| m.is_served_by(self.server))
        else {
            return Err(Rejection::MethodNotFound { method: envelope.method.to_string() });
        };
        let incoming = Incoming { id, params, meta, body };
        if method.is_of_tasks() {
            Self::needs_tasks(&incoming)?; // TASK-33: before anything is looked at
        }
        if let Some(Fault::Member { name, expected }) = params.fault {
            return Err(Rejection::params(format!("params.{name} must be {expected}")));
        }
        if !method.runs_a_handler() {
            incoming.level()?;
        }
        match method {
            Method::Discover => {
                let live = self.server.has_change_feed() && self.platform.can_stream();
                let tasks = self.server.offers_tasks();
                let discover = &self.server.definition().discover;
                Ok(self.json(id, &discover[usize::from(live)][usize::from(tasks)]))
            }
            Method::List(list) => Ok(self.json(id, &self.list(list, params).await?)),
            Method::Listen => {
                if !self.accept.sse {
                    return Err(Rejection::NotAcceptable);
                }
                let (platform, principal) = (Arc::clone(&self.platform), &self.principal);
                let filter = params.notifications;
                let tasks = || Self::needs_tasks(&incoming);
                // Boxed, as what is rare is not to make what is common larger.
                boxed(listen::listen(self.server, platform, principal, id, filter, tasks)).await
            }
            Method::CallTool => self.call_tool(&incoming, observation).await,
            Method::GetPrompt => self.get_prompt(&incoming, observation).await,
            Method::ReadResource => self.read_resource(&incoming, observation).await,
            Method::Complete => self.complete(&incoming, observation).await,
            Method::CancelTask | Method::GetTask | Method::UpdateTask => {
                let result = boxed(self.task(method, &incoming)).await?;
                Ok(self.json(id, &result))
            }
        }
    }

    /// Steps 7 and 9 to 13: which era, which version, and the metadata that is mandatory in it.
    fn check_version<'e, 'b>(&self, envelope: &'e Envelope<'b>) -> Result<&'e Meta<'b>, Rejection> {
        let params = &envelope.params;
        let body = params.meta.as_ref().and_then(|meta| meta.version.as_deref());
        if body.is_none() && envelope.method == "initialize" {
            return Err(unsupported(params.protocol_version.as_deref().unwrap_or("")));
        }
        let Mirrored { version, method, name } = self.mirrored;
        for (slot, header) in
            [(version, VERSION_HEADER), (method, METHOD_HEADER), (name, NAME_HEADER)]
        {
            if slot.repeated {
                return Err(mismatch(header, HeaderFault::Repeated));
            }
        }
        let Some(value) = version.value else {
            return Err(mismatch(VERSION_HEADER, HeaderFault::Missing));
        };
        let header = headers::plain_value(value)
            .map_err(|_| mismatch(VERSION_HEADER, HeaderFault::Unreadable))?;
        if body.is_none() && !MODERN_VERSIONS.contains(&header) {
            return Err(unsupported(header));
        }
        let meta = check_meta(params)?;
        if body != Some(header) {
            return Err(mismatch(VERSION_HEADER, HeaderFault::Mismatch));
        }
        if !MODERN_VERSIONS.contains(&header) {
            return Err(unsupported(header));
        }
        Ok(meta)
    }

    /// Steps 14 and 15: `Mcp-Method` and `Mcp-Name`.
    fn check_names(&self, envelope: &Envelope<'_>) -> Result<(), Rejection> {
        let Some(value) = self.mirrored.method.value else {
            return Err(mismatch(METHOD_HEADER, HeaderFault::Missing));
        };
        if !headers::says(value, &envelope.method) {
            let header = headers::plain_value(value)
                .map_err(|_| mismatch(METHOD_HEADER, HeaderFault::Unreadable))?;
            if header != envelope.method {
                return Err(mismatch(METHOD_HEADER, HeaderFault::Mismatch));
            }
        }
        let named = match envelope.method.as_ref() {
            "tools/call" | "prompts/get" => &envelope.params.name,
            "resources/read" => &envelope.params.uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => &envelope.params.task_id,
            _ => return Ok(()),
        };
        // without a value in the body there is nothing to mirror; step 18 says so.
        let Some(named) = named else {
            return Ok(());
        };
        let Some(value) = self.mirrored.name.value else {
            return Err(mismatch(NAME_HEADER, HeaderFault::Missing));
        };
        if !headers::says(value, named) {
            let header = headers::mirrored_value(value)
                .map_err(|_| mismatch(NAME_HEADER, HeaderFault::Unreadable))?;
            if header != *named {
                return Err(mismatch(NAME_HEADER, HeaderFault::Mismatch));
            }
        }
        Ok(())
    }

    async fn list(&self, list: List, params: &Params<'_>) -> Result<Vec<u8>, Rejection> {
        let definition = self.server.definition();
        let (server, platform) = (self.server, self.platform.as_ref());
        let asker = Asker { server, platform, principal: &self.principal };
        let (more, cursor) = (&definition.more, params.cursor.as_deref());
        match list {
            List::Tools => definition.tools.page(asker, more.tools.as_ref(), cursor).await,
            List::Prompts => definition.prompts.page(asker, more.prompts.as_ref(), cursor).await,
            List::Resources => {
                definition.resources.page(asker, more.resources.as_ref(), cursor).await
            }
            List::ResourceTemplates => {
                definition.templates.page::<DynamicResource>(asker, None, cursor).await
            }
        }
    }

    /// A plain reply; SSE for those who take nothing else.
    pub(crate) fn json(&self, id: &str, result: &[u8]) -> Response<Body> {
        execution::reply(self.accept, respond::envelope(Some(id), "result", result))
    }
}

impl std::fmt::Debug for Admission<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("server", self.server).finish_non_exhaustive()
    }
}

/// A notification is accepted, unless it names a version that is not served.
fn check_notification(envelope: &Envelope<'_>) -> Result<(), Rejection> {
    match envelope.params.meta.as_ref().and_then(|meta| meta.version.as_deref()) {
        Some(version) if !MODERN_VERSIONS.contains(&version) => Err(unsupported(version)),
        _ => Ok(()),
    }
}

/// Step 11: the two required keys (META-03, META-04).
fn check_meta<'p, 'a>(params: &'p Params<'a>) -> Result<&'p Meta<'a>, Rejection> {
    if let Some(Fault::Meta(key)) = params.fault {
        return Err(Rejection::InvalidMeta { key });
    }
    let Some(meta) = &params.meta else {
        return Err(Rejection::InvalidMeta { key: "_meta" });
    };
    if meta.version.is_none() {
        return Err(Rejection::InvalidMeta { key: VERSION_KEY });
    }
    if meta.capabilities.is_none() {
        return Err(Rejection::InvalidMeta { key: CAPABILITIES_KEY });
    }
    Ok(meta)
}

fn unsupported(requested: &str) -> Rejection {
    Rejection::UnsupportedVersion { requested: requested.to_owned() }
}

pub(crate) fn mismatch(header: HeaderName, fault: HeaderFault) -> Rejection {
    Rejection::HeaderMismatch { header, fault }
}
