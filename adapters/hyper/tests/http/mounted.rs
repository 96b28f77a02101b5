//! The service inside somebody else's application.

use std::{convert::Infallible, time::Duration};

use axum::{Router, routing::get};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use mcp_edge_hyper::McpService;
use tokio::{net::TcpListener, sync::oneshot};
use tower_service::Service as _;

use crate::support::{Running, call, call_body, listen, server, soon};

/// Serves a router as an axum application does, and as it should with listen streams inside.
async fn start(app: Router, service: McpService) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(async move {
        let shutdown = async move {
            let _ = stopped.await;
            service.drain();
        };
        axum::serve(listener, app).with_graceful_shutdown(shutdown).await.unwrap();
    });
    Running::of(address, stop, served)
}

#[tokio::test]
async fn axum_routes_to_it() {
    let service = McpService::new(server());
    let app = Router::new()
        .route("/", get(async || "the rest"))
        .route_service("/mcp", service.clone())
        .route_service("/healthz", service.clone());
    let mut running = start(app, service).await;
    let mut client = running.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(client.reply().await.body, "the rest");
    client.send(crate::support::HEALTH).await;
    assert_eq!(client.reply().await.status, 200);
    client.send(call("hello")).await;
    assert!(client.reply().await.body.contains("Hello!"));

    client.send(listen()).await;
    client.read_until("notifications/subscriptions/acknowledged").await;
    running.stop();
    assert!(client.rest().await.contains(r#""resultType":"complete""#));
    running.ended().await;
}

#[tokio::test]
async fn axum_nests_it_where_the_endpoint_is_the_root() {
    let probe = crate::support::Probe::new().0;
    let server = crate::support::builder(probe).endpoint("/").build().unwrap();
    let service = McpService::new(server);
    let app = Router::new().nest_service("/mcp", service.clone());
    let running = start(app, service).await;
    let mut client = running.connect().await;
    client.send(call("hello")).await;
    let reply = client.reply().await;
    assert!(reply.body.contains("Hello!"), "{}{}", reply.head, reply.body);
}

fn request<B>(body: B) -> Request<B> {
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "hello")
        .body(body)
        .unwrap()
}

#[tokio::test]
async fn a_tower_service_answers_without_a_socket() {
    let mut service = McpService::new(server());
    let response = service.call(request(Full::new(Bytes::from(call_body("hello"))))).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("Hello!"));
}

#[tokio::test]
async fn a_body_that_breaks_is_answered_like_an_empty_one() {
    let whole = Bytes::from(call_body("hello"));
    let broken = futures_util::stream::iter([
        Ok(Frame::data(whole)),
        Err(std::io::Error::other("the peer is gone")),
    ]);
    let mut service = McpService::new(server());
    let response = service.call(request(StreamBody::new(broken))).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("-32700"), "{body:?}");
}

#[tokio::test]
async fn a_body_that_stalls_is_answered_like_an_empty_one() {
    let stalled =
        StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let mut service = McpService::new(server()).body_read_timeout(Duration::from_millis(20));
    let response = soon(service.call(request(stalled))).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}
