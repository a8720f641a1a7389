//! The failures of a command, and the exit code of each.
//!
//! Never prints: `output::Output::failure` does. See [`crate::output`].

use ironclaw_operator::{Failure, exit};
use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No host listens at the address in the run file, or there is no run file.
    #[error("no host answers at {}", home.display())]
    Unreachable { home: PathBuf },
    /// A host of the home runs, but the run file does not have its address.
    #[error("process {pid} is the host of {}, but run.json does not have its address", home.display())]
    AddressUnknown { home: PathBuf, pid: u32 },
    /// The host took the request, but its answer did not arrive.
    #[error("{message}")]
    Lost { message: String, hint: String },
    /// The host refused the request; the words are its own.
    #[error("{}", .0.error.message)]
    Refused(Failure),
    /// The command line is wrong.
    #[error("{message}")]
    Usage {
        message: String,
        /// The command to type instead; may be empty.
        hint: String,
    },
    /// A failure of `ironctl` itself.
    #[error("{message}")]
    Failed {
        /// Stable word for scripts.
        code: &'static str,
        message: String,
        /// The remedy; may be empty.
        hint: String,
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// Another binary failed with this exit code, and printed the reason itself.
    #[error("a program failed with exit code {0}")]
    Passed(u8),
    /// Standard output could not be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

impl Error {
    /// Creates a failure of `ironctl` itself from a stable word and a sentence.
    pub fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::Failed { code, message: message.into(), hint: String::new(), source: None }
    }

    /// Creates the failure of a wrong command line.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    /// Adds a hint to [`Error::Failed`] or [`Error::Usage`]; ignores it otherwise.
    pub fn hinting(mut self, advice: impl Into<String>) -> Self {
        if let Self::Failed { hint, .. } | Self::Usage { hint, .. } = &mut self {
            *hint = advice.into();
        }
        self
    }

    /// Adds the cause to [`Error::Failed`]; ignores it otherwise.
    pub fn because(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        if let Self::Failed { source, .. } = &mut self {
            *source = Some(cause.into());
        }
        self
    }

    /// Adds to an unreachable or lost host that it keeps the recorded message, for a caller who waits for the answer.
    pub fn while_waiting_for(self, message_id: &str) -> Self {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => Self::Lost {
                message: format!("{self}; {message_id} is kept and will be answered when the host runs again"),
                hint: format!("start it with `ironctl up --detach`; then `ironctl why {message_id}`"),
            },
            other => other,
        }
    }

    /// Returns the exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unreachable { .. } | Self::AddressUnknown { .. } | Self::Lost { .. } => exit::UNREACHABLE,
            Self::Refused(_) | Self::Failed { .. } | Self::Output(_) => exit::FAILED,
            Self::Usage { .. } => exit::USAGE,
            Self::Passed(code) => *code,
        }
    }

    /// Returns the failure to print; `None` if another binary has printed it or stdout is closed.
    pub fn report(&self) -> Option<Failure> {
        let (code, hint) = match self {
            Self::Unreachable { .. } => ("host_unreachable", "start it with `ironctl up --detach`".to_owned()),
            Self::AddressUnknown { pid, .. } => (
                "host_hidden",
                format!(
                    "wait if the host has just started; otherwise stop it with `kill {pid}`, then `ironctl up --detach`"
                ),
            ),
            Self::Lost { hint, .. } => ("host_lost", hint.clone()),
            Self::Refused(failure) => return Some(failure.clone()),
            Self::Usage { hint, .. } => ("usage", hint.clone()),
            Self::Failed { code, hint, .. } => (*code, hint.clone()),
            Self::Passed(_) => return None,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return None,
            Self::Output(_) => ("output", String::new()),
        };
        Some(Failure::new(code, with_causes(self), hint))
    }
}

impl Error {
    /// Returns the sentence with its causes, without the remedy.
    pub fn reason(&self) -> String {
        with_causes(self)
    }
}

/// Returns the sentence followed by its causes: `cannot read /x: permission denied`.
fn with_causes(error: &dyn StdError) -> String {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        sentence.push_str(": ");
        sentence.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_reported_with_its_cause_and_hint() {
        let error = Error::failed("token_unreadable", "cannot read /h/owner.token")
            .because(io::Error::other("permission denied"))
            .hinting("run it as the owner");
        let report = error.report().expect("a failure of ironctl is always reported");
        assert_eq!(report.error.message, "cannot read /h/owner.token: permission denied");
        assert_eq!(report.error.hint, "run it as the owner");
        assert_eq!(error.exit_code(), exit::FAILED);
    }

    #[test]
    fn lost_host_names_the_kept_message() {
        let lost = Error::Lost { message: "no answer from the host at /h".into(), hint: String::new() };
        for error in [lost, Error::Unreachable { home: "/h".into() }] {
            let error = error.while_waiting_for("msg_1");
            let report = error.report().expect("reported").error;
            assert_eq!((error.exit_code(), report.code.as_str()), (exit::UNREACHABLE, "host_lost"));
            assert!(
                report.message.contains("msg_1 is kept") && report.hint.contains("ironctl why msg_1"),
                "{report:?}"
            );
        }
    }

    #[test]
    fn closed_pipe_and_failed_program_are_not_reported() {
        assert!(Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).report().is_none());
        assert!(Error::Passed(7).report().is_none());
        assert_eq!(Error::Passed(7).exit_code(), 7);
    }
}
