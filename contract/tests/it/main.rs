//! The seam from outside: both queues through real encrypted files.

mod queues;
