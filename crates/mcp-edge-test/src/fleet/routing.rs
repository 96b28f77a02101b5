//! Which instance a request goes to.

use std::sync::atomic::{AtomicU64, Ordering};

/// Which process of a [`Fleet`](crate::Fleet) a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Routing {
    /// A new process for each request, as on a platform that starts one when a request comes and
    /// then ends it. It is told to end once the response is complete or the client has gone, so a
    /// listen stream holds its process.
    Fresh,
    /// Any of them, as the seed has it: the same sequence each time.
    Random {
        /// Any number.
        seed: u64,
    },
    /// The next one.
    RoundRobin,
}

/// Whose turn it is.
#[derive(Debug)]
pub(crate) struct Turns {
    /// `None` for one after the other.
    seed: Option<u64>,
    taken: AtomicU64,
}

impl Turns {
    pub(crate) const fn new(routing: Routing) -> Self {
        let seed = match routing {
            Routing::Random { seed } => Some(seed),
            Routing::RoundRobin | Routing::Fresh => None,
        };
        Self { seed, taken: AtomicU64::new(0) }
    }

    /// The instances of `count` to try, in this order.
    pub(crate) fn next(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        let number = self.seed.map_or(turn, |seed| mixed(seed, turn));
        let first = number.checked_rem(count as u64).unwrap_or_default() as usize;
        (first..count).chain(0..first)
    }
}

/// One number of the sequence that a seed begins: SplitMix64.
const fn mixed(seed: u64, turn: u64) -> u64 {
    let z = seed.wrapping_add(turn.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(routing: Routing) -> Vec<usize> {
        let turns = Turns::new(routing);
        (0..60).map(|_| turns.next(3).next().unwrap()).collect()
    }

    #[test]
    fn a_turn_tries_each_instance_once() {
        let turns = Turns::new(Routing::RoundRobin);
        assert_eq!(turns.next(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(turns.next(3).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(turns.next(3).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(turns.next(3).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_seed_gives_the_same_sequence_again_and_another_seed_another() {
        let sequence = firsts(Routing::Random { seed: 7 });
        assert_eq!(sequence, firsts(Routing::Random { seed: 7 }));
        assert_ne!(sequence, firsts(Routing::Random { seed: 8 }));
        for index in 0..3 {
            assert!(sequence.iter().filter(|&&first| first == index).count() > 10);
        }
        // The reference implementation's numbers for the seed 1234567.
        assert_eq!(mixed(1_234_567, 0), 6_457_827_717_110_365_317);
        assert_eq!(mixed(1_234_567, 1), 3_203_168_211_198_807_973);
    }
}
