//! What is stated of a feed.

use std::collections::HashSet;

use futures_util::future::join_all;
use mcp_edge::{Change, Topics};

use super::{Feeds, tenant};

pub async fn every_handle_hears_what_either_publishes(feeds: &Feeds) {
    let topics = Topics::new(None).with_tools();
    let mut listeners = [
        feeds.listen(0, topics.clone()).await,
        feeds.listen(1, topics.clone()).await,
        feeds.listen(1, topics).await,
    ];
    for publisher in [0, 1, 0] {
        feeds.publish(publisher, None, Change::Tools).await;
        for listener in &mut listeners {
            assert_eq!(listener.next().await, Change::Tools);
        }
    }
}

pub async fn every_kind_of_change_arrives_as_it_was_published(feeds: &Feeds) {
    let topics = Topics::new(None)
        .with_tools()
        .with_prompts()
        .with_resources()
        .with_uris(["a:/b"])
        .with_tasks(["key"]);
    let mut listener = feeds.listen(1, topics).await;
    for change in [
        Change::Tools,
        Change::Prompts,
        Change::Resources,
        Change::resource("a:/b"),
        Change::resource("a:/b/c"),
        Change::Task("key".to_owned()),
    ] {
        feeds.publish(0, None, change.clone()).await;
        assert_eq!(listener.next().await, change);
    }
}

pub async fn a_listener_hears_what_it_wants_alone(feeds: &Feeds) {
    let mut listener = feeds.listen(1, Topics::new(None).with_prompts().with_uris(["a:/b"])).await;
    for publisher in [0, 1] {
        for unwanted in [
            Change::Tools,
            Change::Resources,
            Change::resource("a:/bc"),
            Change::resource("a:/"),
            Change::Task("a:/b".to_owned()),
        ] {
            feeds.publish(publisher, None, unwanted).await;
        }
        feeds.publish(publisher, None, Change::Prompts).await;
        assert_eq!(listener.until(&Change::Prompts).await, []);
    }
    assert_eq!(listener.rest().await, []);
}

pub async fn tenants_are_kept_apart(feeds: &Feeds) {
    let with = |topics: Topics| topics.with_tools().with_prompts();
    let mut nobody = feeds.listen(1, with(Topics::new(None))).await;
    let mut unnamed = feeds.listen(1, with(tenant(""))).await;
    let mut acme = feeds.listen(1, with(tenant("acme"))).await;
    let mut upper = feeds.listen(1, with(tenant("ACME"))).await;

    feeds.publish(0, Some("acme"), Change::Tools).await;
    feeds.publish(0, Some("other"), Change::Tools).await;
    for tenant in [None, Some(""), Some("acme"), Some("ACME")] {
        feeds.publish(0, tenant, Change::Prompts).await;
    }
    assert_eq!(acme.until(&Change::Prompts).await, [Change::Tools]);
    for listener in [&mut nobody, &mut unnamed, &mut upper] {
        assert_eq!(listener.until(&Change::Prompts).await, []);
    }
}

pub async fn a_listener_is_there_once_it_has_subscribed(feeds: &Feeds) {
    // Each is the first listener of its handle, and then one that joins others.
    let mut others = Vec::new();
    for round in 0..20 {
        let mut listener = feeds.listen(1, Topics::new(None).with_tools()).await;
        feeds.publish(0, None, Change::Tools).await;
        assert_eq!(listener.next().await, Change::Tools);
        if round >= 10 {
            others.push(listener);
        }
    }
}

pub async fn what_happened_before_is_not_heard(feeds: &Feeds) {
    let topics = || Topics::new(None).with_tools().with_prompts().with_resources();
    feeds.publish(0, None, Change::Tools).await;
    let mut first = feeds.listen(1, topics()).await;
    feeds.publish(0, None, Change::Resources).await;
    let mut second = feeds.listen(1, topics()).await;
    feeds.publish(0, None, Change::Prompts).await;
    assert_eq!(first.until(&Change::Prompts).await, [Change::Resources]);
    assert_eq!(second.until(&Change::Prompts).await, []);
}

pub async fn a_task_is_heard_by_those_who_follow_it(feeds: &Feeds) {
    let task = |key: &str| Change::Task(key.to_owned());
    let mut one = feeds.listen(1, tenant("acme").with_tasks(["a", "b"])).await;
    let mut other = feeds.listen(0, tenant("acme").with_tasks(["b"])).await;
    for change in [task("A"), task("c"), task("a"), task("b")] {
        feeds.publish(0, Some("acme"), change).await;
    }
    assert_eq!(one.until(&task("b")).await, [task("a")]);
    assert_eq!(other.until(&task("b")).await, []);
}

/// Where a feed cannot carry so much, it tells the watched URI instead of the one below.
pub async fn long_uris_arrive_or_wake(feeds: &Feeds) {
    let below = format!("a:/b/{}", "x".repeat(9000));
    let mut listener = feeds.listen(1, Topics::new(None).with_uris(["a:/b"])).await;
    feeds.publish(0, None, Change::resource(&below)).await;
    let heard = listener.next().await;
    assert!(heard == Change::resource("a:/b") || heard == Change::resource(&below), "{heard:?}");

    let mut listener = feeds.listen(1, Topics::new(None).with_uris([&below])).await;
    feeds.publish(0, None, Change::resource(&below)).await;
    assert!(listener.next().await == Change::resource(&below), "it watches a long one itself");
}

pub async fn texts_are_exact(feeds: &Feeds) {
    for text in ["", "'", "\"\\", "a\0b", "\u{e9}", "e\u{301}", "\u{1F980}\n", "null"] {
        let mut listener = feeds.listen(1, tenant(text).with_uris([text]).with_tasks([text])).await;
        for change in [Change::resource(text), Change::Task(text.to_owned())] {
            feeds.publish(0, Some(text), change.clone()).await;
            assert_eq!(listener.next().await, change, "{text:?}");
        }
    }
}

pub async fn a_listener_that_does_not_read_is_told_little_and_misses_nothing(feeds: &Feeds) {
    let topics = Topics::new(None).with_tools().with_prompts().with_uris(["a:/b", "a:/c"]);
    let mut listener = feeds.listen(1, topics).await;
    let below = |n: usize| Change::resource(format!("a:/b/{n}"));
    for from in (0..CHANGES).step_by(CHANGES / 8) {
        let changes = (from..from + CHANGES / 8).flat_map(|n| [below(n), Change::Tools]);
        join_all(changes.map(|change| feeds.publish(0, None, change))).await;
    }
    feeds.publish(0, None, Change::resource("a:/c")).await;

    let heard = listener.rest().await;
    assert!(heard.len() < CHANGES, "{} changes were kept", heard.len());
    let heard: HashSet<_> = heard.into_iter().collect();
    assert!(heard.contains(&Change::Tools) && heard.contains(&Change::resource("a:/c")));
    let all_below = heard.contains(&Change::resource("a:/b"));
    for n in 0..CHANGES {
        assert!(all_below || heard.contains(&below(n)), "{n} was lost");
    }
    feeds.publish(0, None, Change::Prompts).await;
    assert_eq!(listener.next().await, Change::Prompts, "it hears on");
}

pub async fn a_change_is_not_told_twice(feeds: &Feeds) {
    let topics = || Topics::new(None).with_uris(["a:/"]);
    let mut listeners = [feeds.listen(0, topics()).await, feeds.listen(1, topics()).await];
    let changes: Vec<_> = (0..20).map(|n| Change::resource(format!("a:/{n}"))).collect();
    for change in &changes {
        feeds.publish(0, None, change.clone()).await;
    }
    for listener in &mut listeners {
        assert_eq!(listener.rest().await, changes, "one publisher's changes keep their order");
    }
}

pub async fn a_listener_that_leaves_disturbs_nobody(feeds: &Feeds) {
    let topics = || Topics::new(None).with_tools();
    let mut stays = feeds.listen(1, topics()).await;
    let leaves = feeds.listen(1, topics()).await;
    let mut reads = feeds.listen(1, topics()).await;
    feeds.publish(0, None, Change::Tools).await;
    assert_eq!(reads.next().await, Change::Tools);
    drop((leaves, reads));
    drop(feeds.feeds[1].subscribe(topics()));
    assert_eq!(stays.next().await, Change::Tools);
    feeds.publish(0, None, Change::Tools).await;
    assert_eq!(stays.next().await, Change::Tools);
    drop(stays);

    feeds.publish(0, None, Change::Tools).await;
    let mut returns = feeds.listen(1, topics().with_prompts()).await;
    feeds.publish(0, None, Change::Prompts).await;
    assert_eq!(returns.until(&Change::Prompts).await, [], "what was missed is not told later");
}

/// A feed that counted those who left would run out of room.
pub async fn listeners_may_come_and_go(feeds: &Feeds) {
    let topics = || Topics::new(None).with_tools();
    for _ in 0..3000 {
        drop(feeds.listen(1, topics()).await);
    }
    let mut listener = feeds.listen(1, topics()).await;
    feeds.publish(0, None, Change::Tools).await;
    assert_eq!(listener.next().await, Change::Tools);
}

/// How many changes a listener does not read: more than are to be kept for it.
const CHANGES: usize = 4000;
