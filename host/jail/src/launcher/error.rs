//! Errors of a launch, each with a sentence and a remedy.
//!
//! Decides nothing. See `preflight` of the host, which diagnoses this machine.

use super::wire::{Failure, Part};
use crate::Unfit;
use crate::shortage::Shortage;
use std::io;

/// The reason why a jail was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make the jail of {name}: {why}")]
    Unfit {
        /// Name of the jail.
        name: String,
        /// The fault of the spec.
        why: Unfit,
    },
    /// A step of the launch failed. No process of the jail is left.
    #[error("cannot make the jail of {name}: {}", describe(.failure))]
    Refused {
        /// Name of the jail.
        name: String,
        /// The step, with the kernel's error.
        failure: Failure,
    },
    /// The launcher is gone, and with it every jail.
    #[error("the launcher (process {pid}) is gone")]
    Gone { pid: u32 },
    /// The request does not fit into a message.
    #[error("cannot ask the launcher for the jail of {name}")]
    Request {
        /// Name of the jail.
        name: String,
        source: io::Error,
    },
}

fn describe(failure: &Failure) -> String {
    match failure.errno {
        0 => failure.step.clone(),
        errno => format!("{}: {}", failure.step, nix::errno::Errno::from_raw(errno).desc()),
    }
}

impl Error {
    /// Returns the shortage of the machine that caused the error, if one did.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            // The kernel returns ENOSPC if the number of namespaces is at its bound.
            Self::Refused { failure: Failure { part: Part::Namespaces, errno: libc::ENOSPC, .. }, .. } => {
                Some(Shortage::Processes)
            }
            Self::Refused { failure, .. } => Shortage::from_errno(failure.errno),
            Self::Unfit { .. } | Self::Gone { .. } => None,
            Self::Request { source, .. } => Shortage::find_in(source),
        }
    }

    /// Returns a remedy, if one is known; empty otherwise.
    pub fn remedy(&self) -> &'static str {
        let Self::Refused { failure, .. } = self else {
            return "";
        };
        match (failure.part, failure.errno) {
            (
                Part::Namespaces
                | Part::Ids
                | Part::Network
                | Part::Root
                | Part::Privileges
                | Part::Landlock
                | Part::Seccomp,
                _,
            ) => "run `ironclaw-host preflight`: it tries each part of a jail and reports what this machine lacks",
            (Part::Source, libc::ENOTDIR | libc::ELOOP) => {
                "the source of a mount must be a directory, not a link to one"
            }
            (Part::Source, libc::EACCES) => {
                "each directory above it must be reachable for the user who started the host"
            }
            (Part::Source, libc::EINVAL) => {
                "another file system is mounted below it and would be missing in the jail: grant that directory separately"
            }
            (Part::System, 0) => {
                "run_command needs a host whose /bin, /sbin and /lib* are links into /usr: take it from the agent's tools"
            }
            (Part::System, libc::EINVAL | libc::EPERM | libc::ENODEV) => {
                "packages need overlayfs in a user namespace (Linux 5.11 or newer), and no file system mounted below /usr: \
                 take run_command from the agent's tools, or its packages"
            }
            (Part::System, libc::ENOENT) => "the layer of its packages is gone: install them again",
            (Part::Program, libc::EACCES) => {
                "the program must be readable and executable for the session's host uid, and so must its libraries"
            }
            (Part::Launcher | Part::Source | Part::System | Part::Program | Part::Launch, _) => "",
        }
    }
}
