//! The specification of a client: a program of this machine that fetches or unpacks software, or an MCP server.
//!
//! A client sees the machine's programs, but nothing of the host's state: by bind mounts, or as `system` of its spec. See
//! `crate::native::client_mounts`, which attaches the bind mounts.

use super::Mount;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Bind mounts that a client may have; no client needs as many.
pub const BIND_MOUNTS_MAX: usize = 48;
/// Ports that a client may use.
pub const PORTS_MAX: usize = 16;
/// Bytes of all arguments and variables. With the rest of the request, this is less than the bound of a message to the launcher.
pub const WORDS_BYTES_MAX: usize = 40 * 1024;

/// A program of this machine, and the part of the machine that it sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Path in the jail of the program that is executed.
    pub program: String,
    /// Its arguments, without its name.
    pub args: Vec<String>,
    pub environment: Vec<(String, Variable)>,
    /// Its working directory: the target of a mount, or below one.
    pub directory: String,
    /// Files of the machine that it sees.
    pub bind_mounts: Vec<BindMount>,
    /// Links in its root, each with name and target: `bin` to `usr/bin`.
    pub links: Vec<(String, String)>,
    /// Access to the host's network; without it, the client has an empty network namespace.
    pub network: Option<Network>,
    /// The use of its link.
    pub streams: Streams,
    /// Whether it starts a browser: it sees the files of [`crate::browser`] beside the machine's programs.
    pub browser: bool,
}

/// The value of a variable, which may be a secret. It does not print, and wipes itself.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct Variable(#[serde(serialize_with = "as_text")] Zeroizing<String>);

impl Variable {
    /// Returns the value, for the one place that starts the program.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Variable {
    fn from(value: String) -> Self {
        Self(Zeroizing::new(value))
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variable")
    }
}

fn as_text<S: Serializer>(value: &Zeroizing<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value)
}

/// The standard streams of a client that are its link. The others are the null device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// Standard output and standard error.
    #[default]
    Output,
    /// Standard input and standard output, which carry a protocol.
    Both {
        /// The file for standard error: its path in the jail, on a mount that the client may write. The client makes it with mode 0600.
        /// An existing file is an error, so that the client cannot prepare a link there.
        errors: String,
    },
}

/// Access of a client to the host's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The TCP ports that it may connect to. The kernel enforces them from Landlock ABI 4 on.
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
    pub kind: Kind,
}

/// Purpose of a bind mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Programs,
    /// Files that are only read.
    Data,
    /// A harmless device, e.g. `/dev/null`.
    Device,
}

impl Client {
    /// Refuses a client that no jail can run; the error is a sentence. `has_system` is true if its spec has the machine's programs.
    pub(crate) fn check(&self, mounts: &[Mount], has_system: bool) -> Result<(), String> {
        if has_system && !(self.network.is_none() && self.bind_mounts.is_empty() && self.links.is_empty()) {
            return Err("a client with `system` takes no network, bind mount or link".to_owned());
        }
        if self.browser && !has_system {
            return Err("a browser needs the programs of the machine".to_owned());
        }
        if self.bind_mounts.len() > BIND_MOUNTS_MAX {
            return Err(format!("{} bind mounts are more than {BIND_MOUNTS_MAX}", self.bind_mounts.len()));
        }
        let mut targets: BTreeSet<&str> = mounts.iter().map(|mount| mount.target.as_str()).collect();
        for one in &self.bind_mounts {
            if !is_plain(&one.target) || !one.source.is_absolute() {
                return Err(format!("bind mount of {} at {:?} is not plain", one.source.display(), one.target));
            }
            if !targets.insert(&one.target) {
                return Err(format!("mount target {} is used twice", one.target));
            }
        }
        for (name, target) in &self.links {
            if name.contains('/') || !is_plain(&format!("/{name}")) || !is_plain(&format!("/{target}")) {
                return Err(format!("a link {name:?} to {target:?} is not plain"));
            }
        }
        if let Streams::Both { errors } = &self.streams {
            let is_below = |mount: &Mount| errors.strip_prefix(&mount.target).is_some_and(|rest| rest.starts_with('/'));
            if !is_plain(errors) || !mounts.iter().any(|mount| !mount.read_only && is_below(mount)) {
                return Err(format!("the file {errors:?} for standard error is on no mount that can be written"));
            }
        }
        if !is_plain(&self.program) || !is_plain(&self.directory) {
            return Err(format!("program {:?} or directory {:?} is not plain", self.program, self.directory));
        }
        if self.network.as_ref().is_some_and(|network| network.ports.len() > PORTS_MAX) {
            return Err(format!("more than {PORTS_MAX} ports"));
        }
        let variables = self.environment.iter().flat_map(|(name, value)| [name.as_str(), value.expose()]);
        let words = || self.args.iter().map(String::as_str).chain(variables.clone());
        if words().any(|word| word.contains('\0')) || self.environment.iter().any(|(name, _)| name.contains('=')) {
            return Err("an argument or a variable with a null byte, or a name with =".to_owned());
        }
        if words().map(str::len).sum::<usize>() > WORDS_BYTES_MAX {
            return Err(format!("arguments and variables of more than {WORDS_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// Returns the names in the root of the jail, without the mounts of the spec.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let of_mounts = self.bind_mounts.iter().filter_map(|one| one.target.trim_start_matches('/').split('/').next());
        of_mounts.chain(self.links.iter().map(|(name, _)| name.as_str()))
    }
}

/// Returns whether a path is absolute and has only plain names.
fn is_plain(path: &str) -> bool {
    let plain = |name: &str| {
        let bytes = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b));
        !name.is_empty() && !name.starts_with('.') && bytes
    };
    path.len() < 256 && path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_with_programs_of_the_machine_takes_no_network() {
        let plain = || Client { program: "/usr/bin/x".into(), directory: "/state".into(), ..Client::default() };
        assert_eq!(plain().check(&[], true), Ok(()));
        let network = Client { network: Some(Network { ports: Vec::new() }), ..plain() };
        assert_eq!(network.check(&[], false), Ok(()));
        let mount = BindMount { source: "/etc".into(), target: "/etc".into(), kind: Kind::Data };
        let mount = Client { bind_mounts: vec![mount], ..plain() };
        let link = Client { links: vec![("bin".into(), "usr/bin".into())], ..plain() };
        for client in [network, mount, link] {
            assert!(client.check(&[], true).is_err(), "{client:?}");
        }
        let browser = Client { browser: true, ..plain() };
        assert_eq!((browser.check(&[], true), browser.check(&[], false).is_err()), (Ok(()), true));
    }

    #[test]
    fn value_of_a_variable_is_sent_and_not_printed() {
        let environment = vec![("KEY".to_owned(), "s3cret".to_owned().into())];
        let client = Client { environment, ..Client::default() };
        assert!(!format!("{client:?}").contains("s3cret"));
        let sent = serde_json::to_string(&client).expect("JSON");
        assert_eq!(serde_json::from_str::<Client>(&sent).expect("a client"), client);
        assert!(sent.contains(r#"["KEY","s3cret"]"#), "{sent}");
    }

    #[test]
    fn file_for_errors_is_on_a_mount_that_can_be_written() {
        let mount = |target: &str, read_only| Mount {
            source: "/x".into(),
            target: target.to_owned(),
            read_only,
            granted: false,
        };
        let mounts = [mount("/state", false), mount("/data", true)];
        let check = |errors: &str| {
            let streams = Streams::Both { errors: errors.to_owned() };
            let directory = "/state".to_owned();
            Client { program: "/usr/bin/x".into(), directory, streams, ..Client::default() }.check(&mounts, true)
        };
        assert_eq!(check("/state/log"), Ok(()));
        for errors in ["/data/log", "/state", "/statelog", "/state/../log", "log", ""] {
            assert!(check(errors).is_err(), "{errors}");
        }
    }
}
