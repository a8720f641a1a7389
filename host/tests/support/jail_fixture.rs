//! A home with a session's directories, and the driver that plays a scenario in it.
//!
//! Knows no expectation. Next: `jail` and `preflight`, which have them.

use serde_json::Value;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A uid that no machine of ours gives to anybody.
pub(crate) const NOBODY: u32 = 54_321;
/// What the driver maps root's jails to.
pub(crate) const MAPPED: u32 = 200_001;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Who {
    Root,
    Ordinary,
}

/// Who can start a host here: root tries both kinds, anybody else their own.
pub(crate) fn everybody() -> Vec<Who> {
    if nix::unistd::geteuid().is_root() { vec![Who::Root, Who::Ordinary] } else { vec![Who::Ordinary] }
}

/// A home with a session's directories, and the programs beside it where anybody may run them.
pub(crate) struct Stage {
    pub(crate) home: tempfile::TempDir,
    programs: tempfile::TempDir,
    pub(crate) who: Who,
}

impl Stage {
    pub(crate) fn new(who: Who) -> Self {
        let (home, programs) = (directory(), directory());
        for name in ["in", "out", "workspace"] {
            let path = home.path().join(name);
            std::fs::create_dir(&path).expect("a directory");
            let owner = if who == Who::Root { MAPPED } else { NOBODY };
            own(&path, owner);
        }
        own(home.path(), if who == Who::Root { 0 } else { NOBODY });
        std::fs::set_permissions(programs.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        // By another process: a file that we write ourselves is still open in what another test
        // forks meanwhile, and cannot be executed until that has ended.
        let copied = Command::new("cp").args(["jail_driver", "gate_stub"].map(example)).arg(programs.path()).status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "`cargo test` builds the examples, `cargo test --test it` alone does not"
        );
        Self { home, programs, who }
    }

    pub(crate) fn command(&self, scenario: &str, order: Option<&str>) -> Command {
        let mut command = Command::new(self.programs.path().join("jail_driver"));
        let stub = self.programs.path().join("gate_stub");
        command.arg(scenario).arg(self.home.path());
        match order {
            Some(order) => command.arg(order),
            None => command.arg(stub),
        };
        command.env("RUST_BACKTRACE", "0").env("IRONCLAW_TEST_SECRET", "must not arrive");
        if self.who == Who::Ordinary && nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY); // which leaves root's groups too
        }
        command
    }

    pub(crate) fn play(&self, scenario: &str) -> Value {
        answer(self.command(scenario, None))
    }
}

pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

pub(crate) fn own(path: &Path, uid: u32) {
    if nix::unistd::geteuid().is_root() {
        chown(path, Some(uid), Some(uid)).expect("root can give files away");
    }
}

pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    profile.join("examples").join(name)
}

pub(crate) fn answer(mut command: Command) -> Value {
    let output = command.stderr(Stdio::piped()).output().expect("the driver runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}\n(`ironclaw-host preflight` says what this machine lacks)");
    serde_json::from_slice(&output.stdout).expect("the driver prints JSON")
}
