//! Which process gets a request.

use std::collections::BTreeSet;

use mcp_edge_test::{Client, Routing};
use serde_json::json;

use crate::support::{fleet, soon, until, who_answers};

async fn who_answer(client: &Client, requests: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    for _ in 0..requests {
        ids.push(who_answers(client).await);
    }
    ids
}

#[tokio::test]
async fn round_robin_takes_one_after_the_other() {
    let fleet = fleet().start().await.unwrap();
    let ids = fleet.process_ids();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 3);
    let answered = who_answer(&fleet.client(), 6).await;
    assert_eq!(answered, [&ids[..], &ids].concat());
    assert_eq!(fleet.served(), answered);
}

#[tokio::test]
async fn random_routing_repeats_itself() {
    let mut sequences = Vec::new();
    for seed in [7, 7, 8] {
        let fleet = fleet().routing(Routing::Random { seed }).start().await.unwrap();
        let ids = fleet.process_ids();
        let answered = who_answer(&fleet.client(), 20).await;
        let index = |id| ids.iter().position(|other| *other == id).unwrap();
        let sequence: Vec<_> = answered.into_iter().map(index).collect();
        assert!((0..3).all(|index| sequence.contains(&index)), "{sequence:?}");
        sequences.push(sequence);
    }
    assert_eq!(sequences[0], sequences[1]);
    assert_ne!(sequences[0], sequences[2]);
}

#[tokio::test]
async fn a_fresh_process_serves_one_request() {
    let fleet = fleet().instances(2).routing(Routing::Fresh).start().await.unwrap();
    let answered = who_answer(&fleet.client(), 30).await;
    assert_eq!(answered.iter().collect::<BTreeSet<_>>().len(), 30, "{answered:?}");
    assert_eq!(fleet.served(), answered);
    // Those that served have ended, but for the spare ones.
    until(|| fleet.process_ids().len() == 2).await;
    assert!(fleet.process_ids().iter().all(|id| !answered.contains(id)));
}

#[tokio::test]
async fn questions_go_on_in_other_processes() {
    for routing in [Routing::RoundRobin, Routing::Fresh] {
        let fleet = fleet().routing(routing).start().await.unwrap();
        let client = fleet
            .client()
            .answer("name", json!({"text": "Lovelace"}))
            .answer("title", json!({"text": "Lady"}));
        let called = soon(client.call("greet", ())).await.unwrap();
        assert_eq!(called.text(), "Hello, Lady Lovelace!");
        assert_eq!(called.questions(), ["name", "title"]);
        let served = fleet.served();
        assert_eq!(served.iter().collect::<BTreeSet<_>>().len(), 3, "{served:?}");
    }
}

#[tokio::test]
async fn a_listen_stream_holds_its_fresh_process() {
    let fleet = fleet().instances(1).routing(Routing::Fresh).start().await.unwrap();
    let client = fleet.client();
    let listening = soon(client.listen(json!({"toolsListChanged": true}))).await.unwrap();
    let id = fleet.served()[0];
    let answered = who_answer(&client, 3).await;
    until(|| answered.iter().all(|id| !fleet.process_ids().contains(id))).await;
    assert!(fleet.process_ids().contains(&id));
    drop(listening);
    until(|| !fleet.process_ids().contains(&id)).await;
}
