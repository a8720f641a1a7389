//! The occurrences of a recurrence in a time zone.

use crate::recurrence::Recurrence;
use crate::wall;
use crate::zone::Zone;
use std::collections::VecDeque;

/// The shortest distance of two occurrences.
const DISTANCE_MS_MIN: i64 = 60_000;

/// A recurrence in a time zone from a first instant on. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    pub recurrence: Recurrence,
    /// The zone of its wall times.
    pub zone: Zone,
    /// The instant from which an interval counts, itself an occurrence. A cron expression has no occurrence before it.
    pub anchor: i64,
}

impl Series {
    /// Returns the first occurrence after an instant; `None` if none follows.
    ///
    /// * A wall time that the zone leaves out (gap) is due at the first instant after the gap. All that one gap leaves
    ///   out are one occurrence.
    /// * A wall time that the zone repeats (overlap) is due the first time. A cron expression whose hour has `*` or a
    ///   step is due both times.
    pub fn next_after(&self, after: i64) -> Option<i64> {
        match &self.recurrence {
            Recurrence::Cron(cron) => wall::next_after(&self.zone, after.max(self.anchor.saturating_sub(1)), cron),
            Recurrence::Every(interval) => interval.next_after(self.anchor, &self.zone, after),
            Recurrence::At(at) => Some(at.instant()).filter(|at| *at > after),
            Recurrence::From(first, _) if after < first.instant() => Some(first.instant()),
            Recurrence::From(first, then) => self.following(first.instant(), then).next_after(after),
        }
    }

    /// Returns whether an instant is an occurrence.
    pub fn has(&self, at: i64) -> bool {
        at.checked_sub(1).is_some_and(|before| self.next_after(before) == Some(at))
    }

    /// Returns the number of occurrences after `after` and not after `until`. The work depends on the days in between, and not on the
    /// number.
    pub fn count_between(&self, after: i64, until: i64) -> u64 {
        match &self.recurrence {
            Recurrence::Cron(cron) => {
                wall::count_between(&self.zone, after.max(self.anchor.saturating_sub(1)), until, cron)
            }
            Recurrence::Every(interval) => interval.count_between(self.anchor, &self.zone, after, until),
            Recurrence::At(at) => u64::from(after < at.instant() && at.instant() <= until),
            Recurrence::From(first, then) => {
                let first = first.instant();
                let is_counted = u64::from(after < first && first <= until);
                is_counted + self.following(first, then).count_between(after.max(first), until)
            }
        }
    }

    /// Returns the occurrences that follow a first instant.
    fn following(&self, first: i64, then: &Recurrence) -> Self {
        Self { recurrence: then.clone(), zone: self.zone.clone(), anchor: first }
    }

    /// Returns the first `max` occurrences after `after` and not after `until`, in their order.
    pub fn due_between(&self, after: i64, until: i64, max: usize) -> Vec<i64> {
        self.between(after, until).take(max).collect()
    }

    /// Returns the last `max` occurrences after `after` and not after `until`, in their order. The work depends on
    /// `max` and not on the number of occurrences in between, unless they are far from even.
    pub fn last_between(&self, after: i64, until: i64, max: usize) -> Vec<i64> {
        if max == 0 {
            return Vec::new();
        }
        let mut window = i64::try_from(max).unwrap_or(i64::MAX).saturating_mul(DISTANCE_MS_MIN);
        loop {
            let begin = until.saturating_sub(window).max(after);
            let mut last = VecDeque::new();
            for due in self.between(begin, until) {
                if last.len() == max {
                    last.pop_front();
                }
                last.push_back(due);
            }
            if last.len() == max || begin == after {
                return last.into();
            }
            window = window.saturating_mul(2);
        }
    }

    fn between(&self, after: i64, until: i64) -> impl Iterator<Item = i64> + '_ {
        std::iter::successors(self.next_after(after), |due| self.next_after(*due)).take_while(move |due| *due <= until)
    }
}
