//! The store in an SQLite file does what stores and change feeds do, and what one expects of a file.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    error::Error as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use mcp_edge::{
    Change, ChangeFeed as _, Created, Mailbox as _, TaskRecord, TaskStore as _, Timestamp, Topics,
};
use mcp_edge_hyper::{SqliteError, SqliteStore};
use mcp_edge_test::{feed::Feeds, store::Stores};
use tempfile::TempDir;
use tokio::time::timeout;

/// Two stores, opened apart as by two processes.
fn two() -> (TempDir, SqliteStore, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let [one, other] = [SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap()];
    (folder, one, other)
}

async fn stores() -> Stores {
    let (folder, one, other) = two();
    Stores::new(one.clone(), other.clone())
        .with_mailboxes(one.clone(), other.clone())
        .with_replay_guards(one, other)
        .keeping(folder)
}

async fn feeds() -> Feeds {
    let (folder, one, other) = two();
    Feeds::new(one, other).keeping(folder)
}

mod store {
    use super::stores;
    mcp_edge_test::store_suite!(stores);
}

mod feed {
    use super::feeds;
    mcp_edge_test::feed_suite!(feeds);
}

const NOW: Timestamp = Timestamp::from_millis(4_000_000_000_000);

fn task(key: &str) -> TaskRecord {
    TaskRecord {
        key: key.to_owned(),
        owner: "owner".to_owned(),
        version: 1,
        is_open: true,
        due: None,
        expires: NOW + Duration::from_hours(1),
        body: "{}".into(),
    }
}

fn sql(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_survives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.create(&task("a"), 1, NOW).await.unwrap(), Created::Created);
    assert!(store.put_once("a", b"message", task("").expires, NOW).await.unwrap());
    // As after a crash, nothing is closed and the log is still to be taken in.
    let copy = tempfile::tempdir().unwrap();
    for name in ["tasks.db", "tasks.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    drop(store);
    for path in [path, copy.path().join("tasks.db")] {
        let store = SqliteStore::open(path).unwrap();
        assert_eq!(store.get("a", NOW).await.unwrap(), Some(task("a")));
        assert_eq!(store.take("a", NOW).await.unwrap().unwrap(), b"message");
    }
}

#[test]
fn many_may_open_a_new_file_at_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.db");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| SqliteStore::open(&path).unwrap());
            }
        });
    }
}

#[test]
fn a_newer_file_is_refused() {
    let (folder, ..) = two();
    let path = folder.path().join("tasks.db");
    sql(&path, "PRAGMA user_version = 9");
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, SqliteError::Newer { found: 9, known: 1, .. }), "{refused:?}");
    assert_eq!(
        refused.to_string(),
        format!(
            "{} has schema 9 and this version of mcp-edge-hyper knows 1 at most; update this \
             program, or name another file",
            path.display()
        )
    );
}

#[test]
fn a_file_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("others.db");
    sql(&path, "CREATE TABLE task (id); PRAGMA user_version = 1");
    let refused = SqliteStore::open(&path).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "{} is a database of something else; name a file that does not exist yet",
            path.display()
        )
    );
    let connection = rusqlite::Connection::open(&path).unwrap();
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete", "nothing was changed");

    let path = folder.path().join("no.db");
    std::fs::write(&path, "a text of some length, and no database at all".repeat(20)).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert_eq!(refused.source().unwrap().to_string(), "file is not a database");
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("missing/tasks.db"), folder.path().to_owned()] {
        let refused = SqliteStore::open(&path).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "{} cannot be used as a store; its folder must exist, and this process must be \
                 allowed to write both",
                path.display()
            )
        );
        let source = refused.source().unwrap().to_string();
        assert!(source.starts_with("unable to open database file"), "{source}");
    }
}

#[test]
fn a_file_that_is_none_is_refused() {
    for path in [":memory:", ""] {
        let refused = SqliteStore::open(path).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "{path:?} cannot be shared by several connections; name a file on a disk of this \
                 host, or use `MemoryStore`"
            )
        );
    }
}

#[tokio::test]
async fn a_future_that_is_dropped_takes_nothing_with_it() {
    let (_folder, store, _) = two();
    for n in 0..50 {
        let (task, key) = (task(&n.to_string()), n.to_string());
        let mut create = store.create(&task, u32::MAX, NOW);
        let mut get = store.get(&key, NOW);
        let mut listen = store.subscribe(Topics::new(None).with_tools());
        let _ = futures_util::poll!(&mut create);
        let _ = futures_util::poll!(&mut get);
        let _ = futures_util::poll!(&mut listen);
    }
    assert_eq!(store.create(&task("a"), u32::MAX, NOW).await.unwrap(), Created::Created);
    assert_eq!(store.get("a", NOW).await.unwrap(), Some(task("a")));
}

#[tokio::test]
async fn a_process_that_writes_for_long_is_waited_for() {
    let (folder, store, _) = two();
    let mut other = rusqlite::Connection::open(folder.path().join("tasks.db")).unwrap();
    let transaction =
        other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let create = tokio::spawn({
        let store = store.clone();
        async move { store.create(&task("a"), 1, NOW).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!create.is_finished());
    assert_eq!(store.get("a", NOW).await.unwrap(), None, "readers do not wait");
    transaction.commit().unwrap();
    assert_eq!(create.await.unwrap().unwrap(), Created::Created);
}

#[tokio::test]
async fn old_changes_are_removed_and_whoever_missed_them_is_told() {
    let (folder, store, _) = two();
    let path = folder.path().join("tasks.db");
    let mut listener = store.subscribe(Topics::new(None).with_tools()).await.unwrap();
    // As if others had published more than is kept, all at once.
    sql(
        &path,
        "INSERT INTO change (id, created, change) VALUES (500000, 0, '\"tools\"'), (500001, 0, '{}')",
    );
    let mut next = async || timeout(Duration::from_secs(10), listener.next()).await.unwrap();
    assert_eq!(next().await, Some(Change::Tools), "what is there is told");
    assert_eq!(next().await, None, "the stream ends, so that its reader starts anew");

    let mut listener = store.subscribe(Topics::new(None).with_prompts()).await.unwrap();
    for _ in 0..1000 {
        store.publish(None, Change::Tools).await.unwrap();
    }
    store.publish(None, Change::Prompts).await.unwrap();
    assert_eq!(listener.next().await, Some(Change::Prompts));
    let connection = rusqlite::Connection::open(&path).unwrap();
    let oldest: i64 =
        connection.query_row("SELECT min(id) FROM change", [], |row| row.get(0)).unwrap();
    assert_eq!(oldest, 500_002, "older ones are gone, and the last thousand are kept");
}

#[tokio::test]
async fn streams_end_with_the_store() {
    let (_folder, store, _) = two();
    let mut listener = store.subscribe(Topics::new(None).with_tools()).await.unwrap();
    drop(store);
    assert_eq!(timeout(Duration::from_secs(10), listener.next()).await.unwrap(), None);
}

/// Not at the next look at the table. The fastest of several counts, as others use the machine too.
#[tokio::test]
async fn timing_its_own_process_hears_at_once() {
    let (_folder, store, _) = two();
    let mut listener = store.subscribe(Topics::new(None).with_tools()).await.unwrap();
    let mut fastest = Duration::MAX;
    for _ in 0..20 {
        store.publish(None, Change::Tools).await.unwrap();
        let published = Instant::now();
        assert_eq!(listener.next().await, Some(Change::Tools));
        fastest = fastest.min(published.elapsed());
    }
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
}

/// Locks within a process are not those between processes, so this test starts itself as others.
#[tokio::test]
async fn processes_share_the_file() {
    if let Some(path) = std::env::var_os(SHARED) {
        let store = SqliteStore::open(path).unwrap();
        for _ in 0..WRITES {
            while !store.update(&store.get("a", NOW).await.unwrap().unwrap(), NOW).await.unwrap() {}
        }
        store.publish(None, Change::Task("a".to_owned())).await.unwrap();
        return;
    }
    let (folder, store, _) = two();
    assert_eq!(store.create(&task("a"), 1, NOW).await.unwrap(), Created::Created);
    let mut listener = store.subscribe(Topics::new(None).with_tasks(["a"])).await.unwrap();
    let mut others: Vec<_> = (0..3)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "processes_share_the_file"])
                .env(SHARED, folder.path().join("tasks.db"))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let heard = timeout(Duration::from_secs(60), listener.next()).await.unwrap();
    assert_eq!(heard, Some(Change::Task("a".to_owned())));
    assert!(others.iter_mut().all(|other| other.wait().unwrap().success()));
    let version = 1 + 3 * WRITES;
    assert_eq!(
        store.get("a", NOW).await.unwrap(),
        Some(TaskRecord { version, ..task("a") }),
        "no write was lost"
    );
}

/// Names the file to a process that this test has started.
const SHARED: &str = "MCP_EDGE_SHARED_FILE";

/// How often each process writes.
const WRITES: u64 = 40;
