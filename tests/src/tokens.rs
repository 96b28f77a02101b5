//! An authenticator for tests.

use std::sync::Arc;

use http::{HeaderValue, request::Parts};
use mcp_edge::{Authenticator, BoxFuture, Challenge, Platform, Principal};

/// Takes a bearer token for `issuer/subject@tenant`, all but the subject optional; without one it
/// challenges.
#[derive(Clone, Copy, Debug)]
pub struct Tokens;

impl Authenticator for Tokens {
    fn authenticate<'a>(
        &'a self,
        parts: &'a Parts,
        _: &'a dyn Platform,
    ) -> BoxFuture<'a, Result<Arc<Principal>, Challenge>> {
        Box::pin(async {
            let token = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
            match token.and_then(|token| token.strip_prefix("Bearer ")) {
                Some(token) => Ok(Arc::new(principal(token))),
                None => Err(Challenge::unauthorized(HeaderValue::from_static("Bearer"))),
            }
        })
    }
}

fn principal(token: &str) -> Principal {
    let (issuer, rest) = token.split_once('/').map_or((None, token), |(a, b)| (Some(a), b));
    let (subject, tenant) = rest.split_once('@').map_or((rest, None), |(a, b)| (a, Some(b)));
    let mut principal = Principal::new(subject);
    principal.issuer = issuer.map(str::to_owned);
    principal.tenant = tenant.map(str::to_owned);
    principal
}
