//! The name of a host in a grant or a request: lower-case ASCII, without a wildcard, and no address.
//!
//! Never resolves a name. The connection checks the addresses behind it; this is the check of the text.

use serde::Serialize;
use std::fmt;
use std::net::IpAddr;
use url::Host;

/// Characters of one label of a host name.
const LABEL_CHARACTERS_MAX: usize = 63;

/// The treatment of hosts that mean this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loopback {
    #[default]
    Refused,
    /// `localhost` and loopback addresses are hosts as others, also over plain http. For tests.
    DangerousAllowed,
}

/// A checked host: a name of at least two labels, or, by setting, a name or an address of this machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct HostName(String);

impl HostName {
    /// Characters of a host name (RFC 1035).
    pub const CHARACTERS_MAX: usize = 253;

    /// Returns the host as it is in a URL; an IPv6 address has its brackets.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it means this machine.
    pub fn is_loopback(&self) -> bool {
        is_localhost(&self.0) || self.is_address()
    }

    /// Returns whether it is an address.
    pub fn is_address(&self) -> bool {
        Host::parse(&self.0).is_ok_and(|host| address(&host).is_some())
    }

    /// Parses the host of a grant.
    ///
    /// # Errors
    /// The first reason why it is no host, with the text to write instead.
    pub fn parse(text: &str, loopback: Loopback) -> Result<Self, HostError> {
        if text.contains('*') {
            return Err(HostError::Wildcard(text.to_owned()));
        }
        if text.contains('@') {
            return Err(HostError::User);
        }
        if text.contains("://") || text.contains(['/', '?', '#', '\\']) {
            return Err(HostError::Url(text.to_owned()));
        }
        let is_address = text.starts_with('[') && text.ends_with(']');
        if !is_address && text.contains(':') {
            return Err(HostError::Port(text.to_owned()));
        }
        let is_usual = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.') || !c.is_ascii() && !c.is_control();
        if let Some(bad) = text.chars().find(|c| !is_address && !is_usual(*c)) {
            return Err(HostError::Character(bad));
        }
        let host = Host::parse(text).map_err(|_| HostError::NoName(text.to_owned()))?;
        Self::from_parsed(&host, text, loopback)
    }

    /// Checks the host of a parsed URL. `written` is its text before it was parsed.
    pub(super) fn from_parsed(host: &Host, written: &str, loopback: Loopback) -> Result<Self, HostError> {
        let name = match host {
            Host::Domain(name) => name,
            Host::Ipv4(_) | Host::Ipv6(_) => {
                let address = any_address(host);
                if address.is_loopback() && loopback == Loopback::DangerousAllowed {
                    return Ok(Self(host.to_string()));
                }
                return Err(HostError::Address { written: written.to_owned(), address });
            }
        };
        if let Some(without) = name.strip_suffix('.') {
            return Err(HostError::LastDot(without.to_owned()));
        }
        check_labels(name)?;
        if is_localhost(name) {
            return match loopback {
                Loopback::DangerousAllowed => Ok(Self(name.clone())),
                Loopback::Refused => Err(HostError::Localhost(name.clone())),
            };
        }
        if !name.contains('.') {
            return Err(HostError::OneLabel(name.clone()));
        }
        Ok(Self(name.clone()))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check_labels(name: &str) -> Result<(), HostError> {
    if name.len() > HostName::CHARACTERS_MAX {
        return Err(HostError::NoName(name.to_owned()));
    }
    for label in name.split('.') {
        let is_usual = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if let Some(bad) = label.chars().find(|c| !u8::try_from(*c).is_ok_and(is_usual)) {
            return Err(HostError::Character(bad));
        }
        let is_bounded = (1..=LABEL_CHARACTERS_MAX).contains(&label.len());
        if !is_bounded || label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::NoName(name.to_owned()));
        }
    }
    Ok(())
}

/// Returns whether a name means this machine (RFC 6761).
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn address(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address)),
    }
}

fn any_address(host: &Host<String>) -> IpAddr {
    address(host).expect("the caller has matched an address")
}

/// The reason why a text is no host of a grant or a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the host {0:?} has a wildcard: write one grant for each host, with its full name")]
    Wildcard(String),
    /// A user before the host.
    #[error(
        "a host has no user and no password: store a credential with `ironctl secret set`, and name it as the secret of the grant"
    )]
    User,
    /// A URL in place of a host.
    #[error("{0:?} is no host: write the name alone, such as api.example.com, and its path as a template")]
    Url(String),
    /// A port in the host.
    #[error("{0:?} is no host: write the name alone, and the port as a field of its own")]
    Port(String),
    /// A character that no host name has.
    #[error("a host name has no {0:?}: write letters, digits, hyphens and dots")]
    Character(char),
    /// Not a host name in another way.
    #[error("{0:?} is no host name: write a name such as api.example.com")]
    NoName(String),
    /// An address in any of its spellings.
    #[error("{written:?} is the address {address}: write the name of the host")]
    Address {
        written: String,
        /// The address that a client would read in it.
        address: IpAddr,
    },
    /// A dot behind the name.
    #[error("the host name ends with a dot: write {0}")]
    LastDot(String),
    #[error("{0:?} is this machine, and requests to it are refused: write the public name of the host")]
    Localhost(String),
    /// A name that only a search list of the resolver completes.
    #[error("{0:?} is no full host name: write it with its domain")]
    OneLabel(String),
}
