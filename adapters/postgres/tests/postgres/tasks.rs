//! Tasks, one by one and many at once.

use std::collections::BTreeSet;

use mcp_edge::{Created, DueIndex as _, RECORD_BYTES, TaskRecord, TaskStore as _, Timestamp};
use mcp_edge_postgres::{PostgresStore, tokio_postgres::NoTls};

use crate::support::{NOW, SECOND, at_once, task, with_database};

#[test]
fn a_task_is_read_as_it_was_written() {
    with_database(async |database| {
        let (store, other) = (database.store().await, database.store().await);
        let written = [
            task("a", "me"),
            TaskRecord { due: None, body: "\"\0é\"".into(), ..task("b", "me") },
            TaskRecord { is_open: false, ..task("c", "me") },
            TaskRecord { body: vec![b' '; RECORD_BYTES].into(), ..task("d", "me") },
        ];
        for record in written {
            assert_eq!(store.create(&record, 9, NOW).await.unwrap(), Created::Created);
            assert_eq!(other.get(&record.key, NOW).await.unwrap(), Some(record));
        }
        assert_eq!(store.get("e", NOW).await.unwrap(), None);
    });
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    with_database(async |database| {
        let store = database.store().await;
        let large = TaskRecord { body: vec![b' '; RECORD_BYTES + 1].into(), ..task("a", "me") };
        assert!(store.create(&large, 9, NOW).await.is_err());
        store.create(&task("a", "me"), 9, NOW).await.unwrap();
        assert!(store.update(&large, NOW).await.is_err());
        assert_eq!(store.get("a", NOW).await.unwrap(), Some(task("a", "me")));
    });
}

#[test]
fn a_key_is_taken_until_it_is_purged() {
    with_database(async |database| {
        let store = database.store().await;
        let first = task("a", "me");
        let second = TaskRecord { body: "1".into(), ..task("a", "other") };
        store.create(&first, 1, NOW).await.unwrap();
        // That the owner has its share already does not matter.
        for max_open in [0, 1, 9] {
            let created = store.create(&second, max_open, NOW).await.unwrap();
            assert_eq!(created, Created::Exists(Some(first.clone())));
        }
        let created = store.create(&second, 9, first.expires).await.unwrap();
        assert_eq!(created, Created::Exists(None));
        assert_eq!(store.purge(first.expires, 9).await.unwrap(), 0);
        assert_eq!(store.purge(first.expires + SECOND, 9).await.unwrap(), 1);
        assert_eq!(store.create(&second, 9, NOW).await.unwrap(), Created::Created);
    });
}

#[test]
fn an_update_needs_the_version_an_open_task_and_time() {
    with_database(async |database| {
        let store = database.store().await;
        let old = task("a", "me");
        assert!(!store.update(&old, NOW).await.unwrap(), "there is none");
        store.create(&old, 9, NOW).await.unwrap();
        for version in [0, 2, u64::MAX] {
            let other = TaskRecord { version, ..old.clone() };
            assert!(!store.update(&other, NOW).await.unwrap(), "version {version}");
        }
        assert!(!store.update(&old, old.expires).await.unwrap(), "past its time");

        let new = TaskRecord {
            is_open: false,
            due: None,
            expires: NOW + 9 * SECOND,
            body: "[]".into(),
            ..old
        };
        assert!(store.update(&new, NOW).await.unwrap());
        let kept = TaskRecord { version: 2, ..new };
        assert_eq!(store.get("a", NOW).await.unwrap(), Some(kept.clone()));
        assert!(!store.update(&kept, NOW).await.unwrap(), "not open");
        assert_eq!(store.get("a", kept.expires).await.unwrap(), None);
    });
}

#[test]
fn the_open_tasks_of_an_owner_are_bounded() {
    with_database(async |database| {
        let store = database.store().await;
        let ended = TaskRecord { is_open: false, ..task("ended", "me") };
        let over = TaskRecord { expires: NOW, ..task("over", "me") };
        for record in [ended, over, task("foreign", "other"), task("a", "me"), task("b", "me")] {
            assert_eq!(store.create(&record, 2, NOW).await.unwrap(), Created::Created);
        }
        assert_eq!(store.create(&task("c", "me"), 2, NOW).await.unwrap(), Created::TooMany);
        assert_eq!(store.get("c", NOW).await.unwrap(), None);
        assert_eq!(store.create(&task("d", "you"), 0, NOW).await.unwrap(), Created::TooMany);
    });
}

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
fn of_many_who_write_at_once_one_wins() {
    with_database(async |database| {
        let stores = [database.store().await, database.store().await];
        let created = at_once(20, |n| {
            let store = stores[n % 2].clone();
            async move { store.create(&task("a", &n.to_string()), 9, NOW).await.unwrap() }
        });
        let won = created.await.into_iter().filter(|created| *created == Created::Created);
        assert_eq!(won.count(), 1);

        let updated = at_once(20, |n| {
            let store = stores[n % 2].clone();
            async move { store.update(&task("a", "me"), NOW).await.unwrap() }
        });
        assert_eq!(updated.await.into_iter().filter(|won| *won).count(), 1);
    });
}

#[test]
fn those_due_longest_are_claimed_first_and_once() {
    with_database(async |database| {
        let store = database.store().await;
        let due = |key, due| TaskRecord { due, ..task(key, "me") };
        for record in [
            due("second", Some(NOW - SECOND)),
            due("third", Some(NOW)),
            due("first", Some(NOW - 2 * SECOND)),
            due("later", Some(NOW + SECOND)),
            due("waiting", None),
            TaskRecord { is_open: false, ..task("ended", "me") },
            TaskRecord { expires: NOW, ..task("over", "me") },
        ] {
            store.create(&record, 9, NOW).await.unwrap();
        }
        let until = NOW + 9 * SECOND;
        assert_eq!(store.claim_due(NOW, until, 2).await.unwrap(), ["first", "second"]);
        assert_eq!(store.claim_due(NOW, until, usize::MAX).await.unwrap(), ["third"]);
        let (claimed, none) = (store.get("first", NOW).await.unwrap(), [""; 0]);
        assert_eq!(claimed, Some(due("first", Some(until))), "the version stays");
        assert_eq!(store.claim_due(NOW, until, 9).await.unwrap(), none);
        assert_eq!(store.claim_due(until, until + SECOND, 9).await.unwrap().len(), 4);
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
fn the_longest_expired_are_purged_up_to_the_limit() {
    with_database(async |database| {
        let store = database.store().await;
        for n in 0..5 {
            let expires = NOW + n * SECOND;
            let record = TaskRecord { expires, ..task(&n.to_string(), "me") };
            store.create(&record, 9, NOW).await.unwrap();
        }
        let before = NOW + 4 * SECOND;
        assert_eq!(store.purge(before, 3).await.unwrap(), 3);
        assert!(store.get("3", NOW).await.unwrap().is_some());
        assert_eq!(store.purge(before, 3).await.unwrap(), 1);
        assert_eq!(store.purge(before, 3).await.unwrap(), 0);
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
