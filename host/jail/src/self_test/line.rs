//! One line of a proof: an attempt, its expected result, and the judgement of its outcome.
//!
//! This module makes no attempt. See [`crate::self_test::sockets`] and its siblings, which have the lines.

use crate::sys::OneThread;
use crate::sys::bare::Bare;
use crate::{Facts, Spec, Wall};
use ironclaw_operator::Attempt;
use nix::errno::Errno;
use std::io;

/// Inputs of an attempt: the spec of the jail, and the host's facts for the probe.
pub(super) struct Scene<'a> {
    pub(super) spec: &'a Spec,
    pub(super) facts: &'a Facts,
    /// The right to fork.
    pub(super) thread: &'a OneThread,
}

/// The observation in words, or the kernel's refusal.
pub(super) type Outcome = io::Result<String>;

/// The errors with which an attempt may be refused, each with the wall that causes it, the outer wall first.
pub(super) type Refusals = &'static [(Errno, Wall)];

/// The filters refuse the call before the kernel reads an argument.
pub(super) const SECCOMP: Refusals = &[(Errno::EPERM, Wall::Seccomp)];
/// The same for a call with an older form whose arguments the filters can read.
pub(super) const MISSING: Refusals = &[(Errno::ENOSYS, Wall::Seccomp)];
/// The name does not exist below the jail's root.
pub(super) const ABSENT: Refusals = &[(Errno::ENOENT, Wall::Root)];

/// Expected result of an attempt.
pub(super) enum Expected {
    /// One of these errors.
    Refused(Refusals),
    /// The attempt works. Without such lines, a jail in which nothing works would pass.
    Allowed,
    /// Exactly this observation, which the wall causes.
    Observed(String, Wall),
}

/// The process that makes an attempt: a child of the probe, so that its effects end with it, or the probe itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Child,
    /// The probe itself, because a child lacks part of the state that the attempt looks at.
    Itself,
}

pub(super) struct Line {
    pub(super) group: &'static str,
    pub(super) name: String,
    pub(super) expected: Expected,
    pub(super) by: By,
    pub(super) act: Box<dyn Fn(&Scene<'_>) -> Outcome>,
}

/// Makes the line of an attempt that has to be refused.
pub(super) fn refused<T>(
    name: impl Into<String>,
    refusals: Refusals,
    act: impl Fn(&Scene<'_>) -> io::Result<T> + 'static,
) -> Line {
    let act = move |scene: &Scene<'_>| act(scene).map(|_| "allowed".to_owned());
    Line { group: "", name: name.into(), expected: Expected::Refused(refusals), by: By::Child, act: Box::new(act) }
}

/// Makes the line of a bare system call that has to be refused.
pub(super) fn bare(call: Bare, refusals: Refusals) -> Line {
    refused(call.name, refusals, move |_| call.make())
}

/// Makes the line of an attempt that has to work.
pub(super) fn allowed(name: impl Into<String>, act: impl Fn(&Scene<'_>) -> io::Result<()> + 'static) -> Line {
    let act = move |scene: &Scene<'_>| act(scene).map(|()| "allowed".to_owned());
    Line { group: "", name: name.into(), expected: Expected::Allowed, by: By::Child, act: Box::new(act) }
}

/// Makes the line of an observation that must be exactly `expected`.
pub(super) fn observation(
    name: impl Into<String>,
    expected: impl Into<String>,
    wall: Wall,
    act: impl Fn(&Scene<'_>) -> Outcome + 'static,
) -> Line {
    let expected = Expected::Observed(expected.into(), wall);
    Line { group: "", name: name.into(), expected, by: By::Child, act: Box::new(act) }
}

impl Line {
    /// Lets the probe itself make the attempt.
    pub(super) fn by_itself(mut self) -> Self {
        self.by = By::Itself;
        self
    }

    pub(super) fn judge(&self, outcome: &Tried) -> Attempt {
        let observed = match outcome {
            Tried::Saw(what) => what.clone(),
            Tried::Refused(errno) => format!("{errno:?}"),
            Tried::Lost(how) => how.clone(),
        };
        let (expected, wall, contained) = match (&self.expected, outcome) {
            (Expected::Allowed, Tried::Saw(_)) => ("allowed".to_owned(), "", true),
            (Expected::Allowed, Tried::Refused(_) | Tried::Lost(_)) => ("allowed".to_owned(), "", false),
            (Expected::Observed(expected, wall), Tried::Saw(what)) => (expected.clone(), wall.name(), expected == what),
            (Expected::Observed(expected, wall), Tried::Refused(_) | Tried::Lost(_)) => {
                (expected.clone(), wall.name(), false)
            }
            (Expected::Refused(refusals), Tried::Refused(errno)) => {
                let held = refusals.iter().find(|(refusal, _)| refusal == errno).map(|(_, wall)| *wall);
                ("refused".to_owned(), held.map_or_else(|| outer(refusals), Wall::name), held.is_some())
            }
            (Expected::Refused(refusals), Tried::Saw(_) | Tried::Lost(_)) => {
                ("refused".to_owned(), outer(refusals), false)
            }
        };
        let (group, name) = (self.group.to_owned(), self.name.clone());
        Attempt { group, name, expected, observed, wall: wall.to_owned(), contained }
    }
}

/// Returns the outer wall, which is the first that should refuse.
fn outer(refusals: Refusals) -> &'static str {
    refusals.first().map_or("", |(_, wall)| wall.name())
}

/// Outcome of an attempt.
pub(super) enum Tried {
    /// The attempt worked, with this observation.
    Saw(String),
    /// The kernel refused the attempt.
    Refused(Errno),
    /// The process of the attempt did not report.
    Lost(String),
}

impl From<Outcome> for Tried {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(what) => Self::Saw(what),
            Err(error) => match error.raw_os_error() {
                Some(errno) => Self::Refused(Errno::from_raw(errno)),
                None => Self::Lost(error.to_string()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_error_of_a_wall_that_was_named_is_contained() {
        const TWO: Refusals = &[(Errno::EPERM, Wall::Seccomp), (Errno::EACCES, Wall::Landlock)];
        let line = refused("try", TWO, |_| Ok(()));
        let judged = |tried: Tried| {
            let attempt = line.judge(&tried);
            (attempt.observed, attempt.wall, attempt.contained)
        };
        let judgement = |observed: &str, wall: &str, contained| (observed.to_owned(), wall.to_owned(), contained);
        assert_eq!(judged(Tried::Refused(Errno::EPERM)), judgement("EPERM", "seccomp", true));
        assert_eq!(judged(Tried::Refused(Errno::EACCES)), judgement("EACCES", "landlock", true));
        assert_eq!(judged(Tried::Refused(Errno::EINVAL)), judgement("EINVAL", "seccomp", false));
        assert_eq!(judged(Tried::Saw("allowed".into())), judgement("allowed", "seccomp", false));
        assert_eq!(judged(Tried::Lost("ended by SIGKILL".into())), judgement("ended by SIGKILL", "seccomp", false));
    }

    #[test]
    fn inexact_observation_is_a_breach() {
        let line = observation("look", "2", Wall::PidNamespace, |_| Ok(String::new()));
        assert!(line.judge(&Tried::Saw("2".into())).contained);
        assert!(!line.judge(&Tried::Saw("12".into())).contained);
        assert!(!line.judge(&Tried::Refused(Errno::EPERM)).contained);
    }
}
