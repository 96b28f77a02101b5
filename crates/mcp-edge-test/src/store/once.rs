//! Messages and ids are used once.

use super::{HOUR, MILLISECOND, NOW, Stores, at_once};

pub async fn the_first_message_wins_taken_or_not(stores: &Stores) {
    let Some([one, other]) = &stores.mailboxes else { return };
    let expires = NOW + HOUR;
    assert_eq!(other.take("a", NOW).await.unwrap(), None);
    assert!(one.put_once("a", b"first", expires, NOW).await.unwrap());
    for mailbox in [one, other] {
        assert!(!mailbox.put_once("a", b"second", expires + HOUR, NOW).await.unwrap());
    }
    assert_eq!(other.take("a", NOW).await.unwrap().as_deref(), Some(b"first".as_slice()));
    for mailbox in [one, other] {
        assert_eq!(mailbox.take("a", NOW).await.unwrap(), None);
        assert!(!mailbox.put_once("a", b"third", expires + HOUR, NOW).await.unwrap());
    }
    assert_eq!(one.take("a", NOW).await.unwrap(), None);
}

pub async fn a_message_is_taken_once(stores: &Stores) {
    let Some(mailboxes) = &stores.mailboxes else { return };
    for round in 0..5 {
        let id = round.to_string();
        assert!(mailboxes[0].put_once(&id, b"it", NOW + HOUR, NOW).await.unwrap());
        let takers = at_once(mailboxes, MANY, |mailbox, _| {
            let id = id.clone();
            async move { mailbox.take(&id, NOW).await.unwrap() }
        })
        .await;
        let taken: Vec<_> = takers.into_iter().flatten().collect();
        assert_eq!(taken, [b"it".to_vec()]);
    }
}

pub async fn one_of_many_concurrent_messages_wins(stores: &Stores) {
    let Some(mailboxes) = &stores.mailboxes else { return };
    let answers = at_once(mailboxes, MANY, |mailbox, n| async move {
        mailbox.put_once("raced", n.to_string().as_bytes(), NOW + HOUR, NOW).await.unwrap()
    })
    .await;
    let winners: Vec<_> = (0..MANY).filter(|n| answers[*n]).collect();
    let [winner] = winners[..] else { panic!("put by {winners:?}") };
    let taken = mailboxes[1].take("raced", NOW).await.unwrap();
    assert_eq!(taken, Some(winner.to_string().into_bytes()));
}

pub async fn an_expired_message_is_gone_and_its_id_free(stores: &Stores) {
    let Some([one, other]) = &stores.mailboxes else { return };
    let expires = NOW + HOUR;
    for (id, is_taken) in [("taken", true), ("waiting", false)] {
        assert!(one.put_once(id, b"first", expires, NOW).await.unwrap());
        if is_taken {
            assert!(one.take(id, NOW).await.unwrap().is_some());
        }
        assert!(!other.put_once(id, b"second", expires, expires - MILLISECOND).await.unwrap());
        assert_eq!(other.take(id, expires).await.unwrap(), None);
        assert!(other.put_once(id, b"second", expires + HOUR, expires).await.unwrap());
        let taken = one.take(id, expires).await.unwrap();
        assert_eq!(taken.as_deref(), Some(b"second".as_slice()));
    }
    assert!(one.put_once("last", b"moment", expires, NOW).await.unwrap());
    assert!(other.take("last", expires - MILLISECOND).await.unwrap().is_some());
}

pub async fn messages_are_kept_exactly(stores: &Stores) {
    let Some([one, other]) = &stores.mailboxes else { return };
    let every_byte: Vec<u8> = (0..=255).collect();
    let long = every_byte.repeat(256);
    for (n, message) in [vec![], every_byte, long].into_iter().enumerate() {
        for id in IDS {
            let id = format!("{id}{n}");
            assert!(one.put_once(&id, &message, NOW + HOUR, NOW).await.unwrap(), "{id:?}");
            assert!(other.take(&id, NOW).await.unwrap().as_ref() == Some(&message), "{id:?}");
        }
    }
}

pub async fn an_id_is_spent_once(stores: &Stores) {
    let Some(guards) = &stores.guards else { return };
    for round in 0..5 {
        let id = round.to_string();
        let spenders = at_once(guards, MANY, |guard, _| {
            let id = id.clone();
            async move { guard.spend(&id, NOW + HOUR, NOW).await.unwrap() }
        })
        .await;
        assert_eq!(spenders.into_iter().filter(|spent| *spent).count(), 1);
        for guard in guards {
            assert!(!guard.spend(&id, NOW + 2 * HOUR, NOW).await.unwrap());
        }
    }
}

pub async fn an_expired_id_may_be_spent_again(stores: &Stores) {
    let Some([one, other]) = &stores.guards else { return };
    let expires = NOW + HOUR;
    assert!(one.spend("id", expires, NOW).await.unwrap());
    assert!(!other.spend("id", expires + HOUR, expires - MILLISECOND).await.unwrap());
    assert!(other.spend("id", expires + HOUR, expires).await.unwrap());
    assert!(!one.spend("id", expires + HOUR, expires).await.unwrap());
}

pub async fn ids_are_exact(stores: &Stores) {
    let Some([one, other]) = &stores.guards else { return };
    for id in IDS {
        assert!(one.spend(id, NOW + HOUR, NOW).await.unwrap(), "{id:?}");
    }
    for id in IDS {
        assert!(!other.spend(id, NOW + HOUR, NOW).await.unwrap(), "{id:?}");
    }
}

/// What others use in the meantime makes nobody forget.
pub async fn an_instance_ahead_frees_nothing_for_those_behind(stores: &Stores) {
    let expires = NOW + HOUR;
    let late = expires + 5 * HOUR;
    if let Some([ahead, behind]) = &stores.guards {
        assert!(behind.spend("behind", expires, NOW).await.unwrap());
        for n in 0..20 {
            assert!(ahead.spend(&n.to_string(), late + HOUR, late).await.unwrap());
        }
        assert!(!behind.spend("behind", expires, NOW).await.unwrap());
    }
    if let Some([ahead, behind]) = &stores.mailboxes {
        assert!(behind.put_once("behind", b"it", expires, NOW).await.unwrap());
        assert_eq!(ahead.take("behind", late).await.unwrap(), None);
        for n in 0..20 {
            assert!(ahead.put_once(&n.to_string(), b"", late + HOUR, late).await.unwrap());
        }
        assert!(behind.take("behind", NOW).await.unwrap().is_some());
    }
}

/// Ids come from others too (the `jti` of a token), so they are any text. Some of these differ little.
const IDS: [&str; 13] = [
    "",
    " ",
    "id",
    "ID",
    "id ",
    "id\0",
    "id\0x",
    "%",
    "'",
    "\u{1}\u{7f}",
    "\u{e9}",
    "e\u{301}",
    "\u{1F980}",
];

/// How many contend.
const MANY: usize = 16;
