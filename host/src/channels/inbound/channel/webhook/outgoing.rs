//! The signed sending of one delivery to a channel's address, with its outcome.
//!
//! Never follows a redirect, never uses a proxy from the environment, and ignores everything of an answer except its status. See
//! [`crate::channels::outbound::journal`].

use super::signature::Secret;
use super::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use crate::channels::inbound::channel::outgoing::{Body, Outcome};
use ironclaw_net::reach::{self, AddressRefused, Reach, Resolver};
use reqwest::dns::Resolve;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, Response, StatusCode, redirect, retry};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::net::TcpStream;
use url::Url;

/// Longest time to connect to the other side. A request that fails before that has not left this machine.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Longest time of one whole attempt.
const SEND_TIME_MAX: Duration = Duration::from_secs(20);

/// Bytes of an answer that are read, so that the other side can finish sending; their content is ignored.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Longest time to read an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// The longest wait that the other side may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// The HTTP clients for all webhooks: `far` for https, `near` for plain http. The first use of `far` reads the certificates of the machine,
/// which takes milliseconds and memory.
pub struct Sender {
    far: LazyLock<Built, Box<dyn FnOnce() -> Built + Send>>,
    near: Built,
}

/// A client, or the reason that there is none.
type Built = Result<Client, String>;

impl Sender {
    /// Sets up the clients; sends nothing yet.
    pub fn new() -> Self {
        Self::over(Resolver::new, |far| far)
    }

    /// Sets up the clients with this resolver. `trusting` sets the authorities of `far`, which are otherwise those of the machine.
    fn over(resolver: impl Fn(Reach) -> Resolver, trusting: impl Fn(ClientBuilder) -> ClientBuilder) -> Self {
        // Another caller may have installed a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plain = |reach| {
            Client::builder()
                .dns_resolver(resolver(reach))
                .redirect(redirect::Policy::none())
                .retry(retry::never())
                .no_proxy()
                .referer(false)
                .connect_timeout(CONNECT_TIME_MAX)
                .timeout(SEND_TIME_MAX)
                // If the other side closed a pooled connection at that moment, the outcome would be unknown.
                .pool_max_idle_per_host(0)
                .user_agent(concat!("ironclaw/", env!("CARGO_PKG_VERSION")))
        };
        let words = |error: reqwest::Error| format!("cannot set up an HTTP client: {error}");
        // Plain http needs no certificates, so it works on a machine that has none.
        let near = plain(Reach::Near).tls_certs_only([]).build().map_err(words);
        let far = trusting(plain(Reach::Anywhere)).https_only(true);
        Self { far: LazyLock::new(Box::new(move || far.build().map_err(words))), near }
    }

    /// Signs and sends a body under this id; `now` in milliseconds.
    pub async fn send(&self, url: &Url, secret: &Secret, id: &str, now: i64, body: &Body<'_>) -> Outcome {
        let client = match if url.scheme() == "https" { &*self.far } else { &self.near } {
            Ok(client) => client,
            Err(words) => return Outcome::Later(words.clone(), None),
        };
        let body = serde_json::to_vec(body).expect("text is JSON");
        let timestamp = now / 1000;
        let request = client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ID_HEADER, id)
            .header(TIMESTAMP_HEADER, timestamp)
            .header(SIGNATURE_HEADER, secret.sign(id, timestamp, &body))
            .body(body);
        match request.send().await {
            Ok(answer) => {
                let outcome = judge(answer.status(), retry_after(&answer));
                // The body of the answer has no meaning, so a timeout here changes nothing.
                let _ = tokio::time::timeout(ANSWER_TIME_MAX, discard(answer)).await;
                outcome
            }
            Err(error) => unsent(&error),
        }
    }
}

/// Opens a TCP connection to the receiver and closes it; sends nothing on it. Returns the address that accepted.
///
/// # Errors
/// A clause with the reason of the last attempt.
pub async fn probe(url: &Url) -> Result<SocketAddr, String> {
    let addresses = match reach::literal(url) {
        Some(address) => vec![address],
        None => {
            let name = url.host_str().unwrap_or_default().parse().map_err(|_| "the address has no host name")?;
            let resolving = Resolver::new(Reach::from_url(url)).resolve(name);
            let found = tokio::time::timeout(CONNECT_TIME_MAX, resolving).await;
            let found = found.map_err(|_| "its name was not resolved in time".to_owned())?;
            found.map_err(|error| format!("its name cannot be resolved: {error}"))?.map(|found| found.ip()).collect()
        }
    };
    let port = url.port_or_known_default().unwrap_or_default();
    let mut why = "its name has no address".to_owned();
    for address in addresses.into_iter().filter(|address| Reach::from_url(url).admits(*address)) {
        let address = SocketAddr::new(address, port);
        match tokio::time::timeout(CONNECT_TIME_MAX, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Ok(address),
            Ok(Err(error)) => why = format!("cannot connect to {address}: {error}"),
            Err(_) => why = format!("{address} does not answer within {} seconds", CONNECT_TIME_MAX.as_secs()),
        }
    }
    Err(why)
}

/// Returns the outcome of a request without an answer.
fn unsent(error: &reqwest::Error) -> Outcome {
    if let Some(refused) = refusal(error) {
        return Outcome::Later(refused.to_string(), None);
    }
    if error.is_builder() {
        Outcome::Refused("the address is not usable".to_owned())
    } else if error.is_connect() {
        Outcome::Later("could not connect".to_owned(), None)
    } else if error.is_timeout() {
        Outcome::Unknown(format!("no answer within {} seconds", SEND_TIME_MAX.as_secs()))
    } else {
        Outcome::Unknown("the connection broke before an answer".to_owned())
    }
}

impl Default for Sender {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the reason if no address of the host name is allowed, so that the request did not leave.
fn refusal(error: &reqwest::Error) -> Option<AddressRefused> {
    let mut causes = std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |cause| cause.source());
    causes.find_map(|cause| cause.downcast_ref().copied())
}

/// Returns the outcome for a status. The specification defines 2xx for yes and 410 for never again; the rest follows common use.
fn judge(status: StatusCode, after: Option<Duration>) -> Outcome {
    let words = format!("it answered {}", status.as_u16());
    match status.as_u16() {
        200..=299 => Outcome::Received,
        // Not found yet, busy, too early, too much: these states are temporary.
        404 | 409 | 421 | 423 | 425 | 429 | 500 | 501 | 503 | 505..=519 | 528..=599 => Outcome::Later(words, after),
        // A proxy in front of the other side gave up waiting or lost the request, but the other side may still have it.
        408 | 502 | 504 | 520..=527 => Outcome::Unknown(words),
        300..=399 => Outcome::Refused(format!("{words}: redirects are not followed")),
        _ => Outcome::Refused(words),
    }
}

/// Returns the wait that the answer asks for, in seconds. A date is ignored, because only our own clock counts.
fn retry_after(answer: &Response) -> Option<Duration> {
    let seconds: u64 = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

async fn discard(mut answer: Response) {
    let mut left = ANSWER_BYTES_MAX;
    while let Ok(Some(chunk)) = answer.chunk().await {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_net::reach::Lookup;
    use ironclaw_state::keys::SecretText;
    use std::io;
    use std::net::SocketAddr;
    use std::pin::Pin;
    use std::sync::Arc;

    /// Answers every name with one address.
    struct Answers(&'static str);

    impl Lookup for Answers {
        fn look_up(&self, _: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>> {
            let found = SocketAddr::new(self.0.parse().expect("an address"), 0);
            Box::pin(async move { Ok(vec![found]) })
        }
    }

    #[tokio::test]
    async fn nothing_is_sent_to_a_name_that_resolves_to_metadata() {
        for address in ["169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254"] {
            // The machine may have no certificates.
            let trusting = |far: ClientBuilder| far.tls_certs_only([]);
            let sender = Sender::over(|reach| Resolver::over(reach, Arc::new(Answers(address))), trusting);
            let secret =
                Secret::read(&SecretText::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned())).expect("a secret");
            let ids = ["msg_1".to_owned()];
            let body = Body {
                kind: "test",
                delivery: "dlv_1",
                sender: "s",
                group: "",
                thread: "t",
                message_ids: &ids,
                text: "x",
                files: &[],
            };
            for url in ["https://hook.example/", "https://hook.example:8443/x"] {
                let outcome = sender.send(&url.parse().expect("a URL"), &secret, "dlv_1", 1, &body).await;
                assert_eq!(outcome, Outcome::Later(AddressRefused::Forbidden.to_string(), None), "{address}");
            }
        }
    }

    #[test]
    fn status_means_received_later_never_or_unknown() {
        let judged = |status: u16| judge(StatusCode::from_u16(status).expect("a status"), None);
        for status in [200, 201, 202, 204] {
            assert_eq!(judged(status), Outcome::Received, "{status}");
        }
        for status in [404, 409, 425, 429, 500, 501, 503, 505, 519, 528] {
            assert!(matches!(judged(status), Outcome::Later(..)), "{status}");
        }
        for status in [408, 502, 504, 520, 524, 527] {
            assert!(
                matches!(judged(status), Outcome::Unknown(_)),
                "{status} of a gateway leaves open whether it arrived"
            );
        }
        for status in [301, 302, 307, 400, 401, 403, 405, 410, 413, 422, 451] {
            assert!(matches!(judged(status), Outcome::Refused(_)), "{status}");
        }
    }
}
