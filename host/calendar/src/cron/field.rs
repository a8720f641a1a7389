//! One field of a cron expression.

use crate::error::CalendarError;
use ironclaw_text::excerpt::quoted;

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The second number of Sunday.
const SUNDAY: u32 = 7;

pub(super) const MINUTE: Definition = Definition { name: "minute", low: 0, high: 59, names: &[] };
pub(super) const HOUR: Definition = Definition { name: "hour", low: 0, high: 23, names: &[] };
pub(super) const DAY: Definition = Definition { name: "day of month", low: 1, high: 31, names: &[] };
pub(super) const MONTH: Definition = Definition { name: "month", low: 1, high: 12, names: MONTHS };
pub(super) const WEEKDAY: Definition = Definition { name: "day of week", low: 0, high: SUNDAY, names: WEEKDAYS };

/// The values and names that a field takes.
pub(super) struct Definition {
    name: &'static str,
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

/// The values of a field. Its lowest bit is the value 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    values: u64,
    has_star: bool,
    has_step: bool,
}

impl Field {
    pub(super) fn has(self, value: u32) -> bool {
        value < u64::BITS && self.values >> value & 1 == 1
    }

    /// Returns the first value of the field that is not below this one.
    pub(super) fn first_from(self, value: u32) -> Option<u32> {
        let rest = self.values.checked_shr(value)?;
        (rest != 0).then(|| value + rest.trailing_zeros())
    }

    /// Returns the number of values of the field below this one, which is less than 64.
    pub(super) fn count_before(self, value: u32) -> u64 {
        let below = 1_u64.checked_shl(value).map_or(u64::MAX, |bit| bit - 1);
        u64::from((self.values & below).count_ones())
    }

    /// Returns whether a part of the field is `*`, with or without a step. Such a field restricts nothing, says
    /// cron(5).
    pub(super) fn has_star(self) -> bool {
        self.has_star
    }

    pub(super) fn has_step(self) -> bool {
        self.has_step
    }
}

impl Definition {
    /// Reads a field in lower case: a list of parts with commas.
    ///
    /// # Errors
    /// [`CalendarError::CronQuestionMark`] and [`CalendarError::CronField`].
    pub(super) fn read(&self, text: &str) -> Result<Field, CalendarError> {
        if text.contains('?') {
            return Err(CalendarError::CronQuestionMark { field: self.name });
        }
        let mut values = 0;
        for part in text.split(',') {
            values |= self.part(part).ok_or_else(|| CalendarError::CronField {
                field: self.name,
                value: quoted(part),
                low: self.low,
                high: self.high,
            })?;
        }
        if self.high == SUNDAY && values >> SUNDAY & 1 == 1 {
            values = values & !(1 << SUNDAY) | 1;
        }
        Ok(Field { values, has_star: text.contains('*'), has_step: text.contains('/') })
    }

    /// Reads `*`, a value or a range; `*` and a range may have a step.
    fn part(&self, part: &str) -> Option<u64> {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.low, if self.high == SUNDAY { SUNDAY - 1 } else { self.high }),
            Some((first, last)) => (self.value(first)?, self.end_of_range(last, self.value(first)?)?),
            None if step.is_none() => (self.value(range)?, self.value(range)?),
            None => return None,
        };
        let step = match step {
            Some(step) => number(step).filter(|step| (1..=self.high).contains(step))?,
            None => 1,
        };
        let mut values = 0;
        let mut value = first;
        while value <= last {
            values |= 1 << value;
            value += step;
        }
        (values != 0).then_some(values)
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| *name == text);
        let named = named.and_then(|place| u32::try_from(place).ok()).map(|place| place + self.low);
        named.or_else(|| number(text)).filter(|value| (self.low..=self.high).contains(value))
    }

    /// Returns the last value of a range: a range that ends with Sunday ends with the day after Saturday.
    fn end_of_range(&self, text: &str, first: u32) -> Option<u32> {
        let last = self.value(text)?;
        let is_sunday = self.high == SUNDAY && last == 0 && first > 0;
        Some(if is_sunday { SUNDAY } else { last }).filter(|last| first <= *last)
    }
}

/// Reads digits alone: no sign.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|letter| letter.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
