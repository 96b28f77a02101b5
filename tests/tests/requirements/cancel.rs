//! CANC: cancellation.

use mcp_edge::{Cx, NoArgs};

use super::*;

#[tokio::test]
async fn canc_05_a_stray_cancellation_is_accepted_and_ignored() {
    let client = contract().with_progress();
    let call = client.request("tools/call", json!({ "name": "emit" }));
    let id: Value = serde_json::from_slice::<Value>(call.body()).unwrap()["id"].clone();
    let mut running = client.raw(call).await.unwrap();
    for params in [
        json!({ "requestId": id }),
        json!({ "requestId": 12_345 }),
        json!({ "requestId": { "no": "id" } }),
        json!({}),
        json!([]),
    ] {
        let stray = edit(client.request("notifications/cancelled", json!({})), |body| {
            body.as_object_mut().unwrap().remove("id");
            body["params"] = params;
        });
        assert_eq!(send(&client, stray).await, (StatusCode::ACCEPTED, Value::Null));
    }
    assert!(running.text().await.unwrap().contains(r#""text":"emitted""#), "it went on");
}

#[tokio::test]
async fn canc_06_a_client_may_leave_at_any_moment() {
    let tool = |cx: Cx, _: NoArgs| async move {
        for done in 1..=3 {
            cx.progress(f64::from(done), 3.0, "");
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        "done"
    };
    let client = client(builder().tool("t", "Streams", tool)).with_progress();
    for pieces in 0..=5 {
        let request = client.request("tools/call", json!({ "name": "t" }));
        let mut response = client.raw(request).await.unwrap();
        for _ in 0..pieces {
            response.next_chunk().await.unwrap();
        }
        drop(response); // before the first event, between two, after the result
    }
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
}
