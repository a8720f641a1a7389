//! The gateway of one jail: it takes plain requests in the jail's network namespace, and the host sends the granted ones.
//!
//! Lives no longer than its jail. Adds the secret of a grant, and removes it from the answer. Never follows a redirect, and never changes a
//! body. See [`super::route`] for the judgement, and [`super::inside`] for requests over TLS.

use super::address::{at_gateway, name, origin};
use super::fetchers::Fetchers;
use super::hosts::{GrantedHost, Reach};
use super::route::{Naming, Target};
use super::traffic::{Shared, Traffic, plain};
use super::{inside, route, suggestion, tunnel};
use crate::turns::calls::http;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use ironclaw_contract::seam::limits::UPLOAD_BYTES_MAX;
use ironclaw_net::fetch::{Answer, End, HEADERS, Limits, NotFetched, Piece, RANGE};
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_store::refusal::Refusal;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use url::Url;

/// Connections at once; others wait.
const CONNECTIONS_MAX: usize = 64;
/// Requests of one call.
const REQUESTS_MAX: u64 = 5_000;
/// Bytes of the words about a request in a report.
const WORDS_BYTES_MAX: usize = 200;
/// Pieces of an answer that wait for the command.
const PIECES_MAX: usize = 4;
/// Longest time to the headers of an answer.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of the value of a header.
const HEADER_BYTES_MAX: usize = 256;

/// The gateway of one jail. Dropping it ends its connections.
pub struct Gateway {
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Gateway {
    /// Starts to accept, until the gateway is dropped. `until` is the end of its jail, if that is known.
    ///
    /// # Errors
    /// Errors of the listener.
    pub fn start(
        listener: std::net::TcpListener,
        reach: &Reach,
        fetchers: Arc<Fetchers>,
        until: Option<Instant>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let shared = Arc::new(Shared::new(reach, fetchers, until));
        let app = Router::new().fallback(handle).with_state(Arc::clone(&shared));
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let server = tokio::spawn(async move {
            // It ends with the task.
            let _ = axum::serve(Bounded { listener, places }, app).await;
        });
        Ok(Self { shared, server })
    }

    /// Ends all connections; returns the requests.
    pub fn close(self) -> Traffic {
        self.shared.is_over.send_replace(true);
        self.take()
    }

    /// Returns the requests since the last time, and counts anew from here, the bytes in tunnels too.
    pub fn take(&self) -> Traffic {
        self.shared.tunnels.iter().for_each(|tunnel| tunnel.count_anew());
        std::mem::take(&mut *self.shared.traffic())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shared.is_over.send_replace(true);
        self.server.abort();
    }
}

/// The way of a request to the gateway.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    /// In plain text.
    Plain,
    /// Over TLS, to the granted host at this place of the list.
    Inside(usize),
}

/// An answer that is being made. The type has a name, because a connection over TLS answers requests in its turn.
type Responding = Pin<Box<dyn Future<Output = Response> + Send>>;

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    respond(shared, request, Asked::Plain).await
}

/// Answers one request of the jail.
pub(super) fn respond(shared: Arc<Shared>, request: Request, asked: Asked) -> Responding {
    let answering = async move {
        let what = words(&request, &shared, asked);
        let mut over = shared.is_over.subscribe();
        let answered = tokio::select! {
            biased;
            // No process of the command is left to read it.
            _ = over.wait_for(|over| *over) => return plain(StatusCode::SERVICE_UNAVAILABLE, "the program has ended\n"),
            answered = shared.forward(request, asked, &what) => answered,
        };
        answered.unwrap_or_else(|refusal| {
            shared.record_refusal(what, refusal.code, &refusal.hint);
            let hint = if refusal.hint.is_empty() { String::new() } else { format!("; {}", refusal.hint) };
            plain(StatusCode::FORBIDDEN, &format!("refused ({}): {}{hint}\n", refusal.code, refusal.message))
        })
    };
    Box::pin(answering)
}

fn words(request: &Request, shared: &Shared, asked: Asked) -> String {
    let (method, uri) = (request.method(), request.uri());
    let text = match asked {
        Asked::Plain => format!("{method} {uri}"),
        Asked::Inside(at) => {
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            format!("{method} {}{}", origin(&shared.hosts[at].grant), path.trim_start_matches('/'))
        }
    };
    text.chars().take(WORDS_BYTES_MAX).collect()
}

impl Shared {
    /// Sends a granted request, once, and returns its answer.
    async fn forward(self: &Arc<Self>, request: Request, asked: Asked, what: &str) -> Result<Response, Refusal> {
        let count = {
            let mut traffic = self.traffic();
            traffic.requests += 1;
            traffic.requests
        };
        if count > REQUESTS_MAX {
            let bound =
                Bound::new("requests of one command", REQUESTS_MAX, count, "let the command make fewer requests");
            return Err(Refusal::over(DenialCode::EgressTooMuch, bound));
        }
        if request.method() == Method::CONNECT {
            return self.connect(request, what).await;
        }
        let (parts, body) = request.into_parts();
        let Target { host, url, naming } = match asked {
            Asked::Plain => route::target(&parts, &self.hosts, self.agent())?,
            Asked::Inside(at) => route::by_name(&parts, &self.hosts[at])?,
        };
        let body = axum::body::to_bytes(body, UPLOAD_BYTES_MAX as usize).await.map_err(|_| {
            let words = format!("the body is longer than {UPLOAD_BYTES_MAX} bytes, or did not arrive");
            Refusal::new(DenialCode::EgressUpload, words)
        })?;
        let admitted = route::admitted(&parts, host, &url, &body, self.loopback, self.agent())?;
        {
            let mut traffic = self.traffic();
            traffic.sent_bytes += body.len() as u64;
            traffic.hosts.insert(name(&host.grant));
        }
        let sent = self.send(&parts, host, admitted.url().as_str(), body).await;
        match sent {
            Ok(answer) => self.answer(answer, host, naming),
            Err(NotFetched::Refused(refused)) => Err(Refusal::new(http::refusal_code(&refused), refused.to_string())),
            Err(NotFetched::Failed(failed)) => {
                Ok(plain(StatusCode::BAD_GATEWAY, &format!("the host did not answer: {:?}\n", failed.failure)))
            }
        }
    }

    /// Opens a connection of a command to a granted host: the gateway answers in its place, or passes a tunnel on.
    async fn connect(self: &Arc<Self>, request: Request, what: &str) -> Result<Response, Refusal> {
        let Some(command) = &self.command else { return tunnel::open(self, request, what).await };
        let uri = request.uri();
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        let named = uri.host().zip(uri.port_u16()).filter(|_| !has_user);
        let granted = named.and_then(|(host, port)| self.hosts.iter().position(|granted| granted.is_at(host, port)));
        if let Some(at) = granted {
            return Ok(inside::open(self, at, &command.authority, request));
        }
        match named {
            Some((host, port)) if tunnel::granted(uri, &self.tunnels).is_err() => {
                let client = route::client(request.headers());
                let wanted = suggestion::Wanted { host, port, client };
                Err(suggestion::no_grant(&self.hosts, &wanted, &command.agent))
            }
            _ => tunnel::open(self, request, what).await,
        }
    }

    async fn send(&self, parts: &Parts, host: &GrantedHost, url: &str, body: Bytes) -> Result<Answer, NotFetched> {
        let granted = host.grant.host().to_string();
        let header = |name: &'static str| {
            let value = parts.headers.get(name)?.to_str().ok()?;
            (value.len() <= HEADER_BYTES_MAX).then_some((name, value))
        };
        let has_body = !body.is_empty();
        let credential = host.credential(&granted);
        // A server may answer with the whole in place of a part; a part could have a part of the credential.
        let is_sent =
            |name: &&str| (has_body || !name.starts_with("content-")) && (credential.is_none() || *name != RANGE);
        let headers = HEADERS.into_iter().filter(is_sent).filter_map(header);
        let request = ironclaw_net::fetch::Request {
            method: parts.method.clone(),
            url,
            headers: headers.collect(),
            body: has_body.then(|| body.to_vec()),
            credential,
        };
        let whole = self.left();
        let fetcher = self.fetchers.for_grant(Some(&host.grant), self.loopback);
        fetcher.open(request, Limits { begin: BEGIN_TIME_MAX.min(whole), whole, ..Limits::default() }).await
    }

    /// Returns an answer for the command. A redirect leads to another granted host, or is refused.
    fn answer(self: &Arc<Self>, answer: Answer, host: &GrantedHost, naming: Naming) -> Result<Response, Refusal> {
        if answer.is_encoded {
            let words = "the host compressed its answer, although it was not asked to\n";
            return Ok(plain(StatusCode::BAD_GATEWAY, words));
        }
        let location = answer.redirect.as_deref().map(|target| self.moved(target, host, naming)).transpose()?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let kept = answer.headers.iter().filter(|(name, _)| *name != "location");
        let kept =
            kept.map(|(name, value)| (*name, value.as_str())).chain(location.as_deref().map(|to| ("location", to)));
        for (name, value) in kept {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        let (pieces, body) = mpsc::channel(PIECES_MAX);
        tokio::spawn(Arc::clone(self).pass_on(answer, pieces));
        *response.body_mut() = Body::from_stream(ReceiverStream::new(body));
        Ok(response)
    }

    /// Returns the address of the target of a redirect, as the command names hosts.
    fn moved(&self, target: &str, from: &GrantedHost, naming: Naming) -> Result<String, Refusal> {
        let url = Url::parse(target).ok();
        let is_of = |url: &Url, host: &GrantedHost| {
            let grant = &host.grant;
            let is_plain = url.scheme() == "http" && !grant.host().is_loopback();
            is_plain == grant.is_plain()
                && url.host_str() == Some(grant.host().to_string().as_str())
                && url.port_or_known_default() == Some(grant.port())
        };
        let granted = url.as_ref().and_then(|url| Some((url, self.hosts.iter().find(|host| is_of(url, host))?)));
        match (granted, naming) {
            (Some((url, _)), Naming::Name) => Ok(url.to_string()),
            (Some((url, host)), Naming::Path) => {
                let rest = &url[url::Position::BeforePath..];
                Ok(format!("{}{}", at_gateway(&host.grant), rest.trim_start_matches('/')))
            }
            (None, _) => {
                let other = url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
                let words = format!(
                    "the host redirects to {}, which is not granted for commands",
                    other.map_or("another place", |(host, _)| host)
                );
                let refusal = Refusal::new(DenialCode::EgressNewHost, words);
                Err(match other {
                    Some((host, port)) => refusal.hint(suggestion::for_redirect(from, host, port, self.agent())),
                    None => refusal,
                })
            }
        }
    }

    /// Passes the body on, until its end or that of the command.
    async fn pass_on(self: Arc<Self>, mut answer: Answer, pieces: mpsc::Sender<io::Result<Bytes>>) {
        let mut over = self.is_over.subscribe();
        let pass = async {
            loop {
                let (bytes, end) = match answer.next().await {
                    Piece::Bytes(bytes) => (bytes, None),
                    Piece::End(end) => (Vec::new(), Some(end)),
                };
                self.traffic().received_bytes += bytes.len() as u64;
                if !bytes.is_empty() && pieces.send(Ok(bytes.into())).await.is_err() {
                    return;
                }
                match end {
                    None => {}
                    Some(End::Whole) => return,
                    Some(_) => {
                        // Without an error, the command would take the part for the whole.
                        let _ = pieces.send(Err(io::ErrorKind::UnexpectedEof.into())).await;
                        return;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            _ = over.wait_for(|over| *over) => {}
            () = pass => {}
        }
    }
}

/// The listener with a bound on its connections.
struct Bounded {
    listener: tokio::net::TcpListener,
    places: Arc<Semaphore>,
}

impl axum::serve::Listener for Bounded {
    type Io = Place;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        // Axum handles errors of one connection and a lack of descriptors here.
        let (stream, from) = axum::serve::Listener::accept(&mut self.listener).await;
        (Place { stream, _place: place }, from)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection with its place.
struct Place {
    stream: tokio::net::TcpStream,
    _place: Option<OwnedSemaphorePermit>,
}

impl tokio::io::AsyncRead for Place {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl tokio::io::AsyncWrite for Place {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
