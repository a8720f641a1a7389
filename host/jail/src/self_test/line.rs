//! One line of a proof: what is tried, what ought to come of it, and how what came of it is judged.
//!
//! Nothing is tried here. See [`crate::self_test::sockets`] and its siblings, which hold the lines.

use crate::sys::OneThread;
use crate::sys::bare::Bare;
use crate::{Facts, Spec, Wall};
use ironclaw_contract::operator::Attempt;
use nix::errno::Errno;
use std::io;

/// Surroundings of an attempt: the jail as it was asked for, and what the probe was told of the world outside.
pub(super) struct Scene<'a> {
    pub(super) spec: &'a Spec,
    pub(super) facts: &'a Facts,
    /// The right to fork.
    pub(super) thread: &'a OneThread,
}

/// The observation in words, or the kernel's refusal.
pub(super) type Outcome = io::Result<String>;

/// The errors by which something may be refused, each with the wall that it tells of, the outer wall first.
pub(super) type Refusals = &'static [(Errno, Wall)];

/// Refused by the filters before the kernel looks at an argument.
pub(super) const SECCOMP: Refusals = &[(Errno::EPERM, Wall::Seccomp)];
/// The same for a call that has an older form, which is the one that the filters can see through.
pub(super) const MISSING: Refusals = &[(Errno::ENOSYS, Wall::Seccomp)];
/// There is no such name below the jail's root.
pub(super) const ABSENT: Refusals = &[(Errno::ENOENT, Wall::Root)];

/// Expected result of an attempt.
pub(super) enum Expected {
    /// One of these errors.
    Refused(Refusals),
    /// The attempt works: a jail in which nothing works holds everything.
    Allowed,
    /// Exactly this sight, which is that wall's doing.
    BindMount(String, Wall),
}

/// Whether an attempt is made by a child of the probe, so that what it changes ends with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Child,
    /// By the probe itself, because a child has not everything that it looks at.
    Itself,
}

/// One attempt.
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

/// Makes the line of a sight that has to look like this.
pub(super) fn sight(
    name: impl Into<String>,
    expected: impl Into<String>,
    wall: Wall,
    act: impl Fn(&Scene<'_>) -> Outcome + 'static,
) -> Line {
    let expected = Expected::BindMount(expected.into(), wall);
    Line { group: "", name: name.into(), expected, by: By::Child, act: Box::new(act) }
}

impl Line {
    /// Makes the probe itself look at the result.
    pub(super) fn by_itself(mut self) -> Self {
        self.by = By::Itself;
        self
    }

    /// Returns the report of the line after it was tried.
    pub(super) fn judge(&self, outcome: &Tried) -> Attempt {
        let observed = match outcome {
            Tried::Saw(what) => what.clone(),
            Tried::Refused(errno) => format!("{errno:?}"),
            Tried::Lost(how) => how.clone(),
        };
        let (expected, wall, contained) = match (&self.expected, outcome) {
            (Expected::Allowed, Tried::Saw(_)) => ("allowed".to_owned(), "", true),
            (Expected::Allowed, Tried::Refused(_) | Tried::Lost(_)) => ("allowed".to_owned(), "", false),
            (Expected::BindMount(sight, wall), Tried::Saw(what)) => (sight.clone(), wall.name(), sight == what),
            (Expected::BindMount(sight, wall), Tried::Refused(_) | Tried::Lost(_)) => {
                (sight.clone(), wall.name(), false)
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

/// Returns the wall that should have held first.
fn outer(refusals: Refusals) -> &'static str {
    refusals.first().map_or("", |(_, wall)| wall.name())
}

/// Result of a line.
pub(super) enum Tried {
    /// It worked, and this was seen.
    Saw(String),
    /// The kernel said no.
    Refused(Errno),
    /// The process that tried it did not come back to tell.
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
        let told = |observed: &str, wall: &str, contained| (observed.to_owned(), wall.to_owned(), contained);
        assert_eq!(judged(Tried::Refused(Errno::EPERM)), told("EPERM", "seccomp", true));
        assert_eq!(judged(Tried::Refused(Errno::EACCES)), told("EACCES", "landlock", true));
        assert_eq!(judged(Tried::Refused(Errno::EINVAL)), told("EINVAL", "seccomp", false));
        assert_eq!(judged(Tried::Saw("allowed".into())), told("allowed", "seccomp", false));
        assert_eq!(judged(Tried::Lost("ended by SIGKILL".into())), told("ended by SIGKILL", "seccomp", false));
    }

    #[test]
    fn a_sight_that_is_not_exactly_the_expected_one_is_a_breach() {
        let line = sight("look", "2", Wall::PidNamespace, |_| Ok(String::new()));
        assert!(line.judge(&Tried::Saw("2".into())).contained);
        assert!(!line.judge(&Tried::Saw("12".into())).contained);
        assert!(!line.judge(&Tried::Refused(Errno::EPERM)).contained);
    }
}
