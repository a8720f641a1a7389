//! The connections to endpoints: no proxy, no redirect, no retry of their own, and a bound on every wait and every body.
//!
//! Never reads a setting from the environment, and never speaks plain http to an address that is not private. See
//! [`crate::reach`].

use super::Config;
use super::address;
use super::fault::Fault;
use crate::reach::{Reach, Refused, Resolver};
use reqwest::header::HeaderMap;
use reqwest::{Client, ClientBuilder, Method, Response};
use std::error::Error as StdError;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Bytes of an answer that comes at once: an output whose JSON escapes every letter, and the JSON around it.
pub const WHOLE_BYTES_MAX: usize = 8 << 20;
/// Bytes of a whole stream: an output of single letters, each with the JSON around it.
pub const STREAM_BYTES_MAX: usize = 64 << 20;
/// Bytes between two events of a stream.
pub const EVENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of an error that are read; nothing is wrong if there are more.
pub const ERROR_BYTES_MAX: usize = 64 << 10;
/// Longest wait for the words of an error; the status says most of it.
const ERROR_WAIT: Duration = Duration::from_secs(5);
/// Idle connections to one endpoint that are kept open.
const IDLE_CONNECTIONS_MAX: usize = 16;
/// Seconds for which they are kept.
const IDLE_CONNECTION_SECONDS: u64 = 60;

/// Pool of connections.
#[derive(Debug)]
pub struct Connections {
    connect: Duration,
    plain: Client,
    /// Made when it is first needed: it reads the system's certificates.
    secure: OnceLock<Option<Client>>,
}

/// Waits of a request.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Until the first byte of the answer has come.
    pub begin: Instant,
    /// Between two bytes.
    pub idle: Duration,
    /// For everything.
    pub until: Instant,
}

/// A request that is to be made.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: &'a Url,
    /// With the key among them, marked as sensitive.
    pub headers: HeaderMap,
    /// JSON, or nothing.
    pub body: Vec<u8>,
    /// Its waits.
    pub waits: Waits,
}

impl Connections {
    /// Makes connections within the waits of the configuration.
    pub fn new(config: &Config) -> Self {
        // A provider that is installed already is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let connect = Duration::from_millis(u64::from(config.connect_ms));
        let plain = builder(connect)
            .dns_resolver(Resolver::new(Reach::Near))
            .tls_certs_only([])
            .build()
            .expect("a client without certificates and files has nothing that could fail");
        Self { connect, plain, secure: OnceLock::new() }
    }

    /// Makes a request and gives its answer, of which no byte of the body has been read.
    ///
    /// # Errors
    /// The fault, and what the system says of it.
    pub async fn send(&self, ask: Ask<'_>) -> Result<Answer, (Fault, String)> {
        if Instant::now() >= ask.waits.until {
            return Err((Fault::Silent, "there was no time left to ask".to_owned()));
        }
        // Said once more here, because a client trusts the address in a URL.
        address::check_url(ask.url).map_err(|why| match crate::reach::check_literal(ask.url) {
            Ok(()) => (Fault::PublicPlain, why),
            Err(_) => (Fault::Forbidden, why),
        })?;
        let client = if ask.url.scheme() == "http" {
            &self.plain
        } else {
            let without = || (Fault::Untrusted, "this machine has no certificates to trust anybody by".to_owned());
            self.secure
                .get_or_init(|| {
                    builder(self.connect).https_only(true).dns_resolver(Resolver::new(Reach::Anywhere)).build().ok()
                })
                .as_ref()
                .ok_or_else(without)?
        };
        let waits = ask.waits;
        let request = client.request(ask.method, ask.url.clone()).headers(ask.headers).body(ask.body);
        match timeout_at(waits.begin.min(waits.until), request.send()).await {
            Ok(Ok(response)) => Ok(Answer { response, waits, has_begun: false, bytes: 0 }),
            Ok(Err(error)) => Err((before_answer(&error), told(&error))),
            Err(_) => Err((waits.fault(Instant::now(), false), String::new())),
        }
    }
}

impl Waits {
    fn fault(&self, now: Instant, has_begun: bool) -> Fault {
        match (has_begun, now >= self.until) {
            (true, true) => Fault::Late,
            (true, false) => Fault::Stalled,
            (false, _) => Fault::Silent,
        }
    }
}

/// An answer, whose body is read in pieces.
#[derive(Debug)]
pub struct Answer {
    response: Response,
    waits: Waits,
    has_begun: bool,
    bytes: usize,
}

impl Answer {
    /// Returns its status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Returns its headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns whether it says that it is a stream of events.
    pub fn is_stream(&self) -> bool {
        let kind = self.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// Waits for the next byte no longer than this from now on.
    pub const fn wait_at_most(&mut self, idle: Duration) {
        self.waits.idle = idle;
    }

    /// Reads the next piece of the body, or `None` at its end.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] once more than this many bytes have come, and what can go wrong with a connection.
    pub async fn piece(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, Fault> {
        let wait = if self.has_begun { Instant::now() + self.waits.idle } else { self.waits.begin };
        match timeout_at(wait.min(self.waits.until), self.response.chunk()).await {
            Err(_) => Err(self.waits.fault(Instant::now(), self.has_begun)),
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
        let told = self.response.content_length().unwrap_or_default();
        if told > WHOLE_BYTES_MAX as u64 {
            return Err(Fault::TooLarge);
        }
        let mut body = Vec::new();
        while let Some(piece) = self.piece(WHOLE_BYTES_MAX).await? {
            body.extend(piece);
        }
        Ok(body)
    }

    /// Reads as much of the body of an error as comes and is of use.
    pub async fn error(mut self) -> Vec<u8> {
        self.has_begun = true;
        self.waits.idle = self.waits.idle.min(ERROR_WAIT);
        let mut body = Vec::new();
        while let Ok(Some(piece)) = self.piece(ERROR_BYTES_MAX).await {
            body.extend(piece);
        }
        body
    }
}

fn builder(connect: Duration) -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(concat!("ironclaw/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .connect_timeout(connect)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(Duration::from_secs(IDLE_CONNECTION_SECONDS))
}

/// Returns what kept an answer from coming.
fn before_answer(error: &reqwest::Error) -> Fault {
    if let Some(refused) = causes(error).find_map(found::<Refused>) {
        match refused {
            Refused::Public => Fault::PublicPlain,
            Refused::Forbidden => Fault::Forbidden,
        }
    } else if causes(error).find_map(found::<rustls::Error>).is_some() {
        Fault::Untrusted
    } else if error.is_connect() {
        Fault::Unreachable
    } else if error.is_timeout() {
        Fault::Silent
    } else {
        // It took the connection and closed it, or does not speak HTTP.
        Fault::Closed
    }
}

/// Lists the causes in a row, without the URL.
fn told(error: &reqwest::Error) -> String {
    let causes = causes(error).skip(1).map(ToString::to_string);
    causes.collect::<Vec<_>>().join(": ")
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error: &&'a (dyn StdError + 'static)| error.source())
}

/// Finds a cause that is this, or that holds it as only an I/O error can, which hides what it holds from `source`.
fn found<'a, T: StdError + 'static>(cause: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let inside = || cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    cause.downcast_ref().or_else(|| found(inside()?))
}
