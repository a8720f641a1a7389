//! The place of a server: the jail or the URL in its description, and the service there.
//!
//! Never contacts a server. See [`super::registration`] for its credentials.

use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::seam::change::McpRegister;

/// The place where a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a jail of this machine, without a network.
    JailWithoutNetwork,
    /// In a jail of this machine that reaches hosts.
    JailWithHosts,
    /// At a URL.
    Remote,
}

impl Place {
    /// Returns the place of a server with this description.
    pub fn for_description(described: &McpRegister) -> Self {
        match (&described.url, described.hosts.is_empty()) {
            (Some(_), _) => Self::Remote,
            (None, false) => Self::JailWithHosts,
            (None, true) => Self::JailWithoutNetwork,
        }
    }

    /// Returns whether an argument of a call may leave this machine. A server at a URL of this machine counts: the host knows nothing of its
    /// network.
    pub const fn has_network(self) -> bool {
        match self {
            Self::JailWithoutNetwork => false,
            Self::JailWithHosts | Self::Remote => true,
        }
    }
}

/// Returns the server behind a description, by whatever name it is registered: the origin of its URL, or its command.
pub fn origin(described: &McpRegister) -> String {
    match &described.url {
        Some(url) => url_origin(url),
        None => described.command.join(" "),
    }
}

/// Returns the digest of a description: another service has another one.
pub fn service(described: &McpRegister) -> Digest {
    Digest::of(&canonical::to_vec(described))
}

/// Returns the origin of the URL of a server, in lower case.
pub(super) fn url_origin(url: &str) -> String {
    url.split('/').take(3).collect::<Vec<_>>().join("/").to_lowercase()
}
