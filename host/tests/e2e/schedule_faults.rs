//! The faults of schedulers elsewhere, each with a test: missed, doubled, early, silent and falsely successful runs.
//!
//! The host runs with a clock that the test sets. See `schedules`.

pub(crate) mod clocked;
mod ends;
mod times;
