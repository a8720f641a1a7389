//! A slow second calendar for comparison: it looks at each minute and at the clock of the zone in it.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use std::collections::BTreeSet;

pub(crate) const MINUTE_MS: i64 = 60_000;
/// Longer than any gap and overlap.
const LEAD: i64 = 48 * 60;

/// The values of the five fields of a cron expression.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) minutes: BTreeSet<i8>,
    pub(crate) hours: BTreeSet<i8>,
    pub(crate) days: BTreeSet<i8>,
    pub(crate) months: BTreeSet<i8>,
    /// Sunday is 0.
    pub(crate) weekdays: BTreeSet<i8>,
    /// Whether day of month and day of week are both without `*`.
    pub(crate) either_day: bool,
    /// Whether the hour has `*` or a step.
    pub(crate) has_open_hour: bool,
}

impl Fields {
    fn match_time(&self, time: DateTime) -> bool {
        let day = self.days.contains(&time.day());
        let weekday = self.weekdays.contains(&time.weekday().to_sunday_zero_offset());
        let is_day = if self.either_day { day || weekday } else { day && weekday };
        is_day
            && self.minutes.contains(&time.minute())
            && self.hours.contains(&time.hour())
            && self.months.contains(&time.month())
    }

    /// Returns the occurrences in the minutes after `first`, up to `count` minutes later.
    pub(crate) fn due(&self, zone: &TimeZone, first: i64, count: i64) -> Vec<i64> {
        let minute: Span = 1.minute();
        let mut shown = BTreeSet::new();
        let mut found = Vec::new();
        let mut before: Option<DateTime> = None;
        for step in -LEAD..=count {
            let at = first + step * MINUTE_MS;
            let time = clock(zone, at);
            let mut is_due = self.match_time(time) && (self.has_open_hour || !shown.contains(&time));
            let mut missing = before.map_or(time, |before| before + minute);
            while missing < time {
                is_due |= self.match_time(missing);
                missing += minute;
            }
            if is_due && step > 0 {
                found.push(at);
            }
            shown.insert(time);
            before = Some(time);
        }
        found
    }
}

/// Returns the first instant, in whole minutes, at which the clock of a zone shows this time or a later one.
pub(crate) fn first_shown(zone: &TimeZone, time: DateTime) -> i64 {
    let near = jiff::tz::Offset::UTC.to_timestamp(time).expect("in range").as_millisecond();
    let mut minutes = (-LEAD..=LEAD).map(|step| near + step * MINUTE_MS);
    minutes.find(|at| clock(zone, *at) >= time).expect("a zone is within two days of UTC")
}

pub(crate) fn clock(zone: &TimeZone, at: i64) -> DateTime {
    zone.to_datetime(Timestamp::from_millisecond(at).expect("in range"))
}
