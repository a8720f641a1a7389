//! Reads what the operator wrote, strictly: one TOML text, and the nearest known key for one that is unknown.
//!
//! Knows no setting. Next: `config`, `gateway::policy`.

use ironclaw_state::home;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// No file of settings is longer.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Why a file of the operator's is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file says something that is not a setting.
    #[error("{path}: {what}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong: which key, the nearest known one, what would be right.
        what: String,
    },
}

/// The text of a file of the operator's.
///
/// # Errors
/// [`Error::Read`]: it is not there, it cannot be read, or it is no file.
pub fn read(path: &Path) -> Result<String, Error> {
    home::read_text(path, FILE_BYTES_MAX).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Reads one text; `path` is for messages.
///
/// # Errors
/// [`Error::Refused`]: it is no TOML, or not what a `T` is made of.
pub fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| refused(path, explain(&error.to_string())))
}

/// That a file says what it may not.
pub fn refused(path: &Path, what: impl Into<String>) -> Error {
    Error::Refused { path: path.to_owned(), what: what.into() }
}

/// Adds the nearest known key to serde's "unknown field `x`, expected one of `a`, `b`".
fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.split("unknown field `").nth(1).and_then(|rest| rest.split('`').next());
    let Some(unknown) = unknown else { return message.trim_end().to_owned() };
    let nearest = quoted
        .iter()
        .filter(|known| **known != unknown && !known.contains(char::is_whitespace))
        .max_by(|a, b| strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown)));
    match nearest {
        Some(nearest) => format!("{}\nunknown key `{unknown}`: did you mean `{nearest}`?", message.trim_end()),
        None => message.trim_end().to_owned(),
    }
}
