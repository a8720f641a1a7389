//! The network of a jail: a gateway of the host, which is the only peer in the network namespace of the jail.
//!
//! Never gives a jail a secret. Ends with the jail. See [`gateway`] for the requests that the host makes, [`inside`] for those that a
//! command makes over TLS, and [`tunnel`] for connections that a program makes by itself.

pub(crate) mod address;
mod authority;
mod certificate;
mod client_hello;
mod gateway;
mod hosts;
mod inside;
pub mod roots;
pub(crate) mod route;
mod suggestion;
mod traffic;
pub mod trust;
mod tunnel;

pub use address::PORT;
pub use authority::Authority;
pub use gateway::Gateway;
pub use hosts::{GrantedHost, OfCommand, Reach};
pub use traffic::Traffic;
pub use trust::Trust;

use crate::registry::live_settings::Live;
use ironclaw_judge::egress::{Grant, Loopback};
use ironclaw_model::fetch::Fetcher;
use ironclaw_model::reach::lan::{self, Shown};
use roots::Roots;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Senders to hosts of the local network that are kept.
const SHOWN_MAX: usize = 64;

/// The senders of requests to granted hosts.
#[derive(Debug)]
pub struct Fetchers {
    settings: Arc<Live>,
    public: Arc<Fetcher>,
    with_loopback: OnceLock<Arc<Fetcher>>,
    /// One for the addresses of each host of the local network.
    shown: Mutex<HashMap<Vec<IpAddr>, Arc<Fetcher>>>,
}

impl Fetchers {
    /// Makes them; the settings decide at each connection about the local network.
    pub fn new(settings: Arc<Live>) -> Self {
        Self { settings, public: Arc::default(), with_loopback: OnceLock::new(), shown: Mutex::default() }
    }

    /// Returns the sender to the host of a grant, or to one without a grant.
    pub fn for_grant(&self, grant: Option<&Grant>, loopback: Loopback) -> Arc<Fetcher> {
        match grant.map(Grant::addresses) {
            None | Some([]) => Arc::clone(self.for_loopback(loopback)),
            Some(addresses) => {
                let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                if all.len() >= SHOWN_MAX {
                    all.clear();
                }
                let make = || Arc::new(Fetcher::to_shown(self.shown(addresses.to_vec())));
                Arc::clone(all.entry(addresses.to_vec()).or_insert_with(make))
            }
        }
    }

    /// Returns whether the settings admit a connection to these addresses now; to a host of the public Internet they always do.
    pub fn admits(&self, addresses: &[IpAddr]) -> bool {
        let ranges = &self.settings.now().host_policy.egress.lan;
        addresses.is_empty() || addresses.iter().any(|address| lan::admits(ranges, *address))
    }

    /// Returns the addresses that people read, with the ranges of the moment of a connection.
    pub fn shown(&self, addresses: Vec<IpAddr>) -> Shown {
        let settings = Arc::clone(&self.settings);
        Shown { addresses, ranges: Arc::new(move || settings.now().host_policy.egress.lan.clone()) }
    }

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

/// Returns the variables with which a program finds the tunnels of its gateway, and the certificates that the machine trusts.
pub fn tunnel_variables() -> Vec<(String, String)> {
    let roots = Roots::find();
    address::proxy().into_iter().chain(roots.iter().flat_map(Roots::variables)).collect()
}
