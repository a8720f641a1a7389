//! The walls that this process builds around itself before it says hello: Landlock, seccomp, limits.
//!
//! They only ever tighten what the launcher put in place, and cannot be taken down again, not even by this process. See
//! [`crate::lockdown::filter`] for the list of system calls.

pub mod filter;

use crate::{Places, kernel};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// Descriptors: three of nothing, the link, two queues with a journal and its directory, one socket, a few for a tool.
const OPEN_FILES_MAX: u64 = 32;
/// No file grows past this; the outbound queue at its fullest holds 256 rows of 256 KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Features that a kernel must enforce; 6.2 is the first to stop truncation.
const LANDLOCK_REQUIRED: ABI = ABI::V3;
/// Features that it also enforces if it knows them: the network namespace and the seccomp filter back these.
pub(crate) const LANDLOCK_WANTED: ABI = ABI::V9;
/// `PR_GET_SECCOMP` for a process with a filter.
const SECCOMP_MODE_FILTER: i32 = 2;

/// A wall that could not be built, or was found to have a hole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a limit or a setting.
    #[error("cannot lock down: {what}: {source}")]
    System {
        /// The limit or setting.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// Landlock refused, or does not enforce what is required.
    #[error("cannot lock down: Landlock (Linux 6.2 or newer): {0}")]
    Landlock(String),
    /// The filter did not compile or was not taken.
    #[error("cannot lock down: seccomp: {0}")]
    Seccomp(String),
    /// The self-test got through.
    #[error("lockdown has a hole: {0}")]
    Hole(&'static str),
}

/// Locks this process down for good, and then tries the walls.
///
/// # Errors
/// [`Error`]; the process must end then, it may be locked down in part.
pub fn enter(places: &Places) -> Result<(), Error> {
    limit_resources()?;
    restrict_files(places)?;
    filter::install().map_err(Error::Seccomp)?;
    try_the_walls(places)
}

/// Limits that no later code can raise, no core dump, and no other process that reads this one's memory.
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

/// Enters a Landlock domain in which only the four places exist, and what a person granted.
///
/// # Errors
/// [`Error::Landlock`] if the kernel does not enforce what is required, or a place is missing.
pub fn restrict_files(places: &Places) -> Result<(), Error> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // No process here makes links, devices, pipes, sockets or executables, and no file moves between directories.
    let change = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let rule = |path: &Path, rights: BitFlags<AccessFs>| -> Result<PathBeneath<PathFd>, Error> {
        let descriptor = PathFd::new(path).map_err(|error| Error::Landlock(error.to_string()))?;
        Ok(PathBeneath::new(descriptor, rights))
    };
    let mut rules = vec![
        rule(&places.inbound, read)?,
        rule(&places.outbound, read | change)?,
        rule(&places.workspace, read | change | AccessFs::MakeDir)?,
        rule(&places.run, read | AccessFs::ResolveUnix)?,
    ];
    for granted in &places.granted {
        let rights = if granted.is_writable { read | change | AccessFs::MakeDir } else { read };
        rules.push(rule(&granted.path, rights)?);
    }
    enter_domain(rules).map_err(Error::Landlock)
}

/// Enters a Landlock domain in which nothing but these rules gives a right; with what the kernel must enforce, or not at all.
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

/// Does what must fail, and asks the kernel what is on.
///
/// # Errors
/// [`Error::Hole`] naming the first operation that should have been refused and was not.
pub fn try_the_walls(places: &Places) -> Result<(), Error> {
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
    refused("a file can be made beside the inbound queue", make(&places.inbound))?;
    refused("a file can be made beside the sockets", make(&places.run))?;
    refused("a new program could gain rights", !prctl::get_no_new_privs().unwrap_or(false))?;
    let mode = kernel::seccomp_mode().unwrap_or(0);
    refused("no seccomp filter is on", mode != SECCOMP_MODE_FILTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test in a thread that ends with it: Landlock and seccomp hold for one thread, so each test builds its walls in its
    /// own.
    fn in_a_thread(test: impl FnOnce(&Places) + Send) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let places = Places::below(root.path());
        for place in [&places.inbound, &places.outbound, &places.workspace, &places.run] {
            std::fs::create_dir(place).expect("made");
        }
        let ended = std::thread::scope(|scope| scope.spawn(|| test(&places)).join());
        assert!(ended.is_ok(), "see the panic above");
    }

    #[test]
    fn the_self_test_finds_each_wall_that_is_missing() {
        in_a_thread(|places| {
            assert!(matches!(try_the_walls(places), Err(Error::Hole(_))), "no wall at all");
            restrict_files(places).expect("Landlock");
            assert!(matches!(try_the_walls(places), Err(Error::Hole(what)) if what.contains("socket")));
            filter::install().expect("seccomp");
            try_the_walls(places).expect("no hole is left");
        });
    }

    #[test]
    #[allow(clippy::disallowed_types, reason = "the test tries what the sandbox must not do")]
    fn behind_landlock_there_are_only_the_four_places() {
        in_a_thread(|places| {
            let outside = places.run.parent().expect("the root").join("outside");
            std::fs::write(&outside, "x").expect("written");
            std::fs::write(places.inbound.join("inbound.db"), "x").expect("written");
            restrict_files(places).expect("Landlock");
            let workspace = &places.workspace;
            std::fs::write(workspace.join("file"), "x").expect("the workspace can be written");
            std::fs::create_dir(workspace.join("directory")).expect("the workspace can hold directories");
            std::fs::write(places.outbound.join("outbound.db"), "x").expect("the outbound queue can be written");
            std::fs::read(places.inbound.join("inbound.db")).expect("the inbound queue can be read");
            for refused in [
                std::fs::read(&outside).map(drop),
                std::fs::write(&outside, "y"),
                std::fs::write(places.inbound.join("inbound.db"), "y"),
                std::fs::remove_file(places.inbound.join("inbound.db")),
                std::fs::create_dir(places.outbound.join("directory")),
                std::os::unix::fs::symlink("/", workspace.join("link")),
                std::fs::hard_link(workspace.join("file"), workspace.join("directory/file")),
                std::fs::rename(workspace.join("file"), places.outbound.join("file")),
                nix::unistd::mkfifo(&workspace.join("pipe"), nix::sys::stat::Mode::S_IRWXU).map_err(Into::into),
                std::os::unix::net::UnixListener::bind(workspace.join("socket")).map(drop),
            ] {
                let kind = refused.expect_err("refused").kind();
                // To move a file between directories is refused as if they were two devices.
                assert!(matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::CrossesDevices), "{kind}");
            }
        });
    }
}
