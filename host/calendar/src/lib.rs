//! Time zones, recurrences, and the instants at which a schedule is due.
//!
//! Never reads a clock and never waits: each function gets its instants, in milliseconds since the Unix epoch. It reads
//! the time zone data of the machine, and data in the program for zones that the machine lacks. See
//! [`Series::next_after`].

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

mod cron;
mod error;
mod interval;
mod machine;
mod recurrence;
mod series;
mod wall;
mod zone;

pub use cron::Cron;
pub use error::CalendarError;
pub use interval::Interval;
pub use machine::{Doubt, Localtime, MachineZone, Sources};
pub use recurrence::{At, Kind, Recurrence};
pub use series::Series;
pub use zone::Zone;
