//! The seam from outside: both queues through real encrypted files, and all frozen parts.

mod canonical;
mod frozen;
mod golden;
mod kinds;
mod queues;
mod refusals;
