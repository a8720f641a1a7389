//! Cron expressions with five fields, as in cron(5).
//!
//! Knows wall times and no zone. See [`crate::wall`].

mod field;

use crate::error::CalendarError;
use crate::wall::WallTimes;
use field::Field;
use ironclaw_text::excerpt::quoted;
use jiff::ToSpan;
use jiff::civil::{Date, date};
use std::fmt;
use std::str::FromStr;

/// Bytes of the longest expression.
const TEXT_BYTES_MAX: usize = 256;
/// Days in which an expression that matches at all matches again: a 29 February on one weekday, over 2100.
const DAYS_MAX: i64 = 41 * 366;
/// Days of each month in a leap year.
const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const EPOCH: Date = date(1970, 1, 1);
const MINUTE_MS: i64 = 60_000;
const MINUTES_OF_DAY: i64 = 24 * 60;

/// A cron expression that matches at least one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    /// The fields in lower case, with one blank between them.
    text: String,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl Cron {
    fn matches_day(&self, date: Date) -> bool {
        // The numbers of a date are positive.
        let day = self.day.has(date.day().unsigned_abs().into());
        let weekday = self.weekday.has(date.weekday().to_sunday_zero_offset().unsigned_abs().into());
        if self.day.has_star() || self.weekday.has_star() { day && weekday } else { day || weekday }
    }

    fn matches_month(&self, date: Date) -> bool {
        self.month.has(date.month().unsigned_abs().into())
    }

    /// Returns the first matching minute of a day from this one on.
    fn minute_from(&self, minute: u32) -> Option<u32> {
        let (hour, rest) = (minute / 60, minute % 60);
        let in_hour = if self.hour.has(hour) { self.minute.first_from(rest) } else { None };
        in_hour.map(|minute| hour * 60 + minute).or_else(|| {
            let later = self.hour.first_from(hour + 1)?;
            Some(later * 60 + self.minute.first_from(0)?)
        })
    }

    /// Returns the number of matching minutes of a day before this one.
    fn minutes_before(&self, minute: i64) -> u64 {
        let (hour, rest) = (u32::try_from(minute / 60).unwrap_or(0), u32::try_from(minute % 60).unwrap_or(0));
        let whole = self.hour.count_before(hour) * self.minute.count_before(u64::BITS - 1);
        if self.hour.has(hour) { whole + self.minute.count_before(rest) } else { whole }
    }

    /// Returns whether a day of some year matches.
    fn matches_ever(&self) -> bool {
        let either = !self.day.has_star() && !self.weekday.has_star();
        // Each date falls on each weekday in some year.
        let has_day =
            |(month, days): (u32, u32)| self.month.has(month) && self.day.first_from(1).is_some_and(|day| day <= days);
        either || (1..).zip(MONTH_DAYS).any(has_day)
    }
}

impl WallTimes for Cron {
    fn first_from(&self, wall: i64) -> Option<i64> {
        let minute = wall.checked_add(MINUTE_MS - 1)?.div_euclid(MINUTE_MS);
        let first_day = minute.div_euclid(MINUTES_OF_DAY);
        let mut from = u32::try_from(minute.rem_euclid(MINUTES_OF_DAY)).ok()?;
        let mut days = first_day;
        let mut date = EPOCH.checked_add(first_day.days()).ok()?;
        while days <= first_day + DAYS_MAX {
            let next = if self.matches_month(date) {
                let minute = if self.matches_day(date) { self.minute_from(from) } else { None };
                if let Some(minute) = minute {
                    return Some((days * MINUTES_OF_DAY + i64::from(minute)) * MINUTE_MS);
                }
                date.tomorrow().ok()?
            } else {
                date.last_of_month().tomorrow().ok()?
            };
            days += i64::from(date.until(next).ok()?.get_days());
            date = next;
            from = 0;
        }
        None
    }

    fn count(&self, wall: i64, end: i64) -> u64 {
        let minute = |wall: i64| wall.saturating_add(MINUTE_MS - 1).div_euclid(MINUTE_MS);
        let (from, end) = (minute(wall), minute(end));
        let Ok(mut date) = EPOCH.checked_add(from.div_euclid(MINUTES_OF_DAY).days()) else { return 0 };
        let (mut midnight, mut count) = (from.div_euclid(MINUTES_OF_DAY) * MINUTES_OF_DAY, 0);
        while midnight < end {
            if self.matches_month(date) && self.matches_day(date) {
                let before = |minute: i64| self.minutes_before((minute - midnight).clamp(0, MINUTES_OF_DAY));
                count += before(end) - before(from);
            }
            let Ok(tomorrow) = date.tomorrow() else { break };
            (date, midnight) = (tomorrow, midnight + MINUTES_OF_DAY);
        }
        count
    }

    fn counts_twice(&self) -> bool {
        self.hour.has_star() || self.hour.has_step()
    }
}

impl FromStr for Cron {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(CalendarError::CronTooLong { value: quoted(text), max: TEXT_BYTES_MAX });
        }
        let lower = text.to_ascii_lowercase();
        let fields: Vec<&str> = lower.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CalendarError::CronFieldCount { value: quoted(text), count: fields.len() });
        };
        let cron = Self {
            text: fields.join(" "),
            minute: field::MINUTE.read(minute)?,
            hour: field::HOUR.read(hour)?,
            day: field::DAY.read(day)?,
            month: field::MONTH.read(month)?,
            weekday: field::WEEKDAY.read(weekday)?,
        };
        if cron.matches_ever() { Ok(cron) } else { Err(CalendarError::CronNever { value: quoted(text) }) }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
