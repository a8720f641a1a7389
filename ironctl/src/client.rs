//! The client of the API: sends each request to a host over its own connection to the unix socket or the loopback port.
//!
//! Never connects to another machine. Refuses an answer over a bound, and waits no longer than a timeout. See
//! [`ironclaw_contract::operator`] for the types of the answers, [`crate::client::events`] for the stream of events.

mod allowances;
mod audit;
mod backup;
mod calls;
mod changes;
mod channels;
mod config;
mod conversations;
mod events;
mod files;
mod mcp;
mod models;
mod people;
mod questions;
mod requests;
mod schedules;
mod skills;

pub use events::{Events, MessageEvent};

use events::Broken;

use crate::access::{Access, Transport};
use crate::failure::Error;
use crate::home::{Home, RENEW_TOKEN};
use crate::processes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, TE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::operator::{
    API_VERSION, Agent, AgentBudget, AgentMode, AgentModel, Cancelled, Failure, MessageView, NewAgent, NewMessage,
    NewNote, Note, Notes, Panicked, Proof, Recorded, Resumed, Session, Status, Transcript, Usage, Why,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes of an answer of the API.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Time for an ordinary request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for a connection to a host on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for an emergency stop; a host that needs longer is killed.
const PANIC_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for the launch of a session and its self-test.
const PROVE_TIMEOUT: Duration = Duration::from_secs(120);

/// Time for the test of an endpoint; the timeout of the host is shorter.
const TEST_TIMEOUT: Duration = Duration::from_secs(150);

/// Time for the listing of an MCP server; the timeout of the host is shorter.
const LOOK_TIMEOUT: Duration = Duration::from_secs(120);

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

    /// Returns the status of the host and every session.
    pub async fn status(&self) -> Result<Status, Error> {
        self.get("status").await
    }

    /// Checks that the host takes messages and works on them; the error has its reason if not.
    pub async fn readiness(&self) -> Result<(), Error> {
        self.ask(Method::GET, "/readyz", None, REQUEST_TIMEOUT).await.map(drop)
    }

    /// Requests the shutdown of the host; returns with its confirmation.
    pub async fn stop(&self) -> Result<(), Error> {
        self.ask(Method::POST, "stop", None, REQUEST_TIMEOUT).await.map(drop)
    }

    /// Returns every agent.
    pub async fn agents(&self) -> Result<Vec<Agent>, Error> {
        self.get("agents").await
    }

    /// Adds an agent.
    pub async fn create_agent(&self, agent: &NewAgent) -> Result<Agent, Error> {
        self.post("agents", agent).await
    }

    /// Returns one agent, by name or id.
    pub async fn agent(&self, agent: &str) -> Result<Agent, Error> {
        self.get(&format!("agents/{}", segment(agent))).await
    }

    /// Sets the guard mode of an agent; the host refuses an unknown mode.
    pub async fn set_mode(&self, agent: &str, mode: &str) -> Result<AgentMode, Error> {
        let mode = AgentMode { mode: mode.to_owned() };
        self.post(&format!("agents/{}/mode", segment(agent)), &mode).await
    }

    /// Returns the ceilings of an agent itself.
    pub async fn budget(&self, agent: &str) -> Result<AgentBudget, Error> {
        self.get(&format!("agents/{}/budget", segment(agent))).await
    }

    /// Sets the ceilings of an agent itself; an absent one is unchanged, and 0 removes one.
    pub async fn set_budget(&self, agent: &str, budget: &AgentBudget) -> Result<AgentBudget, Error> {
        self.post(&format!("agents/{}/budget", segment(agent)), budget).await
    }

    /// Returns the usage of models in the last days and the ceilings, optionally of one agent or session.
    pub async fn usage(&self, days: u32, agent: Option<&str>, session: Option<&str>) -> Result<Usage, Error> {
        let named =
            |key, value: Option<&str>| value.map(|value| format!("&{key}={}", segment(value))).unwrap_or_default();
        self.get(&format!("usage?days={days}{}{}", named("agent", agent), named("session", session))).await
    }

    /// Sets the model endpoint of an agent; `default` follows the default endpoint.
    pub async fn set_model(&self, agent: &str, model: &str) -> Result<AgentModel, Error> {
        let model = AgentModel { model: model.to_owned() };
        self.post(&format!("agents/{}/model", segment(agent)), &model).await
    }

    /// Removes an agent with its sessions.
    pub async fn remove_agent(&self, agent: &str) -> Result<(), Error> {
        let path = format!("agents/{}", segment(agent));
        self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await.map(drop)
    }

    /// Sends a message to an agent; returns once it is recorded.
    pub async fn send(&self, agent: &str, message: &NewMessage) -> Result<Recorded, Error> {
        self.post(&format!("agents/{}/messages", segment(agent)), message).await
    }

    /// Returns the state of a message; waits up to `wait`, at most [`POLL_MAX`], for its answer.
    pub async fn message(&self, id: MessageId, wait: Duration) -> Result<MessageView, Error> {
        let wait = wait.min(POLL_MAX);
        let path = format!("messages/{id}?wait_ms={}", wait.as_millis());
        parse(&self.ask(Method::GET, &path, None, wait + REQUEST_TIMEOUT).await?)
    }

    /// Retries a message that got a notice (`last`: the newest of the caller); returns once it is queued.
    pub async fn retry(&self, id: &str) -> Result<Recorded, Error> {
        let path = format!("messages/{}/retry", segment(id));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Opens the stream of events of a message. With `decides` the caller is present: calls of its turn wait for the caller's decision.
    pub async fn events(&self, id: MessageId, decides: bool) -> Result<Events, Error> {
        let decides = if decides { "?decides=true" } else { "" };
        let path = format!("messages/{id}/events{decides}");
        Ok(Events::new(self.request(Method::GET, &path, None, REQUEST_TIMEOUT).await?.into_body()))
    }

    /// Returns the next event; `None` if the host ends the stream. Cancel-safe.
    pub async fn next_event(&self, events: &mut Events) -> Result<Option<MessageEvent>, Error> {
        events.next().await.map_err(|Broken(cause)| self.lost(&cause))
    }

    /// Returns the stages of a message (`last`: the newest of the caller) with a summary.
    pub async fn why(&self, id: &str) -> Result<Why, Error> {
        self.get(&format!("messages/{}/why", segment(id))).await
    }

    /// Returns the newest notes of an agent, or the notes that match a query.
    pub async fn notes(&self, agent: &str, query: Option<&str>) -> Result<Notes, Error> {
        let query = query.map(|query| format!("?query={}", segment(query))).unwrap_or_default();
        self.get(&format!("agents/{}/memory{query}", segment(agent))).await
    }

    /// Adds a note of the caller to the notes of an agent.
    pub async fn add_note(&self, agent: &str, note: &NewNote) -> Result<Note, Error> {
        self.post(&format!("agents/{}/memory", segment(agent)), note).await
    }

    /// Removes a note.
    pub async fn remove_note(&self, agent: &str, note: &str) -> Result<(), Error> {
        let path = format!("agents/{}/memory/{}", segment(agent), segment(note));
        self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await.map(drop)
    }

    /// Returns a page of a conversation that begins after the item of this number.
    pub async fn transcript(&self, session: &str, after_seq: u64) -> Result<Transcript, Error> {
        self.get(&format!("sessions/{}/transcript?after_seq={after_seq}", segment(session))).await
    }

    /// Returns the last items of a conversation.
    pub async fn end_of_transcript(&self, session: &str, last: usize) -> Result<Transcript, Error> {
        self.get(&format!("sessions/{}/transcript?last={last}", segment(session))).await
    }

    /// Returns every session.
    pub async fn sessions(&self) -> Result<Vec<Session>, Error> {
        self.get("sessions").await
    }

    /// Returns one session.
    pub async fn session(&self, id: &str) -> Result<Session, Error> {
        self.get(&format!("sessions/{}", segment(id))).await
    }

    /// Cancels the running or next turn of a session; its messages get a notice.
    pub async fn cancel_turn(&self, id: &str) -> Result<Cancelled, Error> {
        let path = format!("sessions/{}/cancel", segment(id));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Stops every agent; returns with the result.
    pub async fn panic(&self) -> Result<Panicked, Error> {
        parse(&self.ask(Method::POST, "panic", None, PANIC_TIMEOUT).await?)
    }

    /// Ends the emergency stop.
    pub async fn resume(&self) -> Result<Resumed, Error> {
        parse(&self.ask(Method::POST, "resume", None, REQUEST_TIMEOUT).await?)
    }

    /// Puts a session to sleep.
    pub async fn stop_session(&self, id: &str) -> Result<(), Error> {
        let path = format!("sessions/{}/stop", segment(id));
        self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await.map(drop)
    }

    /// Releases a parked or quarantined session.
    pub async fn release_session(&self, id: &str) -> Result<(), Error> {
        let path = format!("sessions/{}/release", segment(id));
        self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await.map(drop)
    }

    /// Removes a session and erases its content.
    pub async fn remove_session(&self, id: &str) -> Result<(), Error> {
        let path = format!("sessions/{}", segment(id));
        self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await.map(drop)
    }

    /// Runs the self-test in the jail of a session.
    pub async fn prove(&self, session: &str) -> Result<Proof, Error> {
        let path = format!("sessions/{}/prove", segment(session));
        parse(&self.ask(Method::POST, &path, None, PROVE_TIMEOUT).await?)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        parse(&self.ask(Method::GET, path, None, REQUEST_TIMEOUT).await?)
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        parse(&self.ask(Method::POST, path, Some(to_body(body)?), REQUEST_TIMEOUT).await?)
    }

    /// Sends a request and returns the body of the answer; a refusal is an error.
    async fn ask(&self, method: Method, path: &str, body: Option<Content>, timeout: Duration) -> Result<Bytes, Error> {
        let until = Instant::now() + timeout;
        let response = self.request(method, path, body, timeout).await?;
        self.read_body(response.into_body(), until).await
    }

    /// Sends a request and returns the answer as soon as its head arrives; a refusal is an error.
    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Content>,
        timeout: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let until = Instant::now() + timeout;
        let response = match timeout_at(until, self.exchange(method, path, body)).await {
            Ok(response) => response?,
            Err(_) => return Err(self.lost(&format!("timeout after {} s", timeout.as_secs()))),
        };
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
            Err(_) => Error::failed(
                "answer_unclear",
                format!("the host answered /{API_VERSION}/{path} with {status} and without a reason"),
            )
            .hinting("ironctl and ironclaw-host may be of different versions"),
        })
    }

    async fn exchange(&self, method: Method, path: &str, body: Option<Content>) -> Result<Response<Incoming>, Error> {
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
            .method(method)
            // The paths for monitoring have no version.
            .uri(if path.starts_with('/') { path.to_owned() } else { format!("/{API_VERSION}/{path}") })
            .header(HOST, host)
            .header(TE, "trailers")
            .header(AUTHORIZATION, format!("Bearer {}", self.token));
        if let Some(body) = &body {
            request = request.header(CONTENT_TYPE, body.kind);
        }
        let body = body.map(|body| body.bytes).unwrap_or_default();
        let request = request.body(Full::new(Bytes::from(body))).map_err(|c| {
            Error::failed("request", format!("cannot send a request to /{API_VERSION}/{path}")).because(c)
        })?;
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

fn to_body(body: &impl Serialize) -> Result<Content, Error> {
    let bytes = serde_json::to_vec(body)
        .map_err(|cause| Error::failed("request", "cannot write the request").because(cause))?;
    Ok(Content { kind: "application/json", bytes })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|cause| {
        Error::failed("answer_unclear", "the answer of the host has an unexpected shape")
            .because(cause)
            .hinting("ironctl and ironclaw-host may be of different versions")
    })
}

/// Encodes a name as one segment of a path; escapes all but the unreserved characters of RFC 3986.
fn segment(name: &str) -> String {
    // Dots are escaped too, because `.` and `..` are steps in a path.
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_stays_in_its_segment() {
        assert_eq!(segment("assistant-2"), "assistant-2");
        assert_eq!(segment("../stop?x#y"), "%2E%2E%2Fstop%3Fx%23y");
        assert_eq!(segment("ü"), "%C3%BC");
    }
}
