//! Notices an endpoint that fails again and again, so that a request does not begin with waiting for it.
//!
//! Never refuses a request by itself: what rests is asked last, and once where another is left. See [`crate::endpoint`],
//! which asks in order.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// State of an endpoint: how it may be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Without restriction.
    Well,
    /// It has rested; one request may see whether it is well again.
    Trial,
    /// It rests.
    Resting,
}

/// Counts the failures of one endpoint.
#[derive(Debug)]
pub struct Breaker {
    failures_max: u32,
    rest: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    in_a_row: u32,
    rests_until: Option<Instant>,
}

impl Breaker {
    /// Makes a breaker: an endpoint rests for so long after so many failures in a row.
    pub fn new(failures_max: u32, rest: Duration) -> Self {
        Self { failures_max, rest, state: Mutex::default() }
    }

    /// Returns how it may be asked; each rest that is over gives one trial, and goes on for all other callers.
    pub fn standing(&self, now: Instant) -> Standing {
        let mut state = self.state();
        match state.rests_until {
            None => Standing::Well,
            Some(until) if now < until => Standing::Resting,
            Some(_) => {
                state.rests_until = Some(now + self.rest);
                Standing::Trial
            }
        }
    }

    /// Records that it answered.
    pub fn well(&self) {
        *self.state() = State::default();
    }

    /// Records that it failed in a way that says something about itself.
    pub fn failed(&self, now: Instant) {
        let mut state = self.state();
        state.in_a_row = state.in_a_row.saturating_add(1);
        if state.in_a_row >= self.failures_max {
            state.rests_until = Some(now + self.rest);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Two numbers that are right after each line.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_endpoint_rests_and_then_has_one_trial() {
        let rest = Duration::from_secs(30);
        let (breaker, start) = (Breaker::new(3, rest), Instant::now());
        for _ in 0..2 {
            breaker.failed(start);
            assert_eq!(breaker.standing(start), Standing::Well);
        }
        breaker.failed(start);
        assert_eq!(breaker.standing(start), Standing::Resting);
        assert_eq!(breaker.standing(start + rest), Standing::Trial);
        assert_eq!(breaker.standing(start + rest), Standing::Resting, "one trial, not two");
        breaker.failed(start + rest);
        assert_eq!(breaker.standing(start + rest + rest / 2), Standing::Resting);
        assert_eq!(breaker.standing(start + 2 * rest), Standing::Trial);
        breaker.well();
        assert_eq!(breaker.standing(start + 2 * rest), Standing::Well);
    }

    #[test]
    fn an_answer_between_failures_begins_the_count_anew() {
        let (breaker, now) = (Breaker::new(2, Duration::from_secs(1)), Instant::now());
        for _ in 0..5 {
            breaker.failed(now);
            breaker.well();
        }
        assert_eq!(breaker.standing(now), Standing::Well);
    }
}
