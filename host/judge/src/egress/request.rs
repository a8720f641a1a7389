//! One request in the form in which the host would send it.
//!
//! Its text is all of its effect: two requests with one text are one request. Never has a credential, only the name of one. See
//! [`super::canonical`].

use super::canonical::{CanonicalUrl, UrlError};
use super::grant::{Grant, NoSecretName, SecretName, UPLOAD_BYTES_MAX};
use super::host::Loopback;
use super::method::{Method, UnknownMethod};
use ironclaw_contract::canonical::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Bytes of the value of a header.
const HEADER_BYTES_MAX: usize = 256;
/// The values of `accept` that carry no data of a model.
const ACCEPTED: [&str; 15] = [
    "*/*",
    "text/*",
    "image/*",
    "application/json",
    "application/pdf",
    "application/xml",
    "application/atom+xml",
    "application/rss+xml",
    "image/jpeg",
    "image/png",
    "text/csv",
    "text/html",
    "text/markdown",
    "text/plain",
    "text/xml",
];

/// A request as a model or a command writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestText {
    /// The method, in upper case.
    pub method: String,
    pub url: String,
    /// Headers by name; see [`Header`].
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Option<String>,
    /// The name of the secret to send along.
    #[serde(default)]
    pub secret: Option<String>,
}

ironclaw_contract::words! {
    /// A header that a request may have; the host sets all others.
    #[derive(PartialOrd, Ord)]
    pub enum Header {
        /// The types of content that the sender reads.
        Accept = "accept",
        /// The type of the body.
        ContentType = "content-type",
        /// A condition for a change.
        IfMatch = "if-match",
        /// A condition for a read.
        IfNoneMatch = "if-none-match",
        /// A condition for a read, by time.
        IfModifiedSince = "if-modified-since",
        /// A part of a page.
        Range = "range",
    }
}

/// A body by digest and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Body {
    /// SHA-256 of the bytes.
    pub digest: Digest,
    /// Number of bytes.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    method: Method,
    url: CanonicalUrl,
    headers: BTreeMap<Header, String>,
    body: Option<Body>,
    secret: Option<SecretName>,
}

impl Request {
    /// Checks a request.
    ///
    /// # Errors
    /// The first part that the host does not send, with the text to write instead.
    pub fn check(text: &RequestText, loopback: Loopback) -> Result<Self, RequestError> {
        Self::with_body(text, text.body.as_deref().map(str::as_bytes), loopback)
    }

    /// Checks a request with these bytes as its body, in place of the text.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn with_body(text: &RequestText, body: Option<&[u8]>, loopback: Loopback) -> Result<Self, RequestError> {
        Self::for_grants(text, body, loopback, [])
    }

    /// Checks a request of an agent with these grants: one over plain http to another machine needs a grant of that.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn for_grants<'g>(
        text: &RequestText,
        body: Option<&[u8]>,
        loopback: Loopback,
        grants: impl IntoIterator<Item = &'g Grant>,
    ) -> Result<Self, RequestError> {
        let method: Method = text.method.parse()?;
        let url = CanonicalUrl::parse_for(&text.url, loopback, grants)?;
        let mut headers = BTreeMap::new();
        for (name, value) in &text.headers {
            let (header, value) = check_header(name, value)?;
            if headers.insert(header, value).is_some() {
                return Err(RequestError::HeaderTwice(header));
            }
        }
        let body = body.map(|bytes| Body { digest: Digest::of(bytes), bytes: bytes.len() as u64 });
        let secret = text.secret.as_deref().map(str::parse).transpose()?;
        match (&body, headers.contains_key(&Header::ContentType)) {
            (Some(_), _) if method.only_reads() => return Err(RequestError::BodyRefused(method)),
            (Some(body), _) if body.bytes > UPLOAD_BYTES_MAX => return Err(RequestError::TooLarge(body.bytes)),
            (Some(_), false) => return Err(RequestError::NeedsType),
            (None, true) => return Err(RequestError::TypeWithoutBody),
            (Some(_), true) | (None, false) => {}
        }
        Ok(Self { method, url, headers, body, secret })
    }

    pub const fn method(&self) -> Method {
        self.method
    }

    pub const fn url(&self) -> &CanonicalUrl {
        &self.url
    }

    /// Returns the headers, by name.
    pub fn headers(&self) -> impl Iterator<Item = (Header, &str)> {
        self.headers.iter().map(|(header, value)| (*header, value.as_str()))
    }

    pub const fn body(&self) -> Option<Body> {
        self.body
    }

    /// Returns the bytes of the body.
    pub fn body_bytes(&self) -> u64 {
        self.body.map_or(0, |body| body.bytes)
    }

    /// Returns the name of the secret that the host would send along.
    pub const fn secret(&self) -> Option<&SecretName> {
        self.secret.as_ref()
    }

    /// Returns the same request with this secret, or without one.
    #[must_use]
    pub fn with_secret(self, secret: Option<SecretName>) -> Self {
        Self { secret, ..self }
    }

    /// Returns whether the headers carry no data of a model, so that URL and method are all that a server learns.
    pub fn has_plain_headers(&self, is_typed: &dyn Fn(&str) -> bool) -> bool {
        let is_plain = |header: Header, value: &str| header == Header::Accept && ACCEPTED.contains(&value);
        self.headers().all(|(header, value)| is_plain(header, value) || is_typed(value))
    }
}

/// The request as text, a line each for method and URL, a header, the secret and the body. No line has a line break inside.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url)?;
        for (header, value) in self.headers() {
            write!(f, "\n{}: {value}", header.name())?;
        }
        if let Some(secret) = &self.secret {
            write!(f, "\nsecret: {}", secret.as_str())?;
        }
        if let Some(body) = self.body {
            write!(f, "\nbody: {} bytes, sha256 {}", body.bytes, body.digest)?;
        }
        f.write_char('\n')
    }
}

fn check_header(name: &str, value: &str) -> Result<(Header, String), RequestError> {
    let known = Header::ALL.into_iter().find(|header| header.name().eq_ignore_ascii_case(name));
    let header = known.ok_or_else(|| RequestError::Header(name.to_owned()))?;
    let value = value.trim_matches(' ');
    let is_usual = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if value.is_empty() || value.len() > HEADER_BYTES_MAX || !is_usual {
        return Err(RequestError::HeaderValue(header));
    }
    Ok((header, value.to_owned()))
}

/// The reason why the host does not send a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Method(#[from] UnknownMethod),
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A header that the host sets, or does not send.
    #[error(
        "a request cannot set the header {0:?}: it can set accept, content-type, if-match, if-none-match, if-modified-since and range"
    )]
    Header(String),
    /// A header in two spellings.
    #[error("the header {0} is there twice: write it once")]
    HeaderTwice(Header),
    /// The value of a header.
    #[error("the value of {0} is not 1 to {HEADER_BYTES_MAX} visible ASCII characters")]
    HeaderValue(Header),
    /// A body of a method without one.
    #[error("a {0} request has no body: write the data as parameters, or use POST")]
    BodyRefused(Method),
    /// A body without a type.
    #[error("a body needs a type: set the header content-type, such as application/json")]
    NeedsType,
    /// A type without a body.
    #[error("content-type is the type of a body, and there is none: leave it out")]
    TypeWithoutBody,
    /// A body over every limit.
    #[error("a body of {0} bytes is over the limit of {UPLOAD_BYTES_MAX}: send it in parts")]
    TooLarge(u64),
    /// The name of the secret.
    #[error(transparent)]
    Secret(#[from] NoSecretName),
}
