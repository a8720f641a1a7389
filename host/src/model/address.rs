//! Which addresses an endpoint may have: https anywhere, plain http to loopback and private addresses alone.
//!
//! Never trusts a name for plain http: what it resolves to is looked at each time a connection is made, so no DNS server
//! can move a conversation to a stranger. Next: `model::http`.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv6Addr};
use url::{Host, Url};

/// Whether a base URL may be used.
///
/// # Errors
/// A sentence says why not.
pub fn check_url(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("a base URL begins with http:// or https://, not with {}:", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a base URL holds no user and no password: keep the key with `ironctl secret set`".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a base URL ends with its path: no `?` and no `#`".to_owned());
    }
    let address = match url.host() {
        None => return Err("a base URL names a host".to_owned()),
        Some(Host::Domain(_)) => None,
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
    };
    match address {
        Some(address) if url.scheme() == "http" && !is_private(address) => {
            Err(format!("plain http is for loopback and private addresses, and {address} is neither: use https"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Loopback, the private ranges of RFC 1918, and unique local addresses. Link-local ones are not: behind one of them
/// clouds keep their credentials.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => is_private(IpAddr::V4(address)),
            None => address == Ipv6Addr::LOCALHOST || address.is_unique_local(),
        },
    }
}

/// Gives the loopback and private addresses of a name, and fails where it has none.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrivateOnly;

/// A name that has addresses, and no private one.
#[derive(Debug, thiserror::Error)]
#[error("none of its addresses is loopback or private")]
pub(super) struct Public;

impl Resolve for PrivateOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The port comes from the URL.
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let private: Vec<_> = found.into_iter().filter(|address| is_private(address.ip())).collect();
            if private.is_empty() {
                return Err(Public.into());
            }
            Ok(Box::new(private.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_that_could_leak_or_lead_elsewhere_is_refused() {
        for bad in [
            "ftp://127.0.0.1/",
            "unix:/run/model.sock",
            "https://user@api.example/v1",
            "https://:pass@api.example/v1",
            "https://api.example/v1?key=1",
            "https://api.example/v1#a",
            "http://8.8.8.8/v1",
            "http://169.254.169.254/latest",
            "http://100.64.0.1/v1",
            "http://0.0.0.0:8080/",
            "http://[2001:db8::1]/v1",
            "http://[fe80::1]/v1",
            "http://[::ffff:8.8.8.8]/v1",
        ] {
            assert!(check_url(&Url::parse(bad).expect(bad)).is_err(), "{bad}");
        }
        for good in [
            "https://api.example/v1",
            "https://8.8.8.8/v1",
            "http://127.0.0.1:11434/v1",
            "http://127.9.9.9",
            "http://localhost:8080",
            "http://model.lan/v1",
            "http://10.1.2.3",
            "http://172.31.0.1",
            "http://192.168.1.5:8000/v1",
            "http://[::1]:8000",
            "http://[fd00::1]/v1",
            "http://[::ffff:10.0.0.1]/v1",
        ] {
            assert_eq!(check_url(&Url::parse(good).expect(good)), Ok(()), "{good}");
        }
    }

    #[tokio::test]
    async fn a_name_is_resolved_to_private_addresses_only() {
        let name = |name: &str| name.parse::<Name>().expect("a name");
        let found: Vec<_> = PrivateOnly.resolve(name("localhost")).await.expect("loopback").collect();
        assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()));
        // A literal needs no server to be a name that leads outside.
        let Err(refused) = PrivateOnly.resolve(name("93.184.215.14")).await else { panic!("it is public") };
        assert!(refused.is::<Public>());
    }
}
