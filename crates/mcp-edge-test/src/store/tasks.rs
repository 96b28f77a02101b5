//! Tasks are written by compare-and-set, and whole.

use mcp_edge::{Created, RECORD_BYTES, TaskRecord};

use super::{HOUR, MILLISECOND, NOW, Stores, at_once, body, owner, task};

pub async fn a_task_is_read_as_it_was_written(stores: &Stores) {
    let plain = task("plain");
    let full = TaskRecord {
        version: 77,
        due: Some(NOW + MILLISECOND),
        body: "{\"text\":\"\u{e9}e\u{301} \u{1F980} \\u0000 ' \\\" \u{2028}\"}\n".into(),
        ..task("full")
    };
    let ended = TaskRecord { is_open: false, body: "{}".into(), ..task("ended") };
    for task in [plain, full, ended] {
        let stored = stores.create(task).await;
        assert_eq!(stores.get(&stored.key, NOW).await, Some(stored));
    }
}

pub async fn an_unknown_task_is_not_found(stores: &Stores) {
    stores.create(task("another")).await;
    let unknown = TaskRecord { version: 1, ..task("unknown") };
    assert_eq!(stores.get(&unknown.key, NOW).await, None);
    for version in [0, 1] {
        assert!(
            !stores.tasks[0].update(&TaskRecord { version, ..unknown.clone() }, NOW).await.unwrap()
        );
    }
    assert_eq!(stores.get(&unknown.key, NOW).await, None, "an update creates nothing");
}

pub async fn a_taken_key_stays_as_it_is(stores: &Stores) {
    let first = stores.create(task("first")).await;
    let second = TaskRecord {
        owner: owner("other"),
        due: Some(NOW),
        expires: NOW + HOUR,
        body: body("second"),
        ..first.clone()
    };
    // A full owner too: whoever repeats a create must find what the first attempt wrote.
    for (handle, task, max_open) in
        [(0, &second, 9), (1, &second, 9), (1, &first, 1), (0, &first, 0)]
    {
        let created = stores.tasks[handle].create(task, max_open, NOW).await.unwrap();
        assert_eq!(created, Created::Exists(Some(first.clone())));
    }
    assert_eq!(stores.get(&first.key, NOW).await, Some(first));
}

pub async fn one_of_many_concurrent_creates_wins(stores: &Stores) {
    let attempt = |n: usize| TaskRecord { body: body(&n.to_string()), ..task("raced") };
    let answers = at_once(&stores.tasks, MANY, move |store, n| async move {
        store.create(&attempt(n), u32::MAX, NOW).await.unwrap()
    })
    .await;
    let winners: Vec<_> = (0..MANY).filter(|n| answers[*n] == Created::Created).collect();
    let [winner] = winners[..] else { panic!("created by {winners:?}") };
    let stored = TaskRecord { version: 1, ..attempt(winner) };
    for (n, answer) in answers.into_iter().enumerate().filter(|(n, _)| *n != winner) {
        assert_eq!(answer, Created::Exists(Some(stored.clone())), "attempt {n}");
    }
    assert_eq!(stores.get(&stored.key, NOW).await, Some(stored));
}

pub async fn an_update_writes_everything_and_counts_the_version_up(stores: &Stores) {
    let mut stored = stores.create(task("updated")).await;
    let steps = [
        (true, Some(NOW), NOW + HOUR, "one"),
        (true, None, NOW + 48 * HOUR, "two"),
        (false, Some(NOW + HOUR), NOW + 2 * HOUR, ""),
    ];
    for (n, (is_open, due, expires, text)) in steps.into_iter().enumerate() {
        let next = TaskRecord { is_open, due, expires, body: body(text), ..stored.clone() };
        assert!(stores.tasks[n % 2].update(&next, NOW).await.unwrap());
        stored = TaskRecord { version: stored.version + 1, ..next };
        assert_eq!(stores.get(&stored.key, NOW).await.as_ref(), Some(&stored));
    }
}

pub async fn another_version_changes_nothing(stores: &Stores) {
    let first = stores.create(task("updated")).await;
    assert!(stores.tasks[0].update(&first, NOW).await.unwrap());
    let stored = TaskRecord { version: 2, ..first };
    for version in [0, 1, 3, 4, u64::from(u32::MAX) + 3, u64::MAX] {
        let stale = TaskRecord { version, body: body("stale"), ..stored.clone() };
        for store in &stores.tasks {
            assert!(!store.update(&stale, NOW).await.unwrap(), "version {version}");
        }
    }
    assert_eq!(stores.get(&stored.key, NOW).await, Some(stored));
}

pub async fn one_of_many_concurrent_updates_wins(stores: &Stores) {
    let mut stored = stores.create(task("raced")).await;
    for round in 0..5 {
        let former = stored.clone();
        let attempt =
            move |n: usize| TaskRecord { body: body(&format!("{round}/{n}")), ..former.clone() };
        let write = attempt.clone();
        let answers = at_once(&stores.tasks, MANY, move |store, n| {
            let attempt = write(n);
            async move { store.update(&attempt, NOW).await.unwrap() }
        })
        .await;
        let winners: Vec<_> = (0..MANY).filter(|n| answers[*n]).collect();
        let [winner] = winners[..] else { panic!("updated by {winners:?}") };
        stored = TaskRecord { version: stored.version + 1, ..attempt(winner) };
        assert_eq!(stores.get(&stored.key, NOW).await.as_ref(), Some(&stored));
    }
}

pub async fn a_stalled_writer_never_writes_again(stores: &Stores) {
    let [stalled, other] = [&stores.tasks[0], &stores.tasks[1]];
    let held = stores.create(task("fenced")).await;
    let mut stored = held.clone();
    // Also when the task looks the way it did, once again.
    for text in ["other", "fenced"] {
        stored.body = body(text);
        assert!(other.update(&stored, NOW).await.unwrap());
        stored.version += 1;
        let late = TaskRecord { body: body("late"), ..held.clone() };
        for now in [NOW - HOUR, NOW, NOW + HOUR] {
            assert!(!stalled.update(&late, now).await.unwrap());
        }
        assert_eq!(stores.get(&stored.key, NOW).await.as_ref(), Some(&stored));
    }
}

pub async fn a_task_that_has_ended_never_changes(stores: &Stores) {
    let open = stores.create(task("completed")).await;
    let ended = TaskRecord { is_open: false, body: body("result"), ..open };
    assert!(stores.tasks[0].update(&ended, NOW).await.unwrap());
    let at_once = TaskRecord { is_open: false, ..task("failed at once") };
    for stored in [TaskRecord { version: 2, ..ended }, stores.create(at_once).await] {
        for version in 0..4 {
            for is_open in [true, false] {
                let again = TaskRecord { version, is_open, body: body("again"), ..stored.clone() };
                for store in &stores.tasks {
                    assert!(!store.update(&again, NOW).await.unwrap(), "version {version}");
                }
            }
        }
        assert_eq!(stores.get(&stored.key, NOW).await, Some(stored));
    }
}

pub async fn an_owner_has_no_more_open_tasks_than_allowed(stores: &Stores) {
    let create = async |name: &str, owner_name: &str, max_open| {
        let task = TaskRecord { owner: owner(owner_name), ..task(name) };
        stores.tasks[1].create(&task, max_open, NOW).await.unwrap()
    };
    assert_eq!(create("none", "ada", 0).await, Created::TooMany);
    assert_eq!(create("1", "ada", 2).await, Created::Created);
    assert_eq!(create("2", "ada", 2).await, Created::Created);
    assert_eq!(create("3", "ada", 2).await, Created::TooMany);
    assert_eq!(create("3", "ada", 1).await, Created::TooMany);
    assert_eq!(stores.get(&task("3").key, NOW).await, None, "nothing is written");
    assert_eq!(create("4", "bob", 1).await, Created::Created, "other owners are not concerned");
    assert_eq!(create("3", "ada", 3).await, Created::Created);

    let ended = TaskRecord { is_open: false, ..stores.get(&task("1").key, NOW).await.unwrap() };
    assert!(stores.tasks[0].update(&ended, NOW).await.unwrap());
    assert_eq!(create("5", "ada", 3).await, Created::Created, "what has ended does not count");
    assert_eq!(create("6", "ada", 3).await, Created::TooMany);
}

pub async fn concurrent_creates_do_not_exceed_the_bound(stores: &Stores) {
    let answers = at_once(&stores.tasks, MANY, |store, n| async move {
        store.create(&task(&n.to_string()), 5, NOW).await.unwrap()
    })
    .await;
    assert_eq!(answers.iter().filter(|answer| **answer == Created::Created).count(), 5);
    for (n, answer) in answers.iter().enumerate() {
        let stored = stores.get(&task(&n.to_string()).key, NOW).await;
        match answer {
            Created::Created => assert!(stored.is_some(), "{n}"),
            Created::TooMany => assert_eq!(stored, None, "{n}"),
            Created::Exists(_) => panic!("{n}: the keys differ"),
        }
    }
}

pub async fn the_largest_body_is_kept_exactly(stores: &Stores) {
    let mut large = task("large");
    large.body = text_of(RECORD_BYTES, 'a').into();
    let stored = stores.create(large).await;
    assert!(stores.get(&stored.key, NOW).await == Some(stored.clone()), "as created");

    let next = TaskRecord { body: text_of(RECORD_BYTES, '\u{e9}').into(), ..stored };
    assert!(stores.tasks[1].update(&next, NOW).await.unwrap());
    let stored = TaskRecord { version: 2, ..next };
    assert!(stores.get(&stored.key, NOW).await == Some(stored), "as updated");
}

pub async fn a_larger_body_is_refused_and_changes_nothing(stores: &Stores) {
    let larger = |task: &TaskRecord| TaskRecord {
        body: text_of(RECORD_BYTES + 1, 'a').into(),
        ..task.clone()
    };
    let store = &stores.tasks[0];
    let unknown = task("larger at once");
    assert!(store.create(&larger(&unknown), 9, NOW).await.is_err());
    assert_eq!(stores.get(&unknown.key, NOW).await, None);

    let stored = stores.create(task("larger later")).await;
    assert!(store.update(&larger(&stored), NOW).await.is_err());
    assert_eq!(stores.get(&stored.key, NOW).await.as_ref(), Some(&stored));
    assert!(store.update(&stored, NOW).await.unwrap(), "the version is still the first");
}

pub async fn keys_and_owners_are_exact(stores: &Stores) {
    let names = ["key", "KEY", "Key", "ke-", "ke_", "k%y"];
    for name in names {
        let one = TaskRecord { owner: owner(name), ..task(name) };
        assert_eq!(stores.tasks[0].create(&one, 1, NOW).await.unwrap(), Created::Created, "{name}");
    }
    for name in names {
        let one = TaskRecord { owner: owner(name), version: 1, ..task(name) };
        assert_eq!(stores.get(&one.key, NOW).await, Some(one));
    }
    for unknown in ["", "key", "AAAAAAAAAAAAAAAAAAAkeY", "%", "AAAAAAAAAAAAAAAAAAAkey "] {
        assert_eq!(stores.get(unknown, NOW).await, None, "{unknown}");
    }
}

/// To a store, a lease is who holds it, in the body, and when it ends, as the time at which the task
/// is due. Taking it is a compare-and-set.
pub async fn a_lease_is_taken_by_one(stores: &Stores) {
    let stored = stores.create(TaskRecord { due: Some(NOW), ..task("leased") }).await;
    let ends = NOW + HOUR;
    let taken = |n: usize| TaskRecord {
        due: Some(ends),
        body: body(&format!("held by {n}")),
        ..stored.clone()
    };
    let takers = at_once(&stores.tasks, 2, |store, n| {
        let taken = taken(n);
        async move { store.update(&taken, NOW).await.unwrap() }
    })
    .await;
    let holder = match takers[..] {
        [true, false] => 0,
        [false, true] => 1,
        _ => panic!("{takers:?}"),
    };
    let stored = TaskRecord { version: 2, ..taken(holder) };
    assert_eq!(stores.get(&stored.key, NOW).await.as_ref(), Some(&stored));

    let Some([sweep, _]) = stores.due_indexes() else { return };
    let until = ends + HOUR;
    assert!(sweep.claim_due(ends - MILLISECOND, until, 9).await.unwrap().is_empty(), "it is held");
    assert_eq!(sweep.claim_due(ends, until, 9).await.unwrap(), [stored.key], "its holder is gone");
}

/// JSON of so many bytes.
fn text_of(bytes: usize, char: char) -> String {
    let space = bytes - 2;
    let mut text = format!("\"{}\"", char.to_string().repeat(space / char.len_utf8()));
    text.extend(std::iter::repeat_n(' ', bytes - text.len()));
    text
}

/// How many contend.
const MANY: usize = 16;
