//! The item caches of all awake sessions, and their rest while no session works: a cache has up to two megabytes.
//!
//! The caches that were used last stay, so that a slow conversation keeps its own. See `upkeep::memory_worker` for the time.

use super::item_cache::ItemCache;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::sync::Notify;

/// Caches that stay.
const KEPT: usize = 2;

/// The item caches of the awake sessions.
#[derive(Default)]
pub struct ItemCaches {
    all: Mutex<Vec<Weak<SharedCache>>>,
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

    /// Lets all caches rest but those that were used last.
    pub fn rest_unused(&self) {
        self.work.is_new.store(false, Ordering::Relaxed);
        let mut all: Vec<Arc<SharedCache>> = self.all().iter().filter_map(Weak::upgrade).collect();
        all.sort_by_key(|cache| std::cmp::Reverse(cache.used.load(Ordering::Relaxed)));
        for unused in all.iter().skip(KEPT) {
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
    fn only_the_caches_that_were_used_last_stay() {
        let caches = ItemCaches::default();
        let added: Vec<_> = (0..4).map(|_| caches.add()).collect();
        assert_eq!(caches.work.events(), None);
        let output = ItemId::new();
        for at in [0, 1, 2, 3, 0] {
            added[at].lock().answer(output, Vec::new());
            caches.record_answer(&added[at]);
        }
        assert_eq!(caches.work.events(), Some(5));
        caches.rest_unused();
        assert_eq!(caches.work.events(), None, "until the next request");
        let resting: Vec<bool> = added.iter().map(|cache| cache.lock().is_resting()).collect();
        assert_eq!(resting, [false, true, true, false]);
        drop(added);
        assert_eq!(caches.work.events(), Some(9), "each end is an event");
        caches.add();
        assert_eq!(caches.all().len(), 1, "caches of sleeping sessions are forgotten");
    }
}
