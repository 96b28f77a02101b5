//! AUTH: what the core does with the verdict of an authenticator.

use std::sync::Arc;

use http::request::Parts;
use mcp_edge::{Authenticator, BoxFuture, Challenge, Cx, NoArgs, Platform, Principal, ToolError};

use super::*;

/// Takes the token `good`, and answers the others as their names say.
struct Verdicts;

impl Authenticator for Verdicts {
    fn authenticate<'a>(
        &'a self,
        parts: &'a Parts,
        _: &'a dyn Platform,
    ) -> BoxFuture<'a, Result<Arc<Principal>, Challenge>> {
        let value = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
        Box::pin(async move {
            match value {
                Some("Bearer good") => Ok(Arc::new(Principal::new("ada"))),
                Some("Bearer narrow") => {
                    let challenge = r#"Bearer error="insufficient_scope", scope="notes:write""#;
                    Err(Challenge::insufficient_scope(HeaderValue::from_static(challenge)))
                }
                Some("Basic") => Err(Challenge::malformed()),
                _ => Err(Challenge::unauthorized(HeaderValue::from_static("Bearer scope=\"a\""))),
            }
        })
    }
}

async fn ask(cx: Cx, _: NoArgs) -> Result<String, ToolError> {
    Ok(cx.elicit::<Text>("q", "?").await.required()?.text)
}

fn guarded() -> Client {
    client(
        builder()
            .tool("ask", "Asks", ask)
            .authenticator(Verdicts)
            .public_url("https://mcp.example.com/mcp"),
    )
}

#[tokio::test]
async fn auth_04_to_10_challenges_have_their_status_and_header() {
    let client = guarded();
    let list = || client.request("tools/list", json!({}));
    for (authorization, status, challenge) in [
        (None, 401, Some("Bearer scope=\"a\"")),
        (Some("Bearer bad"), 401, Some("Bearer scope=\"a\"")),
        (
            Some("Bearer narrow"),
            403,
            Some(r#"Bearer error="insufficient_scope", scope="notes:write""#),
        ),
        (Some("Basic"), 400, None),
        (Some("Bearer good"), 200, None),
    ] {
        let request = header(list(), "authorization", authorization);
        let response = client.raw(request).await.unwrap();
        let header = response.headers.get("www-authenticate").map(|it| it.to_str().unwrap());
        assert_eq!((response.status.as_u16(), header), (status, challenge), "{authorization:?}");
    }
}

#[tokio::test]
async fn auth_13_every_request_is_authenticated_on_its_own() {
    let client = guarded();
    let good = client.clone().bearer("good");
    let call = json!({ "name": "ask" });
    let first = good.round("tools/call", call.clone()).await.unwrap();
    let mut retry = call.clone();
    retry["requestState"] = json!(first.request_state());
    retry["inputResponses"] = json!({ "q": accepted("x") });
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", call),
        ("tools/call", retry.clone()),
        ("subscriptions/listen", json!({ "notifications": {} })),
        ("notifications/cancelled", json!({})),
        ("unknown/method", json!({})),
    ] {
        let mut request = client.request(method, params);
        // The head alone: a listen stream that is let in does not end.
        let response = client.raw(request.clone()).await.unwrap();
        assert_eq!(response.status, 401, "{method}");
        *request.uri_mut() = "/mcp?access_token=good".parse().unwrap();
        let response = client.raw(request).await.unwrap();
        assert_eq!(response.status, 401, "{method}: never from the query");
    }
    assert_eq!(text(&good.round("tools/call", retry).await.unwrap()), "x");
}
