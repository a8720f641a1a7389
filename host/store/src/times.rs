//! Lengths of time in milliseconds.

pub const HOUR_MS: i64 = 3_600_000;

pub const DAY_MS: i64 = 24 * HOUR_MS;
