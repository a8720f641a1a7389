//! The HTTP connections to endpoints: no proxy, no redirects, no automatic retries, and a bound on every wait and every body.
//!
//! Never reads a setting from the environment, and never sends plain http to a public address. See
//! [`ironclaw_net::reach`].

use super::fault::Fault;
use ironclaw_net::client::{CONNECT, builder, causes, causes_text, find_cause};
use ironclaw_net::reach::{self, AddressRefused, Reach, Resolver};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Bytes of a whole answer: an output whose JSON escapes every letter, and the JSON around it.
pub const WHOLE_BYTES_MAX: usize = 8 << 20;
/// Bytes of a whole stream: an output of single letters, each with the JSON around it.
pub const STREAM_BYTES_MAX: usize = 64 << 20;
/// Bytes between two events of a stream.
pub const EVENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of an error that are read; the rest is ignored.
pub const ERROR_BYTES_MAX: usize = 64 << 10;
/// Longest wait for the body of an error; the status is enough in most cases.
const ERROR_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Connections {
    plain: Client,
    /// Made at the first use, because it reads the certificates of the system.
    secure: OnceLock<Option<Client>>,
}

/// Timeouts of a request.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Deadline of the first byte of the answer.
    pub begin: Instant,
    /// Longest pause between two bytes.
    pub idle: Duration,
    /// Deadline of the whole answer.
    pub until: Instant,
}

/// A request before it is sent.
#[derive(Debug)]
pub struct HttpRequest<'a> {
    pub method: Method,
    pub url: &'a Url,
    /// The headers, with the key marked as sensitive.
    pub headers: HeaderMap,
    /// The body: JSON, or empty.
    pub body: Vec<u8>,
    pub timeouts: Timeouts,
}

impl Connections {
    pub fn new() -> Self {
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plain = builder(CONNECT)
            .dns_resolver(Resolver::new(Reach::Near))
            .tls_certs_only([])
            .build()
            .expect("a client without certificates and files cannot fail");
        Self { plain, secure: OnceLock::new() }
    }

    /// Sends a request, and returns its answer before the body is read.
    ///
    /// # Errors
    /// The fault, with the text of the system.
    pub async fn send(&self, ask: HttpRequest<'_>) -> Result<Answer, (Fault, String)> {
        if Instant::now() >= ask.timeouts.until {
            return Err((Fault::Silent, "the deadline had passed before the request".to_owned()));
        }
        // Checked again here, because the client trusts an address in a URL.
        ironclaw_net::check_url(ask.url).map_err(|why| match reach::check_literal(ask.url) {
            Ok(()) => (Fault::PublicPlain, why),
            Err(_) => (Fault::Forbidden, why),
        })?;
        let client = if ask.url.scheme() == "http" {
            &self.plain
        } else {
            let without = || (Fault::Untrusted, "this machine has no root certificates".to_owned());
            self.secure
                .get_or_init(|| {
                    builder(CONNECT).https_only(true).dns_resolver(Resolver::new(Reach::Anywhere)).build().ok()
                })
                .as_ref()
                .ok_or_else(without)?
        };
        let timeouts = ask.timeouts;
        let request = client.request(ask.method, ask.url.clone()).headers(ask.headers).body(ask.body);
        match timeout_at(timeouts.begin.min(timeouts.until), request.send()).await {
            Ok(Ok(response)) => Ok(Answer { response, timeouts, has_begun: false, bytes: 0 }),
            Ok(Err(error)) => Err((fault_before_answer(&error), causes_text(&error))),
            Err(_) => Err((timeouts.fault(Instant::now(), false), String::new())),
        }
    }
}

impl Timeouts {
    fn fault(&self, now: Instant, has_begun: bool) -> Fault {
        match (has_begun, now >= self.until) {
            (true, true) => Fault::Late,
            (true, false) => Fault::Stalled,
            (false, _) => Fault::Silent,
        }
    }
}

/// An answer whose body is read in pieces.
#[derive(Debug)]
pub struct Answer {
    response: Response,
    timeouts: Timeouts,
    has_begun: bool,
    bytes: usize,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Sets the longest pause between two bytes for the rest of the body.
    pub const fn wait_at_most(&mut self, idle: Duration) {
        self.timeouts.idle = idle;
    }

    /// Reads the next piece of the body, or `None` at its end.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] after more than `bytes_max` bytes, and the failures of a connection.
    pub async fn piece(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, Fault> {
        let wait = if self.has_begun { Instant::now() + self.timeouts.idle } else { self.timeouts.begin };
        match timeout_at(wait.min(self.timeouts.until), self.response.chunk()).await {
            Err(_) => Err(self.timeouts.fault(Instant::now(), self.has_begun)),
            Ok(Err(_)) => Err(Fault::Cut),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(piece))) => {
                self.has_begun = true;
                self.bytes += piece.len();
                if self.bytes > bytes_max { Err(Fault::TooLarge) } else { Ok(Some(piece.into())) }
            }
        }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// As [`Self::piece`].
    pub async fn whole(&mut self) -> Result<Vec<u8>, Fault> {
        let length = self.response.content_length().unwrap_or_default();
        if length > WHOLE_BYTES_MAX as u64 {
            return Err(Fault::TooLarge);
        }
        let mut body = Vec::new();
        while let Some(piece) = self.piece(WHOLE_BYTES_MAX).await? {
            body.extend(piece);
        }
        Ok(body)
    }

    /// Reads the body of an error, up to the limits.
    pub async fn error(mut self) -> Vec<u8> {
        self.has_begun = true;
        self.timeouts.idle = self.timeouts.idle.min(ERROR_WAIT);
        let mut body = Vec::new();
        while let Ok(Some(piece)) = self.piece(ERROR_BYTES_MAX).await {
            body.extend(piece);
        }
        body
    }
}

/// Returns the fault of a request without an answer.
fn fault_before_answer(error: &reqwest::Error) -> Fault {
    if let Some(refused) = causes(error).find_map(find_cause::<AddressRefused>) {
        match refused {
            AddressRefused::Public => Fault::PublicPlain,
            AddressRefused::Forbidden
            | AddressRefused::Special(_)
            | AddressRefused::Differs { .. }
            | AddressRefused::OutsideOfLan(_) => Fault::Forbidden,
        }
    } else if causes(error).find_map(find_cause::<rustls::Error>).is_some() {
        Fault::Untrusted
    } else if error.is_connect() {
        Fault::Unreachable
    } else if error.is_timeout() {
        Fault::Silent
    } else {
        // The server closed the connection or does not speak HTTP.
        Fault::Closed
    }
}
