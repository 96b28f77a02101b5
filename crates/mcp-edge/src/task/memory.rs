//! A store in memory.

use std::{
    collections::HashMap,
    fmt,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::store::{Created, DueIndex, Mailbox, ReplayGuard, StoreError, TaskRecord, TaskStore};
use crate::{platform::Timestamp, target::BoxFuture};

/// Keeps tasks in memory; clones are the same store.
#[derive(Clone, Default)]
pub struct MemoryStore {
    records: Arc<Mutex<HashMap<String, TaskRecord>>>,
    /// By their ids: until when, and the message if there is one that nobody took.
    spent: Arc<Mutex<HashMap<String, (Timestamp, Option<Vec<u8>>)>>>,
}

impl MemoryStore {
    fn records(&self) -> MutexGuard<'_, HashMap<String, TaskRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskStore for MemoryStore {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        let found = self.records().get(key).filter(|record| record.expires > now).cloned();
        Box::pin(ready(Ok(found)))
    }

    fn create<'a>(
        &'a self,
        record: &'a TaskRecord,
        max_open: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        let mut records = self.records();
        let open = records
            .values()
            .filter(|known| known.owner == record.owner && known.is_open && known.expires > now)
            .count();
        let created = match records.get(&record.key) {
            Some(known) => Created::Exists(Some(known.clone()).filter(|r| r.expires > now)),
            None if open >= max_open as usize => Created::TooMany,
            None => {
                records.insert(record.key.clone(), TaskRecord { version: 1, ..record.clone() });
                Created::Created
            }
        };
        Box::pin(ready(Ok(created)))
    }

    fn update<'a>(
        &'a self,
        record: &'a TaskRecord,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut records = self.records();
        let done = match records.get_mut(&record.key) {
            Some(known)
                if known.version == record.version && known.is_open && known.expires > now =>
            {
                *known = TaskRecord { version: record.version + 1, ..record.clone() };
                true
            }
            _ => false,
        };
        Box::pin(ready(Ok(done)))
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
        let mut records = self.records();
        let mut due: Vec<_> = records
            .values_mut()
            .filter(|r| r.is_open && r.expires > now && r.due.is_some_and(|due| due <= now))
            .collect();
        due.sort_by_key(|record| record.due);
        due.truncate(limit);
        let keys = due.into_iter().map(|record| {
            record.due = Some(until);
            record.key.clone()
        });
        Box::pin(ready(Ok(keys.collect())))
    }

    fn purge(&self, before: Timestamp, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        let mut records = self.records();
        let old: Vec<_> = records
            .values()
            .filter(|record| record.expires < before)
            .map(|record| record.key.clone())
            .take(limit)
            .collect();
        old.iter().for_each(|key| {
            records.remove(key);
        });
        Box::pin(ready(Ok(old.len())))
    }
}

impl MemoryStore {
    fn put(
        &self,
        id: String,
        message: Option<Vec<u8>>,
        expires: Timestamp,
        now: Timestamp,
    ) -> bool {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.retain(|_, (expires, _)| *expires > now);
        let is_new = !spent.contains_key(&id);
        if is_new {
            spent.insert(id, (expires, message));
        }
        is_new
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
        let put = self.put(format!("m{id}"), Some(message.to_vec()), expires, now);
        Box::pin(ready(Ok(put)))
    }

    fn take<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let letter = spent.get_mut(&format!("m{id}")).filter(|(expires, _)| *expires > now);
        Box::pin(ready(Ok(letter.and_then(|(_, message)| message.take()))))
    }
}

impl ReplayGuard for MemoryStore {
    fn spend<'a>(
        &'a self,
        id: &'a str,
        expires: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Ok(self.put(format!("g{id}"), None, expires, now))))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.records().len()).finish()
    }
}
