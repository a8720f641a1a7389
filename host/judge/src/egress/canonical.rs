//! The one text of a URL that the host may request.
//!
//! The host sends this text and no other, so a page that shows it shows the request. Never has a user, a fragment, a dot segment
//! or a default port. See [`super::request`].

use super::host::{HostError, HostName, Loopback};
use super::percent;
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Range;
use url::Url;

/// Bytes of a URL, as written and in its canonical form.
pub const URL_BYTES_MAX: usize = 8192;
/// The scheme of plain http, as a URL and the host of a grant have it.
pub const PLAIN: &str = "http://";
/// Rounds after which a form that still changes is refused.
const ROUNDS_MAX: usize = 4;

/// A URL in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CanonicalUrl {
    text: String,
    host: HostName,
    port: u16,
    path: Range<usize>,
}

impl CanonicalUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// The reason why the host does not request it, with the text to write instead.
    pub fn parse(written: &str, loopback: Loopback) -> Result<Self, UrlError> {
        let url = Self::parse_typed(written, loopback)?;
        if url.is_plain() { Err(UrlError::PlainHttp) } else { Ok(url) }
    }

    /// Parses a URL that a person typed. It may be of plain http, which no request is without a grant.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_typed(written: &str, loopback: Loopback) -> Result<Self, UrlError> {
        check_written(written)?;
        let mut url = Url::parse(written).map_err(|error| UrlError::NoUrl(error.to_string()))?;
        url.set_fragment(None);
        for _ in 0..ROUNDS_MAX {
            let next = normal(&url)?;
            if next == url {
                return Self::from_url(&url, authority(written), loopback);
            }
            url = next;
        }
        Err(UrlError::NoUrl("its form is not stable".to_owned()))
    }

    fn from_url(url: &Url, authority: &str, loopback: Loopback) -> Result<Self, UrlError> {
        let host = url.host().ok_or(UrlError::NoHost)?.to_owned();
        let host = HostName::from_parsed(&host, authority, loopback)?;
        let text = String::from(url.clone());
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong(text.len()));
        }
        let begin = url::Position::BeforePath;
        let path = url[..begin].len()..url[..url::Position::AfterPath].len();
        let port = url.port_or_known_default().ok_or(UrlError::NoHost)?;
        Ok(Self { text, host, port, path })
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub const fn host(&self) -> &HostName {
        &self.host
    }

    /// Returns whether it is plain http to another machine.
    pub fn is_plain(&self) -> bool {
        self.text.starts_with(PLAIN) && !self.host.is_loopback()
    }

    /// Returns the port, also if the text has none.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path; it begins with a slash.
    pub fn path(&self) -> &str {
        &self.text[self.path.clone()]
    }

    /// Returns the query without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.text.get(self.path.end + 1..)
    }

    pub fn path_and_query(&self) -> &str {
        &self.text[self.path.start..]
    }

    /// Returns the byte at which the path begins.
    pub(super) const fn path_begin(&self) -> usize {
        self.path.start
    }

    /// Returns the byte at which the query begins, behind its question mark.
    pub(super) const fn query_begin(&self) -> usize {
        self.path.end + 1
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for CanonicalUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Refuses what clients read in different ways, before a parser repairs it.
fn check_written(written: &str) -> Result<(), UrlError> {
    if written.len() > URL_BYTES_MAX {
        return Err(UrlError::TooLong(written.len()));
    }
    if let Some(bad) = written.chars().find(|c| c.is_control() || c.is_whitespace() || *c == '\\') {
        return Err(UrlError::Character(bad));
    }
    if written.contains(['{', '}']) {
        return Err(UrlError::OpenSlot);
    }
    let (scheme, rest) = written.split_once(':').ok_or(UrlError::Relative)?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(UrlError::Scheme);
    }
    let begin = rest.strip_prefix("//").ok_or(UrlError::Relative)?;
    if begin.is_empty() || begin.starts_with(['/', '?', '#']) {
        return Err(UrlError::NoHost);
    }
    let authority = authority(written);
    if authority.contains('@') {
        return Err(UrlError::Host(HostError::User));
    }
    match authority.contains('%') {
        true => Err(UrlError::Host(HostError::Character('%'))),
        false => Ok(()),
    }
}

/// Returns host and port as they are written.
fn authority(written: &str) -> &str {
    let rest = written.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns the URL with the normal form of path and query.
fn normal(url: &Url) -> Result<Url, UrlError> {
    let path = percent::normal(url.path(), percent::is_path).ok_or(UrlError::Percent)?;
    let query = url.query().filter(|query| !query.is_empty());
    let query = query.map(|query| percent::normal(query, percent::is_query).ok_or(UrlError::Percent)).transpose()?;
    let begin = &url[..url::Position::BeforePath];
    let text = query.map_or_else(|| format!("{begin}{path}"), |query| format!("{begin}{path}?{query}"));
    Url::parse(&text).map_err(|error| UrlError::NoUrl(error.to_string()))
}

/// The reason why the host does not request a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("a URL of {0} bytes is over the limit of {URL_BYTES_MAX}: send data in the body of a POST")]
    TooLong(usize),
    /// A character that clients drop or replace.
    #[error("a URL has no {0:?}: write it percent-encoded")]
    Character(char),
    /// A template in place of a URL.
    #[error("a URL has no braces: write the value in place of each slot")]
    OpenSlot,
    /// No scheme, or no slashes behind it.
    #[error("a URL begins with https:// and a host: write all of it")]
    Relative,
    /// A scheme that the host does not speak.
    #[error("the scheme of a URL is https: write https://")]
    Scheme,
    /// Plain http to another machine.
    #[error("plain http is refused, because others can read and change it: write https://")]
    PlainHttp,
    #[error("a URL needs a host behind https://")]
    NoHost,
    /// A percent sign without two digits.
    #[error("a percent sign in a URL begins an encoding of two hex digits: write %25 for the sign itself")]
    Percent,
    /// Not a URL in another way.
    #[error("not a URL: {0}")]
    NoUrl(String),
    #[error(transparent)]
    Host(#[from] HostError),
}
