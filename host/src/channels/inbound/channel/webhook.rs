//! Webhooks of the Standard Webhooks specification, in and out. A shared secret signs the id, the time and the body.
//!
//! Never reads a body before its signature is verified, and never sends one over plain http to a public machine. See
//! [`crate::channels::inbound::channel::webhook::signature`], [`crate::channels::inbound::channel::webhook::incoming`] and [`crate::channels::inbound::channel::webhook::outgoing`].

mod headers;
pub mod incoming;
pub mod outgoing;
mod secret;
pub mod signature;

pub use crate::registry::live_settings::channels::WebhookConfig as Config;

use ironclaw_net::reach;
use url::Url;

/// Name of the header with the id of an event or a delivery: the idempotency key of both.
pub const ID_HEADER: &str = "webhook-id";

/// Name of the header with the time of this attempt, in seconds since the epoch.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";

/// Name of the header with the signatures.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

#[cfg(test)]
const HEADERS: [&str; 3] = [ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER];

/// Bytes of the address for replies.
const URL_BYTES_MAX: usize = 2048;

/// Parses the address for replies: https anywhere, plain http on this machine and in private networks.
///
/// # Errors
/// Half a sentence that names the error.
pub fn check_url(text: &str) -> Result<Url, String> {
    if text.len() > URL_BYTES_MAX {
        return Err(format!("it is longer than {URL_BYTES_MAX} bytes"));
    }
    let url: Url = text.parse().map_err(|error| format!("it is not a URL ({error})"))?;
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err("it contains a user name, a password or a #".to_owned());
    }
    reach::check_literal(&url)?;
    // Any other name could resolve to a public address tomorrow.
    let near = match (url.host(), reach::literal(&url)) {
        (None, _) => return Err("it has no host name".to_owned()),
        (_, Some(address)) => reach::is_private(address),
        (Some(host), None) => reach::is_localhost(&host.to_string()),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if near => Ok(url),
        "http" => Err("plain http would send messages unencrypted over public networks".to_owned()),
        _ => Err("it is neither http nor https".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_near_and_no_address_holds_a_password() {
        for good in [
            "https://example.org/hook?token=1",
            "http://127.0.0.1:9000/x",
            "http://[::1]/",
            "http://localhost:1/",
            "http://hooks.localhost/",
            "http://192.168.1.4/hook",
            "http://[fd00::1]:80/",
        ] {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://example.org/",
            "http://localhost.example.org/",
            "http://8.8.8.8/",
            "http://169.254.169.254/latest",
            "http://[::ffff:8.8.8.8]/",
            "https://169.254.169.254/latest",
            "https://[fe80::1]/",
            "https://[fd00:ec2::254]/",
            "http://[fd00:ec2::254]/",
            "https://[::ffff:169.254.169.254]/",
            "https://user:word@example.org/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "example.org",
            "",
        ] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
        assert!(check_url(&format!("https://example.org/{}", "x".repeat(URL_BYTES_MAX))).is_err());
    }
}
