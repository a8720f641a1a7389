//! The requests that the host makes for agents: one connection, no redirect, and a bound on every wait and every body.
//!
//! Never judges a request: the caller did so, and judges the target of a redirect again. Never reaches an address that is not of the
//! public Internet. See [`crate::reach`] and [`outcome`].

mod check;
mod connect;
mod echo;
pub mod outcome;
mod stream;

pub use check::{Credential, Form, HEADERS, RANGE, Request};
pub use echo::{REMOVED, without_secret};
pub use outcome::{End, Failed, Failure, Fetched, NotFetched, Refused};
pub use stream::{Answer, Piece};

use crate::client::{builder, causes, causes_text, find_cause};
use crate::reach::lan::Shown;
use crate::reach::{AddressRefused, Lookup, Reach, Resolver, System};
use echo::Echo;
use reqwest::{Client, Response};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Longest time to connect.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Bounds of a request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time to the headers of the answer.
    pub begin: Duration,
    /// Longest time to the end of the body.
    pub whole: Duration,
    /// Bytes of the body that are kept.
    pub body_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { begin: Duration::from_secs(20), whole: Duration::from_secs(60), body_bytes_max: 1 << 20 }
    }
}

/// The connections to hosts that people granted. None is used twice, so each request asks DNS once and uses what was checked.
pub struct Fetcher {
    lookup: Arc<dyn Lookup>,
    secure_reach: Reach,
    /// The addresses of the local network that it reaches; it reaches no others then.
    shown: Option<Shown>,
    /// Plain http, to loopback or to shown addresses; `None` without them.
    plain: Option<Client>,
    /// Made at the first use, because it reads the certificates of the system.
    secure: OnceLock<Option<Client>>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("reach", &self.secure_reach).finish_non_exhaustive()
    }
}

impl Default for Fetcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Fetcher {
    /// Makes one that reaches the public Internet, over https only.
    pub fn new() -> Self {
        Self::over(Reach::Public, Arc::new(System))
    }

    /// Makes one that also reaches loopback, there over plain http as well. For tests, and for the login at an MCP server on loopback.
    pub fn dangerous_with_loopback() -> Self {
        Self::over(Reach::DangerousLoopback, Arc::new(System))
    }

    /// Makes one that reaches these addresses of the local network alone, over https and plain http.
    pub fn to_shown(shown: Shown) -> Self {
        Self::with(Reach::Shown, Some(shown), Arc::new(System))
    }

    /// Makes one with another resolver of names.
    fn over(secure_reach: Reach, lookup: Arc<dyn Lookup>) -> Self {
        Self::with(secure_reach, None, lookup)
    }

    fn with(secure_reach: Reach, shown: Option<Shown>, lookup: Arc<dyn Lookup>) -> Self {
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let reaches_plain = secure_reach == Reach::DangerousLoopback || shown.is_some();
        let plain = reaches_plain.then(|| {
            single_use(Resolver::over(Reach::DangerousLoopbackOnly, Arc::clone(&lookup)).for_shown(shown.clone()))
                .tls_certs_only([])
                .build()
                .expect("a client without certificates and files cannot fail")
        });
        Self { lookup, secure_reach, shown, plain, secure: OnceLock::new() }
    }

    /// Sends a request, once, and reads its answer.
    ///
    /// # Errors
    /// [`Refused`] if nothing was sent because of a rule, and [`Failed`] if there is no answer.
    pub async fn fetch(&self, request: Request<'_>, limits: Limits) -> Result<Fetched, NotFetched> {
        let whole = Instant::now() + limits.whole;
        let Sent { response, url, echo } = self.send(request, limits).await?;
        Ok(read(response, &url, echo.as_ref(), limits.body_bytes_max, whole).await)
    }

    /// Sends a request, once, and returns its answer with the body still to be read. `limits.body_bytes_max` has no effect.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn open(&self, request: Request<'_>, limits: Limits) -> Result<Answer, NotFetched> {
        let whole = Instant::now() + limits.whole;
        let Sent { response, url, echo } = self.send(request, limits).await?;
        Ok(Answer::new(response, &url, echo, whole))
    }

    async fn send(&self, request: Request<'_>, limits: Limits) -> Result<Sent, NotFetched> {
        let begun = Instant::now();
        let (url, headers) = check::check(&request, self.secure_reach)?;
        let client = self.client(&url)?;
        let echo = request.credential.as_ref().map(|credential| Echo::new(credential.secret));
        let sent = client.request(request.method, url.clone()).headers(headers);
        let sent = request.body.into_iter().fold(sent, |sent, body| sent.body(body)).send();
        match timeout_at(begun + limits.begin.min(limits.whole), sent).await {
            Ok(Ok(response)) => Ok(Sent { response, url, echo }),
            Ok(Err(error)) => Err(without_answer(&error, echo.as_ref())),
            Err(_) => Err(Failed { failure: Failure::Late, may_have_arrived: true, text: String::new() }.into()),
        }
    }

    fn resolver(&self) -> Resolver {
        Resolver::over(self.secure_reach, Arc::clone(&self.lookup)).for_shown(self.shown.clone())
    }

    fn client(&self, url: &Url) -> Result<&Client, NotFetched> {
        if url.scheme() == "http" {
            return self.plain.as_ref().ok_or(Refused::PlainHttp.into());
        }
        let make = || single_use(self.resolver()).https_only(true).build().ok();
        let without = || Failed {
            failure: Failure::Untrusted,
            may_have_arrived: false,
            text: "this machine has no root certificates".to_owned(),
        };
        self.secure.get_or_init(make).as_ref().ok_or_else(|| without().into())
    }
}

/// A request that has an answer.
struct Sent {
    response: Response,
    url: Url,
    echo: Option<Echo>,
}

/// Begins a client that opens one connection for each request: a name is resolved once, and only the checked addresses are dialled.
fn single_use(resolver: Resolver) -> reqwest::ClientBuilder {
    builder(CONNECT_TIME_MAX).pool_max_idle_per_host(0).dns_resolver(resolver)
}

/// Returns the refusal or the failure behind an error of the client.
fn without_answer(error: &reqwest::Error, echo: Option<&Echo>) -> NotFetched {
    if let Some(refused) = causes(error).find_map(find_cause::<AddressRefused>) {
        return Refused::Address(*refused).into();
    }
    let failure = if causes(error).find_map(find_cause::<rustls::Error>).is_some() {
        Failure::Untrusted
    } else if error.is_connect() {
        Failure::Unreachable
    } else {
        Failure::Broken
    };
    let text = causes_text(error);
    let text = echo.map_or_else(|| text.clone(), |echo| echo.remove_from(&text));
    // No byte of a request leaves before the connection is open.
    Failed { failure, may_have_arrived: !error.is_connect(), text }.into()
}

async fn read(response: Response, url: &Url, echo: Option<&Echo>, body_bytes_max: usize, until: Instant) -> Fetched {
    let status = response.status().as_u16();
    let headers = outcome::headers(response.headers(), echo);
    let redirect = outcome::redirect(status, response.headers(), url, echo);
    let media_type = outcome::media_type(response.headers(), echo);
    let encoding = outcome::encoding(response.headers(), echo);
    let (body, end, removed) = match encoding {
        // An encoded body could hide the secret.
        Some(_) => (Vec::new(), End::Encoded, 0),
        None => read_body(response, echo, body_bytes_max, until).await,
    };
    Fetched { status, headers, media_type, body, end, removed, redirect, final_url: url.to_string() }
}

async fn read_body(
    mut response: Response,
    echo: Option<&Echo>,
    body_bytes_max: usize,
    until: Instant,
) -> (Vec<u8>, End, usize) {
    // A form of the secret that begins before the limit is read whole.
    let margin = echo.map_or(0, Echo::bytes_max);
    let mut body = Vec::new();
    let end = loop {
        if body.len() > body_bytes_max + margin {
            break End::Limit;
        }
        match timeout_at(until, response.chunk()).await {
            Ok(Ok(Some(piece))) => body.extend(piece),
            Ok(Ok(None)) if body.len() > body_bytes_max => break End::Limit,
            Ok(Ok(None)) => break End::Whole,
            Ok(Err(_)) => break End::Broken,
            Err(_) => break End::Time,
        }
    };
    let keep = match end {
        End::Whole | End::Limit | End::Encoded => body_bytes_max,
        // The rest of a secret may be missing.
        End::Broken | End::Time => body_bytes_max.min(body.len().saturating_sub(margin)),
    };
    let Some(echo) = echo else {
        body.truncate(keep);
        return (body, end, 0);
    };
    let (mut body, removed) = echo.remove(&body, keep);
    // A mark can be longer than a secret.
    let end = if end == End::Whole && body.len() > body_bytes_max { End::Limit } else { end };
    body.truncate(body_bytes_max);
    (body, end, removed)
}

#[cfg(test)]
mod tests;
