//! Starting, killing and ending processes.

use std::{
    env,
    ffi::OsStr,
    fs,
    process::{self, Command},
    time::Duration,
};

use http::StatusCode;
use mcp_edge_test::{Fleet, FleetError, Routing};
use serde_json::json;

use crate::support::{exists, fleet, hello, shell, soon, until, who_answers};

#[tokio::test]
async fn the_others_go_on_when_one_is_killed() {
    let fleet = fleet().start().await.unwrap();
    let client = fleet.client();
    let ids = fleet.process_ids();
    fleet.kill(1).await.unwrap();
    assert_eq!(fleet.process_ids(), [ids[0], ids[2]]);
    assert!(!exists(ids[1]));
    let mut answered = Vec::new();
    for _ in 0..6 {
        answered.push(who_answers(&client).await);
    }
    assert_eq!(answered, [ids[0], ids[2], ids[2], ids[0], ids[2], ids[2]]);

    fleet.kill(1).await.unwrap();
    fleet.restart(1).await.unwrap();
    let new = *fleet.process_ids().last().unwrap();
    assert!(!ids.contains(&new));
    fleet.restart(0).await.unwrap();
    assert!(!fleet.process_ids().contains(&ids[0]));
    let third =
        [who_answers(&client).await, who_answers(&client).await, who_answers(&client).await];
    assert_eq!(third[1..], [new, ids[2]]);

    for index in 0..3 {
        fleet.kill(index).await.unwrap();
    }
    let mut response = hello(&client).await;
    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    assert_eq!(response.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.text().await.unwrap(), "no instance can be reached\n");
}

#[tokio::test]
async fn a_process_that_dies_by_itself_is_passed_over() {
    let fleet = fleet().start().await.unwrap();
    let ids = fleet.process_ids();
    let id = ids[1].to_string();
    Command::new("kill").args(["-9", &id]).status().unwrap();
    until(|| fleet.process_ids().len() == 2).await;
    for _ in 0..4 {
        assert_ne!(who_answers(&fleet.client()).await, ids[1]);
    }
}

#[tokio::test]
async fn there_is_no_instance_of_another_index() {
    let fleet = fleet().instances(1).start().await.unwrap();
    assert!(matches!(fleet.kill(1).await, Err(FleetError::NoInstance { index: 1 })));
    assert!(matches!(fleet.restart(1).await, Err(FleetError::NoInstance { index: 1 })));
    let fleet = crate::support::fleet().routing(Routing::Fresh).start().await.unwrap();
    assert!(matches!(fleet.kill(0).await, Err(FleetError::NoInstance { index: 0 })));
}

#[tokio::test]
async fn shutdown_ends_streams_and_processes() {
    for routing in [Routing::RoundRobin, Routing::Fresh] {
        let fleet = fleet().routing(routing).start().await.unwrap();
        let client = fleet.client();
        let mut listening = soon(client.listen(json!({"toolsListChanged": true}))).await.unwrap();
        let ids = fleet.process_ids();
        let (none, ()) = tokio::join!(listening.next(), soon(fleet.shutdown()));
        assert_eq!(none, None);
        assert!(listening.ended_gracefully(), "{routing:?}");
        assert!(!ids.into_iter().any(exists), "{routing:?}");
        assert!(client.call("hello", ()).await.is_err());
    }
}

#[tokio::test]
async fn dropping_a_fleet_kills_its_processes() {
    for routing in [Routing::RoundRobin, Routing::Fresh] {
        let fleet = fleet().routing(routing).start().await.unwrap();
        assert_eq!(hello(&fleet.client()).await.status, 200);
        let ids = fleet.process_ids();
        drop(fleet);
        until(|| !ids.iter().copied().any(exists)).await;
    }
}

#[tokio::test]
async fn the_resident_process_gets_no_requests() {
    let told = env::temp_dir().join(format!("mcp-edge-resident-{}", process::id()));
    let script = r#"echo $$ > "$1"; exec "$0" --ignored --exact server::serves --nocapture"#;
    let me = env::current_exe().unwrap();
    let args: [&OsStr; 4] = ["-c".as_ref(), script.as_ref(), me.as_ref(), told.as_ref()];
    let fleet = fleet().instances(1).resident("sh", args).start().await.unwrap();
    let resident = fs::read_to_string(&told).unwrap().trim().parse().unwrap();
    fs::remove_file(&told).unwrap();
    let ids = fleet.process_ids();
    assert!(ids.len() == 1 && ids[0] != resident && exists(resident));
    for _ in 0..3 {
        assert_eq!(who_answers(&fleet.client()).await, ids[0]);
    }
    soon(fleet.shutdown()).await;
    assert!(!exists(resident));
}

#[tokio::test]
async fn a_stubborn_process_is_killed() {
    let script = "trap '' TERM; echo http://127.0.0.1:1/mcp; while :; do sleep 0.1; done";
    let fleet = shell(script).instances(1).end_limit(Duration::from_millis(50));
    let fleet = fleet.start().await.unwrap();
    let id = fleet.process_ids()[0];
    soon(fleet.shutdown()).await;
    assert!(!exists(id));
}

#[tokio::test]
async fn a_process_that_does_not_start_says_why() {
    let error = shell("echo what is wrong >&2; exit 3").start().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a process ended before it printed a URL: exit status: 3; on its standard error:\n\
         what is wrong\n"
    );
    let silent = shell("echo slow >&2; exec sleep 60").start_limit(Duration::from_millis(500));
    let error = silent.start().await.unwrap_err();
    assert!(matches!(&error, FleetError::Silent { .. }), "{error}");
    assert!(error.to_string().contains("no URL within 500ms"), "{error}");
    let error = Fleet::builder("/nowhere/program").start().await.unwrap_err();
    assert_eq!(error.to_string(), "`/nowhere/program` cannot be run");
    assert!(std::error::Error::source(&error).is_some());
    assert!(matches!(fleet().instances(0).start().await, Err(FleetError::Empty)));
}

#[tokio::test]
async fn a_request_hears_of_a_fresh_process_that_does_not_start() {
    let mark = env::temp_dir().join(format!("mcp-edge-fleet-{}", process::id()));
    fs::write(&mark, "").unwrap();
    let script = format!(
        "if [ -e {0} ]; then echo http://127.0.0.1:1/mcp; exec sleep 60; fi; \
         echo the mark is gone >&2",
        mark.display()
    );
    let fleet = shell(&script).instances(1).routing(Routing::Fresh).start().await.unwrap();
    fs::remove_file(&mark).unwrap();
    let mut response = hello(&fleet.client()).await;
    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    let text = response.text().await.unwrap();
    assert!(text.contains("the mark is gone"), "{text}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let first = fleet().instances(1).start().await.unwrap();
    let port = first.url().rsplit_once(':').unwrap().1.trim_end_matches("/mcp").parse().unwrap();
    let error = fleet().instances(1).port(port).start().await.unwrap_err();
    assert!(matches!(error, FleetError::Proxy { .. }), "{error}");
}
