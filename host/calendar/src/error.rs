//! The refusals of the calendar, each with a code and with the text to write in its place.

use thiserror::Error;

/// A text that is no time zone, no recurrence, or a time in the past. Messages quote at most 64 characters of the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CalendarError {
    /// The time zone database has no zone of this name.
    #[error("unknown time zone {value}: write an IANA name such as {near}")]
    UnknownZone {
        value: String,
        /// The name of a zone that is near, or an example.
        near: String,
    },
    /// The kind of a recurrence is not one of three.
    #[error("unknown kind of recurrence {value}: write cron, every or at")]
    UnknownKind { value: String },
    /// A cron expression does not have five fields.
    #[error(
        "cron expression {value} has {count} fields: write five (minute, hour, day of month, month, day of week), such as \
         \"0 8 * * mon-fri\""
    )]
    CronFieldCount {
        value: String,
        /// The number of its fields.
        count: usize,
    },
    /// A cron expression is longer than its bound.
    #[error("cron expression {value} has over {max} bytes: write ranges or steps such as */5")]
    CronTooLong { value: String, max: usize },
    /// A field of a cron expression has a question mark.
    #[error("cron field {field}: \"?\" has no meaning here: write \"*\"")]
    CronQuestionMark {
        /// The name of the field.
        field: &'static str,
    },
    /// A part of a field of a cron expression cannot be read.
    #[error(
        "cron field {field}: {value} cannot be read: write \"*\", a value from {low} to {high}, a range such as {low}-{high}, a step \
         such as */2, or a list of them with commas"
    )]
    CronField {
        /// The name of the field.
        field: &'static str,
        value: String,
        /// The lowest value of the field.
        low: u32,
        /// The highest value of the field.
        high: u32,
    },
    /// No day has the day of month and the month of a cron expression.
    #[error(
        "cron expression {value} never matches, because its months do not have such a day: write another day or month"
    )]
    CronNever { value: String },
    /// An interval cannot be read.
    #[error(
        "interval {value} cannot be read: write a number with m, h, d or w such as 90m, or hourly, daily or weekly"
    )]
    IntervalUnreadable { value: String },
    /// An interval has months, years, seconds or smaller units.
    #[error(
        "interval {value} has a unit other than minutes, hours, days and weeks: write whole minutes such as 90m, or for months a cron \
         expression such as \"0 8 1 * *\""
    )]
    IntervalUnit { value: String },
    /// An interval has days or weeks and also hours or minutes.
    #[error("interval {value} mixes days and hours: write days alone (2d) or hours alone (36h)")]
    IntervalMixed { value: String },
    /// An interval is shorter than a minute, or negative.
    #[error("interval {value} is shorter than a minute: write at least 1m")]
    IntervalTooShort { value: String },
    /// An interval is longer than its bound.
    #[error("interval {value} is longer than 366 days: write at most 366d, or a cron expression such as \"0 8 1 1 *\"")]
    IntervalTooLong { value: String },
    /// A text is neither an interval nor a cron expression.
    #[error(
        "recurrence {value} cannot be read: write hourly, daily, weekly, an interval such as 90m, or a cron expression such as \
         \"0 8 * * mon-fri\""
    )]
    RecurrenceUnreadable { value: String },
    /// A time is neither an RFC 3339 instant nor a local time.
    #[error(
        "time {value} cannot be read: write a local time such as 2026-12-01T08:00, or an instant such as 2026-12-01T08:00:00Z"
    )]
    AtUnreadable { value: String },
    /// A time is not after the present.
    #[error("time {value} is {at}, which is in the past: write a time after {now}")]
    AtPast {
        value: String,
        /// The time in its zone.
        at: String,
        /// The present in the same zone.
        now: String,
    },
}

impl CalendarError {
    /// Returns the code: lower-case words with underscores. It does not change when the sentence does.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownZone { .. } => "unknown_zone",
            Self::UnknownKind { .. } => "unknown_kind",
            Self::CronFieldCount { .. } => "cron_field_count",
            Self::CronTooLong { .. } => "cron_too_long",
            Self::CronQuestionMark { .. } => "cron_question_mark",
            Self::CronField { .. } => "cron_field",
            Self::CronNever { .. } => "cron_never",
            Self::IntervalUnreadable { .. } => "interval_unreadable",
            Self::IntervalUnit { .. } => "interval_unit",
            Self::IntervalMixed { .. } => "interval_mixed",
            Self::IntervalTooShort { .. } => "interval_too_short",
            Self::IntervalTooLong { .. } => "interval_too_long",
            Self::RecurrenceUnreadable { .. } => "recurrence_unreadable",
            Self::AtUnreadable { .. } => "at_unreadable",
            Self::AtPast { .. } => "at_past",
        }
    }
}
