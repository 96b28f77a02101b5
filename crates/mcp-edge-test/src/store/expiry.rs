//! What is past its time is ignored, by whoever calls it so, and removed by purging alone.

use mcp_edge::{Created, TaskRecord};

use super::{HOUR, MILLISECOND, NOW, Stores, body, due_task, task};

pub async fn an_expired_task_is_as_good_as_gone(stores: &Stores) {
    let stored = stores.create(due_task("short", NOW)).await;
    let next = TaskRecord { body: body("next"), ..stored.clone() };
    for now in [stored.expires, stored.expires + HOUR] {
        assert_eq!(stores.get(&stored.key, now).await, None);
        for store in &stores.tasks {
            assert!(!store.update(&next, now).await.unwrap());
            let created = store.create(&next, 9, now).await.unwrap();
            assert_eq!(created, Created::Exists(None), "its key stays taken");
        }
        for sweep in stores.due_indexes().into_iter().flatten() {
            assert!(sweep.claim_due(now, now + HOUR, 9).await.unwrap().is_empty());
        }
    }
    let last = stored.expires - MILLISECOND;
    assert_eq!(stores.get(&stored.key, last).await, Some(stored));
    assert!(stores.tasks[0].update(&next, last).await.unwrap());
}

pub async fn an_expired_task_does_not_count(stores: &Stores) {
    let store = &stores.tasks[0];
    let stored = stores.create(task("short")).await;
    let last = stored.expires - MILLISECOND;
    let next = TaskRecord { expires: stored.expires + HOUR, ..task("next") };
    assert_eq!(store.create(&next, 1, last).await.unwrap(), Created::TooMany);
    assert_eq!(store.create(&next, 1, stored.expires).await.unwrap(), Created::Created);
}

pub async fn an_update_may_prolong_a_task(stores: &Stores) {
    let stored = stores.create(task("prolonged")).await;
    let next = TaskRecord { expires: stored.expires + HOUR, ..stored };
    assert!(stores.tasks[0].update(&next, NOW).await.unwrap());
    let prolonged = TaskRecord { version: 2, ..next };
    let last = prolonged.expires - MILLISECOND;
    assert_eq!(stores.get(&prolonged.key, last).await, Some(prolonged));
}

pub async fn the_version_decides_whatever_the_clocks_say(stores: &Stores) {
    let [ahead, behind] = [&stores.tasks[0], &stores.tasks[1]];
    let first = stores.create(due_task("skewed", NOW)).await;
    let second = TaskRecord { body: body("second"), ..first.clone() };
    assert!(ahead.update(&second, NOW + 5 * HOUR).await.unwrap());
    assert!(!behind.update(&second, NOW - 5 * HOUR).await.unwrap(), "it has the first version");
    let third = TaskRecord { version: 2, body: body("third"), ..first };
    assert!(behind.update(&third, NOW - 5 * HOUR).await.unwrap());
    assert!(!ahead.update(&third, NOW + 5 * HOUR).await.unwrap(), "it has the second version");
    let stored = TaskRecord { version: 3, ..third };
    assert_eq!(stores.get(&stored.key, NOW).await, Some(stored));
}

pub async fn an_instance_ahead_takes_nothing_from_those_behind(stores: &Stores) {
    let [ahead, behind] = [&stores.tasks[0], &stores.tasks[1]];
    let stored = stores.create(due_task("skewed", NOW)).await;
    let late = stored.expires + 5 * HOUR;
    let wrong = TaskRecord { body: body("wrong"), ..stored.clone() };
    assert_eq!(ahead.get(&stored.key, late).await.unwrap(), None);
    assert!(!ahead.update(&wrong, late).await.unwrap());
    assert_eq!(ahead.create(&wrong, 1, late).await.unwrap(), Created::Exists(None));
    let another = TaskRecord { expires: late + HOUR, ..task("another") };
    assert_eq!(ahead.create(&another, 1, late).await.unwrap(), Created::Created);
    if let Some([ahead, _]) = stores.due_indexes() {
        assert!(ahead.claim_due(late, late + HOUR, 9).await.unwrap().is_empty());
        assert_eq!(ahead.purge(stored.expires, 9).await.unwrap(), 0);
    }

    assert_eq!(behind.get(&stored.key, NOW).await.unwrap().as_ref(), Some(&stored));
    assert!(behind.update(&stored, NOW).await.unwrap());
    if let Some([_, behind]) = stores.due_indexes() {
        assert_eq!(behind.claim_due(NOW, NOW + HOUR, 9).await.unwrap(), [stored.key]);
    }
}

pub async fn purging_frees_the_keys_of_what_expired_before(stores: &Stores) {
    let Some([one, other]) = stores.due_indexes() else { return };
    let open = stores.create(task("open")).await;
    let ended = stores.create(TaskRecord { is_open: false, ..task("ended") }).await;
    let long = TaskRecord { expires: open.expires + HOUR, ..task("long") };
    let long = stores.create(long).await;

    assert_eq!(one.purge(open.expires, 9).await.unwrap(), 0, "they expire then, not before");
    for stored in [&open, &ended] {
        assert_eq!(stores.get(&stored.key, NOW).await.as_ref(), Some(stored));
    }
    assert_eq!(other.purge(open.expires + MILLISECOND, 9).await.unwrap(), 2);
    for stored in [&open, &ended] {
        assert_eq!(stores.get(&stored.key, NOW).await, None);
        stores.create(stored.clone()).await;
    }
    assert_eq!(stores.get(&long.key, NOW).await, Some(long));
}

pub async fn purging_keeps_to_its_limit(stores: &Stores) {
    let Some([one, other]) = stores.due_indexes() else { return };
    for n in 0..7 {
        stores.create(task(&n.to_string())).await;
    }
    let before = task("").expires + HOUR;
    assert_eq!(one.purge(before, 0).await.unwrap(), 0);
    assert_eq!(one.purge(before, 3).await.unwrap(), 3);
    assert_eq!(other.purge(before, 3).await.unwrap(), 3);
    assert_eq!(one.purge(before, usize::MAX).await.unwrap(), 1);
    assert_eq!(other.purge(before, 3).await.unwrap(), 0);
}
