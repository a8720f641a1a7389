//! The grant of one host to one agent: methods, paths, the credential and the size of a body.
//!
//! Never grants a host by a wildcard, and never a credential beyond listed paths. See [`super::template`].

use super::canonical::{CanonicalUrl, PLAIN, UrlError};
use super::host::{HostError, HostName, Loopback};
use super::method::{Method, UnknownMethod};
use super::template::{Template, TemplateError};
use ironclaw_contract::seam::egress::Commands;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Templates of a grant.
pub const PATHS_MAX: usize = 64;
/// The largest body that a grant can admit.
pub const UPLOAD_BYTES_MAX: u64 = 10 << 20;
/// The body that a grant admits without a number.
pub const UPLOAD_BYTES_DEFAULT: u64 = 64 << 10;
/// The prefix of the name of a secret in settings.
pub const SECRET_PREFIX: &str = "secret:";
/// Characters of the name of a secret.
pub const SECRET_CHARACTERS_MAX: usize = 64;
/// The ports of name resolution, which no tunnel reaches.
const NAME_PORTS: [u16; 2] = [53, 853];
const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

/// A grant as it is written in TOML or JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantText {
    /// The full name of the host; behind `http://` for requests over plain http to the local network.
    pub host: String,
    /// The port, if it is not 443, or 80 for plain http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The methods; GET and HEAD if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Templates of paths. Without any, only whole URLs that a person typed or endorsed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The name of the secret that requests may carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Bytes of a body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_bytes_max: Option<u64>,
    /// The use by commands; without it, no command reaches the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    host: HostName,
    port: u16,
    methods: BTreeSet<Method>,
    paths: Vec<Template>,
    secret: Option<SecretName>,
    upload_bytes_max: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Commands>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    plain: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<IpAddr>,
}

impl Grant {
    /// Checks a written grant.
    ///
    /// # Errors
    /// The first part that is no grant, with the text to write instead.
    pub fn check(text: &GrantText, loopback: Loopback) -> Result<Self, GrantError> {
        let named = text.host.strip_prefix(PLAIN);
        let host = HostName::parse(named.unwrap_or(&text.host), loopback)?;
        let plain = named.is_some() && !host.is_loopback();
        let port = match text.port {
            Some(0) => return Err(GrantError::PortZero),
            Some(port) => port,
            None if host.is_loopback() => return Err(GrantError::LoopbackPort(host)),
            None if plain => HTTP_PORT,
            None => HTTPS_PORT,
        };
        if text.commands == Some(Commands::Tunnel) {
            return Self::tunnel(text, host, port);
        }
        let mut methods = text.methods.iter().map(|word| word.parse()).collect::<Result<BTreeSet<Method>, _>>()?;
        if methods.is_empty() {
            methods = BTreeSet::from([Method::Get, Method::Head]);
        }
        let mut paths = Vec::new();
        for path in &text.paths {
            let template = match text.commands {
                Some(Commands::Npm) => Template::for_registry(path)?,
                _ => path.parse()?,
            };
            if !paths.contains(&template) {
                paths.push(template);
            }
        }
        if paths.len() > PATHS_MAX {
            return Err(GrantError::Paths(paths.len()));
        }
        let secret = text.secret.as_deref().map(str::parse).transpose()?;
        let writes = methods.iter().find(|method| !method.only_reads()).copied();
        match (paths.is_empty(), writes, &secret) {
            (true, Some(method), _) => return Err(GrantError::NeedsPath(method)),
            (true, None, Some(_)) => return Err(GrantError::SecretNeedsPath),
            (true, None, None) | (false, _, _) => {}
        }
        if text.commands.is_some() && paths.is_empty() {
            return Err(GrantError::CommandsNeedPath);
        }
        let upload_bytes_max = upload(text.upload_bytes_max, writes)?;
        let addresses = Vec::new();
        Ok(Self { host, port, methods, paths, secret, upload_bytes_max, commands: text.commands, plain, addresses })
    }

    fn tunnel(text: &GrantText, host: HostName, port: u16) -> Result<Self, GrantError> {
        let named = [
            ("methods", !text.methods.is_empty()),
            ("paths", !text.paths.is_empty()),
            ("a secret", text.secret.is_some()),
            ("http://", text.host.starts_with(PLAIN)),
        ];
        if let Some((what, _)) = named.into_iter().find(|(_, is_named)| *is_named) {
            return Err(GrantError::TunnelHas(what));
        }
        if host.is_address() {
            return Err(GrantError::TunnelAddress(host));
        }
        if NAME_PORTS.contains(&port) {
            return Err(GrantError::TunnelPort(port));
        }
        let upload_bytes_max = upload(text.upload_bytes_max, Some(Method::Post))?;
        let (methods, paths, commands) = (BTreeSet::new(), Vec::new(), text.commands);
        let addresses = Vec::new();
        Ok(Self { host, port, methods, paths, secret: None, upload_bytes_max, commands, plain: false, addresses })
    }

    /// Returns the grant with the private addresses that people read with it; requests go to these alone.
    #[must_use]
    pub fn with_addresses(mut self, addresses: Vec<IpAddr>) -> Self {
        self.addresses = addresses;
        self
    }

    pub const fn host(&self) -> &HostName {
        &self.host
    }

    /// Returns the private addresses that people read with the grant; none for a host of the public Internet.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Returns whether its requests are plain http to another machine.
    pub const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Returns whether a URL has the host, the port and the encryption of this grant.
    pub fn is_of(&self, url: &CanonicalUrl) -> bool {
        self.host == *url.host() && self.port == url.port() && self.plain == url.is_plain()
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    pub const fn methods(&self) -> &BTreeSet<Method> {
        &self.methods
    }

    pub fn paths(&self) -> &[Template] {
        &self.paths
    }

    /// Returns the name of the secret that requests may carry.
    pub const fn secret(&self) -> Option<&SecretName> {
        self.secret.as_ref()
    }

    /// Returns the bytes of the largest body; of a tunnel, the bytes that one command may send.
    pub const fn upload_bytes_max(&self) -> u64 {
        self.upload_bytes_max
    }

    /// Returns the use by commands; `None` if no command reaches the host.
    pub const fn commands(&self) -> Option<Commands> {
        self.commands
    }

    /// Returns whether it admits tunnels of commands, and no request that the host sends.
    pub fn is_tunnel(&self) -> bool {
        self.commands == Some(Commands::Tunnel)
    }

    /// Returns the grant as it is written in full: equal grants have equal texts.
    pub fn text(&self) -> GrantText {
        let usual = if self.plain { HTTP_PORT } else { HTTPS_PORT };
        let is_usual = self.port == usual && !self.host.is_loopback();
        let has_body = self.is_tunnel() || self.methods.iter().any(|method| !method.only_reads());
        GrantText {
            host: if self.plain { format!("{PLAIN}{}", self.host) } else { self.host.to_string() },
            port: (!is_usual).then_some(self.port),
            methods: self.methods.iter().map(ToString::to_string).collect(),
            paths: self.paths.iter().map(ToString::to_string).collect(),
            secret: self.secret.as_ref().map(|secret| secret.as_str().to_owned()),
            upload_bytes_max: has_body.then_some(self.upload_bytes_max),
            commands: self.commands,
        }
    }
}

impl CanonicalUrl {
    /// Parses a URL for these grants. Plain http to another machine needs a grant of it.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_for<'g>(
        written: &str,
        loopback: Loopback,
        grants: impl IntoIterator<Item = &'g Grant>,
    ) -> Result<Self, UrlError> {
        let url = Self::parse_typed(written, loopback)?;
        match url.is_plain() && !grants.into_iter().any(|grant| grant.is_of(&url)) {
            true => Err(UrlError::PlainHttp),
            false => Ok(url),
        }
    }
}

/// Returns the bytes of the largest body.
fn upload(bytes: Option<u64>, writes: Option<Method>) -> Result<u64, GrantError> {
    match (bytes, writes) {
        (Some(bytes), _) if bytes > UPLOAD_BYTES_MAX => Err(GrantError::Upload(bytes)),
        (Some(1..), None) => Err(GrantError::BodyBytesWithoutBody),
        (Some(bytes), _) => Ok(bytes),
        (None, Some(_)) => Ok(UPLOAD_BYTES_DEFAULT),
        (None, None) => Ok(0),
    }
}

/// The name of a secret, which reveals nothing about it. Written `secret:NAME` for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SecretName(String);

impl SecretName {
    /// Returns the name without the prefix `secret:`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SECRET_PREFIX}{}", self.0)
    }
}

/// A text that is no name of a secret. The error does not quote it, because a caller may confuse name and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid name of a secret: write 1 to {SECRET_CHARACTERS_MAX} characters of a-z, 0-9, - and _, starting with a letter or a digit"
)]
pub struct NoSecretName;

impl FromStr for SecretName {
    type Err = NoSecretName;

    /// Parses a name with or without `secret:`.
    fn from_str(text: &str) -> Result<Self, NoSecretName> {
        let name = text.strip_prefix(SECRET_PREFIX).unwrap_or(text);
        let is_first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_usual = |c: char| is_first(c) || matches!(c, '-' | '_');
        let is_name = name.len() <= SECRET_CHARACTERS_MAX && name.starts_with(is_first) && name.chars().all(is_usual);
        if is_name { Ok(Self(name.to_owned())) } else { Err(NoSecretName) }
    }
}

impl<'de> Deserialize<'de> for SecretName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The reason why a text is no grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error(transparent)]
    Host(#[from] HostError),
    /// Port 0.
    #[error("0 is no port: write 1 to 65535, or leave it out for 443")]
    PortZero,
    /// A host of this machine without a port.
    #[error("a grant of {0} needs its port")]
    LoopbackPort(HostName),
    #[error(transparent)]
    Method(#[from] UnknownMethod),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{0} paths are over the limit of {PATHS_MAX}: write a slot where paths differ in one segment")]
    Paths(usize),
    /// A method with an effect, and no path.
    #[error("a grant of {0} needs at least one path: write a template such as /repos/{{owner}}/issues")]
    NeedsPath(Method),
    /// A credential, and no path.
    #[error("a grant with a secret needs at least one path: write each path that may receive it")]
    SecretNeedsPath,
    /// A use by commands, and no path.
    #[error("a grant for commands needs at least one path: write each path that a command may request")]
    CommandsNeedPath,
    /// A tunnel, with a part of a request.
    #[error(
        "a tunnel has no requests that the host can read, so it takes no methods, paths and secret: leave out {0}, or grant another use"
    )]
    TunnelHas(&'static str),
    /// A tunnel to an address.
    #[error("{0} is an address, and a tunnel needs a name: write the name that its certificate has")]
    TunnelAddress(HostName),
    /// A tunnel for name resolution.
    #[error("port {0} is for name resolution, and the host resolves names: write the port of a service over TLS")]
    TunnelPort(u16),
    /// The name of the secret.
    #[error(transparent)]
    Secret(#[from] NoSecretName),
    /// A body that is too large.
    #[error("a body of {0} bytes is over the limit of {UPLOAD_BYTES_MAX}: write a smaller number")]
    Upload(u64),
    /// A size of a body, and no method that has one.
    #[error("GET and HEAD have no body: leave out the size of a body, or add a method that has one")]
    BodyBytesWithoutBody,
}
