//! The walls that this process builds around itself before its hello: Landlock, seccomp, limits.
//!
//! They only tighten the launcher's walls, and no process can remove them, not even this one. See [`crate::lockdown::filter`] for
//! the list of system calls.

pub mod filter;

use crate::{Paths, kernel};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// Descriptors: three of the null device, the link, two queues with a journal and its directory, one socket, a few for a tool.
const OPEN_FILES_MAX: u64 = 32;
/// Largest size of a file. The outbound queue at its fullest has 256 rows of 256 KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Features that a kernel must enforce; Linux 6.2 is the first to restrict truncation.
const LANDLOCK_REQUIRED: ABI = ABI::V3;
/// Features that are enforced if the kernel knows them; the network namespace and the seccomp filter cover the same accesses.
pub(crate) const LANDLOCK_WANTED: ABI = ABI::V9;
/// Result of `PR_GET_SECCOMP` for a process with a filter.
const SECCOMP_MODE_FILTER: i32 = 2;

/// A wall that cannot be built, or that has a hole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a limit or a setting.
    #[error("cannot lock down: {what}: {source}")]
    System {
        /// The limit or setting.
        what: &'static str,
        source: io::Error,
    },
    /// Landlock refused, or does not enforce what is required.
    #[error("cannot lock down: Landlock (Linux 6.2 or newer): {0}")]
    Landlock(String),
    /// The filter did not compile, or the kernel refused it.
    #[error("cannot lock down: seccomp: {0}")]
    Seccomp(String),
    /// An attempt of the self-test succeeded.
    #[error("lockdown has a hole: {0}")]
    Hole(&'static str),
}

/// Locks this process down permanently, and then tests the walls.
///
/// # Errors
/// [`Error`]. Then the process must end, because it may be locked down in part.
pub fn enter(paths: &Paths) -> Result<(), Error> {
    limit_resources()?;
    restrict_files(paths)?;
    filter::install().map_err(Error::Seccomp)?;
    try_the_walls(paths)
}

/// Sets limits that no later code can raise, and prevents core dumps and reads of this process's memory by other processes.
fn limit_resources() -> Result<(), Error> {
    let system = |what| move |source: io::Error| Error::System { what, source };
    for (resource, max, what) in [
        (Resource::RLIMIT_CORE, 0, "core size"),
        (Resource::RLIMIT_NPROC, 0, "number of processes"),
        (Resource::RLIMIT_NOFILE, OPEN_FILES_MAX, "open files"),
        (Resource::RLIMIT_FSIZE, FILE_BYTES_MAX, "file size"),
        (Resource::RLIMIT_MEMLOCK, 0, "locked memory"),
    ] {
        let (_, hard) = getrlimit(resource).map_err(|error| system(what)(error.into()))?;
        let max = if hard == RLIM_INFINITY { max } else { max.min(hard) };
        setrlimit(resource, max, max).map_err(|error| system(what)(error.into()))?;
    }
    kernel::survive_file_size_limit().map_err(system("signal of the file size limit"))?;
    prctl::set_dumpable(false).map_err(|error| system("dumpable")(error.into()))
}

/// Enters a Landlock domain that allows only the four directories and the directories that a person granted.
///
/// # Errors
/// [`Error::Landlock`] if the kernel does not enforce the required features, or a directory is missing.
pub fn restrict_files(paths: &Paths) -> Result<(), Error> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // No process here makes links, devices, pipes, sockets or executables, and no file moves between directories.
    let change = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let rule = |path: &Path, rights: BitFlags<AccessFs>| -> Result<PathBeneath<PathFd>, Error> {
        let descriptor = PathFd::new(path).map_err(|error| Error::Landlock(error.to_string()))?;
        Ok(PathBeneath::new(descriptor, rights))
    };
    let mut rules = vec![
        rule(&paths.inbound, read)?,
        rule(&paths.outbound, read | change)?,
        rule(&paths.workspace, read | change | AccessFs::MakeDir)?,
        rule(&paths.run, read | AccessFs::ResolveUnix)?,
    ];
    for granted in &paths.granted {
        let rights = if granted.is_writable { read | change | AccessFs::MakeDir } else { read };
        rules.push(rule(&granted.path, rights)?);
    }
    enter_domain(rules).map_err(Error::Landlock)
}

/// Enters a Landlock domain that allows only these rules. It is an error if the kernel does not enforce the required features.
pub(crate) fn enter_domain(rules: Vec<PathBeneath<PathFd>>) -> Result<(), String> {
    let enforce = || -> Result<RulesetStatus, RulesetError> {
        let mut domain = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(LANDLOCK_REQUIRED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK_WANTED))?
            .handle_access(AccessNet::from_all(LANDLOCK_WANTED))?
            .scope(Scope::from_all(LANDLOCK_WANTED))?
            .create()?;
        for rule in rules {
            domain = domain.add_rule(rule)?;
        }
        Ok(domain.restrict_self()?.ruleset)
    };
    match enforce().map_err(|error| error.to_string())? {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("not enforced".to_owned()),
    }
}

/// Makes attempts that must fail, and asks the kernel about the walls in force.
///
/// # Errors
/// [`Error::Hole`] with the first operation that should fail and did not.
pub fn try_the_walls(paths: &Paths) -> Result<(), Error> {
    let refused = |what: &'static str, got_through: bool| if got_through { Err(Error::Hole(what)) } else { Ok(()) };
    refused("an internet socket can be made", kernel::can_make_socket(libc::AF_INET))?;
    refused("a netlink socket can be made", kernel::can_make_socket(libc::AF_NETLINK))?;
    refused("/ can be read", OpenOptions::new().read(true).open("/").is_ok())?;
    refused("/usr can be read", OpenOptions::new().read(true).open("/usr").is_ok())?;
    refused("/etc/passwd can be read", OpenOptions::new().read(true).open("/etc/passwd").is_ok())?;
    let make = |directory: &Path| {
        let probe = directory.join(".ironclaw-probe");
        OpenOptions::new().write(true).create_new(true).open(probe).is_ok()
    };
    refused("a file can be made in /", make(Path::new("/")))?;
    refused("a file can be made beside the inbound queue", make(&paths.inbound))?;
    refused("a file can be made beside the sockets", make(&paths.run))?;
    refused("a new program could gain rights", !prctl::get_no_new_privs().unwrap_or(false))?;
    let mode = kernel::seccomp_mode().unwrap_or(0);
    refused("no seccomp filter is on", mode != SECCOMP_MODE_FILTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test in a thread of its own. Landlock and seccomp hold for one thread, so each test builds its walls in its own.
    fn in_a_thread(test: impl FnOnce(&Paths) + Send) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let paths = Paths::below(root.path());
        for place in [&paths.inbound, &paths.outbound, &paths.workspace, &paths.run] {
            std::fs::create_dir(place).expect("made");
        }
        let ended = std::thread::scope(|scope| scope.spawn(|| test(&paths)).join());
        assert!(ended.is_ok(), "see the panic above");
    }

    #[test]
    fn self_test_finds_each_missing_wall() {
        in_a_thread(|paths| {
            assert!(matches!(try_the_walls(paths), Err(Error::Hole(_))), "no wall at all");
            restrict_files(paths).expect("Landlock");
            assert!(matches!(try_the_walls(paths), Err(Error::Hole(what)) if what.contains("socket")));
            filter::install().expect("seccomp");
            try_the_walls(paths).expect("no hole is left");
        });
    }

    #[test]
    #[allow(clippy::disallowed_types, reason = "the test tries what the sandbox must not do")]
    fn landlock_allows_only_the_four_directories() {
        in_a_thread(|paths| {
            let outside = paths.run.parent().expect("the root").join("outside");
            std::fs::write(&outside, "x").expect("written");
            std::fs::write(paths.inbound.join("inbound.db"), "x").expect("written");
            restrict_files(paths).expect("Landlock");
            let workspace = &paths.workspace;
            std::fs::write(workspace.join("file"), "x").expect("the workspace can be written");
            std::fs::create_dir(workspace.join("directory")).expect("the workspace can hold directories");
            std::fs::write(paths.outbound.join("outbound.db"), "x").expect("the outbound queue can be written");
            std::fs::read(paths.inbound.join("inbound.db")).expect("the inbound queue can be read");
            for refused in [
                std::fs::read(&outside).map(drop),
                std::fs::write(&outside, "y"),
                std::fs::write(paths.inbound.join("inbound.db"), "y"),
                std::fs::remove_file(paths.inbound.join("inbound.db")),
                std::fs::create_dir(paths.outbound.join("directory")),
                std::os::unix::fs::symlink("/", workspace.join("link")),
                std::fs::hard_link(workspace.join("file"), workspace.join("directory/file")),
                std::fs::rename(workspace.join("file"), paths.outbound.join("file")),
                nix::unistd::mkfifo(&workspace.join("pipe"), nix::sys::stat::Mode::S_IRWXU).map_err(Into::into),
                std::os::unix::net::UnixListener::bind(workspace.join("socket")).map(drop),
            ] {
                let kind = refused.expect_err("refused").kind();
                // A move between directories is refused with the error for two devices.
                assert!(matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::CrossesDevices), "{kind}");
            }
        });
    }
}
