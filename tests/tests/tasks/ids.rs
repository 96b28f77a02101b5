//! Who may name a task.

use mcp_edge::{Cx, KeyRing, NoArgs, Server};
use mcp_edge_test::{Client, with_store};
use mcp_edge_tests::Tokens;
use serde_json::json;

use super::{World, builder};

fn server(world: &World, key: u8) -> Server {
    let work = async |cx: Cx, _: NoArgs| {
        cx.background("working").await;
        cx.sleep("rest", std::time::Duration::from_secs(60)).await;
        "done"
    };
    let server = Server::builder("tasks", "1.0.0")
        .tool("t", "", work)
        .authenticator(Tokens)
        .public_url("https://mcp.example.com/mcp")
        .sealer(KeyRing::new(1, &[key; 32]))
        .build()
        .unwrap();
    with_store(server, world.store.clone())
}

fn client(server: &Server, name: &str) -> Client {
    Client::in_process(server).with_tasks().bearer(name)
}

#[tokio::test(start_paused = true)]
async fn task_25_unknown_foreign_expired_and_altered_ids_are_one_answer_and_only_sound_ones_are_read()
 {
    let world = World::default();
    let (here, elsewhere) = (server(&world, 7), server(&world, 8));
    let ada = client(&here, "ada");
    let mine = ada.start("t", json!({})).await.unwrap().id;
    let of_other_key = client(&elsewhere, "ada").start("t", json!({})).await.unwrap().id;
    let last = if mine.ends_with('A') { "B" } else { "A" };
    let altered = format!("{}{last}", &mine[..mine.len() - 1]);
    ada.task(&mine).await.unwrap();

    let reads = world.store.reads();
    let mut bodies = Vec::new();
    let foreign = client(&here, "eve");
    let long = "A".repeat(4096);
    for (client, id) in [
        (&foreign, mine.as_str()),
        (&ada, &of_other_key),
        (&ada, &altered),
        (&ada, "nonsense"),
        (&ada, "tsk_9QmY3v0bX2c8"),
        (&ada, &long),
        (&ada, ""),
    ] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let reply = client.round(method, params).await.unwrap();
            bodies.push((reply.status, reply.message.unwrap()["error"].clone()));
        }
    }
    assert_eq!(world.store.reads(), reads, "none of them costs a read");

    tokio::time::advance(std::time::Duration::from_secs(25 * 3600)).await;
    let reply = ada.round("tasks/get", json!({ "taskId": mine })).await.unwrap();
    bodies.push((reply.status, reply.message.unwrap()["error"].clone()));
    assert_eq!(world.store.reads(), reads + 1, "a sound id is looked up");
    let one = (http::StatusCode::OK, json!({ "code": -32602, "message": "Unknown task" }));
    assert!(bodies.iter().all(|body| *body == one), "{bodies:?}");
}

#[tokio::test(start_paused = true)]
async fn task_37_a_task_is_there_for_its_owner_alone() {
    let world = World::default();
    let here = server(&world, 7);
    let (ada, eve) = (client(&here, "ada"), client(&here, "eve"));
    let task = ada.start("t", json!({})).await.unwrap();
    assert_eq!(eve.cancel_task(&task.id).await.unwrap_err().code(), Some(-32602));
    assert_eq!(ada.follow(&task).await.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn task_12_ids_are_sealed_short_and_need_no_encoding() {
    let client = World::default().client(builder().tool("t", "", async |cx: Cx, _: NoArgs| {
        cx.background("").await;
    }));
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let id = client.start("t", json!({})).await.unwrap().id;
        assert!(
            id.len() <= 512 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        );
        ids.insert(id);
    }
    assert_eq!(ids.len(), 50);
}
