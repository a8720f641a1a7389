//! Intervals: a number of minutes of real time, or a number of days of the calendar.

use crate::error::CalendarError;
use crate::wall::{self, WallTimes};
use crate::zone::Zone;
use ironclaw_text::excerpt::quoted;
use jiff::{Span, Timestamp};
use std::fmt;
use std::str::FromStr;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
const MINUTES_OF_DAY: i64 = 24 * 60;
/// Days of the longest interval.
const DAYS_MAX: i64 = 366;

/// A distance between occurrences, from one minute to 366 days. Hours and minutes are real time; days and weeks keep
/// the wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(Length);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Minutes(i64),
    Days(i64),
}

impl Interval {
    /// Returns the first instant after `after` that is `anchor` or a whole number of intervals later; all in
    /// milliseconds since the Unix epoch.
    pub(crate) fn next_after(self, anchor: i64, zone: &Zone, after: i64) -> Option<i64> {
        if after < anchor {
            return Some(anchor);
        }
        match self.0 {
            Length::Minutes(minutes) => {
                let period = minutes * MINUTE_MS;
                let passed = after.checked_sub(anchor)?.div_euclid(period);
                anchor.checked_add(passed.checked_add(1)?.checked_mul(period)?)
            }
            Length::Days(days) => wall::next_after(zone, after, &Repeated::from_anchor(anchor, zone, days)?),
        }
    }

    /// Returns the number of occurrences after `after` and not after `until`.
    pub(crate) fn count_between(self, anchor: i64, zone: &Zone, after: i64, until: i64) -> u64 {
        if until < anchor {
            return 0;
        }
        let (begin, at_anchor) = if after < anchor { (anchor, 1) } else { (after, 0) };
        let later = match self.0 {
            Length::Minutes(minutes) => {
                let passed = |at: i64| at.saturating_sub(anchor).div_euclid(minutes * MINUTE_MS);
                u64::try_from(passed(until) - passed(begin)).unwrap_or(0)
            }
            Length::Days(days) => Repeated::from_anchor(anchor, zone, days)
                .map_or(0, |times| wall::count_between(zone, begin, until, &times)),
        };
        at_anchor + later
    }
}

/// The wall times that follow a first one at whole periods.
struct Repeated {
    first: i64,
    period: i64,
}

impl Repeated {
    fn from_anchor(anchor: i64, zone: &Zone, days: i64) -> Option<Self> {
        let offset = zone.rules().to_offset(Timestamp::from_millisecond(anchor).ok()?).seconds();
        Some(Self { first: anchor + i64::from(offset) * 1000, period: days * DAY_MS })
    }

    /// Returns the number of periods from the first wall time to the first one that is not before this one; at least one.
    fn periods_to(&self, wall: i64) -> Option<i64> {
        let passed = wall.checked_sub(self.first)?.checked_add(self.period - 1)?.div_euclid(self.period);
        Some(passed.max(1))
    }
}

impl WallTimes for Repeated {
    fn first_from(&self, wall: i64) -> Option<i64> {
        self.first.checked_add(self.periods_to(wall)?.checked_mul(self.period)?)
    }

    fn count(&self, wall: i64, end: i64) -> u64 {
        let between = || Some(self.periods_to(end)? - self.periods_to(wall)?);
        between().and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
    }

    fn counts_twice(&self) -> bool {
        false
    }
}

impl FromStr for Interval {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let value = || quoted(text);
        match text {
            "hourly" => return Ok(Self(Length::Minutes(60))),
            "daily" => return Ok(Self(Length::Days(1))),
            "weekly" => return Ok(Self(Length::Days(7))),
            _ => {}
        }
        let span: Span = text.parse().map_err(|_| CalendarError::IntervalUnreadable { value: value() })?;
        let smaller = span.get_seconds() + span.get_milliseconds() + span.get_microseconds() + span.get_nanoseconds();
        if span.get_years() != 0 || span.get_months() != 0 || smaller != 0 {
            return Err(CalendarError::IntervalUnit { value: value() });
        }
        let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
        let minutes = i64::from(span.get_hours()) * 60 + span.get_minutes();
        if days != 0 && minutes != 0 {
            return Err(CalendarError::IntervalMixed { value: value() });
        }
        if days + minutes < 1 {
            return Err(CalendarError::IntervalTooShort { value: value() });
        }
        if days > DAYS_MAX || minutes > DAYS_MAX * MINUTES_OF_DAY {
            return Err(CalendarError::IntervalTooLong { value: value() });
        }
        Ok(Self(if days > 0 { Length::Days(days) } else { Length::Minutes(minutes) }))
    }
}

impl fmt::Display for Interval {
    /// Writes a number with its largest unit: `90m`, `2h`, `1d`, `1w`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Length::Minutes(minutes) if minutes % 60 == 0 => write!(formatter, "{}h", minutes / 60),
            Length::Minutes(minutes) => write!(formatter, "{minutes}m"),
            Length::Days(days) if days % 7 == 0 => write!(formatter, "{}w", days / 7),
            Length::Days(days) => write!(formatter, "{days}d"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_interval_is_refused_with_its_code() {
        for (code, texts) in [
            ("interval_unreadable", &["banana", "", "Daily", "15", "m", "0 8 * * *"][..]),
            ("interval_unit", &["30s", "90s", "1mo", "P1M", "1y"]),
            ("interval_mixed", &["1d 2h"]),
            ("interval_too_short", &["0m", "-15m", "15m ago"]),
            ("interval_too_long", &["367d", "53w", "9000h"]),
        ] {
            for text in texts {
                assert_eq!(text.parse::<Interval>().expect_err(text).code(), code, "{text}");
            }
        }
    }

    #[test]
    fn interval_is_written_with_its_largest_unit() {
        for (text, written) in [
            ("90m", "90m"),
            ("120m", "2h"),
            ("2h 30m", "150m"),
            ("PT15M", "15m"),
            ("24h", "24h"),
            ("1d", "1d"),
            ("7d", "1w"),
            ("P1W", "1w"),
            ("366d", "366d"),
            ("1m", "1m"),
            ("hourly", "1h"),
            ("daily", "1d"),
            ("weekly", "1w"),
        ] {
            let interval: Interval = text.parse().expect(text);
            assert_eq!(interval.to_string(), written);
            assert_eq!(written.parse(), Ok(interval));
        }
    }
}
