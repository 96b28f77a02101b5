//! A store in the memory of one process.

use std::{
    collections::HashMap,
    fmt,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::store::{Created, DueIndex, Mailbox, ReplayGuard, StoreError, TaskRecord, TaskStore};
use crate::{
    platform::Timestamp,
    target::{BoxFuture, MaybeSend, boxed},
};

/// Keeps tasks, messages and spent ids in memory; clones are the same store. For tests, and for what
/// need not outlast its process: nothing survives that, and other instances see none of it.
///
/// Expired tasks stay until they are [purged](DueIndex::purge). Messages and spent ids go by themselves
/// some time after they have expired.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tasks: HashMap<String, TaskRecord>,
    /// `None` once taken.
    messages: Expiring<Option<Vec<u8>>>,
    spent: Expiring<()>,
}

impl MemoryStore {
    /// Does a step that nothing comes between.
    fn step<'a, T: MaybeSend + 'a>(
        &self,
        step: impl FnOnce(&mut State) -> Result<T, StoreError>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        boxed(ready(step(&mut self.lock())))
    }

    /// A panic elsewhere leaves the state whole, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskStore for MemoryStore {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        self.step(|state| Ok(state.tasks.get(key).filter(|task| task.expires > now).cloned()))
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        self.step(|State { tasks, .. }| {
            record.check_size()?;
            if let Some(task) = tasks.get(&record.key) {
                return Ok(Created::Exists((task.expires > now).then(|| task.clone())));
            }
            let counts = |task: &&TaskRecord| task.owner == record.owner && is_open(task, now);
            if tasks.values().filter(counts).count() as u64 >= u64::from(max_open) {
                return Ok(Created::TooMany);
            }
            tasks.insert(record.key.clone(), TaskRecord { version: 1, ..record.clone() });
            Ok(Created::Created)
        })
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.step(|State { tasks, .. }| {
            record.check_size()?;
            let current = tasks
                .get_mut(&record.key)
                .filter(|task| task.version == record.version && is_open(task, now));
            let Some(current) = current else { return Ok(false) };
            *current = TaskRecord { version: record.version + 1, ..record.clone() };
            Ok(true)
        })
    }

    fn due_index(&self) -> Option<&dyn DueIndex> {
        Some(self)
    }
}

impl DueIndex for MemoryStore {
    fn claim_due(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        self.step(|State { tasks, .. }| {
            let mut due: Vec<_> = tasks
                .values_mut()
                .filter(|task| is_open(task, now))
                .filter_map(|task| Some((task.due.filter(|due| *due <= now)?, task)))
                .collect();
            due.sort_by_key(|(due, _)| *due);
            let claim = |(_, task): (Timestamp, &mut TaskRecord)| {
                task.due = Some(until);
                task.key.clone()
            };
            Ok(due.into_iter().take(limit).map(claim).collect())
        })
    }

    fn purge(&self, before: Timestamp, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.step(|State { tasks, .. }| {
            let expired = tasks.values().filter(|task| task.expires < before);
            let keys: Vec<_> = expired.take(limit).map(|task| task.key.clone()).collect();
            for key in &keys {
                tasks.remove(key);
            }
            Ok(keys.len())
        })
    }
}

impl Mailbox for MemoryStore {
    fn put_once<'a>(
        &'a self,
        id: &'a str,
        message: &'a [u8],
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.step(|state| Ok(state.messages.put(id, Some(message.to_vec()), expires, now)))
    }

    fn take<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        self.step(|state| Ok(state.messages.get_mut(id, now).and_then(Option::take)))
    }
}

impl ReplayGuard for MemoryStore {
    fn spend<'a>(
        &'a self,
        id: &'a str,
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.step(|state| Ok(state.spent.put(id, (), expires, now)))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("tasks", &self.lock().tasks.len())
            .finish_non_exhaustive()
    }
}

fn is_open(task: &TaskRecord, now: Timestamp) -> bool {
    task.is_open && task.expires > now
}

/// Values that are put once and go some time after they have expired.
struct Expiring<T> {
    by_id: HashMap<String, (T, Timestamp)>,
    /// How many there may be before the expired ones are removed.
    sweep_at: usize,
}

impl<T> Default for Expiring<T> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), sweep_at: SWEEP_AT }
    }
}

impl<T> Expiring<T> {
    /// `false`, and nothing is changed, if there is a value that is not past its time.
    fn put(&mut self, id: &str, value: T, expires: Timestamp, now: Timestamp) -> bool {
        if self.get_mut(id, now).is_some() {
            return false;
        }
        if self.by_id.len() >= self.sweep_at {
            self.by_id.retain(|_, (_, expires)| *expires + SKEW > now);
            self.sweep_at = SWEEP_AT.max(2 * self.by_id.len());
        }
        self.by_id.insert(id.to_owned(), (value, expires));
        true
    }

    fn get_mut(&mut self, id: &str, now: Timestamp) -> Option<&mut T> {
        let (value, expires) = self.by_id.get_mut(id)?;
        (*expires > now).then_some(value)
    }
}

/// The least number of values that is worth a sweep.
const SWEEP_AT: usize = 1024;

/// What is past its time for one caller may not be for another: how far their clocks may be apart.
const SKEW: Duration = Duration::from_hours(24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_does_not_pile_up() {
        let mut spent = Expiring::default();
        let hours = |hours| Timestamp::default() + Duration::from_hours(hours);
        for n in 0..10_000 {
            assert!(spent.put(&n.to_string(), (), hours(n + 1), hours(n)));
        }
        assert!(spent.by_id.len() <= 2 * SWEEP_AT, "{}", spent.by_id.len());
        assert!(!spent.put("9999", (), hours(20_000), hours(9999)), "what lives on is kept");
    }
}
