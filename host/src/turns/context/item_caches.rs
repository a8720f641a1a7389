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
    /// The number of answered requests.
    answered: AtomicU64,
    /// True from an answered request on until the caches rest.
    is_used: AtomicBool,
    /// Rings at the first answered request after that.
    pub bell: Notify,
}

/// The item cache of one awake session.
#[derive(Default)]
pub struct SharedCache {
    cache: Mutex<ItemCache>,
    /// The number of the newest answered request among those of all sessions.
    used: AtomicU64,
}

impl SharedCache {
    /// Locks the cache for a request.
    pub fn lock(&self) -> MutexGuard<'_, ItemCache> {
        self.cache.lock().expect("no holder panics")
    }
}

impl ItemCaches {
    /// Adds the cache of a session that wakes.
    pub fn add(&self) -> Arc<SharedCache> {
        let added = Arc::new(SharedCache::default());
        let mut all = self.all();
        all.retain(|cache| cache.strong_count() > 0);
        all.push(Arc::downgrade(&added));
        added
    }

    /// Notes an answered request of a session.
    pub fn note_answer(&self, cache: &SharedCache) {
        let number = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        cache.used.store(number, Ordering::Relaxed);
        if !self.is_used.swap(true, Ordering::Relaxed) {
            self.bell.notify_one();
        }
    }

    /// Returns the number of answered requests; `None` if there was none since they rest.
    pub fn answered(&self) -> Option<u64> {
        self.is_used.load(Ordering::Relaxed).then(|| self.answered.load(Ordering::Relaxed))
    }

    /// Lets all caches rest but those that were used last.
    pub fn rest_unused(&self) {
        self.is_used.store(false, Ordering::Relaxed);
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
        assert_eq!(caches.answered(), None);
        let output = ItemId::new();
        for at in [0, 1, 2, 3, 0] {
            added[at].lock().answer(output, Vec::new());
            caches.note_answer(&added[at]);
        }
        assert_eq!(caches.answered(), Some(5));
        caches.rest_unused();
        assert_eq!(caches.answered(), None, "until the next request");
        let resting: Vec<bool> = added.iter().map(|cache| cache.lock().is_resting()).collect();
        assert_eq!(resting, [false, true, true, false]);
        drop(added);
        caches.add();
        assert_eq!(caches.all().len(), 1, "caches of sleeping sessions are forgotten");
    }
}
