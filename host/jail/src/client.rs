//! The jail of a program of this machine that fetches or unpacks software: the machine's programs, and little else.
//!
//! Shows nothing of the host's state, and no file that could do harm. See `crate::native::client_mounts`, which attaches it.

use super::Mount;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// More bind_mounts than any client needs.
pub const SIGHTS_MAX: usize = 48;
/// Ports that a client may use.
pub const PORTS_MAX: usize = 16;
/// Bytes of all arguments and variables: with the rest of the request below what the launcher's wire carries.
pub const WORDS_BYTES_MAX: usize = 40 * 1024;

/// A program of this machine, and the machine as it sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Path in the jail of the program that is executed.
    pub program: String,
    /// Its arguments, without its name.
    pub args: Vec<String>,
    /// All of its environment.
    pub environment: Vec<(String, String)>,
    /// Its working directory: the target of a mount, or below one.
    pub directory: String,
    /// Files of the machine that it sees.
    pub bind_mounts: Vec<BindMount>,
    /// Links in its root, name and target: `bin` to `usr/bin`.
    pub links: Vec<(String, String)>,
    /// The host's network; without it, one of its own with nothing in it.
    pub network: Option<Network>,
}

/// The host's network, as a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The TCP ports that it may connect to, where the kernel has Landlock's ABI 4.
    pub ports: Vec<u16>,
}

/// A file or directory of the machine in the jail, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindMount {
    /// Absolute path on the host; a link is followed.
    pub source: PathBuf,
    /// Absolute path in the jail.
    pub target: String,
    /// Its purpose.
    pub kind: Kind,
}

/// Purpose of a sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Programs and libraries.
    Programs,
    /// To be read.
    Data,
    /// A device that does no harm, e.g. `/dev/null`.
    Device,
}

impl Client {
    /// Refuses what no jail could be made of, in words.
    pub(crate) fn check(&self, mounts: &[Mount]) -> Result<(), String> {
        if self.bind_mounts.len() > SIGHTS_MAX {
            return Err(format!("{} bind_mounts are more than {SIGHTS_MAX}", self.bind_mounts.len()));
        }
        let mut targets: BTreeSet<&str> = mounts.iter().map(|mount| mount.target.as_str()).collect();
        for sight in &self.bind_mounts {
            if !is_plain(&sight.target) || !sight.source.is_absolute() {
                return Err(format!("a sight of {} at {:?} is not plain", sight.source.display(), sight.target));
            }
            if !targets.insert(&sight.target) {
                return Err(format!("target {} is there twice", sight.target));
            }
        }
        for (name, target) in &self.links {
            if name.contains('/') || !is_plain(&format!("/{name}")) || !is_plain(&format!("/{target}")) {
                return Err(format!("a link {name:?} to {target:?} is not plain"));
            }
        }
        if !is_plain(&self.program) || !is_plain(&self.directory) {
            return Err(format!("program {:?} or directory {:?} is not plain", self.program, self.directory));
        }
        if self.network.as_ref().is_some_and(|network| network.ports.len() > PORTS_MAX) {
            return Err(format!("more than {PORTS_MAX} ports"));
        }
        let variables = self.environment.iter().flat_map(|(name, value)| [name, value]);
        let words = || self.args.iter().chain(variables.clone());
        if words().any(|word| word.contains('\0')) || self.environment.iter().any(|(name, _)| name.contains('=')) {
            return Err("an argument or a variable with a null byte, or a name with =".to_owned());
        }
        if words().map(String::len).sum::<usize>() > WORDS_BYTES_MAX {
            return Err(format!("arguments and variables of more than {WORDS_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// Returns the names in the root of the jail beside the mounts.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let of_sights =
            self.bind_mounts.iter().filter_map(|sight| sight.target.trim_start_matches('/').split('/').next());
        of_sights.chain(self.links.iter().map(|(name, _)| name.as_str()))
    }
}

/// Returns whether a path is `/` and plain names.
fn is_plain(path: &str) -> bool {
    let plain = |name: &str| {
        let bytes = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b));
        !name.is_empty() && !name.starts_with('.') && bytes
    };
    path.len() < 256 && path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(plain))
}
