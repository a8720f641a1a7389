//! The check of a request before anything is sent: the URL, the headers, and the host of the credential.
//!
//! Never repairs a request. The judgement saw its text, so another text is not sent. See [`crate::fetch`].

use super::echo::SECRET_BYTES_MIN;
use super::outcome::Refused;
use crate::reach::{self, Reach};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ironclaw_text::secret::SecretText;
use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// The headers that a request may set.
pub const HEADERS: [&str; 8] = [
    "accept",
    "content-encoding",
    "content-type",
    "git-protocol",
    "if-match",
    "if-none-match",
    "if-modified-since",
    RANGE,
];
/// The header for a part of an answer. It never goes with a credential: a server that repeats the credential would send it in two
/// parts, and neither has the whole secret.
pub const RANGE: &str = "range";
/// The methods of requests for agents.
const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// The beginnings of headers that frame a request or name its way; none of them carries a credential.
const FRAMING: [&str; 15] = [
    "host",
    "connection",
    "content-",
    "transfer-",
    "trailer",
    "upgrade",
    "expect",
    "proxy-",
    "keep-alive",
    "accept",
    "if-",
    "range",
    "forwarded",
    "x-forwarded-",
    "x-http-method",
];

/// A request that the caller has judged.
#[derive(Debug)]
pub struct Request<'a> {
    pub method: Method,
    /// The URL in canonical form; no other form is sent.
    pub url: &'a str,
    /// Headers by name: those of [`HEADERS`] only.
    pub headers: Vec<(&'a str, &'a str)>,
    pub body: Option<Vec<u8>>,
    /// The credential, with the host that it is for.
    pub credential: Option<Credential<'a>>,
}

/// A credential and the one host that receives it.
#[derive(Debug)]
pub struct Credential<'a> {
    /// The granted host, as in a canonical URL.
    pub host: &'a str,
    pub port: u16,
    /// The header that carries it.
    pub form: Form<'a>,
    pub secret: &'a SecretText,
}

/// The header that carries a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form<'a> {
    /// `authorization: Bearer SECRET`.
    Bearer,
    /// `authorization: Basic …`, with the secret as the password of this user.
    Basic { user: &'a str },
    /// The secret alone, in the header of this name.
    Header(&'a str),
}

/// Checks a request, and returns its URL and its headers.
pub(super) fn check(request: &Request<'_>, reach: Reach) -> Result<(Url, HeaderMap), Refused> {
    if !METHODS.contains(&request.method) {
        return Err(Refused::Method);
    }
    let url = check_url(request.url, reach)?;
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let refused = || Refused::Header((*name).to_owned());
        let known = HEADERS.iter().find(|known| known.eq_ignore_ascii_case(name)).ok_or_else(refused)?;
        let value = HeaderValue::from_str(value).map_err(|_| refused())?;
        if *known == RANGE && request.credential.is_some() {
            return Err(Refused::Range);
        }
        if headers.insert(HeaderName::from_static(known), value).is_some() {
            return Err(refused());
        }
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(credential) = &request.credential {
        let (name, value) = credential.header(&url)?;
        headers.insert(name, value);
    }
    Ok((url, headers))
}

fn check_url(text: &str, reach: Reach) -> Result<Url, Refused> {
    let url = Url::parse(text).map_err(|_| Refused::NotCanonical)?;
    if url.as_str() != text || url.fragment().is_some() || url.host().is_none() {
        return Err(Refused::NotCanonical);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::User);
    }
    let reach = match url.scheme() {
        "https" => reach,
        "http" if reach == Reach::DangerousLoopback => Reach::DangerousLoopbackOnly,
        "http" if reach == Reach::Shown => reach,
        "http" => return Err(Refused::PlainHttp),
        _ => return Err(Refused::NotCanonical),
    };
    // The client asks no resolver about an address in a URL.
    reach::literal(&url).map_or(Ok(()), |address| reach.check(address)).map_err(Refused::Address)?;
    Ok(url)
}

impl Credential<'_> {
    /// Returns the header for a URL, if it is the URL of the granted host.
    fn header(&self, url: &Url) -> Result<(HeaderName, HeaderValue), Refused> {
        if url.host_str() != Some(self.host) || url.port_or_known_default() != Some(self.port) {
            return Err(Refused::CredentialElsewhere { granted: self.host.to_owned() });
        }
        let secret = self.secret.expose();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(Refused::SecretTooShort);
        }
        let (name, text) = match self.form {
            Form::Bearer => (AUTHORIZATION, SecretText::new(format!("Bearer {secret}"))),
            Form::Basic { user } if user.contains(':') => return Err(Refused::Header("authorization".to_owned())),
            Form::Basic { user } => {
                let pair = SecretText::new(format!("{user}:{secret}"));
                (AUTHORIZATION, SecretText::new(format!("Basic {}", STANDARD.encode(pair.expose()))))
            }
            Form::Header(name) => (credential_header(name)?, SecretText::new(secret.to_owned())),
        };
        // The error has no part of the value.
        let mut value = HeaderValue::from_str(text.expose()).map_err(|_| Refused::Header(name.to_string()))?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

fn credential_header(name: &str) -> Result<HeaderName, Refused> {
    let lower = name.to_ascii_lowercase();
    if lower == "te" || FRAMING.iter().any(|framing| lower.starts_with(framing)) {
        return Err(Refused::Header(name.to_owned()));
    }
    HeaderName::from_bytes(lower.as_bytes()).map_err(|_| Refused::Header(name.to_owned()))
}
