//! Recurrences and their texts.

use crate::cron::Cron;
use crate::error::CalendarError;
use crate::interval::Interval;
use crate::wall::{self, WallTimes};
use crate::zone::Zone;
use ironclaw_text::excerpt::quoted;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use std::fmt;
use std::str::FromStr;

/// Bytes of the shortest local time: `2026-12-01T08:00`.
const LOCAL_BYTES_MIN: usize = 16;
/// Bytes of the shortest RFC 3339 instant: `2026-12-01T08:00:00Z`.
const INSTANT_BYTES_MIN: usize = 20;
/// Bytes of the longest time, with a fraction of nine digits and an offset.
const TIME_BYTES_MAX: usize = 40;
/// The word between a recurrence and its first instant.
const FROM: &str = " from ";
/// Longer than the distance of any wall time from UTC.
const TWO_DAYS_MS: i64 = 48 * 60 * 60_000;

/// The times at which a schedule runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recurrence {
    /// At the wall times of a cron expression.
    Cron(Cron),
    /// At equal distances.
    Every(Interval),
    At(At),
    /// Once at this instant, and then at the times of another recurrence after it. A period counts from the instant.
    From(At, Box<Recurrence>),
}

/// The kind of a recurrence, which says how to read its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Cron,
    Every,
    At,
}

/// The instant of a recurrence that occurs once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At(Timestamp);

impl Recurrence {
    /// Returns the recurrence of a cron expression with five fields.
    ///
    /// # Errors
    /// A [`CalendarError`] of a cron expression.
    pub fn cron(text: &str) -> Result<Self, CalendarError> {
        text.parse().map(Self::Cron)
    }

    /// Returns the recurrence of an interval of 1 minute to 366 days: `90m`, `2h`, `1d`, `1w`, `PT15M`, `hourly`,
    /// `daily` or `weekly`.
    ///
    /// # Errors
    /// A [`CalendarError`] of an interval.
    pub fn every(text: &str) -> Result<Self, CalendarError> {
        text.trim().parse().map(Self::Every)
    }

    /// Returns the recurrence that occurs once: at an RFC 3339 instant, or at a local time of the zone such as
    /// `2026-12-01T08:00`. A local time in a gap means the first instant after it; in an overlap, the first one. `now`
    /// is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`CalendarError::AtUnreadable`], and [`CalendarError::AtPast`] for a time that is not after `now`.
    pub fn at(text: &str, zone: &Zone, now: i64) -> Result<Self, CalendarError> {
        let text = text.trim();
        let at = instant(text).or_else(|| local(text, zone));
        let at = at.ok_or_else(|| CalendarError::AtUnreadable { value: quoted(text) })?;
        if at.as_millisecond() <= now {
            let (at, now) = (zone.local(at.as_millisecond()), zone.local(now));
            return Err(CalendarError::AtPast { value: quoted(text), at, now });
        }
        Ok(Self::At(At(at)))
    }

    /// Returns the recurrence of an interval or of a cron expression, as the text has the form of one.
    ///
    /// # Errors
    /// A [`CalendarError`] of an interval or of a cron expression; [`CalendarError::RecurrenceUnreadable`] if the text
    /// is neither.
    pub fn repeated(text: &str) -> Result<Self, CalendarError> {
        let unreadable = || CalendarError::RecurrenceUnreadable { value: quoted(text) };
        match Self::every(text) {
            Err(CalendarError::IntervalUnreadable { .. }) => match Self::cron(text) {
                Err(CalendarError::CronFieldCount { .. }) => Err(unreadable()),
                cron => cron,
            },
            every => every,
        }
    }

    /// Returns the recurrence that begins at the instant of another one, which occurs once. A recurrence that has a first instant gets
    /// the new one.
    pub fn starting(self, first: &Self) -> Self {
        match (self, first) {
            (Self::From(_, then), Self::At(at)) => Self::From(*at, then),
            (then @ (Self::Cron(_) | Self::Every(_)), Self::At(at)) => Self::From(*at, Box::new(then)),
            (own, _) => own,
        }
    }

    /// Returns the recurrence of a text that people or models write. The text of a cron expression or an interval may end with ` from ` and
    /// a first time. Times have the forms of [`Recurrence::at`], and are after `now`.
    ///
    /// # Errors
    /// A [`CalendarError`] of this kind, or of a time.
    pub fn given(kind: Kind, text: &str, zone: &Zone, now: i64) -> Result<Self, CalendarError> {
        Self::read(kind, text, |text| Self::at(text, zone, now))
    }

    /// Returns the recurrence of a text that [`fmt::Display`] wrote. It takes an instant in the past.
    ///
    /// # Errors
    /// A [`CalendarError`] of this kind.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, CalendarError> {
        Self::read(kind, text, |text| {
            let at = instant(text).ok_or_else(|| CalendarError::AtUnreadable { value: quoted(text) })?;
            Ok(Self::At(At(at)))
        })
    }

    fn read(kind: Kind, text: &str, at: impl Fn(&str) -> Result<Self, CalendarError>) -> Result<Self, CalendarError> {
        let (then, first) = match text.split_once(FROM) {
            Some((then, first)) if kind != Kind::At => (then, Some(at(first)?)),
            Some(_) | None => (text, None),
        };
        let read = match kind {
            Kind::Cron => Self::cron(then)?,
            Kind::Every => Self::every(then)?,
            Kind::At => at(then)?,
        };
        Ok(match first {
            Some(first) => read.starting(&first),
            None => read,
        })
    }

    /// Returns the kind, with which [`Recurrence::parse`] reads the text again.
    pub fn kind(&self) -> Kind {
        match self {
            Self::From(_, then) => then.kind(),
            Self::Cron(_) => Kind::Cron,
            Self::Every(_) => Kind::Every,
            Self::At(_) => Kind::At,
        }
    }
}

impl fmt::Display for Recurrence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron) => cron.fmt(formatter),
            Self::Every(interval) => interval.fmt(formatter),
            Self::At(at) => at.0.fmt(formatter),
            Self::From(first, then) => write!(formatter, "{then}{FROM}{}", first.0),
        }
    }
}

impl Kind {
    /// Returns `cron`, `every` or `at`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cron => "cron",
            Self::Every => "every",
            Self::At => "at",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let known = [Self::Cron, Self::Every, Self::At].into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| CalendarError::UnknownKind { value: quoted(text) })
    }
}

impl At {
    /// Returns the instant in milliseconds since the Unix epoch.
    pub fn instant(self) -> i64 {
        self.0.as_millisecond()
    }
}

/// One wall time.
struct Once(i64);

impl WallTimes for Once {
    fn first_from(&self, wall: i64) -> Option<i64> {
        (wall <= self.0).then_some(self.0)
    }

    fn count(&self, wall: i64, end: i64) -> u64 {
        u64::from((wall..end).contains(&self.0))
    }

    fn counts_twice(&self) -> bool {
        false
    }
}

/// Reads an RFC 3339 instant, in whole milliseconds.
fn instant(text: &str) -> Option<Timestamp> {
    let is_one = has_shape_of_time(text) && text.len() >= INSTANT_BYTES_MIN && text.as_bytes().get(16) == Some(&b':');
    let at: Timestamp = is_one.then(|| text.parse().ok()).flatten()?;
    Timestamp::from_millisecond(at.as_millisecond()).ok()
}

fn local(text: &str, zone: &Zone) -> Option<Timestamp> {
    let is_one = has_shape_of_time(text) && !text.ends_with(['Z', 'z']) && !text[10..].contains(['+', '-']);
    let time: DateTime = is_one.then(|| text.parse().ok()).flatten()?;
    let wall = Offset::UTC.to_timestamp(time).ok()?.as_millisecond();
    let at = wall::next_after(zone, wall.checked_sub(TWO_DAYS_MS)?, &Once(wall))?;
    Timestamp::from_millisecond(at).ok()
}

/// Returns whether a text begins like `2026-12-01T08:00`. The parsers also take shorter forms of ISO 8601, and
/// annotations.
fn has_shape_of_time(text: &str) -> bool {
    let at = |place: usize, letters: &[u8]| text.as_bytes().get(place).is_some_and(|letter| letters.contains(letter));
    (LOCAL_BYTES_MIN..=TIME_BYTES_MAX).contains(&text.len())
        && text.is_ascii()
        && !text.contains('[')
        && at(4, b"-")
        && at(7, b"-")
        && at(10, b"Tt ")
        && at(13, b":")
}
