//! The circuit breaker of an endpoint: after repeated failures the endpoint rests, so that requests do not wait for it first.
//!
//! Never refuses a request by itself: a resting endpoint is asked last. See [`crate::endpoint`] for the order.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The availability of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// It may be asked without restriction.
    Ready,
    /// Its rest is over; one request may test it.
    Trial,
    /// It rests after repeated failures.
    Resting,
}

/// Counter of the consecutive failures of one endpoint.
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
    /// Makes a breaker: after `failures_max` consecutive failures, the endpoint rests for the time `rest`.
    pub fn new(failures_max: u32, rest: Duration) -> Self {
        Self { failures_max, rest, state: Mutex::default() }
    }

    /// Returns whether it rests, and takes no trial.
    pub fn is_resting(&self, now: Instant) -> bool {
        self.state().rests_until.is_some_and(|until| now < until)
    }

    /// Returns the availability. At the end of a rest one caller gets a trial, and the rest begins again for all others.
    pub fn availability(&self, now: Instant) -> Availability {
        let mut state = self.state();
        match state.rests_until {
            None => Availability::Ready,
            Some(until) if now < until => Availability::Resting,
            Some(_) => {
                state.rests_until = Some(now + self.rest);
                Availability::Trial
            }
        }
    }

    pub fn succeeded(&self) {
        *self.state() = State::default();
    }

    /// Records a failure that is due to the endpoint itself.
    pub fn failed(&self, now: Instant) {
        let mut state = self.state();
        state.in_a_row = state.in_a_row.saturating_add(1);
        if state.in_a_row >= self.failures_max {
            state.rests_until = Some(now + self.rest);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is harmless: the two fields are valid after each line.
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
            assert_eq!(breaker.availability(start), Availability::Ready);
        }
        breaker.failed(start);
        assert_eq!(breaker.availability(start), Availability::Resting);
        assert_eq!(breaker.availability(start + rest), Availability::Trial);
        assert_eq!(breaker.availability(start + rest), Availability::Resting, "one trial, not two");
        breaker.failed(start + rest);
        assert_eq!(breaker.availability(start + rest + rest / 2), Availability::Resting);
        assert_eq!(breaker.availability(start + 2 * rest), Availability::Trial);
        breaker.succeeded();
        assert_eq!(breaker.availability(start + 2 * rest), Availability::Ready);
    }

    #[test]
    fn answer_between_failures_resets_the_count() {
        let (breaker, now) = (Breaker::new(2, Duration::from_secs(1)), Instant::now());
        for _ in 0..5 {
            breaker.failed(now);
            breaker.succeeded();
        }
        assert_eq!(breaker.availability(now), Availability::Ready);
    }
}
