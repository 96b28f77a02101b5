//! Instances are killed while they work on tasks, and nothing is lost.
//!
//! A fleet of processes shares one SQLite file. Clients begin tasks of twenty steps with questions and
//! sleeps, look in, and answer; meanwhile instances are killed with SIGKILL, some at moments that a
//! seed chooses, some where a hook holds the process. `CRASH_KILLS` says how often (30 by default,
//! 200 for the long run), `CRASH_SEED` when and where.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of it is test code")]

mod client;
mod point;
mod worker;

use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use mcp_edge_test::{Fleet, Routing};
use tokio::time::sleep;

use crate::point::{Plan, Point, Random};

/// How many tasks are open at a time.
const OPEN: u64 = 4;

const INSTANCES: usize = 2;

/// How long a process may take to come to where it is to be held.
const PATIENCE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kill_loses_a_task_an_answer_or_an_effect() {
    let kills = number("CRASH_KILLS", 30);
    let seed = number("CRASH_SEED", 7);
    println!("CRASH_KILLS={kills} CRASH_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    Plan::default().write(folder.path());
    let fleet = fleet(folder.path(), seed).start().await.unwrap();

    let over = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..OPEN {
        let (client, over) = (fleet.client().with_tasks(), Arc::clone(&over));
        clients.spawn(client::keep_busy(client, Random(seed ^ (number + 1)), over));
    }
    let killed = kill(&fleet, folder.path(), kills, &mut random).await;
    over.store(true, Ordering::SeqCst);
    let finished = tokio::time::timeout(Duration::from_secs(120), clients.join_all()).await;
    let finished: u64 = finished.unwrap().into_iter().sum();
    fleet.shutdown().await;
    judge(folder.path(), kills, finished, &killed);
}

/// Kills instances, and starts them again; returns how often at which point.
async fn kill(
    fleet: &Fleet,
    folder: &Path,
    kills: u64,
    random: &mut Random,
) -> BTreeMap<Option<Point>, u64> {
    let mut plans = [Plan::default(); INSTANCES];
    let mut killed = BTreeMap::new();
    for number in 0..kills {
        let index = usize::from(random.below(2) == 1);
        let at = match plans[index].point {
            None => {
                sleep(Duration::from_millis(random.below(150))).await;
                None
            }
            Some(point) => held(&plans[index].mark(folder)).await.then_some(point),
        };
        fleet.kill(index).await.unwrap();
        *killed.entry(at).or_default() += 1;
        let is_last = number + 1 == kills;
        plans[index] = if is_last { Plan::default() } else { Plan::draw(number, random) };
        plans[index].write(folder);
        fleet.restart(index).await.unwrap();
    }
    // None is to be held for ever.
    for (index, plan) in plans.iter().enumerate().filter(|(_, plan)| plan.point.is_some()) {
        println!("instance {index} was to be held: {plan:?}");
        Plan::default().write(folder);
        fleet.restart(index).await.unwrap();
        *killed.entry(None).or_default() += 1;
    }
    killed
}

/// Waits until a process is where it is to be held.
async fn held(mark: &Path) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if mark.exists() {
            return true;
        }
        sleep(Duration::from_millis(2)).await;
    }
    false
}

/// Looks at what is left behind.
fn judge(folder: &Path, kills: u64, finished: u64, killed: &BTreeMap<Option<Point>, u64>) {
    let effects = fs::read_to_string(folder.join(worker::EFFECTS)).unwrap();
    let mut times: HashMap<&str, u64> = HashMap::new();
    for key in effects.lines() {
        *times.entry(key).or_default() += 1;
    }
    let executions: u64 = times.values().sum();
    let steps = u64::try_from(times.len()).unwrap();
    let kills: u64 = killed.values().sum::<u64>().max(kills);
    println!(
        "{finished} tasks finished, {steps} steps, {executions} executions, killed {killed:?}"
    );
    assert!(finished >= OPEN, "the clients finished what they began");
    assert!(executions <= steps + kills, "a kill repeats one step at most");
    let share = |point| killed.get(&Some(point)).copied().unwrap_or_default() * 100 / kills;
    for (point, least) in
        [(Point::InStep, 20), (Point::AfterEffect, 10), (Point::BeforeSchedule, 5)]
    {
        assert!(share(point) >= least, "{point:?}: {} %", share(point));
    }
}

fn fleet(folder: &Path, seed: u64) -> mcp_edge_test::FleetBuilder {
    let script = r#"exec "$0" --ignored --exact worker::serves --nocapture"#;
    Fleet::builder("sh")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .env(worker::FOLDER, folder)
        .instances(INSTANCES)
        .routing(Routing::Random { seed })
}

fn number(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}
