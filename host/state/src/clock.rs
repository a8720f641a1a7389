//! The clocks of the record: one that never goes back, the machine's own, and one by which old things are dropped.
//!
//! The machine's clock may be set at any time. Order goes by numbers; nothing is dropped because a clock jumped.

use crate::failpoint;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock that goes ahead by so much more than time passed has jumped.
const JUMP_MS: i64 = 60_000;

/// After a jump, the clock is believed once it has gone steadily for this long.
pub const STEADY_AFTER: Duration = Duration::from_secs(3600);

/// Returns the machine's clock as it is set now, milliseconds since the epoch, for what other machines compare with theirs.
/// Unlike the record's time it goes back when it is set back.
pub fn wall_clock() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    now + failpoint::clock_shift_ms()
}

/// Time that never goes back, over restarts too; all threads have the same.
#[derive(Clone)]
pub(super) struct Clock {
    last: Arc<AtomicI64>,
    steady: Arc<Mutex<Steady>>,
    began: Instant,
}

impl Clock {
    /// Makes a clock that goes on where the record ended.
    pub(super) fn new(last: Option<i64>) -> Self {
        let steady = Steady { wall: last.unwrap_or_else(wall_clock), at: Duration::ZERO, held: None };
        Self {
            last: Arc::new(AtomicI64::new(last.unwrap_or(0))),
            steady: Arc::new(Mutex::new(steady)),
            began: Instant::now(),
        }
    }

    /// Returns the time as the record counts it.
    pub(super) fn now(&self) -> i64 {
        let now = wall_clock();
        self.last.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Returns the time by which ages are counted where something is dropped for good.
    pub(super) fn prune_time(&self) -> i64 {
        self.steady.lock().unwrap_or_else(PoisonError::into_inner).look(wall_clock(), self.began.elapsed())
    }
}

/// Comparison of the machine's clock with the time that passed. A machine that slept, or a host that was off, looks like a jump
/// as well: then old rows go an hour later.
#[derive(Debug)]
struct Steady {
    wall: i64,
    at: Duration,
    /// The time before a jump, and until when it counts.
    held: Option<(i64, Duration)>,
}

impl Steady {
    fn look(&mut self, wall: i64, at: Duration) -> i64 {
        let expected = self.wall + (at - self.at).as_millis() as i64;
        (self.wall, self.at) = (wall, at);
        self.held = self.held.filter(|(_, until)| at < *until);
        if wall - expected > JUMP_MS {
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
        let mut steady = Steady { wall: 0, at: Duration::ZERO, held: None };
        let seconds = Duration::from_secs;
        assert_eq!(steady.look(10_000, seconds(10)), 10_000);
        assert_eq!(steady.look(400 * DAY_MS, seconds(11)), 11_000, "it jumped");
        assert_eq!(steady.look(800 * DAY_MS, seconds(12)), 11_000, "it jumped again");
        assert_eq!(steady.look(13_000, seconds(13)), 11_000, "it was put right");
        let later = 13 + STEADY_AFTER.as_secs();
        assert_eq!(steady.look(later as i64 * 1000, seconds(later)), later as i64 * 1000, "it is steady again");
        assert_eq!(steady.look(0, seconds(later + 1)), 0, "set back, everything is younger");
    }

    #[test]
    fn a_clock_that_stays_ahead_is_believed_after_an_hour() {
        let mut steady = Steady { wall: 0, at: Duration::ZERO, held: None };
        let hour = STEADY_AFTER;
        assert_eq!(steady.look(400 * DAY_MS, Duration::ZERO), 0);
        assert_eq!(steady.look(400 * DAY_MS + 1000, Duration::from_secs(1)), 0);
        let believed = 400 * DAY_MS + hour.as_millis() as i64;
        assert_eq!(steady.look(believed, hour), believed);
    }
}
