//! The check of the base URL of an endpoint: https to any host, plain http to loopback and private addresses only.
//!
//! Never trusts a name: each connection checks the addresses again. See [`crate::reach`] and [`crate::client`].

use crate::reach;
use url::Url;

/// Checks a base URL.
///
/// # Errors
/// A sentence with the reason of the refusal.
pub fn check_url(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("a base URL begins with http:// or https://, not with {}:", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a base URL has no user and no password: store the key with `ironctl secret set`".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a base URL ends with its path: no `?` and no `#`".to_owned());
    }
    if url.host().is_none() {
        return Err("a base URL needs a host".to_owned());
    }
    reach::check_literal(url)?;
    match reach::literal(url) {
        Some(address) if !reach::Reach::from_url(url).admits(address) => {
            Err(format!("plain http is for loopback and private addresses, and {address} is neither: use https"))
        }
        Some(_) | None => Ok(()),
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
            "https://169.254.169.254/v1",
            "https://[fd00:ec2::254]/v1",
            "http://[fd00:ec2::254]/v1",
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
}
