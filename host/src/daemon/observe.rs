//! The log of the daemon for its operator.
//!
//! Holds ids and reasons, never content, arguments, keys or tokens. See [`crate::daemon`].

use ironclaw_state::home::{self, Home};
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// A log file of this size is moved aside, at a start and during a run. One older file is kept.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

ironclaw_operator::settings! {
    /// `[log]`
    pub struct Config for log {
        /// The least severe level that the log records.
        level: Level = Level::Info, OneOf(&["error", "warn", "info", "debug"]), Live;
        /// The format of the log, for people or for programs.
        format: Format = Format::Text, OneOf(&["text", "json"]), Restart;
    }
}

/// The least severe level that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// The format of the log, for people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Format {
    Text,
    Json,
}

impl Level {
    /// Returns the filter for lines of our own crates, because a library may log values that it handles.
    fn filter(self) -> Targets {
        let level = match self {
            Self::Error => tracing::Level::ERROR,
            Self::Warn => tracing::Level::WARN,
            Self::Info => tracing::Level::INFO,
            Self::Debug => tracing::Level::DEBUG,
        };
        Targets::new().with_target("ironclaw", level)
    }
}

/// The level of the running log.
pub struct LogLevel(reload::Handle<Targets, Registry>);

impl LogLevel {
    /// Replaces the level for all later lines.
    pub fn set(&self, level: Level) {
        // This fails only if the log is gone, and then there is no place for a message.
        let _ = self.0.reload(level.filter());
    }
}

/// Starts logging to the home's log file and to standard error.
///
/// # Errors
/// When the log file cannot be opened.
pub fn start(config: &Config, home: &Home) -> Result<LogLevel, home::Error> {
    let path = home.log();
    let file = LogFile::open(&path, LOG_BYTES_MAX).map_err(|error| home::Error::Damaged {
        path,
        what: format!("cannot be written: {error}"),
        remedy: "move it away; the host creates a new one",
    })?;
    let (ours, level) = reload::Layer::new(config.level.filter());
    // Without a terminal, standard error is a file for last words. A second copy of the log only goes to a terminal or a journal.
    let writer = match stderr_is_a_file() {
        true => BoxMakeWriter::new(Mutex::new(file)),
        false => BoxMakeWriter::new(Mutex::new(file).and(std::io::stderr)),
    };
    // A line that cannot be written is lost. A message about it on a standard error on the same full disk would panic.
    let lines = fmt::layer().with_target(false).with_ansi(false).with_writer(writer).log_internal_errors(false);
    match config.format {
        Format::Text => tracing_subscriber::registry().with(lines.with_filter(ours)).init(),
        Format::Json => tracing_subscriber::registry().with(lines.json().with_filter(ours)).init(),
    }
    Ok(LogLevel(level))
}

/// A log file that is moved aside once it is large.
struct LogFile {
    file: File,
    path: PathBuf,
    bytes: u64,
    bytes_max: u64,
}

impl LogFile {
    fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        // Non-blocking: a pipe at this path may have no other end.
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut log = Self { file, path: path.to_owned(), bytes: found.len(), bytes_max };
        if log.bytes > bytes_max {
            log.set_aside()?;
        }
        Ok(log)
    }

    fn set_aside(&mut self) -> io::Result<()> {
        std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
        let fresh = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        (self.file, self.bytes) = (fresh, 0);
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.bytes + line.len() as u64 > self.bytes_max && self.bytes > 0 {
            // If that fails, the old file continues, with another attempt after as many bytes again.
            if self.set_aside().is_err() {
                self.bytes = 0;
            }
        }
        let written = self.file.write(line)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn stderr_is_a_file() -> bool {
    use nix::sys::stat::{SFlag, fstat};
    fstat(std::io::stderr()).is_ok_and(|found| found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn large_log_is_moved_aside_during_a_run() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("host.log");
        let mut log = LogFile::open(&path, 20).expect("opened");
        for line in ["first line\n", "second line\n", "third line\n"] {
            log.write_all(line.as_bytes()).expect("written");
        }
        let read = |path: &Path| fs::read_to_string(path).expect("there");
        assert_eq!(
            (read(&path).as_str(), read(&path.with_extension("log.1")).as_str()),
            ("third line\n", "second line\n")
        );
        drop(log);
        // A file that is large at a start is moved aside then.
        fs::write(&path, "x".repeat(30)).expect("written");
        LogFile::open(&path, 20).expect("opened").write_all(b"fresh\n").expect("written");
        assert_eq!((read(&path).as_str(), read(&path.with_extension("log.1")).len()), ("fresh\n", 30));
    }

    #[test]
    fn a_pipe_in_the_place_of_the_log_is_refused_at_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("host.log");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("made");
        LogFile::open(&path, 20).err().expect("it is not a file");
    }
}
