//! The payload of the change `egress`: requests to one host of the network, which the host makes for an agent.
//!
//! Never decides about a request: the host does. See [`crate::seam::change`] and [`crate::seam::bounds`].

use super::field::{each_once, names, text};
use super::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX, UPLOAD_BYTES_MAX};
use super::message::word;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

word!(/// The use of a granted host by commands of the agent.
Commands {
    /// Repositories of git.
    Git = "git",
    /// A registry of npm.
    Npm = "npm",
    /// An index or the files of Python packages.
    Pip = "pip",
    /// Any other.
    Other = "other",
    /// Connections of their own, which the host cannot read: no methods, no paths and no secret.
    Tunnel = "tunnel",
});

/// Requests to one host of the network for one agent. It replaces the grant of that host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Egress {
    /// Name of the host. Never a wildcard.
    pub host: String,
    /// The port; absent: 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Methods of HTTP; an empty list removes the grant, except with [`Commands::Tunnel`].
    pub methods: Vec<String>,
    /// Templates of paths, such as `/repos/{owner}/issues`; each `{…}` is one segment. Without any, only whole URLs that a person typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Name of the secret that the host adds as a bearer token, never its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Bytes of the body of one request; absent: no body. In tunnels: bytes that one command sends; absent: the bound of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_bytes_max: Option<u64>,
    /// The use by commands; absent: no command reaches the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
}

impl Egress {
    /// Returns whether it removes the grant of the host.
    pub fn removes(&self) -> bool {
        self.methods.is_empty() && self.commands != Some(Commands::Tunnel)
    }

    pub(super) fn within_bounds(&self) -> Result<(), String> {
        let Self { host, port, methods, paths, secret, upload_bytes_max, commands } = self;
        text("host", host, NAME_BYTES_MAX)?;
        names("a method", methods)?;
        each_once(paths, "paths", "a path", "must be", PATH_BYTES_MAX)?;
        text("secret", secret.as_deref().unwrap_or("-"), NAME_BYTES_MAX)?;
        if upload_bytes_max.is_some_and(|bytes| !(1..=UPLOAD_BYTES_MAX).contains(&bytes)) {
            return Err(format!("upload_bytes_max must be 1 to {UPLOAD_BYTES_MAX}"));
        }
        let has_request = !methods.is_empty() || !paths.is_empty() || secret.is_some();
        if *commands == Some(Commands::Tunnel) && has_request {
            return Err("commands is tunnel, which takes no methods, paths and secret: leave them out".to_owned());
        }
        if commands.is_some() && paths.is_empty() && !methods.is_empty() {
            return Err("commands needs paths: name each path that a command may request".to_owned());
        }
        let has_more = !paths.is_empty() || secret.is_some() || upload_bytes_max.is_some() || commands.is_some();
        if self.removes() && has_more {
            return Err("methods is empty, which removes the grant: leave the other fields out".to_owned());
        }
        if *port == Some(0) { Err("port must be 1 to 65535".to_owned()) } else { Ok(()) }
    }
}
