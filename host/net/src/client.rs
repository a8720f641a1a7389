//! HTTP clients: no proxy, no redirects, no automatic retries, and an address that is checked at the connection.
//!
//! Never reads a setting from the environment, and never sends plain http to a public address. See [`crate::reach`].

use crate::address;
use crate::reach::lan::Shown;
use crate::reach::{Reach, Resolver, literal};
use reqwest::{Client, ClientBuilder};
use std::error::Error as StdError;
use std::io;
use std::time::Duration;
use url::Url;

/// Longest time to connect to a server. A host that is there answers in less than one second, also over a slow network.
pub const CONNECT: Duration = Duration::from_secs(10);
/// Idle connections to one endpoint that are kept open.
const IDLE_CONNECTIONS_MAX: usize = 16;
/// Seconds for which an idle connection is kept open.
const IDLE_CONNECTION_SECONDS: u64 = 60;

/// Returns a client for requests to this URL alone: over TLS to every address that is not forbidden, over plain http to this machine and
/// its private networks. No proxy, no redirects, no retries.
///
/// # Errors
/// An address that is refused, or a machine without root certificates, in words.
pub fn client_for(url: &Url) -> Result<Client, String> {
    client_to(url, None)
}

/// Returns a client for one server of the local network, which connects to the addresses that people read alone.
///
/// # Errors
/// As [`client_for`].
pub fn client_for_shown(url: &Url, shown: Shown) -> Result<Client, String> {
    if let Some(address) = literal(url) {
        shown.check(address).map_err(|refused| refused.to_string())?;
    }
    client_to(url, Some(shown))
}

fn client_to(url: &Url, shown: Option<Shown>) -> Result<Client, String> {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    address::check_url(url)?;
    let client = builder(CONNECT).dns_resolver(Resolver::new(Reach::from_url(url)).for_shown(shown));
    let client = match url.scheme() {
        "https" => client.https_only(true).build(),
        _ => client.tls_certs_only([]).build(),
    };
    client.map_err(|_| "this machine has no root certificates".to_owned())
}

/// Returns the builder of a client with this longest time to connect.
pub fn builder(connect: Duration) -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(concat!("ironclaw/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .connect_timeout(connect)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(Duration::from_secs(IDLE_CONNECTION_SECONDS))
}

/// Joins the causes of an error, without the URL.
pub fn causes_text(error: &reqwest::Error) -> String {
    let causes = causes(error).skip(1).map(ToString::to_string);
    causes.collect::<Vec<_>>().join(": ")
}

/// Returns an error with its causes.
pub fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error: &&'a (dyn StdError + 'static)| error.source())
}

/// Returns the cause as this type. It also looks into an I/O error, which hides its content from `source`.
pub fn find_cause<'a, T: StdError + 'static>(cause: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let inside = || cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    cause.downcast_ref().or_else(|| find_cause(inside()?))
}
