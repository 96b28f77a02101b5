//! Messages and spent ids.

use mcp_edge::{Mailbox as _, ReplayGuard as _};

use crate::support::{NOW, SECOND, with_database};

#[test]
fn a_taken_message_is_not_kept() {
    with_database(async |database| {
        let store = database.store().await;
        store.put_once("a", b"secret", NOW + SECOND, NOW).await.unwrap();
        store.take("a", NOW).await.unwrap();
        let row = database.admin().await.query_one("SELECT message FROM messages", &[]).await;
        assert_eq!(row.unwrap().get::<_, Option<Vec<u8>>>(0), None);
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
