//! The hosts that a jail may reach, with the secrets that the gateway adds.

use super::authority::Authority;
use ironclaw_judge::egress::{Commands, Grant, Loopback};
use ironclaw_net::fetch::{Credential, Form};
use ironclaw_state::keys::SecretText;
use std::sync::Arc;

/// The user of a secret in a request of git; hosts of repositories take a token as a password.
const GIT_USER: &str = "x-access-token";

/// The ports that a URL without a port means.
pub(super) const HTTP_PORT: u16 = 80;
pub(super) const HTTPS_PORT: u16 = 443;

/// A host to which the gateway sends requests.
pub struct GrantedHost {
    pub grant: Grant,
    /// Its secret, if it has one.
    pub secret: Option<SecretText>,
}

impl GrantedHost {
    /// Returns whether a program means this host by a name and a port, in any spelling of the name. In place of plain http to a host of
    /// the network, the gateway sends https.
    pub(super) fn is_at(&self, host: &str, port: u16) -> bool {
        let (name, granted) = (self.grant.host(), self.grant.port());
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_secured = (port, granted) == (HTTP_PORT, HTTPS_PORT) && !name.is_loopback();
        host.eq_ignore_ascii_case(name.as_str()) && (port == granted || is_secured)
    }

    /// Returns the secret for a request to this host, whose name is `granted`.
    pub(crate) fn credential<'a>(&'a self, granted: &'a str) -> Option<Credential<'a>> {
        let form = match self.grant.commands() {
            Some(Commands::Git) => Form::Basic { user: GIT_USER },
            _ => Form::Bearer,
        };
        let secret = self.secret.as_ref()?;
        Some(Credential { host: granted, port: self.grant.port(), form, secret })
    }
}

/// The hosts that a jail may reach.
#[derive(Clone)]
pub struct Reach {
    /// The hosts to which the gateway sends requests.
    pub hosts: Arc<Vec<GrantedHost>>,
    pub tunnels: Vec<Grant>,
    /// Whether a host of this machine may be granted.
    pub loopback: Loopback,
    /// The command of an agent; `None` for the program of a server, which has tunnels alone.
    pub command: Option<OfCommand>,
}

/// The parts of a gateway that only a command has.
#[derive(Clone)]
pub struct OfCommand {
    /// The name of its agent, for the commands of an operator.
    pub agent: String,
    /// The authority that the command trusts.
    pub authority: Arc<Authority>,
}
