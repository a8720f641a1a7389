//! The certificates that a command trusts: those of this machine, and the authority of its gateway. Beside them, the
//! scripts of git and node.
//!
//! One directory of the host, which jails of commands see read-only. Never holds a key. See [`super::authority`] and [`super::roots`].

use super::authority::{Authority, NoKey};
use crate::reach::packages::ROOTS;
use ironclaw_jail::Mount;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Their directory in a jail.
const TARGET: &str = "/certificates";
const FILE: &str = "gateway.pem";
/// The script that git runs in place of ssh, in a jail. Its first argument is the name of the agent, and the others are those of ssh.
pub(crate) const SSH: &str = "/certificates/ssh";
const SSH_FILE: &str = "ssh";
const SSH_SCRIPT: &str = r#"agent=$1
shift
while [ $# -gt 0 ]; do
    case $1 in -[op]) shift 2 ;; -*) shift ;; *) break ;; esac
done
host=$(printf %s "${1#*@}" | tr A-Z a-z)
echo "ssh reaches no host from here: write https://$host/PATH" >&2
echo "if $host is not granted, an operator can grant it: ironctl egress grant $agent $host --commands git" >&2
exit 255
"#;
/// The options of node: it reads a file before each program.
pub(crate) const NODE_OPTIONS: &str = "--require=/certificates/node.cjs";
const NODE_FILE: &str = "node.cjs";
const NODE_SCRIPT: &str = r#""use strict";
// A jail has no /proc, and yarn 1 ends without the size of its memory.
const { memoryUsage } = process;
const orElse = (read, other) => () => { try { return read(); } catch { return other; } };
const unknown = { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 };
process.memoryUsage = Object.assign(orElse(memoryUsage, unknown), { rss: orElse(memoryUsage.rss, 0) });
"#;
/// The variables by which programs find them: OpenSSL and those that follow it, curl, git, requests of Python, pip, node, cargo, yarn,
/// deno.
const VARIABLES: [&str; 9] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "YARN_HTTPS_CA_FILE_PATH",
    "DENO_CERT",
];

/// The reason why a host cannot have gateways.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Key(#[from] NoKey),
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
}

/// The authority of the gateways of one host process, and the directory with the certificates that commands trust.
#[derive(Debug)]
pub struct Trust {
    directory: PathBuf,
    authority: Arc<Authority>,
}

impl Trust {
    /// Makes an authority, and writes its certificate and those of the machine into a directory below a private one.
    ///
    /// # Errors
    /// Fails without random numbers, and if the directory cannot be written.
    pub fn make(private: &Path) -> Result<Self, Error> {
        let authority = Authority::new()?;
        let of_machine = ROOTS.into_iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let directory = directory(private);
        let written =
            |path: &Path, done: io::Result<()>| done.map_err(|source| Error::Write { path: path.to_owned(), source });
        written(&directory, std::fs::create_dir_all(&directory))?;
        let certificates = format!("{}{of_machine}", authority.pem());
        // The user of a jail is another one.
        let shown = |path: &Path, mode| written(path, std::fs::set_permissions(path, PermissionsExt::from_mode(mode)));
        shown(&directory, 0o755)?;
        for (name, text) in [(FILE, &*certificates), (SSH_FILE, SSH_SCRIPT), (NODE_FILE, NODE_SCRIPT)] {
            let file = directory.join(name);
            written(&file, std::fs::write(&file, text))?;
            shown(&file, 0o644)?;
        }
        Ok(Self { directory, authority: Arc::new(authority) })
    }

    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// Returns the directory as a part of a jail.
    pub fn mount(&self) -> Mount {
        Mount { source: self.directory.clone(), target: TARGET.to_owned(), read_only: true, granted: false }
    }
}

/// Returns the directory of the certificates below a private one.
pub(crate) fn directory(private: &Path) -> PathBuf {
    private.join("certificates")
}

/// Returns the variables of a command.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    VARIABLES.into_iter().map(|name| (name.to_owned(), format!("{TARGET}/{FILE}")))
}
