//! The name of an issuer of tokens: its one form, and the one comparison of two names.
//!
//! Never contacts an issuer. Approval, documents and the answer of a browser use [`IssuerName`], so that no two of them compare differently.

use super::address;
use ironclaw_contract::seam::change::McpOauth;
use ironclaw_operator::UNANNOUNCED_S256;
use std::fmt;

/// The name of an issuer. Two names are equal if they differ only in the capitals of scheme and host, in the default port, and in the slash
/// of an empty path. Any other path, port or scheme is another issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerName(String);

impl IssuerName {
    /// Parses a name: https, or http on this machine; without a user, a query and a fragment.
    ///
    /// # Errors
    /// The reason, without the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let url = address::parse(text)?;
        if url.query().is_some() {
            return Err("it has a ?");
        }
        // A parser of URLs repairs more than two names of one issuer may differ in.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        let (scheme, rest) = text.split_once("://").filter(|_| is_plain).ok_or("it is not a URL")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let default = if url.scheme() == "https" { ":443" } else { ":80" };
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(default).unwrap_or(&authority);
        let path = if path == "/" { "" } else { path };
        Ok(Self(format!("{}://{authority}{path}", scheme.to_ascii_lowercase())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IssuerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The issuer that people approved for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedIssuer {
    pub name: IssuerName,
    /// Whether people accept that it does not announce S256. The host sends S256 all the same.
    pub accepts_unannounced: bool,
}

impl ApprovedIssuer {
    /// Parses the text of a registration.
    ///
    /// # Errors
    /// The reason, without the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (name, accepts_unannounced) = split(text);
        Ok(Self { name: IssuerName::parse(name)?, accepts_unannounced })
    }

    /// Returns the issuer of a login; `None` without a login.
    pub fn for_login(oauth: Option<&McpOauth>) -> Option<Self> {
        Self::parse(&oauth?.issuer).ok()
    }
}

impl fmt::Display for ApprovedIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, if self.accepts_unannounced { UNANNOUNCED_S256 } else { "" })
    }
}

fn split(text: &str) -> (&str, bool) {
    text.strip_suffix(UNANNOUNCED_S256).map_or((text, false), |name| (name, true))
}

/// Returns the name in the text of a registration, for people.
pub fn name_in(text: &str) -> &str {
    split(text).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_differs_only_in_what_names_one_issuer() {
        let name = |text: &str| IssuerName::parse(text);
        for (text, same) in [
            ("https://login.example", "https://login.example/"),
            ("https://login.example", "HTTPS://Login.Example"),
            ("https://login.example", "https://login.example:443"),
            ("https://login.example/", "https://LOGIN.example:443/"),
            ("https://login.example/tenant", "https://LOGIN.example:443/tenant"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("http://localhost", "HTTP://LOCALHOST:80/"),
            ("http://[::1]:9", "http://[::1]:9/"),
        ] {
            assert_eq!(name(text), name(same), "{text} {same}");
            assert!(name(text).is_ok(), "{text}");
        }
        for (text, other) in [
            ("https://login.example/tenant", "https://login.example/tenant/"),
            ("https://login.example/tenant", "https://login.example/Tenant"),
            ("https://login.example/tenant", "https://login.example/x/../tenant"),
            ("https://login.example/tenant", "https://login.example//tenant"),
            ("https://login.example/tenant", "https://login.example/%74enant"),
            ("https://login.example", "https://login.example//"),
            ("https://login.example", "https://login.example:444"),
            ("https://login.example", "https://login.example."),
            ("https://login.example", "https://log%69n.example"),
            ("https://login.example", "https://login.example:0443"),
            ("http://127.0.0.1:8080", "https://127.0.0.1:8080"),
            ("http://127.0.0.1:80", "http://127.0.0.1:443"),
        ] {
            assert_ne!(name(text), name(other), "{text} {other}");
        }
        for text in [
            "",
            "login.example",
            "https:login.example",
            "https:\\\\login.example",
            " https://login.example",
            "https://login.example ",
            "https://login.example\n",
            "https://user@login.example",
            "https://login.example?x",
            "https://login.example#x",
            "https://169.254.169.254",
            "http://login.example",
        ] {
            assert!(name(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn acceptance_is_part_of_the_approval_and_of_no_name() {
        let approved = ApprovedIssuer::parse("https://Login.example/#s256-unannounced").expect("approved");
        assert!(approved.accepts_unannounced);
        assert_eq!(approved.to_string(), "https://login.example#s256-unannounced");
        assert_eq!(Ok(approved.name), IssuerName::parse("https://login.example"));
        assert_eq!(ApprovedIssuer::parse("https://login.example").map(|one| one.accepts_unannounced), Ok(false));
        for text in ["https://login.example#", "https://login.example#S256", "https://a.example#x#s256-unannounced"] {
            assert!(ApprovedIssuer::parse(text).is_err(), "{text}");
        }
        assert!(IssuerName::parse("https://login.example#s256-unannounced").is_err());
    }
}
