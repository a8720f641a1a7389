//! The specification of a jail, and the types around it.
//!
//! A jail grants nothing by default: a resource that is not in a [`Spec`] is in no jail. This module starts no process.
//! See [`crate::native`], which builds a jail, and [`crate::inspect`], which asks the kernel about it.

// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

pub mod browser;
pub mod client;
pub mod failpoint;
pub mod filter;
pub mod inspect;
pub mod landlock;
pub mod launcher;
pub mod mount_table;
pub(crate) mod native;
pub mod reader;
pub mod self_test;
pub mod shortage;
pub mod sys;
pub mod system;
mod wall;

pub use system::{System, is_reserved};
pub(crate) use wall::Walls;
pub use wall::{CONTROL, Wall};

pub use client::Client;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

/// The uid and the gid that a jailed process has inside its own user namespace.
pub const INNER_ID: u32 = 1000;
/// The first host uid and gid that root gives to jails, unless the settings name another one. It is above every range in systemd's
/// list of uids and gids, so it is free on most machines.
pub const FIRST_HOST_ID: u32 = 0x7000_0000;
/// The host name that a jailed process sees.
pub const HOSTNAME: &str = "ironclaw";
/// Bound on the mounts of a jail; no session needs as many (in, out, workspace, sockets, packages).
pub const MOUNTS_MAX: usize = 16;
/// Longest name of a jail, and of a directory in its root, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// The lowest port of a listener. Lower ports need a capability.
const PORT_MIN: u16 = 1024;
/// Longest list of arguments of a program.
pub const ARGUMENTS_MAX: usize = 32;
/// Descriptor of the link in a program that runs in a jail.
pub const LINK_DESCRIPTOR: i32 = 3;
/// Descriptor of the gate in a program that runs in a jail. The program writes one byte when all libraries are loaded, and waits
/// for one byte back. Then the host's files are out of reach.
pub const GATE_DESCRIPTOR: i32 = 4;

/// Everything that a jailed process sees and may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Name of the jail for error messages: 1–64 characters of `A-Z a-z 0-9 _ -`, e.g. `ses_7f3a`.
    pub name: String,
    /// The process that runs.
    pub role: Role,
    /// The directories that it sees, each at the top of its root. Beside them, the root has only the files of `system`.
    pub mounts: Vec<Mount>,
    /// The host's programs, if it may execute any; without them nothing in the jail is executable.
    pub system: Option<System>,
    /// The TCP port of 127.0.0.1 on which the host listens in the network namespace of the jail; see [`Jailed::listener`]. The jail may
    /// connect to it, and to nothing else. Without it, the jail makes no socket of the Internet.
    ///
    /// [`Jailed::listener`]: launcher::Jailed::listener
    pub listener: Option<u16>,
    /// The user of its processes, as the host sees it.
    pub identity: Identity,
    /// Resources that it may use.
    pub limits: Limits,
}

/// The process that runs in the jail as process 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A program that uses the gate. It is executed by descriptor, with an empty environment.
    Sandbox {
        /// The file on the host; the user of the jail must be allowed to execute it.
        program: PathBuf,
        /// Its arguments, without its name.
        args: Vec<String>,
    },
    /// The launcher's `Entries::reader`, in the launcher's own image.
    Reader,
    /// The probe of the self-test, in the launcher's own image.
    Probe(Probe),
    /// A program of this machine that fetches or unpacks software, or an MCP server. It is executed after the gate opens.
    Client(Client),
    /// A program that does not use the gate and exits immediately, to measure the time of a launch.
    Noop {
        /// The file on the host, e.g. `/bin/true`.
        program: PathBuf,
    },
}

/// The task of the probe in a jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// Makes all attempts of the self-test, and reports over its link.
    Attempts(Facts),
    /// The same in a jail without the wall [`CONTROL`]; refused with any mount, so that the jail has nothing of a session.
    Control(Facts),
    /// Waits until its link closes: a target for the probe of another jail.
    Neighbour,
    /// Acts as a sandbox that asks for its key a second time.
    KeyAgain {
        /// Asks after its first bell instead of before it.
        after_bell: bool,
    },
}

/// Facts about the host: the targets that a probe tries to reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Process id of the host.
    pub host_pid: u32,
    /// Process id of the launcher.
    pub launcher_pid: u32,
    /// Process id, as the host sees it, of the program in another jail of the same uid.
    pub neighbour_pid: u32,
    /// Name of an abstract unix socket on which the host listens.
    pub abstract_name: String,
    /// Port of 127.0.0.1 on which the host listens.
    pub tcp_port: u16,
    /// Port of `::1` on which the host listens; 0 on a machine without IPv6.
    pub tcp6_port: u16,
    /// Unix socket of the host's own API.
    pub host_socket: PathBuf,
    /// The host's files and the directories of every session, each with a description.
    pub host_files: Vec<(String, PathBuf)>,
}

/// One directory of the host in a jail, mounted nosuid, nodev and noexec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Absolute path on the host; its last component is a directory and not a link.
    pub source: PathBuf,
    /// Its path in the jail: `/` and one name of `A-Z a-z 0-9 . _ -`; see [`target_name`].
    pub target: String,
    /// True if the jail cannot write to it.
    pub read_only: bool,
    /// True if a person chose it. Then no component of the path may be a link, so that the jail gets the directory that the person saw.
    pub granted: bool,
}

/// The user of a jailed process, as the host sees it. In the jail it is always [`INNER_ID`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// The user who started the host; refused for root.
    Own,
    /// Ids from a range that root reserved for jails; only root can assign them.
    Mapped {
        /// User id on the host, never 0.
        uid: u32,
        /// Group id on the host, never 0.
        gid: u32,
    },
}

/// Resources that a jailed process may use. Core dumps are always off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Address space of each process, in bytes.
    pub address_space_bytes: u64,
    /// Open descriptors of each process.
    pub open_files: u64,
    /// Processes and threads in the jail, process 1 included.
    pub processes: u64,
    /// Largest file that a process may write, in bytes.
    pub file_bytes: u64,
    /// Longest time of the launch, in milliseconds, from the request to the open gate.
    pub launch_ms: u64,
}

impl Limits {
    /// Returns limits for programs of the machine, such as package managers and servers of node.
    pub fn for_programs() -> Self {
        Self {
            // The engine of node reserves many times the memory that it uses.
            address_space_bytes: 64 << 30,
            open_files: 1024,
            processes: 128,
            ..Self::default()
        }
    }
}

impl Default for Limits {
    /// Returns limits that are enough for a sandbox with a dozen threads and two encrypted databases.
    fn default() -> Self {
        Self {
            address_space_bytes: 4 << 30, // threads reserve 64 MiB of addresses each and use little of it
            open_files: 256,
            processes: 64,
            file_bytes: 1 << 30,
            launch_ms: 5_000, // a launch takes milliseconds, but much longer on a machine that swaps
        }
    }
}

/// The reason why a [`Spec`] is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl Spec {
    /// Refuses a spec that cannot be enforced, before any process starts.
    ///
    /// `effective_uid` is the user id of the host.
    pub fn check(&self, effective_uid: u32) -> Result<(), Unfit> {
        let unfit = |reason: String| Err(Unfit(reason));
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX || !self.name.bytes().all(plain) {
            return unfit(format!("{:?} is not a name for a jail", self.name));
        }
        if self.mounts.len() > MOUNTS_MAX {
            return unfit(format!("{} mounts are more than {MOUNTS_MAX}", self.mounts.len()));
        }
        let mut targets = BTreeSet::new();
        for mount in &self.mounts {
            if mount.name().is_none() {
                return unfit(format!("mount target {:?} is not `/` and one plain name", mount.target));
            }
            if !targets.insert(mount.target.as_str()) {
                return unfit(format!("mount target {} is used twice", mount.target));
            }
            // The host's own mounts use the names of `system::OWN`; the other reserved names are taken if the jail has the host's programs.
            let taken = |name: &str| {
                is_reserved(name) && (mount.granted || self.system.is_some() && !system::OWN.contains(&name))
            };
            if mount.name().is_some_and(taken) {
                return unfit(format!("mount target {} is reserved for the jail itself", mount.target));
            }
            if !mount.source.is_absolute() {
                return unfit(format!("mount source {} is not absolute", mount.source.display()));
            }
        }
        if let Role::Sandbox { args, .. } = &self.role
            && (args.len() > ARGUMENTS_MAX || args.iter().any(|a| a.contains('\0')))
        {
            return unfit(format!("more than {ARGUMENTS_MAX} arguments, or one with a null byte"));
        }
        if let Role::Client(client) = &self.role {
            client.check(&self.mounts, self.system.is_some()).map_err(Unfit)?;
        }
        if let Some(System { layer: Some(layer) }) = &self.system
            && !layer.is_absolute()
        {
            return unfit(format!("layer {} is not absolute", layer.display()));
        }
        if self.listener.is_some() && !(self.takes_listener() && self.listener >= Some(PORT_MIN)) {
            return unfit("only a jail with the machine's programs takes a listener, on a port from 1024 on".into());
        }
        if let Role::Probe(Probe::Control(_)) = &self.role
            && !(self.mounts.is_empty() && self.system.is_none())
        {
            return unfit("a jail that lacks a wall on purpose takes no directory".into());
        }
        match (self.identity, effective_uid) {
            (Identity::Own, 0) => unfit("the host runs as root, so the jail needs a host uid of its own".into()),
            (Identity::Mapped { uid, gid }, _) if uid == 0 || gid == 0 => {
                unfit("host uid or gid 0 is root's, and no jail may have it".into())
            }
            (Identity::Mapped { .. }, uid) if uid != 0 => {
                unfit("only root can give a jail a host uid of its own".into())
            }
            (Identity::Own | Identity::Mapped { .. }, _) => Ok(()),
        }
    }
}

impl Spec {
    /// Returns whether its jail has the files of a browser.
    pub(crate) const fn has_browser(&self) -> bool {
        match &self.role {
            Role::Client(client) => client.browser,
            Role::Sandbox { .. } | Role::Reader | Role::Probe(_) | Role::Noop { .. } => false,
        }
    }

    /// Returns whether its role may have a listener: a client with the machine's programs, and a probe.
    const fn takes_listener(&self) -> bool {
        match self.role {
            Role::Client(_) => self.system.is_some(),
            Role::Probe(_) => true,
            Role::Sandbox { .. } | Role::Reader | Role::Noop { .. } => false,
        }
    }
}

impl Mount {
    /// Returns the name in the jail's root, without the slash; `None` if the target is not a plain name.
    pub fn name(&self) -> Option<&str> {
        target_name(&self.target)
    }
}

/// Returns the name of a mount's target, without the slash; `None` if the target is not `/` and one plain name. The check of a
/// proposed mount uses this function too, so that people approve no mount that every jail refuses.
pub fn target_name(target: &str) -> Option<&str> {
    let name = target.strip_prefix('/')?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let is_plain = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain);
    is_plain.then_some(name)
}

impl Role {
    /// Returns the program to execute before the gate; `None` for a role that runs in the launcher's own image.
    pub fn program(&self) -> Option<&PathBuf> {
        match self {
            Self::Sandbox { program, .. } | Self::Noop { program } => Some(program),
            Self::Reader | Self::Probe(_) | Self::Client(_) => None,
        }
    }
}
