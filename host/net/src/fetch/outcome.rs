//! The outcome of a request for an agent: an answer, a refusal before anything was sent, or a failure.
//!
//! Never a header that keeps state, such as a cookie, and never the secret of the request. See [`crate::fetch`].

use super::echo::{Echo, SECRET_BYTES_MIN};
use crate::reach::AddressRefused;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use url::Url;

/// The headers of an answer that are kept.
pub const ANSWER_HEADERS: [&str; 8] = [
    "content-disposition",
    "content-language",
    "content-type",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
];
/// Bytes of a kept header; a longer one is left out.
const HEADER_BYTES_MAX: usize = 4096;

/// An answer. Everything in it is the words of another party.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub status: u16,
    /// The headers of [`ANSWER_HEADERS`] that the answer has, by name.
    pub headers: Vec<(&'static str, String)>,
    /// The declared type of the body without parameters, in lower case.
    pub media_type: Option<String>,
    /// The body up to the limit, without the secret.
    pub body: Vec<u8>,
    /// The end of the body.
    pub end: End,
    /// Places of the body at which the secret was removed.
    pub removed: usize,
    /// The target of a redirect. It was not requested, and is judged as a new request.
    pub redirect: Option<String>,
    /// The URL that answered: that of the request.
    pub final_url: String,
}

impl Fetched {
    /// Returns whether a part of the body is missing.
    pub fn is_truncated(&self) -> bool {
        self.end != End::Whole
    }
}

/// The end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The limit of bytes.
    Limit,
    /// The limit of time.
    Time,
    /// The server or the network closed the connection.
    Broken,
    /// The body is compressed, which the request excluded, and was left out.
    Encoded,
}

/// A refusal before anything was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The URL has another canonical form, or none.
    #[error("the URL is not in its canonical form")]
    NotCanonical,
    /// A user or a password in the URL.
    #[error("the URL has a user or a password: store a credential with `ironctl secret set`")]
    User,
    #[error("plain http is refused: use https")]
    PlainHttp,
    /// A method with another effect than a request.
    #[error("the method is not one of GET, HEAD, POST, PUT, PATCH, DELETE")]
    Method,
    /// A header that the host sets, or with a forbidden character.
    #[error("a request cannot set the header {0:?}, or not to this value")]
    Header(String),
    /// A part of an answer, with a credential.
    #[error("a request with a credential cannot set the header \"range\": ask for the whole answer")]
    Range,
    /// A credential for another host.
    #[error("the credential is granted for {granted} only")]
    CredentialElsewhere { granted: String },
    /// A secret that cannot be removed from an answer.
    #[error(
        "the secret has under {SECRET_BYTES_MIN} bytes, so an answer that repeats it cannot be cleaned: use a longer one"
    )]
    SecretTooShort,
    /// The addresses of the host.
    #[error("{0}")]
    Address(AddressRefused),
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The name is unknown, or no address accepts a connection.
    Unreachable,
    /// No certificate that this machine trusts.
    Untrusted,
    /// No answer in time.
    Late,
    /// The connection broke before an answer, or the answer is not HTTP.
    Broken,
}

/// A request without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no answer ({failure:?}): {text}")]
pub struct Failed {
    pub failure: Failure,
    /// Whether the server may have the request, so that its effect is unknown.
    pub may_have_arrived: bool,
    /// The text of the system, for the log.
    pub text: String,
}

/// No answer: one of the two.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFetched {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Failed(#[from] Failed),
}

/// Returns the value of a header as text without the secret. Only visible ASCII is kept.
fn text(headers: &HeaderMap, name: &HeaderName, echo: Option<&Echo>) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    let is_kept = value.len() <= HEADER_BYTES_MAX && !value.contains('\t');
    is_kept.then(|| echo.map_or_else(|| value.to_owned(), |echo| echo.remove_from(value)))
}

pub(super) fn headers(headers: &HeaderMap, echo: Option<&Echo>) -> Vec<(&'static str, String)> {
    let kept = ANSWER_HEADERS.into_iter().filter_map(|name| {
        let value = text(headers, &HeaderName::from_static(name), echo)?;
        Some((name, value))
    });
    kept.collect()
}

/// Returns the target of a redirect.
pub(super) fn redirect(status: u16, headers: &HeaderMap, url: &Url, echo: Option<&Echo>) -> Option<String> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let target = url.join(&text(headers, &LOCATION, echo)?).ok()?;
    Some(String::from(target)).filter(|target| target.len() <= HEADER_BYTES_MAX)
}

/// Returns the type of the body.
pub(super) fn media_type(headers: &HeaderMap, echo: Option<&Echo>) -> Option<String> {
    let text = text(headers, &CONTENT_TYPE, echo)?;
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c);
    let (first, second) = kind.split_once('/')?;
    let has_parts = !first.is_empty() && !second.is_empty();
    (has_parts && first.chars().chain(second.chars()).all(is_usual)).then_some(kind)
}

/// Returns the encoding of the body, if it has one.
pub(super) fn encoding(headers: &HeaderMap, echo: Option<&Echo>) -> Option<String> {
    let is_identity = |value: &String| value.trim().eq_ignore_ascii_case("identity");
    let has_one = headers.contains_key(CONTENT_ENCODING);
    has_one.then(|| text(headers, &CONTENT_ENCODING, echo).unwrap_or_default()).filter(|value| !is_identity(value))
}
