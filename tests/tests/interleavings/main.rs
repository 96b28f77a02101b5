//! One task, and all that may happen to it at once: its creating call is retried, its questions are
//! answered by two clients, it is cancelled, two instances advance it, runs die or are cut off, leases
//! run out, and in the end its time is over.
//!
//! Before and after each operation of the store anybody may go on, and the clock may move. Who does is
//! decided by a seed. Each schedule has a seed of its own, which a failure prints: `INTERLEAVINGS_SEED`
//! set to it runs that schedule alone. `INTERLEAVINGS` is how many schedules each test runs, from that
//! seed on if both are set.
//!
//! - [`world`]: what all share: clock, store, and who is to look at the task when.
//! - [`tool`]: the handler.
//! - [`actors`]: who does something to the task.
//! - [`log`]: what happened, and the rules that it must keep.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of it is test code")]

mod actors;
mod log;
mod tool;
mod world;

use shuttle::{Config, FailurePersistence, MaxSteps, Runner, scheduler::RandomScheduler};
use world::Plan;

const DEFAULT_SEED: u64 = 0x6d63_702d_6564_6765;
const DEFAULT_COUNT: u64 = 180;

/// Far more than any schedule takes that comes to its end.
const MOST_STEPS: usize = 200_000;

#[test]
fn a_task_completes_with_the_answers_that_it_was_given() {
    explore(Plan { is_cancelled: false, may_expire: false });
}

#[test]
fn a_cancelled_task_ends_and_begins_nothing_more() {
    explore(Plan { is_cancelled: true, may_expire: false });
}

#[test]
fn a_task_is_there_until_its_time_is_over_and_not_longer() {
    explore(Plan { is_cancelled: false, may_expire: true });
}

#[test]
fn a_cancelled_task_may_still_run_out_of_time() {
    explore(Plan { is_cancelled: true, may_expire: true });
}

/// Runs a plan in many schedules, and names the one that it fails in.
fn explore(plan: Plan) {
    struct Named(u64);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("to see this schedule again: INTERLEAVINGS_SEED={}", self.0);
            }
        }
    }
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("INTERLEAVINGS_SEED");
    let usual = if seed.is_some() { 1 } else { DEFAULT_COUNT };
    let (first, count) = (seed.unwrap_or(DEFAULT_SEED), number("INTERLEAVINGS").unwrap_or(usual));
    for index in 0..count {
        let named = Named(first.wrapping_add(index));
        let scheduler = RandomScheduler::new_from_seed(named.0, 1);
        Runner::new(scheduler, config()).run(move || shuttle::future::block_on(actors::play(plan)));
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.failure_persistence = FailurePersistence::None; // the seed says it all
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    config.ungraceful_shutdown_config.immediately_return_on_panic = true;
    config
}
