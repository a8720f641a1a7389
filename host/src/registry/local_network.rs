//! The hosts of the local network: the addresses that a page shows for the name in a change, and their ranges in `[egress] lan`.
//!
//! Looks a name up before a change is proposed, and never while a change is decided. See [`ironclaw_net::reach::lan`] for the
//! connections.

use super::live_settings::HostPolicy;
use ironclaw_contract::seam::change::{Change, Egress, McpRegister};
use ironclaw_judge::egress::{Commands, HostName, Loopback, PLAIN};
use ironclaw_net::reach::{is_localhost, lan};
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::looked_up_names as table;
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::timeout;
use url::{Host, Url};

/// Longest time for the look-up of a name.
const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(5);
/// Addresses of one name.
const ADDRESSES_MAX: usize = 16;

/// The addresses that the host found for a name.
#[derive(Debug)]
pub struct LookedUp {
    name: String,
    addresses: Vec<IpAddr>,
}

impl LookedUp {
    /// Looks up the name in a change; `None` if the change has none, or if the settings admit no local network.
    pub async fn look_up(change: &Change, policy: &HostPolicy) -> Option<Self> {
        let name = name_in(change).filter(|name| !policy.egress.lan.is_empty() && !is_localhost(name))?;
        let found = timeout(LOOK_UP_TIME_MAX, lookup_host((name.as_str(), 0))).await.ok().and_then(Result::ok);
        let mut addresses: Vec<IpAddr> = found.into_iter().flatten().map(|found| found.ip()).collect();
        addresses.sort();
        addresses.dedup();
        addresses.truncate(ADDRESSES_MAX);
        Some(Self { name, addresses })
    }

    pub fn note(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        table::put(tx, &self.name, &self.addresses)
    }
}

/// Returns the name of the host in a change that can reach the local network.
fn name_in(change: &Change) -> Option<String> {
    match change {
        Change::Egress(egress) if !egress.removes() && egress.commands != Some(Commands::Tunnel) => {
            name_of_grant(egress)
        }
        Change::McpRegister(server) => match server.url.as_deref()?.parse::<Url>().ok()?.host()? {
            Host::Domain(name) => Some(name.to_ascii_lowercase()),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        },
        _ => None,
    }
}

/// Returns the name of the host in its one form; `None` if it is no host.
fn name_of_grant(egress: &Egress) -> Option<String> {
    let written = egress.host.strip_prefix(PLAIN).unwrap_or(&egress.host);
    HostName::parse(written, Loopback::DangerousAllowed).ok().map(|name| name.to_string())
}

/// Returns the addresses of the local network of a grant, as the page shows them.
pub fn for_grant(tx: &ReadTx<'_>, policy: &HostPolicy, egress: &Egress) -> Result<Vec<IpAddr>, Error> {
    let reaches = !egress.removes() && egress.commands != Some(Commands::Tunnel);
    let name = if reaches { name_of_grant(egress) } else { None };
    name.map_or(Ok(Vec::new()), |name| admitted(tx, policy, &name))
}

/// Returns the addresses of the local network of a server, as the page shows them.
pub fn for_server(tx: &ReadTx<'_>, policy: &HostPolicy, server: &McpRegister) -> Result<Vec<IpAddr>, Error> {
    let url = server.url.as_deref().and_then(|url| url.parse::<Url>().ok());
    url.map_or(Ok(Vec::new()), |url| for_url(tx, policy, &url))
}

/// Returns the addresses of the local network of a URL.
pub fn for_url(tx: &ReadTx<'_>, policy: &HostPolicy, url: &Url) -> Result<Vec<IpAddr>, Error> {
    let literal = |address| Ok(if lan::admits(&policy.egress.lan, address) { vec![address] } else { Vec::new() });
    match url.host() {
        None => Ok(Vec::new()),
        Some(Host::Domain(name)) => admitted(tx, policy, name),
        Some(Host::Ipv4(address)) => literal(address.into()),
        Some(Host::Ipv6(address)) => literal(address.into()),
    }
}

fn admitted(tx: &ReadTx<'_>, policy: &HostPolicy, name: &str) -> Result<Vec<IpAddr>, Error> {
    if policy.egress.lan.is_empty() {
        return Ok(Vec::new());
    }
    let found = table::addresses(tx, &name.to_ascii_lowercase())?.into_iter();
    Ok(found.filter(|address| lan::admits(&policy.egress.lan, *address)).collect())
}
