//! Kept versions of the files of a workspace, so that a person can undo what a contained tool overwrote or deleted.
//!
//! The agent may change its workspace at any moment, so the copies are in a directory that only the host reaches, and each file is
//! opened as in [`crate::sessions::files`]. The host takes them before a call; see `crate::calls::model_socket::versions`.

mod history;
mod index;
mod limits;
mod restore;
mod store;
mod take;
#[cfg(test)]
mod tests;
mod walk;

pub use history::{History, Kept, history};
pub use limits::COPY_TIME_MAX;
pub use restore::{Restoring, Wanted, restoring};
pub use store::Store;
pub use take::{Run, take};
