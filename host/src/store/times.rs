//! Lengths of time in milliseconds.

/// An hour.
pub const HOUR_MS: i64 = 3_600_000;

/// A day.
pub const DAY_MS: i64 = 24 * HOUR_MS;
