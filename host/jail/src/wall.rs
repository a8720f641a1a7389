//! The walls of a jail by name, and the walls that a launch raises.
//!
//! Without a test build, only two kinds of jail lack a wall. The temporary jail of a negative control lacks one and has no mount.
//! The jail of a client that fetches software has the host's network, but nothing of the host's state. See [`crate::native`], which
//! raises the walls, and [`crate::self_test`], in which at least one line must notice each missing wall.

use super::{Probe, Role};

macro_rules! walls {
    ($($(#[$doc:meta])* $wall:ident = $name:literal,)*) => {
        /// A wall of a jail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Wall {
            $($(#[$doc])* $wall,)*
        }

        impl Wall {
            pub const ALL: &'static [Self] = &[$(Self::$wall,)*];

            /// Returns its name, as in the field `wall` of an attempt.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$wall => $name,)*
                }
            }
        }
    };
}

walls! {
    /// The filters of system calls.
    Seccomp = "seccomp",
    Landlock = "landlock",
    /// A user namespace of its own. For an ordinary user the kernel makes no other namespace without it.
    UserNamespace = "user namespace",
    /// A mount namespace, pivoted into a root of its own.
    Root = "mount namespace",
    PidNamespace = "pid namespace",
    NetworkNamespace = "network namespace",
    IpcNamespace = "ipc namespace",
    /// A host name of its own.
    UtsNamespace = "uts namespace",
    CgroupNamespace = "cgroup namespace",
    /// The root directory cannot be written.
    ReadOnlyRoot = "read-only root",
    /// The root directory has room only for its mount points.
    RootSize = "size of the root",
    /// A mount that the spec calls read-only is mounted read-only.
    ReadOnlyMounts = "read-only mount",
    /// Set-uid bits have no effect on any mount.
    NoSetUid = "nosuid mount",
    /// Device files have no effect on any mount.
    NoDevices = "nodev mount",
    /// No file on a mount can be executed.
    NoExecution = "noexec mount",
    /// Every capability set is empty.
    Capabilities = "no capabilities",
    /// Executing a program gains no privilege.
    NoNewPrivileges = "no_new_privs",
    /// Core dumps are off.
    CoreLimit = "limit of core dumps",
    /// Addresses of each process.
    AddressLimit = "limit of addresses",
    /// Descriptors of each process.
    OpenFilesLimit = "limit of open files",
    /// Processes and threads of the jail.
    ProcessLimit = "limit of processes",
    FileSizeLimit = "limit of file size",
    /// The program dies with process 1, and process 1 with the launcher.
    ParentDeath = "parent-death signal",
    /// No descriptor of host or launcher is inherited.
    Descriptors = "closed descriptors",
    /// The standard streams are the null device.
    StandardStreams = "closed standard streams",
    /// No variable of the host's environment is inherited.
    Environment = "empty environment",
    /// Started by root: a host uid that is not root's.
    OwnUid = "host uid of its own",
    /// Started by root: root's groups are left.
    OwnGroups = "root's groups left",
    /// The filter of process 1.
    InitSeccomp = "seccomp of process 1",
    /// Process 1 has given up its capabilities.
    InitCapabilities = "no capabilities of process 1",
}

impl Wall {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|wall| wall.name() == name)
    }
}

/// The wall that is missing in the jail of a negative control.
pub const CONTROL: Wall = Wall::Seccomp;

/// The walls that one launch raises: all of them, or all but one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walls {
    missing: [Option<Wall>; 2],
}

impl Walls {
    /// Returns the walls around this role. `left_out` is the wall that a test build leaves out; `None` in other builds.
    pub(crate) fn around(role: &Role, left_out: Option<Wall>) -> Self {
        let control = match role {
            Role::Probe(Probe::Control(_)) => Some(CONTROL),
            // The network is its purpose.
            Role::Client(client) if client.network.is_some() => Some(Wall::NetworkNamespace),
            Role::Probe(Probe::Attempts(_) | Probe::Neighbour | Probe::KeyAgain { .. })
            | Role::Sandbox { .. }
            | Role::Client(_)
            | Role::Reader
            | Role::Noop { .. } => None,
        };
        Self { missing: [control, left_out] }
    }

    /// Returns the walls that do not depend on a role; they are raised before a jail has one.
    pub(crate) const fn for_every_role(left_out: Option<Wall>) -> Self {
        Self { missing: [None, left_out] }
    }

    /// Returns whether process 1 empties its bounding set at its beginning. Process 2 inherits it, so both walls must be raised.
    pub(crate) fn bound_early(&self) -> bool {
        self.has(Wall::Capabilities) && self.has(Wall::InitCapabilities)
    }

    /// Returns whether this wall is raised.
    pub(crate) fn has(&self, wall: Wall) -> bool {
        !self.missing.contains(&Some(wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Network;
    use crate::{Client, Facts};

    #[test]
    fn only_negative_control_and_networked_client_lack_a_wall() {
        let program = || "/bin/true".into();
        let roles = [
            Role::Sandbox { program: program(), args: Vec::new() },
            Role::Reader,
            Role::Noop { program: program() },
            Role::Client(Client { program: "/bin/true".to_owned(), ..Client::default() }),
            Role::Probe(Probe::Attempts(Facts::default())),
            Role::Probe(Probe::Neighbour),
            Role::Probe(Probe::KeyAgain { after_bell: true }),
        ];
        for role in roles {
            let walls = Walls::around(&role, None);
            assert!(Wall::ALL.iter().all(|wall| walls.has(*wall)), "{role:?}");
        }
        let control = Walls::around(&Role::Probe(Probe::Control(Facts::default())), None);
        let missing: Vec<_> = Wall::ALL.iter().filter(|wall| !control.has(**wall)).collect();
        assert_eq!(missing, [&CONTROL]);
        let client = Role::Client(Client { network: Some(Network { ports: vec![443] }), ..Client::default() });
        let client = Walls::around(&client, None);
        let missing: Vec<_> = Wall::ALL.iter().filter(|wall| !client.has(**wall)).collect();
        assert_eq!(missing, [&Wall::NetworkNamespace]);
    }

    #[test]
    fn every_wall_is_found_by_its_name_and_no_two_share_one() {
        for wall in Wall::ALL {
            assert_eq!(Wall::named(wall.name()), Some(*wall));
        }
        assert_eq!(Wall::named("no wall"), None);
    }
}
