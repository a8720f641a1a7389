//! The parts of every handler: its state, the caller, the body of the request, and the answer.

pub use super::answer::{Answer, Reply};
pub use super::auth::Caller;
pub use super::body::Body;
pub use super::state::Api;
