//! The jail: the report of the kernel about a process in it, and the checks of the machine that it needs.
//!
//! Plain data. `host/jail/src/inspect.rs` reads the report.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kernel's report about a jailed process, read from `/proc` and not from the settings of the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JailReport {
    /// Namespace kind (`user mnt pid net ipc uts cgroup`) to its inode number, e.g. `4026532281`.
    pub namespaces: BTreeMap<String, u64>,
    /// Namespace kinds in which the process differs from the host.
    pub own_namespaces: Vec<String>,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: u32,
    /// Number of seccomp filters.
    pub seccomp_filters: u32,
    /// Capability sets (`inheritable permitted effective bounding ambient`) as 16 hex digits.
    pub capabilities: BTreeMap<String, String>,
    /// True if `no_new_privs` is set.
    pub no_new_privs: bool,
    /// True if the launcher installed a Landlock domain before exec. The kernel does not show this.
    pub landlock: bool,
    /// The Landlock ABI of the running kernel; 0 if it has none.
    pub landlock_abi: u32,
    /// Network interfaces of its network namespace with their state, e.g. `lo down`.
    pub interfaces: Vec<String>,
    /// User id outside its namespace.
    pub uid: u32,
    /// Group id outside its namespace.
    pub gid: u32,
    /// Names in its root directory.
    pub root: Vec<String>,
    /// Mount points of its mount namespace, e.g. `/in ro`.
    pub mounts: Vec<String>,
}

impl JailReport {
    /// Returns whether every capability set is empty.
    pub fn no_capabilities(&self) -> bool {
        !self.capabilities.is_empty() && self.capabilities.values().all(|set| set.bytes().all(|b| b == b'0'))
    }
}

/// The oldest kernel that has each feature of a jail: the first with the Landlock right to truncate files.
pub const KERNEL_MIN: &str = "6.2";

ironclaw_contract::words! {
    /// The state of a feature of the kernel, by the error of the call that needs it.
    pub enum FeatureState {
        Present = "present",
        /// The kernel does not have it, or has it switched off.
        Absent = "absent",
        /// A setting, a security module or a filter of a container forbids it.
        Forbidden = "forbidden",
    }
}

/// A feature of the kernel that jails need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Feature {
    /// Its name: `user namespaces`, `Landlock`, `seccomp` or `pidfd`.
    pub name: String,
    /// Its state.
    pub state: FeatureState,
}

/// One requirement on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Check {
    /// The requirement, e.g. `user namespaces`.
    pub name: String,
    /// True if the machine meets it.
    pub ok: bool,
    /// The result of the check, in a sentence.
    pub found: String,
    /// The exact remedy if the machine does not meet it; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// The output of `ironclaw-host preflight --json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Preflight {
    /// True if the host can launch an agent here.
    pub ok: bool,
    /// Each check, in order.
    pub checks: Vec<Check>,
    /// The state of each feature of the kernel that was tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<Feature>,
}
