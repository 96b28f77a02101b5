//! Tasks: calls that outlive their request (TASK area).
//!
//! - [`store`]: what a platform brings along.
//! - [`memory`]: a store for tests and single processes.
//! - [`record`]: what a record holds.
//! - [`id`]: how clients name a record.
//! - [`serve`]: what clients do with tasks.
//! - [`advance`]: how a task goes on.
//! - [`job`]: tasks that run elsewhere, of which nothing is stored here.
//! - [`wire`]: what clients read.

use std::{sync::Arc, time::Duration};

use crate::{platform::Platform, server::Server};

mod advance;
mod date;
pub(crate) mod id;
pub(crate) mod job;
pub(crate) mod memory;
pub(crate) mod record;
pub(crate) mod serve;
pub(crate) mod store;
pub(crate) mod wire;

pub(crate) use serve::create;
use store::StoreError;

/// How many tasks a sweep takes at most.
const SWEEP: usize = 64;

/// How long a record is kept after its time, beside the longest life of a state that could begin the
/// same task anew: the clocks of instances differ.
const SKEW: Duration = Duration::from_secs(300);

impl Server {
    /// Goes on with a task: replays it, writes each step before the next, and says to its driver when
    /// it is due again. Whoever else has the task in hand is left alone, so calling it too often, too
    /// early or twice at once does no harm.
    ///
    /// # Errors
    /// When the store or the driver cannot be reached. Nothing is lost: the record says when the task is
    /// due, and a [sweep](Self::sweep_tasks) finds it.
    pub async fn advance(&self, key: &str, platform: Arc<dyn Platform>) -> Result<(), StoreError> {
        let Some(tasks) = self.tasks() else { return Ok(()) };
        match advance::advance(self, tasks, key, platform).await? {
            Some(due) => tasks.driver.schedule(key, due).await,
            None => Ok(()),
        }
    }

    /// Finds tasks that are due and that nobody looks after, for the caller to
    /// [advance](Self::advance); no other sweep gets them for the length of a lease. Removes what is
    /// long past its time.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn sweep_tasks(&self, platform: &dyn Platform) -> Result<Vec<String>, StoreError> {
        let Some(index) = self.tasks().and_then(|tasks| tasks.store.due_index()) else {
            return Ok(Vec::new());
        };
        let (now, limits) = (platform.now(), self.limits());
        index.purge(now - (limits.state_ttl + SKEW), SWEEP).await?;
        index.claim_due(now, now + limits.task_lease, SWEEP).await
    }
}
