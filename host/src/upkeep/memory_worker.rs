//! The memory of a host that no session uses: caches rest, and the allocator gives free memory back to the system.
//!
//! Does nothing during work, and nothing twice: it waits for a time without an answer and without a session that falls asleep. See [`crate::turns::context::item_caches`] and [`ironclaw_store::worker`] for the loop.

use crate::turns::context::item_caches::ItemCaches;
use ironclaw_store::error::Error;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::Arc;
use std::time::Duration;

/// The time without an event after which memory is given back.
const QUIET: Duration = Duration::from_secs(20);

/// The worker that gives memory back.
pub struct MemoryWorker {
    caches: Arc<ItemCaches>,
    /// The number of events at the last look.
    seen: Option<u64>,
}

impl MemoryWorker {
    pub const fn new(caches: Arc<ItemCaches>) -> Self {
        Self { caches, seen: None }
    }

    /// Runs until the host stops.
    pub async fn run(self, shutdown: Shutdown) {
        let work = Arc::clone(&self.caches.work);
        worker::run(self, &work.bell, &shutdown).await;
    }
}

impl Due for MemoryWorker {
    const FAILED: &'static str = "memory was not given back";
    const RETRY_AFTER: Duration = QUIET;
    const PAUSE_MAX: Duration = QUIET;

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let events = self.caches.work.events();
        if events.is_none() {
            return Ok(Wait::Bell);
        }
        if self.seen != events {
            self.seen = events;
            return Ok(Wait::AtMost(QUIET));
        }
        self.caches.rest_unused();
        // It takes milliseconds, and waits for the locks of the allocator.
        let freed = tokio::task::spawn_blocking(ironclaw_jail::sys::give_free_memory_back).await;
        tracing::debug!(freed = freed.unwrap_or(false), "the host is quiet");
        Ok(Wait::Bell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn caches_rest_once_after_a_time_without_events() {
        let caches = Arc::new(ItemCaches::default());
        let added: Vec<_> = (0..3).map(|_| caches.add()).collect();
        let mut worker = MemoryWorker::new(Arc::clone(&caches));
        assert_eq!(worker.process_due().await.expect("no error"), Wait::Bell, "nothing was used");
        for cache in &added {
            caches.record_answer(cache);
        }
        assert_eq!(worker.process_due().await.expect("no error"), Wait::AtMost(QUIET), "an answer was given just now");
        caches.record_answer(&added[0]);
        assert_eq!(worker.process_due().await.expect("no error"), Wait::AtMost(QUIET), "another one meanwhile");
        assert_eq!(worker.process_due().await.expect("no error"), Wait::Bell, "none meanwhile");
        assert_eq!(caches.work.events(), None, "the caches rest");
        drop(added);
        assert_eq!(worker.process_due().await.expect("no error"), Wait::AtMost(QUIET), "sessions fell asleep");
        assert_eq!(worker.process_due().await.expect("no error"), Wait::Bell, "their memory is given back");
    }
}
