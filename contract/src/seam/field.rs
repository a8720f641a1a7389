//! Checks of the length of a single field, and of the entries of a list.
//!
//! Never knows a kind of change: see `bounds`.

use super::limits::{ENTRIES_MAX, NAME_BYTES_MAX};

/// Refuses a text that is not 1 to `max` bytes.
pub(super) fn text(field: &str, value: &str, max: usize) -> Result<(), String> {
    if (1..=max).contains(&value.len()) { Ok(()) } else { Err(format!("{field} must be 1 to {max} bytes")) }
}

/// Checks a list of names, each once.
pub(super) fn names(what: &str, list: &[String]) -> Result<(), String> {
    each_once(list, "entries in a list", what, "has a name of", NAME_BYTES_MAX)
}

/// Refuses more than [`ENTRIES_MAX`] entries, an entry that is not 1 to `max` bytes, and a duplicate. `many`, `one` and `is` are
/// words for the sentence.
pub(super) fn each_once(list: &[String], many: &str, one: &str, is: &str, max: usize) -> Result<(), String> {
    if list.len() > ENTRIES_MAX {
        return Err(format!("at most {ENTRIES_MAX} {many}"));
    }
    for (at, entry) in list.iter().enumerate() {
        if !(1..=max).contains(&entry.len()) {
            return Err(format!("{one} {is} 1 to {max} bytes"));
        }
        if list[..at].contains(entry) {
            return Err(format!("{one} is listed twice"));
        }
    }
    Ok(())
}
