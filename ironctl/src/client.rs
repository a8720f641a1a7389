//! The client of the API: sends each request to a host over its own connection to the unix socket or the loopback port.
//!
//! Never connects to another machine. Refuses an answer over a bound, and waits no longer than a timeout. See
//! [`ironclaw_operator`] for the types of the answers, [`crate::client::events`] for the stream of events.

mod backup;
mod events;

pub use events::{Events, MessageEvent};

use events::Broken;

use crate::access::{Access, Transport};
use crate::clock;
use crate::failure::Error;
use crate::home::{Home, RENEW_TOKEN};
use crate::processes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, TE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ironclaw_contract::ids::MessageId;
use ironclaw_operator::routes::{self, Method, Raw, Route};
use ironclaw_operator::{Failure, FileStored, PushDiff, WaitingId, ZONE_HEADER};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes of an answer of the API.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Time for a connection to a host on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time of one long poll; a longer wait takes several polls.
pub const POLL_MAX: Duration = Duration::from_secs(25);

/// Returns whether a program accepts connections at an address. Sends no request and needs no token.
pub async fn is_listening(transport: &Transport) -> bool {
    let connected = async {
        match transport {
            Transport::Socket(path) => UnixStream::connect(path).await.is_ok(),
            Transport::Port(address) => TcpStream::connect(address).await.is_ok(),
        }
    };
    // A timeout counts as listening: a host may have too many connections to accept another one.
    timeout(CONNECT_TIMEOUT, connected).await.unwrap_or(true)
}

/// A name in the path of a route.
type Name<'a> = &'a (dyn Display + Sync);

/// A client for one host, with a token.
#[derive(Clone)]
pub struct Client {
    home: PathBuf,
    transport: Transport,
    token: String,
    /// True for the token of the owner in the home.
    has_home_token: bool,
}

impl Client {
    /// Returns a client for the host of a home with the token of its owner; fails as unreachable without a run file.
    ///
    /// Sends no request: a stale run file fails the first request.
    pub fn open(home: &Home) -> Result<Self, Error> {
        Ok(Self {
            home: home.path().to_owned(),
            transport: socket_of(home)?,
            token: home.token()?,
            has_home_token: true,
        })
    }

    /// Returns a client for the host that the caller names, else the host of a home, with the token of the caller.
    pub fn with(home: &Home, access: &Access) -> Result<Self, Error> {
        let transport = match access.port()? {
            Some(port) => port,
            None => socket_of(home)?,
        };
        let has_home_token = !access.names_token();
        Ok(Self { home: home.path().to_owned(), transport, token: access.token(home)?, has_home_token })
    }

    /// Returns the address of the API: a URL of a loopback port, or the path of a socket.
    pub fn address(&self) -> String {
        match &self.transport {
            Transport::Socket(path) => path.display().to_string(),
            Transport::Port(address) => format!("http://{address}"),
        }
    }

    /// Requests a route with these names in its path.
    pub async fn call<const NAMES: usize, Answer: DeserializeOwned>(
        &self,
        route: Route<NAMES, (), Answer>,
        names: [Name<'_>; NAMES],
    ) -> Result<Answer, Error> {
        self.query(route, names, Value::Null).await
    }

    /// Requests a route and leaves the answer unread, which a host of another version may spell in another way.
    pub async fn send<const NAMES: usize, Answer>(
        &self,
        route: Route<NAMES, (), Answer>,
        names: [Name<'_>; NAMES],
    ) -> Result<(), Error> {
        self.ask(route.method, &uri(route.path, &names, &Value::Null), None, route.timeout).await.map(drop)
    }

    /// Requests a route with the fields of an object as its query; a null is left out.
    pub async fn query<const NAMES: usize, Answer: DeserializeOwned>(
        &self,
        route: Route<NAMES, (), Answer>,
        names: [Name<'_>; NAMES],
        query: Value,
    ) -> Result<Answer, Error> {
        parse(&self.ask(route.method, &uri(route.path, &names, &query), None, route.timeout).await?)
    }

    /// Requests a route with a body.
    pub async fn post<const NAMES: usize, Body: Serialize, Answer: DeserializeOwned>(
        &self,
        route: Route<NAMES, Body, Answer>,
        names: [Name<'_>; NAMES],
        body: &Body,
    ) -> Result<Answer, Error> {
        let bytes = serde_json::to_vec(body)
            .map_err(|cause| Error::failed("request", "cannot write the request").because(cause))?;
        let body = Content { kind: "application/json", bytes };
        let uri = uri(route.path, &names, &Value::Null);
        parse(&self.ask(route.method, &uri, Some(body), route.timeout).await?)
    }

    /// Requests a route that may answer later, and has the host wait up to `wait`, at most [`POLL_MAX`].
    pub async fn poll<Answer: DeserializeOwned>(
        &self,
        route: Route<1, (), Answer>,
        name: Name<'_>,
        wait: Duration,
    ) -> Result<Answer, Error> {
        let wait = wait.min(POLL_MAX);
        let uri = uri(route.path, &[name], &json!({ "wait_ms": wait.as_millis() as u64 }));
        parse(&self.ask(route.method, &uri, None, wait + route.timeout).await?)
    }

    /// Requests the bytes of a route.
    pub async fn bytes(&self, route: Route<1, (), Raw>, name: Name<'_>, query: Value) -> Result<Bytes, Error> {
        self.ask(route.method, &uri(route.path, &[name], &query), None, route.timeout).await
    }

    /// Puts a file into a workspace; replaces one only if `replace` is set.
    pub async fn put_file(
        &self,
        session: &str,
        path: &str,
        replace: bool,
        bytes: Vec<u8>,
    ) -> Result<FileStored, Error> {
        let route = routes::PUT_FILE;
        let uri = uri(route.path, &[&session], &json!({ "path": path, "replace": replace }));
        let body = Content { kind: "application/octet-stream", bytes };
        parse(&self.ask(route.method, &uri, Some(body), route.timeout).await?)
    }

    /// Returns the whole diff of a push, with the text of all its parts.
    pub async fn push_diff(&self, id: WaitingId) -> Result<PushDiff, Error> {
        let mut whole = self.call(routes::PUSH_DIFF, [&id]).await?;
        while let Some(from) = whole.next {
            let part = self.query(routes::PUSH_DIFF, [&id], json!({ "from": from })).await?;
            if part.digest != whole.digest || part.next.is_some_and(|next| next <= from) {
                return Err(Error::failed("diff_changed", format!("the diff of {id} changed while it was read")));
            }
            whole.text.push_str(&part.text);
            (whole.next, whole.left_off) = (part.next, part.left_off);
        }
        Ok(whole)
    }

    /// Opens the stream of events of a message. With `decides` the caller is present: calls of its turn wait for the caller's decision.
    pub async fn events(&self, id: MessageId, decides: bool) -> Result<Events, Error> {
        let route = routes::MESSAGE_EVENTS;
        let uri = uri(route.path, &[&id], &json!({ "decides": decides.then_some(true) }));
        Ok(Events::new(self.request(route.method, &uri, None, route.timeout).await?.into_body()))
    }

    /// Returns the next event; `None` if the host ends the stream. Cancel-safe.
    pub async fn next_event(&self, events: &mut Events) -> Result<Option<MessageEvent>, Error> {
        events.next().await.map_err(|Broken(cause)| self.lost(&cause))
    }

    /// Sends a request and returns the body of the answer; a refusal is an error.
    async fn ask(&self, method: Method, uri: &str, body: Option<Content>, timeout: Duration) -> Result<Bytes, Error> {
        let until = Instant::now() + timeout;
        let response = self.request(method, uri, body, timeout).await?;
        self.read_body(response.into_body(), until).await
    }

    /// Sends a request and returns the answer as soon as its head arrives; a refusal is an error.
    async fn request(
        &self,
        method: Method,
        uri: &str,
        body: Option<Content>,
        timeout: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let until = Instant::now() + timeout;
        let response = match timeout_at(until, self.exchange(method, uri, body)).await {
            Ok(response) => response?,
            Err(_) => return Err(self.lost(&format!("timeout after {} s", timeout.as_secs()))),
        };
        if let Some(zone) = response.headers().get(ZONE_HEADER).and_then(|zone| zone.to_str().ok()) {
            clock::show_in(zone);
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = self.read_body(response.into_body(), until).await?;
        Err(match serde_json::from_slice::<Failure>(&body) {
            Ok(mut failure) => {
                // The token file of the home is wrong; a new token is the remedy.
                if self.has_home_token
                    && matches!(self.transport, Transport::Socket(_))
                    && status == StatusCode::UNAUTHORIZED
                {
                    failure.error.hint = RENEW_TOKEN.to_owned();
                }
                Error::Refused(failure)
            }
            Err(_) => {
                Error::failed("answer_unclear", format!("the host answered {uri} with {status} and without a reason"))
                    .hinting("ironctl and ironclaw-host may be of different versions")
            }
        })
    }

    async fn exchange(&self, method: Method, uri: &str, body: Option<Content>) -> Result<Response<Incoming>, Error> {
        let (stream, host): (Box<dyn Stream>, &str) = match &self.transport {
            Transport::Socket(path) => {
                (Box::new(UnixStream::connect(path).await.map_err(|c| self.no_connection(c))?), "ironclaw")
            }
            Transport::Port(address) => {
                (Box::new(TcpStream::connect(address).await.map_err(|c| self.no_connection(c))?), address)
            }
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|cause| self.lost(&cause))?;
        // An error of the connection is also an error of the request, and is reported there.
        tokio::spawn(async move { drop(connection.await) });
        let mut request = Request::builder()
            .method(match method {
                Method::Get => hyper::Method::GET,
                Method::Post => hyper::Method::POST,
                Method::Patch => hyper::Method::PATCH,
                Method::Delete => hyper::Method::DELETE,
            })
            .uri(uri)
            .header(HOST, host)
            .header(TE, "trailers")
            .header(AUTHORIZATION, format!("Bearer {}", self.token));
        if let Some(body) = &body {
            request = request.header(CONTENT_TYPE, body.kind);
        }
        let body = body.map(|body| body.bytes).unwrap_or_default();
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|c| Error::failed("request", format!("cannot send a request to {uri}")).because(c))?;
        sender.send_request(request).await.map_err(|cause| self.lost(&cause))
    }

    async fn read_body(&self, body: Incoming, until: Instant) -> Result<Bytes, Error> {
        let left = until.saturating_duration_since(Instant::now());
        match timeout(left, Limited::new(body, ANSWER_BYTES_MAX).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(cause)) => Err(self.lost(&cause)),
            Err(_) => Err(self.lost(&"the answer was incomplete at the timeout")),
        }
    }

    fn no_connection(&self, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => match &self.transport {
                Transport::Socket(_) => Error::Unreachable { home: self.home.clone() },
                Transport::Port(address) => Error::Unreachable { home: format!("http://{address}").into() },
            },
            _ => match &self.transport {
                Transport::Socket(path) => {
                    Error::failed("socket", format!("cannot reach {}", path.display())).because(cause)
                }
                Transport::Port(address) => Error::failed("socket", format!("cannot reach {address}")).because(cause),
            },
        }
    }

    fn lost(&self, cause: &dyn std::fmt::Display) -> Error {
        let message = format!("no answer from the host at {}: {cause}", self.home.display());
        Error::Lost { message, hint: "look at `ironctl logs`".to_owned() }
    }
}

/// Either kind of connection.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Returns the socket in the run file of a home.
fn socket_of(home: &Home) -> Result<Transport, Error> {
    match home.run_file()? {
        Some(run) => Ok(Transport::Socket(run.socket.into())),
        None => Err(unreachable(home)),
    }
}

/// Creates the error for a home without a usable run file: no host runs, or its address is unknown.
fn unreachable(home: &Home) -> Error {
    let path = home.path().to_owned();
    match processes::hosts(&path).first() {
        Some(host) => Error::AddressUnknown { home: path, pid: host.pid() },
        None => Error::Unreachable { home: path },
    }
}

/// The body of a request.
struct Content {
    kind: &'static str,
    bytes: Vec<u8>,
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|cause| {
        Error::failed("answer_unclear", "the answer of the host has an unexpected shape")
            .because(cause)
            .hinting("ironctl and ironclaw-host may be of different versions")
    })
}

/// Returns the path of a route with these names, and the fields of an object as its query.
fn uri(path: &str, names: &[Name<'_>], query: &Value) -> String {
    let mut names = names.iter();
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true => escaped(names.next().expect("the type of a route has the number of its names")),
        false => part.to_owned(),
    });
    let path = parts.collect::<Vec<_>>().join("/");
    let fields = query.as_object().into_iter().flatten().filter_map(|(field, value)| match value {
        Value::Null => None,
        Value::String(text) => Some(format!("{field}={}", escaped(text))),
        other => Some(format!("{field}={other}")),
    });
    let query = fields.collect::<Vec<_>>().join("&");
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

/// The characters of a name that are encoded in a path: all but the unreserved ones of RFC 3986, and dots, because `.` and `..` are steps.
const OUTSIDE_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// Encodes a name as one segment of a path.
fn escaped(name: impl Display) -> String {
    utf8_percent_encode(&name.to_string(), OUTSIDE_SEGMENT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_stays_in_its_segment() {
        assert_eq!(escaped("assistant-2"), "assistant-2");
        assert_eq!(escaped("../stop?x#y"), "%2E%2E%2Fstop%3Fx%23y");
        assert_eq!(escaped("ü"), "%C3%BC");
    }

    #[test]
    fn names_and_query_are_put_into_the_path() {
        let path = "/v1/agents/{agent}/memory/{note}";
        assert_eq!(uri(path, &[&"a/b", &7], &Value::Null), "/v1/agents/a%2Fb/memory/7");
        let query = json!({ "agent": "a&b", "days": 7, "none": null, "own": true });
        assert_eq!(uri("/v1/waiting", &[], &query), "/v1/waiting?agent=a%26b&days=7&own=true");
        assert_eq!(uri("/readyz", &[], &json!({ "none": null })), "/readyz");
    }
}
