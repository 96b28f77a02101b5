//! An authenticator for tests.

use std::sync::Arc;

use http::{HeaderValue, request::Parts};
use mcp_edge::{Authenticator, BoxFuture, Challenge, Platform, Principal};

/// Takes a bearer token for the subject; without one it challenges.
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
                Some(subject) => Ok(Arc::new(Principal::new(subject))),
                None => Err(Challenge::unauthorized(HeaderValue::from_static("Bearer"))),
            }
        })
    }
}
