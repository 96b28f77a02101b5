//! Who is calling: the [`Principal`] behind a request, and the [`Authenticator`] that finds out.

use std::{collections::BTreeSet, sync::Arc};

use http::{HeaderValue, StatusCode, request::Parts};
use serde::{Deserialize, Serialize};

use crate::{
    platform::Platform,
    target::{BoxFuture, MaybeSend, MaybeSync},
};

/// The verified identity behind a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Principal {
    /// The subject, unique for its issuer.
    pub subject: String,
    /// Who vouches for the subject.
    pub issuer: Option<String>,
    /// What the caller may do.
    pub scopes: BTreeSet<String>,
    /// The group that shares change notifications, if callers are grouped.
    pub tenant: Option<String>,
    /// Further verified claims, as JSON.
    pub claims: serde_json::Map<String, serde_json::Value>,
}

impl Principal {
    /// Makes a principal of a subject alone.
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            issuer: None,
            scopes: BTreeSet::new(),
            tenant: None,
            claims: serde_json::Map::new(),
        }
    }

    /// The fixed principal of a server without authentication.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("")
    }

    /// Whether it is [nobody in particular](Self::anonymous).
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.subject.is_empty() && self.issuer.is_none()
    }

    /// Names the issuer.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Adds scopes.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Names the tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }
}

/// Turns the head of a request into a [`Principal`], before any of the body is read.
///
/// Every request is authenticated on its own (AUTH-13): retries, polls and listen streams too.
pub trait Authenticator: MaybeSend + MaybeSync + 'static {
    /// Finds out who sent the request.
    ///
    /// # Errors
    /// The [`Challenge`] that the caller gets instead of an answer.
    fn authenticate<'a>(
        &'a self,
        parts: &'a Parts,
        platform: &'a dyn Platform,
    ) -> BoxFuture<'a, Result<Arc<Principal>, Challenge>>;
}

/// Accepts everybody as the [anonymous principal](Principal::anonymous); the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Authenticator for Anonymous {
    fn authenticate<'a>(
        &'a self,
        _parts: &'a Parts,
        _platform: &'a dyn Platform,
    ) -> BoxFuture<'a, Result<Arc<Principal>, Challenge>> {
        Box::pin(async { Ok(Arc::new(Principal::anonymous())) })
    }
}

/// Why a caller was turned away, and what it is told (AUTH-04, AUTH-06, AUTH-10).
#[derive(Clone, Debug)]
pub struct Challenge {
    kind: ChallengeKind,
    www_authenticate: Option<HeaderValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChallengeKind {
    Unauthorized,
    Forbidden,
    Malformed,
}

impl Challenge {
    /// The token is missing, invalid, expired or meant for another server: 401.
    #[must_use]
    pub const fn unauthorized(www_authenticate: HeaderValue) -> Self {
        Self { kind: ChallengeKind::Unauthorized, www_authenticate: Some(www_authenticate) }
    }

    /// The token is good and lacks a scope: 403.
    #[must_use]
    pub const fn insufficient_scope(www_authenticate: HeaderValue) -> Self {
        Self { kind: ChallengeKind::Forbidden, www_authenticate: Some(www_authenticate) }
    }

    /// The authorization request cannot be read: 400.
    #[must_use]
    pub const fn malformed() -> Self {
        Self { kind: ChallengeKind::Malformed, www_authenticate: None }
    }

    pub(crate) const fn status(&self) -> StatusCode {
        match self.kind {
            ChallengeKind::Unauthorized => StatusCode::UNAUTHORIZED,
            ChallengeKind::Forbidden => StatusCode::FORBIDDEN,
            ChallengeKind::Malformed => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) const fn header(&self) -> Option<&HeaderValue> {
        self.www_authenticate.as_ref()
    }
}
