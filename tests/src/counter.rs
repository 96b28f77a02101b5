//! How often something ran.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts how often something ran; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// Counts, and returns the count.
    pub fn bump(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The count.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
