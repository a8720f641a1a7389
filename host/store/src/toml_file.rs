//! Strict reading of the operator's TOML files, with the nearest known key for an unknown one.
//!
//! Knows no setting itself. See `daemon::config`, `registry::policy`.

use ironclaw_state::home;
use ironclaw_text::nearest::nearest;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Bytes of the longest file.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The reason that an operator's file is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// The file has content that is no valid setting.
    #[error("{path}: {what}")]
    Refused {
        path: PathBuf,
        /// The mistake: the key, the nearest known one, and the accepted values.
        what: String,
    },
}

/// Reads an operator's file.
///
/// # Errors
/// [`Error::Read`]: it is missing, unreadable, or not a file.
pub fn read(path: &Path) -> Result<String, Error> {
    home::read_text(path, FILE_BYTES_MAX).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Parses a text; `path` is for messages.
///
/// # Errors
/// [`Error::Refused`]: it is not TOML, or does not match `T`.
pub fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| refused(path, explain(&error.to_string())))
}

/// Returns the error for a file with a mistake.
pub fn refused(path: &Path, what: impl Into<String>) -> Error {
    Error::Refused { path: path.to_owned(), what: what.into() }
}

/// Returns the number of the line that has a key or the heading of a table, by its full name such as `kind.persona.approvals`.
pub fn line_of(text: &str, full_name: &str) -> Option<usize> {
    let mut table = "";
    for (number, line) in text.lines().map(str::trim).enumerate() {
        let is_it = if let Some(heading) = line.strip_prefix('[') {
            table = heading.split(']').next().unwrap_or_default().trim();
            table == full_name
        } else {
            let key = line.split('=').next().unwrap_or_default().trim();
            match full_name.strip_prefix(table).map(|rest| rest.strip_prefix('.').unwrap_or(rest)) {
                Some(rest) if !key.is_empty() => key == rest,
                _ => false,
            }
        };
        if is_it {
            return Some(number + 1);
        }
    }
    None
}

/// Adds the number of the line that has a key to a sentence about it.
pub fn at_line(text: &str, full_name: &str, what: String) -> String {
    match line_of(text, full_name) {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

/// Adds the remedy for a second table or key. Adds the nearest known key to serde's "unknown field `x`, expected one of `a`, `b`".
fn explain(message: &str) -> String {
    if message.contains("duplicate key") {
        let remedy = "the file has this table or key above: edit it there, and remove the second one";
        return format!("{}\n{remedy}", message.trim_end());
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.split("unknown field `").nth(1).and_then(|rest| rest.split('`').next());
    let Some(unknown) = unknown else { return message.trim_end().to_owned() };
    let known = quoted.into_iter().filter(|known| *known != unknown && !known.contains(char::is_whitespace));
    match nearest(unknown, known, 0.0) {
        Some(nearest) => format!("{}\nunknown key `{unknown}`: did you mean `{nearest}`?", message.trim_end()),
        None => message.trim_end().to_owned(),
    }
}

/// Returns whether there is nothing to read: no file, or an empty one.
pub fn is_absent(path: &Path) -> bool {
    match read(path) {
        Ok(text) => text.trim().is_empty(),
        Err(_) => !path.exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_table_are_found_by_their_line() {
        let text =
            "kind.wiring.approvals = 2\n[default]\n# approvals = 1\n approvals=3 # more\n[kind.persona]\nroles = []\n";
        for (name, line) in [
            ("kind.wiring.approvals", Some(1)),
            ("default.approvals", Some(4)),
            ("kind.persona", Some(5)),
            ("kind.persona.roles", Some(6)),
            ("kind.persona.approvals", None),
            ("approvals", None),
        ] {
            assert_eq!(line_of(text, name), line, "{name}");
        }
    }
}
