//! The seam from outside: both queues through real encrypted files, and everything about it that is frozen.

mod canonical;
mod frozen;
mod golden;
mod kinds;
mod queues;
mod refusals;
