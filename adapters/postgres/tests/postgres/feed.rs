//! News from one store to another.

use futures_util::StreamExt as _;
use mcp_edge::{BoxStream, Change, ChangeFeed as _, Topics};
use mcp_edge_postgres::PostgresStore;

use crate::support::{at_once, soon, with_database};

fn everything() -> Topics {
    Topics::new(None).with_tools().with_uris(["file:///"])
}

async fn listen(store: &PostgresStore, topics: Topics) -> BoxStream<'static, Change> {
    store.subscribe(topics).await.unwrap()
}

#[test]
fn schemas_do_not_hear_each_other() {
    with_database(async |one| {
        let store = one.store().await;
        let mut listener = listen(&store, everything()).await;
        let other = one.sibling();
        other.store().await.publish(None, Change::Tools).await.unwrap();
        other.remove().await;
        store.publish(None, Change::resource("file:///own")).await.unwrap();
        assert_eq!(soon(listener.next()).await, Some(Change::resource("file:///own")));
    });
}

#[test]
fn many_listen_through_one_connection() {
    with_database(async |database| {
        let (store, other) = (database.store().await, database.store().await);
        let heard = at_once(20, |n| {
            let (store, other) = (store.clone(), other.clone());
            async move {
                let topics = Topics::new(Some(n.to_string())).with_tools();
                let mut listener = listen(&store, topics).await;
                other.publish(Some(&n.to_string()), Change::Tools).await.unwrap();
                soon(listener.next()).await
            }
        });
        assert!(heard.await.into_iter().all(|heard| heard == Some(Change::Tools)));

        let sql = "SELECT count(*) FROM pg_stat_activity \
                   WHERE application_name = $1 AND query LIKE 'LISTEN%'";
        let row = database.admin().await.query_one(sql, &[&database.schema]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 1);
    });
}

#[test]
fn a_change_may_be_larger_than_a_notification() {
    with_database(async |database| {
        let (store, other) = (database.store().await, database.store().await);
        let mut listener = listen(&store, everything()).await;
        let uri = |length: usize| Change::resource(format!("file:///{}", "x".repeat(length)));
        let lengths = || (7900..8010).chain([9000, 1, 1_000_000]);
        for length in lengths() {
            other.publish(None, uri(length)).await.unwrap();
        }
        for length in lengths() {
            let heard = soon(listener.next()).await;
            assert!(heard == Some(uri(length)), "{length}");
        }
    });
}

#[test]
fn what_others_notify_is_passed_over() {
    with_database(async |database| {
        let store = database.store().await;
        let mut listener = listen(&store, everything()).await;
        let admin = database.admin().await;
        for payload in ["", "hello", "{\"tenant\":null,\"change\":\"weather\"}"] {
            let sql = "SELECT pg_notify($1, $2)";
            let channel = format!("{}_changes", database.schema);
            admin.execute(sql, &[&channel, &payload]).await.unwrap();
        }
        store.publish(None, Change::Tools).await.unwrap();
        assert_eq!(soon(listener.next()).await, Some(Change::Tools));
    });
}

#[test]
fn a_large_change_that_is_gone_ends_the_listeners() {
    with_database(async |database| {
        let store = database.store().await;
        let mut listener = listen(&store, everything()).await;
        let sql = format!("SELECT pg_notify('{}_changes', '42')", database.schema);
        database.admin().await.batch_execute(&sql).await.unwrap();
        assert_eq!(soon(listener.next()).await, None);
    });
}
