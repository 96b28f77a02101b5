//! What clients carry between requests: sealed request states and cursors.
//!
//! A token is `base64url(seal(payload))` without padding. Its context is authenticated and never
//! sent: purpose, audience, principal, method, name and arguments (MRTR-14, MRTR-16, MRTR-17), so a
//! token opens only for the same request of the same caller to the same deployment.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    canonical, decode, encode,
    error::RequestError,
    journal::entry::Journal,
    platform::{Platform, Timestamp},
    principal::Principal,
    rejection::Rejection,
    server::Server,
};

/// The request that a token belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) purpose: &'a str,
    pub(crate) principal: &'a Principal,
    pub(crate) method: &'a str,
    /// The tool or prompt, the URI of the resource, or the digest of the catalogue.
    pub(crate) name: &'a [u8],
    /// The digest of the arguments in canonical form.
    pub(crate) arguments: [u8; 32],
}

impl<'a> Binding<'a> {
    /// What the state of a call belongs to; `arguments` are JSON.
    ///
    /// # Errors
    /// When the arguments have no canonical form.
    pub(crate) fn state(
        principal: &'a Principal,
        method: &'a str,
        name: &'a str,
        arguments: Option<&str>,
    ) -> Result<Self, serde_json::Error> {
        let arguments = canonical::digest_json(arguments)?;
        Ok(Self { purpose: "state", principal, method, name: name.as_bytes(), arguments })
    }

    pub(crate) fn context(&self, audience: &str) -> [u8; 32] {
        let principal = self.principal;
        let option = |text: &Option<String>| match text {
            Some(text) => format!("+{text}"),
            None => String::new(),
        };
        canonical::digest(&[
            b"mcp-edge 1",
            self.purpose.as_bytes(),
            audience.as_bytes(),
            option(&principal.issuer).as_bytes(),
            principal.subject.as_bytes(),
            option(&principal.tenant).as_bytes(),
            self.method.as_bytes(),
            self.name,
            &self.arguments,
        ])
    }
}

/// What a `requestState` holds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    #[serde(rename = "x")]
    expires_at: u64,
    #[serde(rename = "j")]
    pub(crate) journal: Journal,
    /// Answers that came while another instance was needed to read them (MRTR-23).
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) carried: BTreeMap<String, Box<RawValue>>,
}

impl State {
    pub(crate) fn new(
        journal: Journal,
        carried: BTreeMap<String, Box<RawValue>>,
        now: Timestamp,
        ttl: Duration,
    ) -> Self {
        Self { expires_at: (now + ttl).as_millis(), journal, carried }
    }

    /// Seals the state for `binding`.
    ///
    /// # Errors
    /// When there is no key, or the state is larger than the journal may be.
    pub(crate) async fn seal(
        &self,
        server: &Server,
        platform: &dyn Platform,
        binding: Binding<'_>,
    ) -> Result<String, Rejection> {
        let payload = serde_json::to_vec(self).map_err(Rejection::internal)?;
        let token = seal(server, platform, binding, &payload).await?;
        let limit = server.limits().journal_bytes;
        if token.len() > limit {
            return Err(Rejection::internal(format_args!(
                "the journal of `{}` takes {} bytes sealed, more than the {limit} of \
                 Limits::journal_bytes; the largest value is that of `{}`",
                String::from_utf8_lossy(binding.name),
                token.len(),
                self.journal.largest().unwrap_or("?"),
            )));
        }
        Ok(token)
    }

    /// Opens a state that a client presented. The reason of a refusal goes to the log alone.
    ///
    /// # Errors
    /// [`Rejection::InvalidState`], whatever is wrong with it.
    pub(crate) async fn open(
        token: &str,
        server: &Server,
        platform: &dyn Platform,
        binding: Binding<'_>,
    ) -> Result<Self, Rejection> {
        let refuse = |reason: &dyn std::fmt::Display| {
            tracing::warn!(method = binding.method, "a requestState was refused: {reason}");
            Rejection::InvalidState
        };
        let payload = open(server, token, binding).await.map_err(|reason| refuse(&reason))?;
        let state: Self = serde_json::from_slice(&payload).map_err(|error| refuse(&error))?;
        if platform.now().as_millis() >= state.expires_at {
            return Err(refuse(&"it has expired"));
        }
        Ok(state)
    }
}

/// Seals the key at which a list goes on (PAGE-05).
///
/// # Errors
/// When it cannot be sealed, or would be longer than what is opened again.
pub(crate) async fn seal_cursor(
    last: &str,
    server: &Server,
    platform: &dyn Platform,
    binding: Binding<'_>,
) -> Result<String, Rejection> {
    let cursor = seal(server, platform, binding, last.as_bytes()).await?;
    let limit = server.limits().journal_bytes;
    if cursor.len() > limit {
        return Err(Rejection::internal(format_args!(
            "a cursor of `{}` takes {} bytes, more than the {limit} of Limits::journal_bytes; \
             make Page::next shorter",
            binding.method,
            cursor.len()
        )));
    }
    Ok(cursor)
}

/// Opens a cursor (PAGE-04, PAGE-07).
///
/// # Errors
/// `-32602`, whatever is wrong with it.
pub(crate) async fn open_cursor(
    cursor: &str,
    server: &Server,
    binding: Binding<'_>,
) -> Result<String, Rejection> {
    let refuse = |reason: &dyn std::fmt::Display| {
        tracing::debug!(method = binding.method, "a cursor was refused: {reason}");
        bad_cursor()
    };
    let payload = open(server, cursor, binding).await.map_err(|reason| refuse(&reason))?;
    String::from_utf8(payload).map_err(|error| refuse(&error))
}

/// The one refusal of all cursors.
pub(crate) fn bad_cursor() -> Rejection {
    Rejection::Failed(RequestError::invalid_params("Invalid cursor"))
}

pub(crate) async fn seal(
    server: &Server,
    platform: &dyn Platform,
    binding: Binding<'_>,
    payload: &[u8],
) -> Result<String, Rejection> {
    let Some(sealer) = server.sealer() else {
        return Err(Rejection::internal(
            "there is no key to seal with: set MCP_EDGE_KEYS, or give ServerBuilder::sealer one",
        ));
    };
    let mut salt = [0; 16];
    platform.fill_random(&mut salt);
    let context = binding.context(server.audience());
    let sealed = sealer.seal(salt, &context, payload).await.map_err(Rejection::internal)?;
    Ok(encode(&sealed))
}

pub(crate) async fn open(
    server: &Server,
    token: &str,
    binding: Binding<'_>,
) -> Result<Vec<u8>, String> {
    if token.len() > server.limits().journal_bytes {
        return Err("it is larger than any that was given out".to_owned());
    }
    let sealer = server.sealer().ok_or("there is no key to open it with")?;
    let sealed = decode(token).ok_or("it is not base64url")?;
    let context = binding.context(server.audience());
    sealer.open(&context, &sealed).await.map_err(|reason| reason.to_string())
}
