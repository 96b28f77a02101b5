//! Messages and spent ids.

use mcp_edge::{Mailbox as _, ReplayGuard as _};

use crate::support::{NOW, SECOND, at_once, with_database};

#[test]
fn a_message_is_put_once_and_taken_once() {
    with_database(async |database| {
        let (store, other) = (database.store().await, database.store().await);
        let end = NOW + SECOND;
        assert_eq!(store.take("a", NOW).await.unwrap(), None);
        assert!(store.put_once("a", b"\0one\xff", end, NOW).await.unwrap());
        assert!(!other.put_once("a", b"two", end, NOW).await.unwrap());
        assert_eq!(other.take("a", NOW).await.unwrap().as_deref(), Some(&b"\0one\xff"[..]));
        assert_eq!(store.take("a", NOW).await.unwrap(), None);
        assert!(!store.put_once("a", b"three", end, NOW).await.unwrap(), "it was taken");

        assert!(store.put_once("b", b"", end, NOW).await.unwrap());
        assert_eq!(store.take("b", end).await.unwrap(), None, "past its time");
        assert!(store.put_once("b", b"new", end + SECOND, end).await.unwrap());
        assert_eq!(store.take("b", end).await.unwrap().as_deref(), Some(&b"new"[..]));
    });
}

#[test]
fn a_taken_message_is_gone_from_the_disk() {
    with_database(async |database| {
        let store = database.store().await;
        store.put_once("a", b"secret", NOW + SECOND, NOW).await.unwrap();
        store.take("a", NOW).await.unwrap();
        let row = database.admin().await.query_one("SELECT message FROM messages", &[]).await;
        assert_eq!(row.unwrap().get::<_, Option<Vec<u8>>>(0), None);
    });
}

#[test]
fn of_many_at_once_one_puts_one_takes_and_one_spends() {
    with_database(async |database| {
        let stores = [database.store().await, database.store().await];
        let end = NOW + SECOND;
        let put = at_once(20, |n| {
            let store = stores[n % 2].clone();
            async move { store.put_once("a", &[n as u8], end, NOW).await.unwrap() }
        });
        let put = put.await;
        let winner = put.iter().position(|won| *won).unwrap();
        assert_eq!(put.iter().filter(|won| **won).count(), 1);

        let taken = at_once(20, |n| {
            let store = stores[n % 2].clone();
            async move { store.take("a", NOW).await.unwrap() }
        });
        let taken: Vec<_> = taken.await.into_iter().flatten().collect();
        assert_eq!(taken, [[winner as u8]]);

        let spent = at_once(20, |n| {
            let store = stores[n % 2].clone();
            async move { store.spend("a", end, NOW).await.unwrap() }
        });
        assert_eq!(spent.await.into_iter().filter(|won| *won).count(), 1);
    });
}

#[test]
fn an_id_is_spent_until_it_expires() {
    with_database(async |database| {
        let (store, other) = (database.store().await, database.store().await);
        let end = NOW + SECOND;
        assert!(store.spend("a", end, NOW).await.unwrap());
        assert!(!other.spend("a", end, NOW).await.unwrap());
        assert!(other.spend("b", end, NOW).await.unwrap());
        assert!(!store.spend("a", end + SECOND, end - SECOND).await.unwrap());
        assert!(store.spend("a", end + SECOND, end).await.unwrap());
        assert!(!store.spend("a", end + SECOND, end).await.unwrap());
    });
}

#[test]
fn what_expired_long_ago_makes_room() {
    with_database(async |database| {
        let store = database.store().await;
        let admin = database.admin().await;
        for n in 0..10 {
            store.spend(&n.to_string(), NOW, NOW).await.unwrap();
            store.put_once(&n.to_string(), b"", NOW, NOW).await.unwrap();
        }
        let rows = async || {
            let sql = "SELECT (SELECT count(*) FROM spent), (SELECT count(*) FROM messages)";
            let row = admin.query_one(sql, &[]).await.unwrap();
            (row.get::<_, i64>(0), row.get::<_, i64>(1))
        };
        // A day is left for clocks that differ.
        let day = 24 * 3600 * SECOND;
        for (now, left) in [(NOW + day, 15), (NOW + day + SECOND, 10)] {
            for n in 0..5 {
                let id = format!("{n} at {}", now.as_millis());
                store.spend(&id, now + SECOND, now).await.unwrap();
                store.put_once(&id, b"", now + SECOND, now).await.unwrap();
            }
            assert_eq!(rows().await, (left, left));
        }
    });
}
