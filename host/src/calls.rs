//! The calls of a model: judged, and run.

pub mod executor;
pub mod model_socket;
pub mod report;
pub mod supposition;
