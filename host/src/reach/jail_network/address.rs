//! The addresses of granted hosts: on the network, and at the gateway.
//!
//! Pure. See [`super::gateway`].

use ironclaw_judge::egress::Grant;

/// The port of 127.0.0.1 in the jail on which the gateway listens.
pub const PORT: u16 = 8129;

/// Returns the origin of a granted host, with a slash at its end.
pub(crate) fn origin(grant: &Grant) -> String {
    let scheme = if grant.host().is_loopback() || grant.is_plain() { "http" } else { "https" };
    format!("{scheme}://{}/", name(grant))
}

/// Returns the address of a granted host at the gateway, with a slash at its end.
pub(crate) fn at_gateway(grant: &Grant) -> String {
    format!("{}/{}/", gateway(), name(grant))
}

/// Returns the name of a granted host in paths of the gateway: with its port, if that is not 443.
pub(crate) fn name(grant: &Grant) -> String {
    match grant.port() {
        443 if !grant.host().is_loopback() && !grant.is_plain() => grant.host().to_string(),
        port => format!("{}:{port}", grant.host()),
    }
}

/// Returns the address of the gateway, without a slash at its end.
pub(crate) fn gateway() -> String {
    format!("http://127.0.0.1:{PORT}")
}

/// The variables with which the program of a server finds the tunnels of its gateway.
pub(super) fn proxy() -> Vec<(String, String)> {
    let gateway = gateway();
    [
        ("https_proxy", &*gateway),
        ("HTTPS_PROXY", &gateway),
        // The addresses at the gateway are plain http, and no program asks a proxy for them.
        ("no_proxy", "127.0.0.1"),
        ("NO_PROXY", "127.0.0.1"),
        // Node reads the others only with this one.
        ("NODE_USE_ENV_PROXY", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
