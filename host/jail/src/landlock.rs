//! The Landlock domain of a jailed program.
//!
//! It grants rights only on the mounts of the jail. A program can restrict itself further, but cannot remove a restriction. See
//! [`crate::native`], which enters the domain before it executes the program.

use super::browser::{PROC, SHARED_MEMORY};
use super::client::{Client, Kind, Streams};
use super::system::DEVICES;
use super::{Mount, Role, Spec};
use crate::sys;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, fstat};
use std::io;
use std::os::fd::OwnedFd;

/// The oldest ABI that is sufficient: from it on, truncating a file needs a right too.
pub const ABI_MIN: u32 = 3;
/// The newest ABI that the rules below cover; an older kernel enforces the part that it knows.
const WRITTEN_FOR: ABI = ABI::V9;
const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// Enters the domain; returns whether the kernel enforces it, and an error if it has no sufficient Landlock.
///
/// `root` is the jail's root before the pivot, with its mounts. TCP (from ABI 4 on), and abstract sockets and signals to the outside
/// (from ABI 6 on), are denied because they have no rule; only a client and a jail with a listener have rules for ports. `no_new_privs` is set with the domain,
/// except by a test build.
pub(crate) fn restrict(root: &OwnedFd, spec: &Spec, no_new_privs: bool) -> io::Result<bool> {
    if sys::landlock_abi() < ABI_MIN {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(WRITTEN_FOR))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(WRITTEN_FOR)))
        .and_then(|rules| rules.scope(Scope::from_all(WRITTEN_FOR)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    for mount in &spec.mounts {
        let directory = openat(root, below(&mount.target), DIRECTORY, Mode::empty())?;
        let rights = if makes_sockets(spec, mount) { rights(mount) | AccessFs::MakeSock } else { rights(mount) };
        rules = rules.add_rule(PathBeneath::new(directory, rights)).map_err(io::Error::other)?;
    }
    rules = match &spec.role {
        Role::Client(client) => with_client(rules, root, client)?,
        Role::Sandbox { .. } | Role::Reader | Role::Probe(_) | Role::Noop { .. } => with_loader(rules)?,
    };
    if spec.system.is_some() {
        rules = with_system(rules, root)?;
    }
    if spec.has_browser() {
        rules = with_browser(rules, root)?;
    }
    if let Some(port) = spec.listener {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp)).map_err(io::Error::other)?;
    }
    let status = rules.no_new_privs(no_new_privs).restrict_self().map_err(io::Error::other)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Returns a path in the jail relative to its root.
fn below(target: &str) -> &str {
    target.trim_start_matches('/')
}

/// Adds the rule that the loader of a program needs until the pivot. It is tied to the host's root directory, so it covers nothing
/// in the jail afterwards.
fn with_loader(rules: RulesetCreated) -> io::Result<RulesetCreated> {
    let host = open("/", DIRECTORY, Mode::empty())?;
    rules.add_rule(PathBeneath::new(host, AccessFs::from_read(WRITTEN_FOR))).map_err(io::Error::other)
}

/// Adds the programs of the host and the files around them.
fn with_system(mut rules: RulesetCreated, root: &OwnedFd) -> io::Result<RulesetCreated> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let directories = [("usr", read | AccessFs::Execute), ("etc", read), ("tmp", read | write())];
    for (name, rights) in directories {
        let directory = openat(root, name, DIRECTORY, Mode::empty())?;
        rules = rules.add_rule(PathBeneath::new(directory, rights)).map_err(io::Error::other)?;
    }
    for name in DEVICES {
        let device = openat(root, name, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        let rights = AccessFs::ReadFile | AccessFs::WriteFile;
        rules = rules.add_rule(PathBeneath::new(device, rights)).map_err(io::Error::other)?;
    }
    Ok(rules)
}

/// Adds the shared memory and the names of `/proc`.
fn with_browser(mut rules: RulesetCreated, root: &OwnedFd) -> io::Result<RulesetCreated> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    for (name, rights) in [(PROC, read), (SHARED_MEMORY, read | write())] {
        let directory = openat(root, name, DIRECTORY, Mode::empty())?;
        rules = rules.add_rule(PathBeneath::new(directory, rights)).map_err(io::Error::other)?;
    }
    Ok(rules)
}

/// Adds the rules for a client's bind mounts and for its TCP ports.
fn with_client(mut rules: RulesetCreated, root: &OwnedFd, client: &Client) -> io::Result<RulesetCreated> {
    for port in client.network.iter().flat_map(|network| &network.ports) {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(io::Error::other)?;
    }
    for one in &client.bind_mounts {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let seen = openat(root, below(&one.target), flags, Mode::empty())?;
        let is_directory = fstat(&seen)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let allowed = match one.kind {
            Kind::Programs => AccessFs::from_read(WRITTEN_FOR),
            Kind::Data => AccessFs::ReadFile | AccessFs::ReadDir,
            Kind::Device => AccessFs::ReadFile | AccessFs::WriteFile,
        };
        // The kernel refuses a rule on a file if it has rights that only a directory can have.
        let allowed = if is_directory { allowed } else { allowed & AccessFs::from_file(WRITTEN_FOR) };
        rules = rules.add_rule(PathBeneath::new(seen, allowed)).map_err(io::Error::other)?;
    }
    Ok(rules)
}

/// Returns whether a mount is the state of a server with a browser, whose driver binds a socket beside its temporary files. The filter
/// permits no other jail to bind one.
fn makes_sockets(spec: &Spec, mount: &Mount) -> bool {
    let Role::Client(Client { browser: true, streams: Streams::Both { errors }, .. }) = &spec.role else {
        return false;
    };
    !mount.granted && errors.strip_prefix(&mount.target).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the rights on a mount of the jail. The host's own sockets can be connected to even on a read-only mount.
fn rights(mount: &Mount) -> BitFlags<AccessFs> {
    let mut rights = AccessFs::ReadFile | AccessFs::ReadDir;
    if !mount.granted {
        rights |= AccessFs::ResolveUnix;
    }
    if mount.read_only { rights } else { rights | write() & !AccessFs::MakeSock }
}

fn write() -> BitFlags<AccessFs> {
    let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    AccessFs::from_write(WRITTEN_FOR) & !never
}
