//! The certificates that this machine trusts, for programs that check a server in a tunnel.
//!
//! Never shows another directory than those that the jails of package clients show too. See [`super::tunnel`].

use crate::reach::packages::ROOTS;
use ironclaw_jail::Mount;
use std::path::PathBuf;

/// Their directory in a jail.
const TARGET: &str = "/certificates";
/// The directories that may be shown; the host does not start with files of its own in them.
const SHOWN: [&str; 3] = ["/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust"];
/// The variables by which programs find them: OpenSSL and those that follow it, curl, git, requests of Python, node.
const VARIABLES: [&str; 5] =
    ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"];

/// The file of the trusted certificates.
pub struct Roots {
    directory: PathBuf,
    name: String,
}

impl Roots {
    /// Finds the file. `None` if this machine has it in no usual place.
    pub fn find() -> Option<Self> {
        let file = ROOTS.into_iter().find_map(|file| std::fs::canonicalize(file).ok())?;
        let directory = file.parent()?.to_owned();
        let is_shown = SHOWN.iter().any(|shown| directory.starts_with(shown));
        let name = file.file_name()?.to_str()?.to_owned();
        is_shown.then_some(Self { directory, name })
    }

    /// Returns their directory as a part of a jail.
    pub fn mount(self) -> Mount {
        Mount { source: self.directory, target: TARGET.to_owned(), read_only: true, granted: false }
    }

    /// Returns the variables of a program that may use tunnels.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let file = format!("{TARGET}/{}", self.name);
        VARIABLES.into_iter().map(move |name| (name.to_owned(), file.clone()))
    }
}
