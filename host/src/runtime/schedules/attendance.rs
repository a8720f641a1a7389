//! The attendance of the worker of schedules: since when it is awake, and up to which time it dealt with each schedule.
//!
//! Pure: it gets the times of the machine's clock and of a monotonic one. The machine's clock may jump: it was set, or the machine slept.
//! See [`super::worker`], which observes both, and [`crate::registry::schedules::catch_up`] for the rules of late times.

use crate::registry::schedules::catch_up::Moment;
use ironclaw_state::{STEADY_AFTER, TRUSTED_STOP_MS};
use std::time::Duration;

/// Difference between the clock and the time that passed from which on the clock counts as having jumped.
const JUMP_MS: i64 = 60_000;

/// Milliseconds on the machine's clock are since the epoch; durations on the monotonic one since any fixed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attendance {
    wall: i64,
    at: Duration,
    awake_since: i64,
    /// The last jump of the clock, or the start.
    steady_since: Duration,
    attended: i64,
    /// Flag: the clock was set back, and the next times were not corrected since.
    went_back: bool,
}

impl Attendance {
    /// Begins to attend. `attended` is the recorded time up to which a host dealt with each schedule before.
    pub fn new(wall: i64, at: Duration, attended: Option<i64>) -> Self {
        let attended = attended.unwrap_or(wall);
        Self { wall, at, awake_since: wall, steady_since: at, attended, went_back: true }
    }

    /// Observes the clocks. `planned` is the end of the wait before, for a worker that did nothing else.
    pub fn observe(&mut self, wall: i64, at: Duration, planned: Option<Duration>) {
        let jump = wall - self.wall - at.saturating_sub(self.at).as_millis() as i64;
        (self.wall, self.at) = (wall, at);
        if jump.abs() > JUMP_MS {
            (self.awake_since, self.steady_since) = (wall, at);
            self.went_back |= jump < 0;
        }
        if planned.is_some_and(|planned| at.saturating_sub(planned).as_millis() as i64 > JUMP_MS) {
            // The process was stopped, and the monotonic clock ran on.
            self.awake_since = wall;
        }
        if self.is_steady() && self.attended - wall > JUMP_MS {
            // The clock was ahead before, and this one is right.
            self.attended = wall;
            self.went_back = true;
        }
    }

    /// Notes that no time up to the present is left.
    pub fn attend(&mut self) {
        if self.is_trusted() {
            self.attended = self.attended.max(self.wall);
        }
    }

    /// Returns whether the clock was set back since the last call; true at the first.
    pub fn take_went_back(&mut self) -> bool {
        std::mem::take(&mut self.went_back)
    }

    pub const fn attended(&self) -> i64 {
        self.attended
    }

    pub fn moment(&self) -> Moment {
        let Self { wall, awake_since, attended, .. } = *self;
        Moment { now: wall, awake_since, attended, is_trusted: self.is_trusted() }
    }

    /// Returns the time until the clock has run steadily for long enough; `None` if it has.
    pub fn steady_in(&self) -> Option<Duration> {
        (!self.is_steady()).then(|| (self.steady_since + STEADY_AFTER).saturating_sub(self.at))
    }

    fn is_trusted(&self) -> bool {
        is_trusted_stop(self.attended, self.wall) || self.is_steady()
    }

    fn is_steady(&self) -> bool {
        self.at.saturating_sub(self.steady_since) >= STEADY_AFTER
    }
}

/// Returns whether the clock is trusted at once after a stop of the host that began at `attended`.
pub const fn is_trusted_stop(attended: i64, wall: i64) -> bool {
    wall.saturating_sub(attended) <= TRUSTED_STOP_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;
    const START: i64 = 10_000 * DAY_MS;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Returns the attendance of a host that was stopped for an hour, and that starts with a clock this far ahead.
    fn started(ahead: i64) -> Attendance {
        Attendance::new(START + ahead, Duration::ZERO, Some(START - HOUR_MS))
    }

    #[test]
    fn slow_work_is_no_jump_and_a_sleep_is_one() {
        let mut slow = started(0);
        slow.observe(START + 900_000, seconds(900), None);
        assert_eq!(slow.moment().awake_since, START, "it was awake");
        let mut slept = started(0);
        slept.observe(START + 900_000, seconds(1), None);
        assert_eq!(slept.moment().awake_since, START + 900_000);
        let mut frozen = started(0);
        frozen.observe(START + 900_000, seconds(900), Some(seconds(10)));
        assert_eq!(frozen.moment().awake_since, START + 900_000);
        let mut in_time = started(0);
        in_time.observe(START + 900_000, seconds(900), Some(seconds(899)));
        assert_eq!(in_time.moment().awake_since, START);
    }

    #[test]
    fn clock_far_ahead_is_trusted_after_an_hour() {
        for (ahead, trusted) in [(0, true), (9 * DAY_MS, true), (11 * DAY_MS, false), (400 * DAY_MS, false)] {
            let mut clock = started(ahead);
            assert_eq!((clock.moment().is_trusted, clock.steady_in()), (trusted, Some(STEADY_AFTER)), "{ahead}");
            clock.attend();
            assert_eq!(clock.attended(), if trusted { START + ahead } else { START - HOUR_MS }, "{ahead}");
            clock.observe(START + ahead + HOUR_MS, seconds(3600), None);
            clock.attend();
            assert_eq!((clock.moment().is_trusted, clock.attended()), (true, START + ahead + HOUR_MS), "{ahead}");
        }
    }

    #[test]
    fn jump_of_a_running_host_is_trusted_as_one_of_a_stopped() {
        for (jump, trusted) in [(2 * DAY_MS, true), (400 * DAY_MS, false)] {
            let mut clock = started(0);
            clock.attend();
            clock.observe(START + jump, seconds(1), None);
            assert_eq!(clock.moment().is_trusted, trusted, "{jump}");
            clock.observe(START + 2_000, seconds(2), None);
            assert_eq!((clock.moment().is_trusted, clock.attended()), (true, START), "it is right again");
        }
    }

    #[test]
    fn clock_that_went_back_is_noticed_once_and_believed_later() {
        let mut clock = started(2 * DAY_MS);
        assert!(clock.take_went_back(), "at the start nothing is known");
        clock.attend();
        assert!(!clock.take_went_back());
        clock.observe(START + 1_000, seconds(1), None);
        assert!(clock.take_went_back() && !clock.take_went_back());
        assert_eq!(clock.attended(), START + 2 * DAY_MS, "it may come forward again");
        assert_eq!(clock.steady_in(), Some(STEADY_AFTER));
        clock.observe(START + 1_000 + HOUR_MS, seconds(3601), None);
        assert_eq!((clock.attended(), clock.take_went_back()), (START + 1_000 + HOUR_MS, true));
        assert_eq!(clock.steady_in(), None);
    }

    #[test]
    fn small_steps_of_the_clock_are_no_jumps() {
        let mut clock = started(0);
        clock.take_went_back();
        for (number, step) in (1..).zip([-900, 20_000, -30_000, 0]) {
            clock.observe(START + number * 1_000 + step, seconds(number as u64), None);
        }
        assert!(!clock.take_went_back());
        assert_eq!(clock.moment().awake_since, START);
    }
}
