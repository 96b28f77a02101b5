//! Who may name a task.

use mcp_edge::{Cx, Job, JobStatus, KeyRing, Limits, NoArgs, RequestError, Server, ToolError};
use mcp_edge_test::{Client, with_store};
use mcp_edge_tests::Tokens;
use serde_json::{Value, json};

use super::{Nobody, Text, World, builder};

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

/// Jobs that must not be looked at by handles which were never given out.
struct Seventh;

impl Job for Seventh {
    type Args = NoArgs;
    type Out = String;

    async fn start(&self, _: Cx, _: NoArgs) -> Result<String, ToolError> {
        Ok("7".to_owned())
    }

    async fn poll(&self, handle: &str) -> Result<JobStatus<String>, RequestError> {
        assert_eq!(handle, "7");
        Ok(JobStatus::Working(None))
    }

    async fn cancel(&self, handle: &str) -> Result<(), RequestError> {
        assert_eq!(handle, "7");
        Ok(())
    }
}

/// Everything that a client is given to carry.
const KINDS: [&str; 4] = ["task", "job", "state", "cursor"];

fn with_everything(world: &World, key: u8, name: &str) -> Server {
    let mut limits = Limits::default();
    limits.page_size = 1;
    let server = Server::builder("tasks", "1.0.0")
        .tool("task", "", async |cx: Cx, _: NoArgs| cx.background("").await.to_string())
        .tool("state", "", async |cx: Cx, _: NoArgs| {
            cx.elicit::<Text>("q", "Who?").await.required().map(|answer| answer.text)
        })
        .job("job", "", Seventh)
        .limits(limits)
        .authenticator(Tokens)
        .public_url(format!("https://{name}.example.com/mcp"))
        .sealer(KeyRing::new(1, &[key; 32]))
        .build()
        .unwrap();
    server.with_tasks(world.store.clone(), Nobody)
}

async fn give(client: &Client, kind: &str) -> String {
    let (method, params, member) = match kind {
        "cursor" => ("tools/list", json!({}), "nextCursor"),
        "state" => ("tools/call", json!({ "name": kind }), "requestState"),
        _ => ("tools/call", json!({ "name": kind }), "taskId"),
    };
    let reply = client.round(method, params).await.unwrap();
    reply.result().unwrap()[member].as_str().unwrap().to_owned()
}

/// Presents a token wherever one of its kind belongs; the errors, of which sound ones have none.
async fn present(client: &Client, kind: &str, token: &str) -> Vec<Value> {
    let requests = match kind {
        "cursor" => vec![("tools/list", json!({ "cursor": token }))],
        "state" => vec![("tools/call", json!({ "name": kind, "requestState": token }))],
        _ => ["tasks/get", "tasks/update", "tasks/cancel"]
            .map(|method| (method, json!({ "taskId": token, "inputResponses": {} })))
            .into(),
    };
    let mut errors = Vec::new();
    for (method, params) in requests {
        let request = client.request(method, params);
        let mut response = client.raw(request).await.unwrap();
        assert_eq!(response.status, 200);
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        errors.push(body["error"].clone());
    }
    errors
}

#[tokio::test(start_paused = true)]
async fn task_25_what_is_sealed_is_good_for_its_own_purpose_owner_deployment_and_key_alone() {
    let world = World::default();
    let here = with_everything(&world, 7, "here");
    let ada = client(&here, "ada");
    let mut tokens = Vec::new();
    for kind in KINDS {
        tokens.push((kind, give(&ada, kind).await));
    }
    for (kind, token) in &tokens {
        let errors = present(&ada, kind, token).await;
        assert!(errors.iter().all(Value::is_null), "{kind}: {errors:?}");
    }

    let others = [
        ("purpose", ada.clone()),
        ("owner", client(&here, "eve")),
        ("deployment", client(&with_everything(&world, 7, "there"), "ada")),
        ("key", client(&with_everything(&world, 8, "here"), "ada")),
    ];
    let reads = world.store.reads();
    for (what, other) in &others {
        for (kind, token) in &tokens {
            for presented_as in KINDS {
                // A job and a task are both named by ids.
                let is_id = |kind: &str| kind == "task" || kind == "job";
                let is_same = *kind == presented_as || is_id(kind) && is_id(presented_as);
                if *what == "purpose" && is_same {
                    continue;
                }
                let message = match presented_as {
                    "cursor" => "Invalid cursor",
                    "state" => "Invalid requestState",
                    _ => "Unknown task",
                };
                let one = json!({ "code": -32602, "message": message });
                let errors = present(other, presented_as, token).await;
                assert!(
                    errors.iter().all(|error| *error == one),
                    "the {kind} of another {what} as a {presented_as}: {errors:?}"
                );
            }
        }
    }
    assert_eq!(world.store.reads(), reads, "none of them costs a read");
}

#[tokio::test(start_paused = true)]
async fn task_25_any_single_bit_flipped_is_refused_without_a_read() {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let world = World::default();
    let ada = client(&with_everything(&world, 7, "here"), "ada");
    for kind in ["task", "job"] {
        let sealed = engine.decode(give(&ada, kind).await).unwrap();
        let reads = world.store.reads();
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let reply = ada.round("tasks/get", json!({ "taskId": engine.encode(flipped) })).await;
            assert_eq!(reply.unwrap().code(), Some(-32602), "{kind}: bit {bit}");
        }
        assert_eq!(world.store.reads(), reads, "{kind}");
    }
}
