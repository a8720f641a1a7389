//! The check of addresses that the host connects to for models and channels: literals, and the results of DNS.
//!
//! Never admits the address of a metadata service, which gives out credentials of a cloud, and never asks DNS about `localhost`. See
//! [`crate::client`], [`crate::fetch`], and `channels::inbound::channel::webhook::outgoing` of the host.

pub mod lan;
mod special;

pub use special::Special;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use url::{Host, Url};

/// The addresses of metadata services that are not link-local: Alibaba, Oracle, Azure.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192), Ipv4Addr::new(168, 63, 129, 16)];
/// The same over IPv6: AWS, Google.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];
/// The prefix under which a NAT64 gateway reaches IPv4 addresses (RFC 6052).
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// The set of addresses that a connection may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Plain http: loopback and private addresses.
    Near,
    /// With TLS: every address that is not forbidden.
    Anywhere,
    /// Requests for agents: the public Internet, and no address of this machine.
    Public,
    /// As [`Self::Public`], and loopback. For tests, and for the login at an MCP server on loopback.
    DangerousLoopback,
    /// Loopback alone. For the same.
    DangerousLoopbackOnly,
    /// No address but those of a name that people read. See [`lan::Shown`].
    Shown,
}

impl Reach {
    /// Returns the reach of the scheme of a URL.
    pub fn from_url(url: &Url) -> Self {
        if url.scheme() == "https" { Self::Anywhere } else { Self::Near }
    }

    /// Returns whether a connection to this address is allowed.
    pub fn admits(self, address: IpAddr) -> bool {
        self.admits_unless(address, special::is_own)
    }

    fn admits_unless(self, address: IpAddr, is_own: fn(IpAddr) -> bool) -> bool {
        match self {
            Self::Near => !is_forbidden(address) && is_private(address),
            Self::Anywhere => !is_forbidden(address),
            Self::DangerousLoopback | Self::DangerousLoopbackOnly
                if Special::classify(address) == Some(Special::Loopback) =>
            {
                true
            }
            Self::Public | Self::DangerousLoopback => Special::classify(address).is_none() && !is_own(address),
            Self::DangerousLoopbackOnly | Self::Shown => false,
        }
    }

    /// Refuses an address that is not admitted.
    ///
    /// # Errors
    /// The reason.
    pub fn check(self, address: IpAddr) -> Result<(), AddressRefused> {
        if self.admits(address) { Ok(()) } else { Err(self.refusal(address)) }
    }

    /// Returns the refusal of an address that is not admitted.
    fn refusal(self, address: IpAddr) -> AddressRefused {
        match self {
            Self::Near | Self::Anywhere if is_forbidden(address) => AddressRefused::Forbidden,
            Self::Near | Self::Anywhere => AddressRefused::Public,
            Self::DangerousLoopbackOnly if Special::classify(address).is_none() => AddressRefused::Public,
            Self::Public | Self::DangerousLoopback | Self::DangerousLoopbackOnly | Self::Shown => {
                AddressRefused::Special(Special::classify(address).unwrap_or(Special::Own))
            }
        }
    }
}

/// Returns whether an address is loopback, private (RFC 1918) or unique local.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

/// Returns whether an address is link-local or of a metadata service, also as an IPv4 address embedded in IPv6.
pub fn is_forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local() || METADATA_V4.contains(&address),
        IpAddr::V6(address) => {
            let inside = embedded(address).is_some_and(|inside| is_forbidden(IpAddr::V4(inside)));
            inside || address.is_unicast_link_local() || METADATA_V6.contains(&address)
        }
    }
}

/// Returns the IPv4 address in a mapped, compatible or NAT64 address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let nat64 = address.segments()[..6] == NAT64;
    if nat64 {
        let [.., a, b, c, d] = address.octets();
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    address.to_ipv4()
}

/// Returns whether a name means this machine (RFC 6761), independent of DNS.
pub fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns the literal address in a URL.
pub fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(address)),
        Host::Ipv6(address) => Some(IpAddr::V6(address)),
    }
}

/// Refuses a URL with a forbidden literal address.
///
/// # Errors
/// A clause with the address and the reason.
pub fn check_literal(url: &Url) -> Result<(), String> {
    match literal(url).filter(|address| is_forbidden(*address)) {
        Some(address) => Err(format!("{address} is link-local or a cloud's metadata service, which are never asked")),
        None => Ok(()),
    }
}

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// A resolver of names; tests replace it.
pub trait Lookup: Send + Sync {
    /// Returns the addresses of a name; the port of each is 0.
    fn look_up(&self, name: String) -> Found;
}

/// The resolver of the system.
pub(crate) struct System;

impl Lookup for System {
    fn look_up(&self, name: String) -> Found {
        Box::pin(async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) })
    }
}

/// The resolver of a connection. It returns the allowed addresses of a name, and fails if there are none.
#[derive(Clone)]
pub struct Resolver {
    reach: Reach,
    /// The addresses that people read; they take the place of the reach.
    shown: Option<lan::Shown>,
    lookup: Arc<dyn Lookup>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("reach", &self.reach).finish_non_exhaustive()
    }
}

/// The refusal of a name without an allowed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefused {
    /// All addresses are public, and the URL is plain http.
    #[error("none of its addresses is loopback or private")]
    Public,
    #[error("its addresses are link-local or a cloud's metadata service, which are never asked")]
    Forbidden,
    /// The first address is not of the public Internet, and no other is.
    #[error("its address is {0}, and requests for agents reach the public Internet only")]
    Special(Special),
    /// An address of the local network that people did not read.
    #[error("its address is {found}, and people approved {shown}: grant it again to read the new one")]
    Differs {
        /// The address now.
        found: IpAddr,
        /// The first address of the page.
        shown: IpAddr,
    },
    /// The settings do not admit the address now.
    #[error("its address {0} is not in `[egress] lan`")]
    OutsideOfLan(IpAddr),
}

impl Resolver {
    /// One that asks the system.
    pub fn new(reach: Reach) -> Self {
        Self::over(reach, Arc::new(System))
    }

    /// One that asks this.
    pub fn over(reach: Reach, lookup: Arc<dyn Lookup>) -> Self {
        Self { reach, lookup, shown: None }
    }

    /// Lets it return the addresses that people read, and no others.
    #[must_use]
    pub fn for_shown(self, shown: Option<lan::Shown>) -> Self {
        Self { shown, ..self }
    }

    /// Returns the allowed addresses of a name; the port of each is 0.
    pub(crate) async fn addresses(
        self,
        name: String,
    ) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
        let found = if is_localhost(&name) {
            let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            own.map(|address| SocketAddr::new(address, 0)).to_vec()
        } else {
            self.lookup.look_up(name).await?
        };
        if let Some(shown) = &self.shown {
            return Ok(shown.choose(&found)?);
        }
        let refused = found.iter().find(|found| !is_forbidden(found.ip())).or(found.first()).copied();
        let admitted: Vec<_> = found.into_iter().filter(|found| self.reach.admits(found.ip())).collect();
        match refused {
            _ if !admitted.is_empty() => Ok(admitted),
            Some(refused) => Err(self.reach.refusal(refused.ip()).into()),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into()),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.clone().addresses(name.as_str().to_owned());
        // The port comes from the URL.
        Box::pin(async move { Ok(Box::new(found.await?.into_iter()) as Addrs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A resolver that gives every name these addresses.
    struct Answers(Vec<&'static str>);

    impl Lookup for Answers {
        fn look_up(&self, _: String) -> Found {
            let found = self.0.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 0)).collect();
            Box::pin(async move { Ok(found) })
        }
    }

    async fn resolved(reach: Reach, name: &str, answers: &[&'static str]) -> Result<Vec<String>, AddressRefused> {
        let resolver = Resolver::over(reach, Arc::new(Answers(answers.to_vec())));
        match resolver.resolve(name.parse().expect("a name")).await {
            Ok(found) => Ok(found.map(|address| address.ip().to_string()).collect()),
            Err(error) => Err(*error.downcast_ref().expect("a refusal")),
        }
    }

    const FORBIDDEN: [&str; 12] = [
        "169.254.169.254",
        "169.254.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "fe80::1",
        "febf::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "::ffff:168.63.129.16",
    ];

    #[tokio::test]
    async fn localhost_is_loopback_whatever_dns_answers() {
        for reach in [Reach::Near, Reach::Anywhere] {
            for name in ["localhost", "x.localhost", "LOCALHOST.", "a.b.Localhost"] {
                for answers in [&["8.8.8.8"][..], &["10.0.0.1"], &["169.254.169.254"], &[]] {
                    let found = resolved(reach, name, answers).await;
                    assert_eq!(found, Ok(vec!["127.0.0.1".to_owned(), "::1".to_owned()]), "{name}");
                }
            }
        }
        let found = resolved(Reach::Anywhere, "localhost.example", &["8.8.8.8"]).await;
        assert_eq!(found, Ok(vec!["8.8.8.8".to_owned()]));
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_metadata_is_refused() {
        for reach in [Reach::Near, Reach::Anywhere] {
            for address in FORBIDDEN {
                assert_eq!(
                    resolved(reach, "hook.example", &[address]).await,
                    Err(AddressRefused::Forbidden),
                    "{address}"
                );
            }
        }
        // The allowed addresses are used, and each connection resolves the name again.
        let mixed = resolved(Reach::Anywhere, "hook.example", &["169.254.169.254", "8.8.8.8"]).await;
        assert_eq!(mixed, Ok(vec!["8.8.8.8".to_owned()]));
    }

    #[tokio::test]
    async fn plain_http_resolves_to_near_addresses_only() {
        for near in ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.5", "::1", "fd00::1"] {
            assert_eq!(resolved(Reach::Near, "model.lan", &[near]).await, Ok(vec![near.to_owned()]));
        }
        for far in ["8.8.8.8", "100.64.0.1", "0.0.0.0", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert_eq!(resolved(Reach::Near, "model.lan", &[far]).await, Err(AddressRefused::Public), "{far}");
            assert!(resolved(Reach::Anywhere, "model.lan", &[far]).await.is_ok(), "{far}");
        }
    }

    #[test]
    fn own_address_is_refused_if_it_is_public_too() {
        let public = "8.8.8.8".parse().expect("an address");
        for reach in [Reach::Public, Reach::DangerousLoopback] {
            assert!(reach.admits_unless(public, |_| false) && !reach.admits_unless(public, |_| true));
            assert_eq!(reach.refusal(public), AddressRefused::Special(Special::Own));
        }
    }

    #[test]
    fn a_literal_address_of_metadata_is_refused_in_every_spelling() {
        for host in ["169.254.169.254", "2852039166", "0xa9.0xfe.0xa9.0xfe", "[fd00:ec2::254]", "[::ffff:a9fe:a9fe]"] {
            for scheme in ["http", "https"] {
                let url = Url::parse(&format!("{scheme}://{host}/latest")).expect(host);
                assert!(check_literal(&url).is_err(), "{url}");
            }
        }
        for good in ["https://8.8.8.8/", "https://localhost/", "http://127.0.0.1/", "https://[fd00::1]/"] {
            assert_eq!(check_literal(&Url::parse(good).expect(good)), Ok(()), "{good}");
        }
    }
}
