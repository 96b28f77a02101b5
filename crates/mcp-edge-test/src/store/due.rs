//! What is due is found, and looked after by one.

use std::collections::BTreeSet;

use mcp_edge::TaskRecord;

use super::{HOUR, MILLISECOND, NOW, Stores, at_once, body, due_task, task};

pub async fn what_is_due_longest_comes_first(stores: &Stores) {
    let Some([one, other]) = stores.due_indexes() else { return };
    for minutes in [3, 1, 4, 0, 5, 2] {
        stores.create(due_task(&minutes.to_string(), NOW - minutes * HOUR / 60)).await;
    }
    let keys = |names: &[&str]| names.iter().map(|name| task(name).key).collect::<Vec<_>>();
    let until = NOW + HOUR;
    assert!(one.claim_due(NOW, until, 0).await.unwrap().is_empty());
    assert_eq!(one.claim_due(NOW, until, 2).await.unwrap(), keys(&["5", "4"]));
    assert_eq!(other.claim_due(NOW, until, 3).await.unwrap(), keys(&["3", "2", "1"]));
    assert_eq!(one.claim_due(NOW, until, usize::MAX).await.unwrap(), keys(&["0"]));
    assert!(other.claim_due(NOW, until, 9).await.unwrap().is_empty());
}

pub async fn only_open_tasks_that_are_due_are_claimed(stores: &Stores) {
    let Some([sweep, _]) = stores.due_indexes() else { return };
    let due = stores.create(due_task("due", NOW)).await;
    let later = stores.create(due_task("later", NOW + MILLISECOND)).await;
    stores.create(task("waits for its client")).await;
    stores.create(TaskRecord { is_open: false, ..due_task("ended", NOW) }).await;
    stores.create(TaskRecord { expires: NOW, ..due_task("expired", NOW) }).await;
    let completed = stores.create(due_task("completed", NOW)).await;
    let completed = TaskRecord { is_open: false, ..completed };
    assert!(stores.tasks[0].update(&completed, NOW).await.unwrap());

    let until = NOW + HOUR;
    assert!(sweep.claim_due(NOW - MILLISECOND, until, 9).await.unwrap().is_empty());
    assert_eq!(sweep.claim_due(NOW, until, 9).await.unwrap(), [due.key]);
    assert_eq!(sweep.claim_due(NOW + MILLISECOND, until, 9).await.unwrap(), [later.key]);
}

pub async fn a_claimed_task_is_due_again_when_the_claim_ends(stores: &Stores) {
    let Some([one, other]) = stores.due_indexes() else { return };
    let stored = stores.create(due_task("lost", NOW)).await;
    let [until, then] = [NOW + HOUR, NOW + 2 * HOUR];
    assert_eq!(one.claim_due(NOW, until, 9).await.unwrap(), [stored.key.as_str()]);
    for sweep in [one, other] {
        for now in [NOW, until - MILLISECOND] {
            assert!(sweep.claim_due(now, then, 9).await.unwrap().is_empty());
        }
    }
    assert_eq!(other.claim_due(until, then, 9).await.unwrap(), [stored.key]);
    assert!(one.claim_due(until, then, 9).await.unwrap().is_empty());
}

pub async fn a_claim_leaves_the_task_as_it_is(stores: &Stores) {
    let Some([sweep, _]) = stores.due_indexes() else { return };
    let stored = stores.create(due_task("claimed", NOW)).await;
    let until = NOW + HOUR;
    assert_eq!(sweep.claim_due(NOW, until, 9).await.unwrap(), [stored.key.as_str()]);
    let claimed = TaskRecord { due: Some(until), ..stored.clone() };
    assert_eq!(stores.get(&stored.key, NOW).await, Some(claimed));
    assert!(stores.tasks[1].update(&stored, NOW).await.unwrap(), "whoever works on it goes on");
}

pub async fn an_update_after_a_claim_sets_anew_when_it_is_due(stores: &Stores) {
    let Some([one, other]) = stores.due_indexes() else { return };
    let until = NOW + 5 * HOUR;
    let sooner = stores.create(due_task("sooner", NOW)).await;
    let never = stores.create(due_task("never", NOW)).await;
    assert_eq!(one.claim_due(NOW, until, 9).await.unwrap().len(), 2);
    let sooner = TaskRecord { due: Some(NOW + HOUR), body: body("step"), ..sooner };
    let never = TaskRecord { due: None, ..never };
    for next in [&sooner, &never] {
        assert!(stores.tasks[0].update(next, NOW).await.unwrap());
    }
    assert!(other.claim_due(NOW, until, 9).await.unwrap().is_empty());
    assert_eq!(other.claim_due(NOW + HOUR, until, 9).await.unwrap(), [sooner.key.as_str()]);
    assert_eq!(one.claim_due(until, until + HOUR, 9).await.unwrap(), [sooner.key]);
}

pub async fn concurrent_sweeps_share_the_work(stores: &Stores) {
    if stores.due_indexes().is_none() {
        return;
    }
    let mut due = BTreeSet::new();
    for n in 0..60 {
        due.insert(stores.create(due_task(&n.to_string(), NOW)).await.key);
    }
    let claims = at_once(&stores.tasks, 4, |store, _| async move {
        let sweep = store.due_index().unwrap();
        let mut claimed = Vec::new();
        loop {
            let some = sweep.claim_due(NOW, NOW + HOUR, 7).await.unwrap();
            assert!(some.len() <= 7);
            if some.is_empty() {
                return claimed;
            }
            claimed.extend(some);
            tokio::task::yield_now().await;
        }
    })
    .await;
    let claimed: Vec<_> = claims.into_iter().flatten().collect();
    assert_eq!(claimed.len(), due.len(), "none is claimed twice, none forgotten");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), due);
}
