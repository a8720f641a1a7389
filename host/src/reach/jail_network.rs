//! The network of a jail: a gateway of the host, which is the only peer in the network namespace of the jail.
//!
//! Never gives a jail a secret. Ends with the jail. See [`gateway`] for the requests that the host makes, and [`tunnel`] for connections
//! that a program makes by itself.

pub(crate) mod address;
mod client_hello;
mod gateway;
mod rewrite;
pub mod roots;
pub(crate) mod route;
mod tunnel;

pub use gateway::{Gateway, Traffic};

use ironclaw_judge::egress::{Commands, Grant, Loopback};
use ironclaw_model::fetch::{Credential, Fetcher, Form};
use ironclaw_state::keys::SecretText;
use ironclaw_text::lookalike;
use roots::Roots;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

/// The port of 127.0.0.1 in the jail on which the gateway listens.
pub const PORT: u16 = 8129;
/// The user of a secret in a request of git; hosts of repositories take a token as a password.
const GIT_USER: &str = "x-access-token";
/// The refused requests that a result names.
const REFUSALS_SHOWN_MAX: usize = 8;

/// The senders of requests to granted hosts.
#[derive(Debug, Default)]
pub struct Fetchers {
    public: Arc<Fetcher>,
    with_loopback: OnceLock<Arc<Fetcher>>,
}

impl Fetchers {
    /// Returns the sender for the present settings.
    pub fn for_loopback(&self, loopback: Loopback) -> &Arc<Fetcher> {
        match loopback {
            Loopback::Refused => &self.public,
            Loopback::DangerousAllowed => {
                self.with_loopback.get_or_init(|| Arc::new(Fetcher::dangerous_with_loopback()))
            }
        }
    }
}

/// A host to which the gateway sends requests.
pub struct GrantedHost {
    pub grant: Grant,
    /// Its secret, if it has one.
    pub secret: Option<SecretText>,
}

impl GrantedHost {
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
}

/// Returns the variables with which a program finds the tunnels of its gateway, and the certificates that the machine trusts.
pub fn tunnel_variables() -> Vec<(String, String)> {
    let roots = Roots::find();
    address::proxy().into_iter().chain(roots.iter().flat_map(Roots::variables)).collect()
}

impl Traffic {
    /// Returns a line for each of the first refused requests, for the result of a call.
    pub fn refusals_shown(&self) -> String {
        let mut text = String::new();
        for refused in self.refused.iter().take(REFUSALS_SHOWN_MAX) {
            let _ = writeln!(text, "[the gateway refused {}: {}]", lookalike::neutralise(&refused.what), refused.code);
        }
        if self.refusals > REFUSALS_SHOWN_MAX as u64 {
            let _ = writeln!(text, "[the gateway refused {} requests]", self.refusals);
        }
        text
    }
}
