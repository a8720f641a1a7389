//! The log: what the daemon tells its operator about itself.
//!
//! Never holds content, arguments, keys or tokens; ids and reasons only. Next: `daemon`.

use crate::home::Home;
use serde::Deserialize;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Mutex;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt};

/// A log file of this size is set aside at the next start; one older file is kept.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// `[log]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much is told.
    pub level: Level,
    /// For people or for machines.
    pub format: Format,
}

impl Default for Config {
    fn default() -> Self {
        Self { level: Level::Info, format: Format::Text }
    }
}

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// For people or for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Format {
    Text,
    Json,
}

/// Starts logging to the home's log file and to standard error.
///
/// # Errors
/// When the log file cannot be opened.
pub fn start(config: &Config, home: &Home) -> std::io::Result<()> {
    let path = home.log();
    if std::fs::metadata(&path).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
        std::fs::rename(&path, path.with_extension("log.1"))?;
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    let level = match config.level {
        Level::Error => tracing::Level::ERROR,
        Level::Warn => tracing::Level::WARN,
        Level::Info => tracing::Level::INFO,
        Level::Debug => tracing::Level::DEBUG,
    };
    // Only our own lines: what a library logs may hold what it was given.
    let filter = tracing_subscriber::EnvFilter::new(format!("off,ironclaw_host={level}"));
    // Detached, standard error is a file that keeps last words; a second copy of the log is for a terminal or a journal.
    let writer = match stderr_is_a_file() {
        true => BoxMakeWriter::new(Mutex::new(file)),
        false => BoxMakeWriter::new(Mutex::new(file).and(std::io::stderr)),
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(false).with_writer(writer);
    // A line that cannot be written is lost. Complaining about it to a standard error on the same full disk would be a panic.
    let log = log.log_internal_errors(false);
    match config.format {
        Format::Text => log.init(),
        Format::Json => log.json().init(),
    }
    Ok(())
}

fn stderr_is_a_file() -> bool {
    use nix::sys::stat::{SFlag, fstat};
    fstat(std::io::stderr()).is_ok_and(|found| found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits())
}
