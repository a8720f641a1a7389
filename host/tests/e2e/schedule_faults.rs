//! The faults of schedulers elsewhere, each with a test: missed, doubled, early, silent and falsely successful runs.
//!
//! The host runs with a clock that the test sets. See `schedules` for the policies of passed times and for a host that is
//! killed at a run, and `chaos::schedules` for many restarts.

pub(crate) mod clocked;
mod ends;
mod jumps;
mod times;
mod told;
