//! Where a process is held until it is killed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    InStep,
    /// The effect has happened, and is not written down.
    AfterEffect,
    /// The record is written, and the driver does not know.
    BeforeSchedule,
}

const POINTS: [Point; 3] = [Point::InStep, Point::AfterEffect, Point::BeforeSchedule];

/// Where the process that starts next is held, and the how many-th time it comes there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) point: Option<Point>,
    time: u64,
    /// Of this plan.
    number: u64,
}

impl Plan {
    pub(crate) fn draw(number: u64, random: &mut Random) -> Self {
        let point = match random.below(20) {
            0..8 => Some(Point::InStep),
            8..13 => Some(Point::AfterEffect),
            13..17 => Some(Point::BeforeSchedule),
            _ => None,
        };
        Self { point, time: 1 + random.below(6), number }
    }

    pub(crate) fn write(self, folder: &Path) {
        let point = self.point.and_then(|point| POINTS.iter().position(|known| *known == point));
        let point = point.map_or_else(|| "none".to_owned(), |index| index.to_string());
        let text = format!("{point} {} {}", self.time, self.number);
        fs::write(folder.join("plan"), text).unwrap();
    }

    /// The file that says that the process is held.
    pub(crate) fn mark(self, folder: &Path) -> PathBuf {
        folder.join(format!("held-{}", self.number))
    }

    fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join("plan")).unwrap();
        let mut words = text.split(' ');
        let mut next = || words.next().unwrap().parse::<u64>();
        let point = next().ok().map(|index| POINTS[usize::try_from(index).unwrap()]);
        Self { point, time: next().unwrap(), number: next().unwrap() }
    }
}

/// The plan of this process.
static PLAN: OnceLock<(Plan, PathBuf)> = OnceLock::new();

/// How often this process came to the point of its plan.
static PASSED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn follow_plan(folder: &Path) {
    PLAN.set((Plan::read(folder), folder.to_owned())).unwrap();
}

/// Holds the process here, if that is its plan.
pub(crate) fn pass(point: Point) {
    let (plan, folder) = PLAN.get().unwrap();
    if plan.point != Some(point) || PASSED.fetch_add(1, Ordering::SeqCst) + 1 != plan.time {
        return;
    }
    fs::write(plan.mark(folder), "").unwrap();
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

/// Numbers that look random and are the same for a seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
