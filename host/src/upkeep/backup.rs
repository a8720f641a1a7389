//! Backups: one encrypted file with everything that a home needs to continue, except its master key.
//!
//! Reads and writes the files of a home, and never a queue. A restored record begins another generation by itself, because its copy is
//! marked from the beginning. See [`ironclaw_state::backup`] and `daemon::command::backup`.

mod entry;
mod error;
mod format;
mod left;
mod make;
mod put;
mod staging;
mod tree;

pub use entry::HEADS;
pub use error::Error;
pub use format::header;
pub use left::{former_homes, is_left};
pub use make::{Maker, Prepared, described, discard_left};
pub use put::unpack;
pub use staging::{Scratch, Staging, is_empty};
