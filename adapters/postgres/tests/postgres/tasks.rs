//! Tasks, one by one and many at once.

use std::collections::BTreeSet;

use mcp_edge::{Created, DueIndex as _, TaskRecord, TaskStore as _, Timestamp};
use mcp_edge_postgres::{PostgresStore, tokio_postgres::NoTls};

use crate::support::{NOW, SECOND, at_once, task, with_database};

#[test]
fn the_bound_is_exact_at_any_isolation_level() {
    with_database(async |database| {
        for level in ["read committed", "serializable"] {
            let mut config = database.config();
            let level = level.replace(' ', "\\ ");
            config.options(format!("-c default_transaction_isolation={level}"));
            let mut stores = Vec::new();
            for _ in 0..2 {
                let options = database.options();
                let store = PostgresStore::connect_with(config.clone(), NoTls, options).await;
                stores.push(store.unwrap());
            }
            let created = at_once(40, |n| {
                let store = stores[n % 2].clone();
                let record = task(&format!("{level}{n}"), &level);
                async move { store.create(&record, 5, NOW).await.unwrap() }
            });
            let created = created.await;
            let count = |result| created.iter().filter(|created| **created == result).count();
            assert_eq!((count(Created::Created), count(Created::TooMany)), (5, 35), "{level}");
        }
    });
}

#[test]
fn no_task_is_claimed_by_two_sweeps() {
    with_database(async |database| {
        let stores = [database.store().await, database.store().await];
        let fill = "INSERT INTO tasks SELECT n::text, 'me', 1, true, $1::bigint - n, $1 + 1000, '' \
                    FROM generate_series(1, 1000) AS n";
        let now = i64::try_from(NOW.as_millis()).unwrap();
        stores[0].get("any", NOW).await.unwrap();
        database.admin().await.execute(fill, &[&now]).await.unwrap();

        let claimed = at_once(8, |n| {
            let store = stores[n % 2].clone();
            async move {
                let mut claimed = Vec::new();
                loop {
                    let more = store.claim_due(NOW, NOW + SECOND, 7).await.unwrap();
                    if more.is_empty() {
                        return claimed;
                    }
                    claimed.extend(more);
                }
            }
        });
        let claimed = claimed.await;
        assert!(claimed.iter().filter(|claimed| !claimed.is_empty()).count() > 1);
        let claimed = claimed.concat();
        assert_eq!(claimed.len(), 1000);
        assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>().len(), 1000);
    });
}

#[test]
fn times_without_end_are_kept() {
    with_database(async |database| {
        let store = database.store().await;
        let never = Timestamp::from_millis(u64::MAX);
        let record = TaskRecord { due: Some(never), expires: never, ..task("a", "me") };
        store.create(&record, 9, NOW).await.unwrap();
        let kept = store.get("a", NOW).await.unwrap().unwrap();
        assert_eq!(kept.expires.as_millis(), u64::MAX / 2);
        assert_eq!(store.claim_due(NOW, NOW, 9).await.unwrap(), [""; 0]);
        assert_eq!(store.purge(NOW, 9).await.unwrap(), 0);
    });
}
