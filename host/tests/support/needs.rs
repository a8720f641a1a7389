//! What tests need beyond a machine that compiles this project: programs of the system, and the rights of root.
//!
//! `.ci/needs` lists both with their tests, and `.ci/test` leaves out the tests of a missing program or right. See
//! `ops::test_command`, which holds the list and the sources together.

use std::path::{Path, PathBuf};

/// The list of programs and tests.
const LIST: &str = include_str!("../../../.ci/needs");

/// The directory in which the host and its jails look for programs of the machine.
const OF_THE_MACHINE: &str = "/usr/bin";

/// A program of the list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Program<'a> {
    pub(crate) name: &'a str,
    /// The package of Debian that has it.
    pub(crate) package: &'a str,
    /// Whether the host or a jail runs it: then it is in [`OF_THE_MACHINE`].
    is_of_the_machine: bool,
}

/// A test of the list, with the names of its programs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Test<'a> {
    pub(crate) name: &'a str,
    pub(crate) programs: Vec<&'a str>,
}
pub(crate) fn programs() -> Vec<Program<'static>> {
    let of = |words: Vec<&'static str>| match words[..] {
        ["program", name, package] => Some(Program { name, package, is_of_the_machine: false }),
        ["program", name, package, OF_THE_MACHINE] => Some(Program { name, package, is_of_the_machine: true }),
        _ => None,
    };
    lines().filter_map(of).collect()
}
pub(crate) fn tests() -> Vec<Test<'static>> {
    let of = |words: Vec<&'static str>| match words[..] {
        ["test", name, ref programs @ ..] => Some(Test { name, programs: programs.to_vec() }),
        _ => None,
    };
    lines().filter_map(of).collect()
}

/// Returns the names of the tests that only root can run.
pub(crate) fn tests_of_root() -> Vec<&'static str> {
    let of = |words: Vec<&'static str>| match words[..] {
        ["root", name] => Some(name),
        _ => None,
    };
    lines().filter_map(of).collect()
}

/// Returns the words of each line that is no comment.
pub(crate) fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    LIST.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| line.split_whitespace().collect())
}

/// Fails, with the remedy, without this program. Fails also if the list does not say that the current test needs it.
#[track_caller]
pub(crate) fn needs(name: &str) {
    if let Some(test) = current_test() {
        let is_listed = tests().iter().any(|listed| listed.name == test && listed.programs.contains(&name));
        assert!(is_listed, "this test needs {name}: add it to the line `test {test}` of .ci/needs");
    }
    let program = programs().into_iter().find(|program| program.name == name).expect("a program of .ci/needs");
    assert!(
        program.is_there(),
        "{name} is missing: install it with `apt-get install {}`, or run .ci/test, which does so or leaves this test out",
        program.package
    );
}

/// Fails, with the remedy, for an ordinary user. Fails also if the list does not say that only root can run the current test.
#[track_caller]
pub(crate) fn needs_root() {
    if let Some(test) = current_test() {
        assert!(
            tests_of_root().contains(&test.as_str()),
            "only root can run this test: add the line `root {test}` to .ci/needs"
        );
    }
    assert!(
        nix::unistd::geteuid().is_root(),
        "only root can run this test: run it as root, or run .ci/test, which leaves it out for another user"
    );
}

/// Returns the name of the test of this thread. The harness names the thread after it, except if it runs one test at a time; other
/// threads belong to fixtures.
fn current_test() -> Option<String> {
    std::thread::current().name().filter(|name| name.contains("::")).map(str::to_owned)
}

impl Program<'_> {
    /// Returns whether the program is on the search path, and where the host looks for it.
    fn is_there(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_found = std::env::split_paths(&path).any(|directory: PathBuf| directory.join(self.name).is_file());
        is_found && (!self.is_of_the_machine || Path::new(OF_THE_MACHINE).join(self.name).is_file())
    }
}
