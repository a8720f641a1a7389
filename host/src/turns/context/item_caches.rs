//! The item caches of all awake sessions, and their rest while no session works: a cache has up to two megabytes.
//!
//! The caches that were used last stay, so that a slow conversation keeps its own. After work of more of them all rest: their items are
//! mixed in memory, and those that stay would keep most of the pages of the others. See `upkeep::memory_worker` for the time.

use super::item_cache::ItemCache;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::sync::Notify;

/// Caches that stay, if no more were used since the last rest.
const KEPT: usize = 2;

/// The item caches of the awake sessions.
#[derive(Default)]
pub struct ItemCaches {
    all: Mutex<Vec<Weak<SharedCache>>>,
    /// The number of events at the last rest.
    rested_at: AtomicU64,
    /// What happened to them.
    pub work: Arc<Work>,
}

/// The events of all sessions after which memory is free: answered requests, and ends of caches because their sessions sleep.
#[derive(Default)]
pub struct Work {
    /// Their number.
    events: AtomicU64,
    /// True from an event on until the caches rest.
    is_new: AtomicBool,
    /// Rings at the first event after that.
    pub bell: Notify,
}

impl Work {
    /// Counts an event, and returns its number.
    fn note(&self) -> u64 {
        let number = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.is_new.swap(true, Ordering::Relaxed) {
            self.bell.notify_one();
        }
        number
    }

    /// Returns the number of events; `None` if there was none since the caches rest.
    pub fn events(&self) -> Option<u64> {
        self.is_new.load(Ordering::Relaxed).then(|| self.events.load(Ordering::Relaxed))
    }
}

/// The item cache of one awake session.
pub struct SharedCache {
    cache: Mutex<ItemCache>,
    /// The number of the newest answered request among the events of all sessions.
    used: AtomicU64,
    work: Arc<Work>,
}

impl SharedCache {
    /// Locks the cache for a request.
    pub fn lock(&self) -> MutexGuard<'_, ItemCache> {
        self.cache.lock().expect("no holder panics")
    }
}

impl Drop for SharedCache {
    fn drop(&mut self) {
        self.work.note();
    }
}

impl ItemCaches {
    /// Adds the cache of a session that wakes.
    pub fn add(&self) -> Arc<SharedCache> {
        let work = Arc::clone(&self.work);
        let added = Arc::new(SharedCache { cache: Mutex::default(), used: AtomicU64::default(), work });
        let mut all = self.all();
        all.retain(|cache| cache.strong_count() > 0);
        all.push(Arc::downgrade(&added));
        added
    }

    /// Notes an answered request of a session.
    pub fn record_answer(&self, cache: &SharedCache) {
        cache.used.store(self.work.note(), Ordering::Relaxed);
    }

    /// Lets all caches rest but those that were used last, or all of them if many were used since the last rest.
    pub fn rest_unused(&self) {
        self.work.is_new.store(false, Ordering::Relaxed);
        let rested_at = self.rested_at.swap(self.work.events.load(Ordering::Relaxed), Ordering::Relaxed);
        let mut all: Vec<Arc<SharedCache>> = self.all().iter().filter_map(Weak::upgrade).collect();
        let used = |cache: &Arc<SharedCache>| cache.used.load(Ordering::Relaxed);
        all.sort_by_key(|cache| std::cmp::Reverse(used(cache)));
        let is_many = all.iter().filter(|cache| used(cache) > rested_at).count() > KEPT;
        for unused in all.iter().skip(if is_many { 0 } else { KEPT }) {
            unused.lock().rest();
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<SharedCache>>> {
        self.all.lock().expect("no holder panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::ItemId;

    #[test]
    fn last_used_caches_stay_unless_many_were_used() {
        let caches = ItemCaches::default();
        let added: Vec<_> = (0..4).map(|_| caches.add()).collect();
        assert_eq!(caches.work.events(), None);
        let resting_after = |used: &[usize]| -> Vec<bool> {
            for at in used {
                added[*at].lock().answer(ItemId::new(), Vec::new());
                caches.record_answer(&added[*at]);
            }
            caches.rest_unused();
            assert_eq!(caches.work.events(), None, "until the next request");
            added.iter().map(|cache| cache.lock().is_resting()).collect()
        };
        assert_eq!(resting_after(&[0, 1]), [false; 4]);
        assert_eq!(resting_after(&[2, 3]), [true, true, false, false], "the two that were used last stay");
        assert_eq!(resting_after(&[1, 2, 3]), [true; 4], "more than two were used");
        drop(added);
        assert_eq!(caches.work.events(), Some(11), "each end is an event");
        caches.add();
        assert_eq!(caches.all().len(), 1, "caches of sleeping sessions are forgotten");
    }
}
