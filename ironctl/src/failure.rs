//! Every way in which a command can end without having done its work, and the exit code of each.
//!
//! Never prints: `output::Output::failure` does. See [`crate::output`].

use ironclaw_contract::operator::{Failure, exit};
use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

/// The reason that a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No host listens where the home says that one does.
    #[error("no host answers at {}", home.display())]
    Unreachable {
        /// The home that was asked.
        home: PathBuf,
    },
    /// A host runs on the home, and the home does not say where it listens.
    #[error("process {pid} runs on {}, and its run.json does not say where it listens", home.display())]
    Hidden {
        /// The home that was asked.
        home: PathBuf,
        /// The host.
        pid: u32,
    },
    /// A host took the request and then fell silent or went away.
    #[error("{message}")]
    Lost {
        /// A sentence that names the host.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// The host said no, in its own words.
    #[error("{}", .0.error.message)]
    Refused(Failure),
    /// The command line asks for something that makes no sense.
    #[error("{message}")]
    Usage {
        /// The fault.
        message: String,
        /// The command to type instead; may be empty.
        hint: String,
    },
    /// A failure on this side.
    #[error("{message}")]
    Failed {
        /// Stable word for scripts.
        code: &'static str,
        /// A sentence that names the object.
        message: String,
        /// The remedy; may be empty.
        hint: String,
        /// The cause.
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// A sibling binary ended with this code, after saying why itself.
    #[error("a sibling ended with exit code {0}")]
    Passed(u8),
    /// Standard output could not be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

impl Error {
    /// Makes a failure on this side, with its stable word and a sentence.
    pub fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::Failed { code, message: message.into(), hint: String::new(), source: None }
    }

    /// Makes the failure of a command line that asks for something that makes no sense.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    /// Adds what to do about it; only [`Error::Failed`] and [`Error::Usage`] take it.
    pub fn hinting(mut self, advice: impl Into<String>) -> Self {
        if let Self::Failed { hint, .. } | Self::Usage { hint, .. } = &mut self {
            *hint = advice.into();
        }
        self
    }

    /// Adds the cause; only [`Error::Failed`] takes one.
    pub fn because(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        if let Self::Failed { source, .. } = &mut self {
            *source = Some(cause.into());
        }
        self
    }

    /// Converts a failure while the answer to a recorded message was waited for: a host that is gone keeps the message.
    pub fn while_waiting_for(self, message_id: &str) -> Self {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => Self::Lost {
                message: format!("{self}; {message_id} is kept, and is answered once the host runs again"),
                hint: format!("start it with `ironctl up --detach`; then `ironctl why {message_id}`"),
            },
            other => other,
        }
    }

    /// Returns the code that the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unreachable { .. } | Self::Hidden { .. } | Self::Lost { .. } => exit::UNREACHABLE,
            Self::Refused(_) | Self::Failed { .. } | Self::Output(_) => exit::FAILED,
            Self::Usage { .. } => exit::USAGE,
            Self::Passed(code) => *code,
        }
    }

    /// Returns the failure for a person or a script; `None` when there is no one left to tell.
    pub fn told(&self) -> Option<Failure> {
        let (code, hint) = match self {
            Self::Unreachable { .. } => ("host_unreachable", "start it with `ironctl up --detach`".to_owned()),
            Self::Hidden { pid, .. } => (
                "host_hidden",
                format!("wait if it was started just now; `kill {pid}` stops it in order, then `ironctl up --detach`"),
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

/// Returns the sentence with its causes behind it: `cannot read /x: permission denied`.
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
    fn a_failure_is_told_with_its_cause_and_its_hint() {
        let error = Error::failed("token_unreadable", "cannot read /h/owner.token")
            .because(io::Error::other("permission denied"))
            .hinting("run it as the owner");
        let told = error.told().expect("a failure on this side is always told");
        assert_eq!(told.error.message, "cannot read /h/owner.token: permission denied");
        assert_eq!(told.error.hint, "run it as the owner");
        assert_eq!(error.exit_code(), exit::FAILED);
    }

    #[test]
    fn lost_host_names_the_message_that_it_keeps() {
        let lost = Error::Lost { message: "the host at /h went silent".into(), hint: String::new() };
        for error in [lost, Error::Unreachable { home: "/h".into() }] {
            let error = error.while_waiting_for("msg_1");
            let told = error.told().expect("told").error;
            assert_eq!((error.exit_code(), told.code.as_str()), (exit::UNREACHABLE, "host_lost"));
            assert!(told.message.contains("msg_1 is kept") && told.hint.contains("ironctl why msg_1"), "{told:?}");
        }
    }

    #[test]
    fn closed_pipe_and_sibling_failure_are_not_reported() {
        assert!(Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).told().is_none());
        assert!(Error::Passed(7).told().is_none());
        assert_eq!(Error::Passed(7).exit_code(), 7);
    }
}
