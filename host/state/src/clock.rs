//! The clocks of the record: a monotonic one, the machine's own, and one for the age of rows that are dropped.
//!
//! The machine's clock may be set at any time. Rows are ordered by numbers, and no row is dropped because the clock jumped.

use crate::failpoint;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Difference between the clock and the time that passed from which on the clock counts as having jumped ahead.
const JUMP_MS: i64 = 60_000;

/// Time for which the clock must run steadily after a jump before it is trusted.
pub const STEADY_AFTER: Duration = Duration::from_secs(3600);

/// The longest stop of a host after which its clock is trusted at once for what cannot be undone: ten days. After a longer one it may be
/// wrong.
pub const TRUSTED_STOP_MS: i64 = 10 * 24 * 3_600_000;

/// Returns the machine's clock, in milliseconds since the epoch. It is for times that other machines compare with theirs.
/// Unlike the time of the record, it goes back when the clock is set back.
pub fn wall_clock() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    now + failpoint::clock_shift_ms()
}

/// The monotonic time of the record. It survives restarts, and all threads share it.
#[derive(Clone)]
pub(super) struct Clock {
    last: Arc<AtomicI64>,
    prune: Arc<Mutex<Steady>>,
    expiry: Arc<Mutex<Steady>>,
    began: Instant,
}

impl Clock {
    /// Makes a clock that continues from the newest entry of the record.
    pub(super) fn new(last: Option<i64>) -> Self {
        let steady = |jump_ms| {
            let wall = last.unwrap_or_else(wall_clock);
            Arc::new(Mutex::new(Steady { jump_ms, wall, at: Duration::ZERO, held: None }))
        };
        Self {
            last: Arc::new(AtomicI64::new(last.unwrap_or(0))),
            prune: steady(JUMP_MS),
            expiry: steady(TRUSTED_STOP_MS),
            began: Instant::now(),
        }
    }

    /// Returns the time of the record.
    pub(super) fn now(&self) -> i64 {
        let now = wall_clock();
        self.last.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Returns the time for the age of rows that are dropped for good.
    pub(super) fn prune_time(&self) -> i64 {
        self.observe(&self.prune)
    }

    /// Returns the time for states that are recorded as expired for good.
    pub(super) fn expiry_time(&self) -> i64 {
        self.observe(&self.expiry)
    }

    fn observe(&self, steady: &Mutex<Steady>) -> i64 {
        steady.lock().unwrap_or_else(PoisonError::into_inner).observe(wall_clock(), self.began.elapsed())
    }
}

/// Comparison of the machine's clock with the time that passed. A suspended machine and a stopped host also look like a jump;
/// then old rows are dropped an hour later.
#[derive(Debug)]
struct Steady {
    /// A larger difference is a jump.
    jump_ms: i64,
    wall: i64,
    at: Duration,
    /// The time before a jump, and the end of its validity.
    held: Option<(i64, Duration)>,
}

impl Steady {
    fn observe(&mut self, wall: i64, at: Duration) -> i64 {
        let expected = self.wall + (at - self.at).as_millis() as i64;
        (self.wall, self.at) = (wall, at);
        self.held = self.held.filter(|(_, until)| at < *until);
        if wall - expected > self.jump_ms {
            let before = self.held.map_or(expected, |(before, _)| before.min(expected));
            self.held = Some((before, at + STEADY_AFTER));
        }
        self.held.map_or(wall, |(before, _)| before.min(wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 3600 * 1000;

    #[test]
    fn nothing_is_old_only_because_the_clock_jumped() {
        let mut steady = Steady { jump_ms: JUMP_MS, wall: 0, at: Duration::ZERO, held: None };
        let seconds = Duration::from_secs;
        assert_eq!(steady.observe(10_000, seconds(10)), 10_000);
        assert_eq!(steady.observe(400 * DAY_MS, seconds(11)), 11_000, "it jumped");
        assert_eq!(steady.observe(800 * DAY_MS, seconds(12)), 11_000, "it jumped again");
        assert_eq!(steady.observe(13_000, seconds(13)), 11_000, "it was corrected");
        let later = 13 + STEADY_AFTER.as_secs();
        assert_eq!(steady.observe(later as i64 * 1000, seconds(later)), later as i64 * 1000, "it is steady again");
        assert_eq!(steady.observe(0, seconds(later + 1)), 0, "set back, everything is younger");
    }

    #[test]
    fn a_clock_that_stays_ahead_is_believed_after_an_hour() {
        let mut steady = Steady { jump_ms: JUMP_MS, wall: 0, at: Duration::ZERO, held: None };
        let hour = STEADY_AFTER;
        assert_eq!(steady.observe(400 * DAY_MS, Duration::ZERO), 0);
        assert_eq!(steady.observe(400 * DAY_MS + 1000, Duration::from_secs(1)), 0);
        let believed = 400 * DAY_MS + hour.as_millis() as i64;
        assert_eq!(steady.observe(believed, hour), believed);
    }
    #[test]
    fn nothing_expires_for_good_by_a_clock_that_is_far_ahead() {
        for (jump, trusted) in [(9 * DAY_MS, true), (11 * DAY_MS, false), (400 * DAY_MS, false)] {
            let mut steady = Steady { jump_ms: TRUSTED_STOP_MS, wall: 0, at: Duration::ZERO, held: None };
            let expected = if trusted { jump } else { 0 };
            assert_eq!(steady.observe(jump, Duration::ZERO), expected, "{jump}");
            assert_eq!(
                steady.observe(2_000, Duration::from_secs(2)),
                if trusted { 2_000 } else { 0 },
                "it is right again"
            );
        }
    }
}
