//! The check of the address of an MCP server, and of its issuer.
//!
//! Never asks DNS. See [`ironclaw_net::reach`] for the check of a connection.

use ironclaw_net::reach;
use url::{Host, Url};

/// Parses an address: https, or http on this machine.
///
/// # Errors
/// The reason, without the address, which may contain a password.
pub fn parse(text: &str) -> Result<Url, &'static str> {
    let url = parse_plain(text)?;
    match url.scheme() == "http" && !is_near(&url) {
        true => Err("plain http to another machine is not encrypted"),
        false => Ok(url),
    }
}

/// Parses an address: https, or http on any machine. The caller checks that it is of the local network.
///
/// # Errors
/// As [`parse`].
pub fn parse_plain(text: &str) -> Result<Url, &'static str> {
    let url: Url = text.parse().map_err(|_| "it is not a URL")?;
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err("it has a user name, a password or a #");
    }
    if reach::check_literal(&url).is_err() {
        return Err("the host never contacts link-local addresses or a cloud's metadata service");
    }
    if url.host().is_none() {
        return Err("it names no host");
    }
    match url.scheme() {
        "https" | "http" => Ok(url),
        _ => Err("it is neither http nor https"),
    }
}

/// Returns whether an address is on this machine.
pub fn is_near(url: &Url) -> bool {
    match url.host() {
        None => false,
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    }
}
