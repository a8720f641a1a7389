//! A fixture with the directories of a session and the driver that plays a scenario in them.
//!
//! Contains no tests. See `security::jail` and `ops::preflight`.

use serde_json::Value;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A uid without an account, which runs programs as an ordinary user.
pub(crate) const ORDINARY_UID: u32 = 54_321;
/// The uid that the driver gives to jails of root.
pub(crate) const MAPPED: u32 = 200_001;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HostUser {
    Root,
    Ordinary,
}

impl HostUser {
    /// Returns the kind of user that runs the tests.
    pub(crate) fn current() -> Self {
        if nix::unistd::geteuid().is_root() { Self::Root } else { Self::Ordinary }
    }

    /// Returns the uid of its host: root gives an ordinary user a uid, and another user has its own.
    pub(crate) fn uid(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Ordinary if nix::unistd::geteuid().is_root() => ORDINARY_UID,
            Self::Ordinary => nix::unistd::geteuid().as_raw(),
        }
    }
}

/// Returns the users that can start a host here. Root tests with both kinds, an ordinary user only with its own.
pub(crate) fn host_users() -> Vec<HostUser> {
    if nix::unistd::geteuid().is_root() { vec![HostUser::Root, HostUser::Ordinary] } else { vec![HostUser::Ordinary] }
}

/// A home with the directories of a session, and the programs of the driver, which every user can run.
pub(crate) struct JailFixture {
    pub(crate) home: tempfile::TempDir,
    programs: tempfile::TempDir,
    pub(crate) user: HostUser,
}

impl JailFixture {
    pub(crate) fn new(user: HostUser) -> Self {
        let (home, programs) = (directory(), directory());
        for name in ["in", "out", "workspace"] {
            let path = home.path().join(name);
            std::fs::create_dir(&path).expect("a directory");
            let owner = if user == HostUser::Root { MAPPED } else { ORDINARY_UID };
            set_owner(&path, owner);
        }
        set_owner(home.path(), if user == HostUser::Root { 0 } else { ORDINARY_UID });
        std::fs::set_permissions(programs.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        // Copies with another process. A file that this process writes would remain open in a child that another test forks, and could
        // not be executed until that child ends.
        let copied = Command::new("cp").args(["jail_driver", "gate_stub"].map(example)).arg(programs.path()).status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "`cargo test` builds the examples, `cargo test --test it` alone does not"
        );
        Self { home, programs, user }
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
        if self.user == HostUser::Ordinary && nix::unistd::geteuid().is_root() {
            command.uid(ORDINARY_UID).gid(ORDINARY_UID); // also drops the groups of root
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

pub(crate) fn set_owner(path: &Path, uid: u32) {
    if nix::unistd::geteuid().is_root() {
        chown(path, Some(uid), Some(uid)).expect("root can give files away");
    }
}

pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test program");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    profile.join("examples").join(name)
}

pub(crate) fn answer(mut command: Command) -> Value {
    let output = command.stderr(Stdio::piped()).output().expect("the driver runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{complaint}\n(`ironclaw-host preflight` names the missing features of this machine)"
    );
    serde_json::from_slice(&output.stdout).expect("the driver prints JSON")
}
