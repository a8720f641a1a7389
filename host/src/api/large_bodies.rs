//! The permits for large bodies in flight.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A larger body is parsed by a blocking thread, and needs a permit.
pub(super) const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Large bodies in flight, for the API and the port for webhooks together.
const LARGE_AT_ONCE_MAX: usize = 8;

/// Large bodies in flight of one person or channel.
const LARGE_OF_ONE_MAX: usize = 2;

/// The permits for large bodies: few in total, and fewer for each person or channel.
pub struct LargeBodies {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for LargeBodies {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(LARGE_AT_ONCE_MAX)), each: Mutex::default() }
    }
}

impl LargeBodies {
    /// Waits for a permit for `whose`; returns `None` if the body is not large.
    pub async fn permit(&self, whose: &str, bytes: Option<usize>) -> Option<[OwnedSemaphorePermit; 2]> {
        if bytes.is_some_and(|bytes| bytes <= INLINE_BYTES_MAX) {
            return None;
        }
        let own = {
            let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
            // Only entries with permits in use matter.
            each.retain(|_, own| own.available_permits() < LARGE_OF_ONE_MAX || Arc::strong_count(own) > 1);
            let fresh = || Arc::new(Semaphore::new(LARGE_OF_ONE_MAX));
            Arc::clone(each.entry(whose.to_owned()).or_insert_with(fresh))
        };
        // Their own permit first: a wait for it takes no permit from others.
        let own = own.acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some([own, all])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_bodies_of_one_person_wait_for_each_other() {
        let large = LargeBodies::default();
        assert!(large.permit("bob", Some(INLINE_BYTES_MAX)).await.is_none(), "a small one waits for nothing");
        let mut held = Vec::new();
        for _ in 0..LARGE_OF_ONE_MAX {
            held.push(large.permit("bob", None).await.expect("one of his"));
        }
        let mut third = Box::pin(large.permit("bob", None));
        assert!(third.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
        let others = large.permit("ann", Some(1 << 20)).await.expect("another person's");
        drop(held.pop());
        assert!(third.await.is_some() && others.len() == 2);
    }
}
