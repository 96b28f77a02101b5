//! Connections that end, hang, or are needed by too many.

use std::{
    future::pending,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
};
use mcp_edge::{Change, ChangeFeed as _, TaskStore as _, Topics};
use mcp_edge_postgres::{
    PostgresStore,
    tokio_postgres::{Config, NoTls, config::Host},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::support::{Database, NOW, at_once, soon, task, with_database};

#[test]
fn ended_connections_cost_one_operation_at_most() {
    with_database(async |database| {
        let store = database.store().await;
        let get = |_| {
            let store = store.clone();
            async move { store.get("a", NOW).await.is_ok() }
        };
        for _ in 0..3 {
            at_once(8, get).await;
            assert!(database.terminate_all().await > 1);
            let mut failures = 0;
            for n in 0..10 {
                failures += usize::from(!get(n).await);
            }
            assert!(failures <= 1, "{failures}");
        }
    });
}

#[test]
fn listeners_of_an_ended_connection_end_and_may_come_again() {
    with_database(async |database| {
        let store = database.store().await;
        let topics = Topics::new(None).with_tools();
        for _ in 0..3 {
            let mut listeners = [
                store.subscribe(topics.clone()).await.unwrap(),
                store.subscribe(topics.clone()).await.unwrap(),
            ];
            database.terminate_all().await;
            for listener in &mut listeners {
                assert_eq!(soon(listener.next()).await, None);
            }
            let mut again = store.subscribe(topics.clone()).await.unwrap();
            // The first one may meet a connection that was ended.
            if store.publish(None, Change::Tools).await.is_err() {
                store.publish(None, Change::Tools).await.unwrap();
            }
            assert_eq!(soon(again.next()).await, Some(Change::Tools));
        }
    });
}

#[test]
fn the_connection_that_listens_is_closed_when_nobody_does() {
    with_database(async |database| {
        let store = database.store().await;
        drop(store.subscribe(Topics::new(None).with_tools()).await.unwrap());
        let admin = database.admin().await;
        let sql = "SELECT count(*) FROM pg_stat_activity \
                   WHERE application_name = $1 AND query LIKE 'LISTEN%'";
        soon(async {
            while admin.query_one(sql, &[&database.schema]).await.unwrap().get::<_, i64>(0) > 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
    });
}

#[test]
fn an_operation_that_was_dropped_disturbs_no_other() {
    with_database(async |database| {
        let options = database.options().max_connections(2);
        let store = PostgresStore::connect_with(database.config(), NoTls, options).await.unwrap();
        for n in 0..50 {
            let key = n.to_string();
            let record = task(&key, "me");
            let limit = Duration::from_micros(100 * n);
            let _ = tokio::time::timeout(limit, store.create(&record, 99, NOW)).await;
            // Whether it was written is open; what is read is the right one.
            let found = store.get(&key, NOW).await.unwrap();
            assert!(found.is_none_or(|found| found == record));
        }
    });
}

#[test]
fn waiting_for_a_lock_has_a_limit() {
    with_database(async |database| {
        let options = database.options().time_limit(Duration::from_millis(300));
        let store = PostgresStore::connect_with(database.config(), NoTls, options).await.unwrap();
        store.create(&task("a", "me"), 1, NOW).await.unwrap();
        let admin = database.admin().await;
        admin.batch_execute("BEGIN; SELECT FROM tasks FOR UPDATE").await.unwrap();
        let started = Instant::now();
        assert!(store.update(&task("a", "me"), NOW).await.is_err());
        assert!(started.elapsed() < Duration::from_secs(5));
        admin.batch_execute("COMMIT").await.unwrap();
        // The first one may have been written all the same.
        soon(async {
            while !store.update(&store.get("a", NOW).await.unwrap().unwrap(), NOW).await.unwrap() {}
        })
        .await;
    });
}

#[test]
fn connections_that_hang_are_given_up() {
    with_database(async |database| {
        let network = Network::between(database).await;
        let options = database.options().time_limit(Duration::from_millis(500));
        let config = network.config.clone();
        let store = PostgresStore::connect_with(config, NoTls, options).await.unwrap();
        let mut listener = store.subscribe(Topics::new(None).with_tools()).await.unwrap();
        store.get("a", NOW).await.unwrap();

        network.hangs.send_replace(true);
        let error = store.get("a", NOW).await.unwrap_err().to_string();
        assert!(error.contains("did not answer within 0.5 s"), "{error}");
        assert_eq!(soon(listener.next()).await, None);
        assert!(store.subscribe(Topics::default()).await.is_err());
        let error = store.subscribe(Topics::default()).await.err().unwrap().to_string();
        assert!(error.contains("the next attempt is in"), "{error}");

        network.hangs.send_replace(false);
        store.get("a", NOW).await.unwrap();
        soon(async {
            while store.subscribe(Topics::default()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    });
}

/// A network that can hang: what is connected then carries nothing, ever again.
struct Network {
    config: Config,
    hangs: watch::Sender<bool>,
}

impl Network {
    async fn between(database: &Database) -> Self {
        let direct = database.config();
        let [Host::Tcp(host)] = direct.get_hosts() else {
            panic!("the URL of the tests names one host");
        };
        let to = (host.clone(), direct.get_ports().first().copied().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hangs = watch::Sender::new(false);

        let mut config = Config::new();
        config.host("127.0.0.1").port(listener.local_addr().unwrap().port());
        config.application_name(&database.schema);
        direct.get_user().map(|user| config.user(user));
        direct.get_password().map(|password| config.password(password));
        direct.get_dbname().map(|name| config.dbname(name));

        let hanging = hangs.subscribe();
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let (to, mut hanging) = (to.clone(), hanging.clone());
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(to).await.unwrap();
                    let carry = pin!(copy_bidirectional(&mut client, &mut server));
                    let hang = pin!(async {
                        let _ = hanging.wait_for(|hangs| *hangs).await;
                    });
                    if let Either::Right(_) = select(carry, hang).await {
                        pending::<()>().await;
                    }
                });
            }
        });
        Self { config, hangs }
    }
}
