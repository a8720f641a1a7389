//! The places of this machine that name its time zone: the environment of the host, and two files.
//!
//! Decides nothing. See [`ironclaw_calendar::MachineZone`].

use ironclaw_calendar::{Localtime, Sources};
use std::path::Path;

/// The file with the zone of the machine.
const LOCALTIME: &str = "/etc/localtime";

/// The file with the name of the zone, on machines of the Debian family.
const NAME_FILE: &str = "/etc/timezone";

/// Bytes of the file with the zone of the machine. Real ones have a few thousand.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Reads the environment of this process and the files of this machine.
pub(super) fn read() -> Sources {
    let path = Path::new(LOCALTIME);
    let localtime = match (std::fs::read_link(path), std::fs::metadata(path)) {
        // A link to a file that is missing names no rules.
        (Ok(target), Ok(_)) => Localtime::Link(target),
        (Err(_), Ok(found)) if found.is_file() && found.len() <= FILE_BYTES_MAX => {
            std::fs::read(path).map_or(Localtime::Missing, Localtime::Copy)
        }
        (_, _) => Localtime::Missing,
    };
    Sources { variable: std::env::var("TZ").ok(), localtime, name_file: std::fs::read_to_string(NAME_FILE).ok() }
}
