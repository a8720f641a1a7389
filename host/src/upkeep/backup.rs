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

pub use error::Error;
pub use format::{Header, header};
pub use left::{former_homes, is_left};
pub use make::{Maker, Prepared, discard_left};
pub use put::unpack;
pub use staging::{Scratch, Staging, is_empty};

pub use entry::{HEADS, Totals};

use ironclaw_contract::operator::Backup;
use ironclaw_state::keys::spelled;

/// Returns the description of a backup.
pub fn described(header: &Header, totals: &Totals) -> Backup {
    let created_at = jiff::Timestamp::from_millisecond(header.created_at).unwrap_or_default();
    Backup {
        id: header.shown_id(),
        created_at: format!("{created_at:.0}"),
        key: spelled(header.key),
        generation: header.generation,
        schema: header.schema,
        entries: header.entries,
        files: totals.files,
        bytes: totals.bytes,
        changed: totals.changed,
        skipped: totals.skipped,
    }
}
