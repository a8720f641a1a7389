//! The senders of requests to granted hosts: of the public Internet, of this machine, and of the local network.
//!
//! Never decides about a host: a grant does. See [`ironclaw_net::fetch`].

use crate::registry::live_settings::Live;
use ironclaw_judge::egress::{Grant, Loopback};
use ironclaw_net::fetch::Fetcher;
use ironclaw_net::reach::lan::{self, Shown};
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
