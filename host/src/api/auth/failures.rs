//! A limit on the answers with a reason for requests without a valid token: one bucket for strangers, and one for each ended token.
//!
//! Requests with a valid token never reach it, so no client can lock out another. See `api::auth`.

use crate::registry::TokenId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Answers in one burst.
const BURST: u32 = 20;

/// The time in which a bucket gains one more.
const REFILL: Duration = Duration::from_millis(500);

/// Buckets of ended tokens; there are never more ended tokens.
const BUCKETS_MAX: usize = 1024;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: u32,
    since: Instant,
}

impl Bucket {
    const fn full(now: Instant) -> Self {
        Self { left: BURST, since: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let gained =
            (now.saturating_duration_since(self.since).as_millis() / REFILL.as_millis()).min(u128::from(BURST));
        let gained = gained as u32;
        if gained > 0 {
            self.left = (self.left + gained).min(BURST);
            self.since = if self.left == BURST { now } else { self.since + REFILL * gained };
        }
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}

/// The buckets by ended token; `None` is the bucket for strangers.
#[derive(Debug, Default)]
pub struct Failures(Mutex<HashMap<Option<TokenId>, Bucket>>);

impl Failures {
    /// Takes one from a bucket and returns true if the failure may have its reason; `token` is the ended token of the request.
    pub fn allow(&self, token: Option<&TokenId>, now: Instant) -> bool {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.since) < REFILL * BURST);
        }
        buckets.entry(token.cloned()).or_insert(Bucket::full(now)).take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_use_up_their_bucket_and_an_ended_token_has_its_own() {
        let (failures, now) = (Failures::default(), Instant::now());
        let token: TokenId = "tok_0123456789abcdef".parse().expect("an id");
        let allowed = (0..1000).filter(|_| failures.allow(None, now)).count();
        assert_eq!(allowed, BURST as usize);
        assert!(failures.allow(Some(&token), now), "its holder is told why");
        assert!(!failures.allow(None, now + REFILL / 2));
        assert!(failures.allow(None, now + REFILL * 2));
        assert!(failures.allow(None, now + REFILL * 2), "two were gained");
        assert!(!failures.allow(None, now + REFILL * 2));
    }
}
