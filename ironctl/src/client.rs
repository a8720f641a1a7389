//! Asks a running host over its unix socket or its loopback port: one method a question, one connection each.
//!
//! Never asks another machine, and never believes an answer longer than a bound or later than a deadline. See
//! [`ironclaw_contract::operator`] for what the answers mean, [`crate::client::events`] for the stream of stages.

mod changes;
mod channels;
mod events;
mod models;
mod named;
mod people;

pub use events::Heard;

use crate::access::{Access, Way};
use crate::failure::Error;
use crate::home::{Home, RENEW_TOKEN};
use crate::processes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::operator::{
    API_VERSION, AcceptBreak, Agent, AgentBudget, AgentMode, AgentModel, BreakAccepted, Cancelled, Failure,
    HistoryLine, LedgerHead, McpServer, MessageView, NewAgent, NewMessage, NewNote, Note, Notes, Panicked, Proof,
    Recorded, Resumed, Rotated, Session, Status, Transcript, Usage, Why,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};

/// No answer of the API is longer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest time of the host over an ordinary question.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest time of a host on this machine over a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// Longest time to kill everything; a host that takes longer is killed itself.
const PANIC_PATIENCE: Duration = Duration::from_secs(10);

/// Longest time to launch a session and try every way out of it.
const PROVE_PATIENCE: Duration = Duration::from_secs(120);

/// Longest time of an endpoint over its test; the host gives up before.
const TEST_PATIENCE: Duration = Duration::from_secs(150);

/// Longest time to write a chain of millions of entries to its archive.
const ROTATE_PATIENCE: Duration = Duration::from_secs(300);

/// Longest time of one long poll; longer waits are several polls.
pub const POLL_MAX: Duration = Duration::from_secs(25);

/// Returns whether something takes connections there. Asks nothing, and needs no token.
pub async fn is_listening(way: &Way) -> bool {
    let connected = async {
        match way {
            Way::Socket(path) => UnixStream::connect(path).await.is_ok(),
            Way::Port(address) => TcpStream::connect(address).await.is_ok(),
        }
    };
    // A host with too many connections to take another one listens as well.
    timeout(CONNECT_PATIENCE, connected).await.unwrap_or(true)
}

/// A host, the way to it, and a token for it.
pub struct Client {
    home: PathBuf,
    way: Way,
    token: String,
    /// Whether the token is the owner's in the home.
    is_of_home: bool,
}

impl Client {
    /// Opens the host of this home with its owner's token; fails as unreachable when its run file is missing.
    ///
    /// Opening asks nothing: a stale run file shows at the first question.
    pub fn open(home: &Home) -> Result<Self, Error> {
        Ok(Self { home: home.path().to_owned(), way: socket_of(home)?, token: home.token()?, is_of_home: true })
    }

    /// Opens the host that the caller named, or that of this home, with the caller's token.
    pub fn with(home: &Home, access: &Access) -> Result<Self, Error> {
        let way = match access.port()? {
            Some(way) => way,
            None => socket_of(home)?,
        };
        let is_of_home = !access.names_token();
        Ok(Self { home: home.path().to_owned(), way, token: access.token(home)?, is_of_home })
    }

    /// Asks for the daemon and every session.
    pub async fn status(&self) -> Result<Status, Error> {
        self.get("status").await
    }

    /// Asks whether the host takes messages and works on them; the error has its own words where it does not.
    pub async fn readiness(&self) -> Result<(), Error> {
        self.ask(Method::GET, "/readyz", None, PATIENCE).await.map(drop)
    }

    /// Asks the host to stop; returns when it said that it will.
    pub async fn stop(&self) -> Result<(), Error> {
        self.ask(Method::POST, "stop", None, PATIENCE).await.map(drop)
    }

    /// Returns every agent.
    pub async fn agents(&self) -> Result<Vec<Agent>, Error> {
        self.get("agents").await
    }

    /// Makes an agent.
    pub async fn create_agent(&self, agent: &NewAgent) -> Result<Agent, Error> {
        self.post("agents", agent).await
    }

    /// Returns one agent, by name or id.
    pub async fn agent(&self, agent: &str) -> Result<Agent, Error> {
        self.get(&format!("agents/{}", segment(agent))).await
    }

    /// Sets the mode of an agent; the host refuses a word that is none.
    pub async fn set_mode(&self, agent: &str, mode: &str) -> Result<AgentMode, Error> {
        let mode = AgentMode { mode: mode.to_owned() };
        self.post(&format!("agents/{}/mode", segment(agent)), &mode).await
    }

    /// Returns an agent's own ceilings.
    pub async fn budget(&self, agent: &str) -> Result<AgentBudget, Error> {
        self.get(&format!("agents/{}/budget", segment(agent))).await
    }

    /// Sets an agent's own ceilings; an absent one stays as it is, and 0 takes one away.
    pub async fn set_budget(&self, agent: &str, budget: &AgentBudget) -> Result<AgentBudget, Error> {
        self.post(&format!("agents/{}/budget", segment(agent)), budget).await
    }

    /// Returns the usage of models in the last days, and the ceilings; of one agent or session only, if named.
    pub async fn usage(&self, days: u32, agent: Option<&str>, session: Option<&str>) -> Result<Usage, Error> {
        let named =
            |key, value: Option<&str>| value.map(|value| format!("&{key}={}", segment(value))).unwrap_or_default();
        self.get(&format!("usage?days={days}{}{}", named("agent", agent), named("session", session))).await
    }

    /// Gives an agent a model endpoint, or `default` for whatever is the default.
    pub async fn set_model(&self, agent: &str, model: &str) -> Result<AgentModel, Error> {
        let model = AgentModel { model: model.to_owned() };
        self.post(&format!("agents/{}/model", segment(agent)), &model).await
    }

    /// Removes an agent and what belongs to it.
    pub async fn remove_agent(&self, agent: &str) -> Result<(), Error> {
        let path = format!("agents/{}", segment(agent));
        self.ask(Method::DELETE, &path, None, PATIENCE).await.map(drop)
    }

    /// Hands the host a message for an agent; it is recorded when this returns.
    pub async fn send(&self, agent: &str, message: &NewMessage) -> Result<Recorded, Error> {
        self.post(&format!("agents/{}/messages", segment(agent)), message).await
    }

    /// Returns every MCP server of the catalogue.
    pub async fn mcp_servers(&self) -> Result<Vec<McpServer>, Error> {
        self.get("mcp").await
    }

    /// Returns the last lines of a conversation with an agent, oldest first; `speak_as` is one of the caller's identities.
    pub async fn history(
        &self,
        agent: &str,
        thread: Option<&str>,
        speak_as: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HistoryLine>, Error> {
        let thread = thread.map(|thread| format!("&thread={}", segment(thread))).unwrap_or_default();
        let speaker = speak_as.map(|who| format!("&as={}", segment(who))).unwrap_or_default();
        self.get(&format!("agents/{}/history?limit={limit}{thread}{speaker}", segment(agent))).await
    }

    /// Returns the state of a message; waits up to `wait` (at most [`POLL_MAX`]) for its answer.
    pub async fn message(&self, id: MessageId, wait: Duration) -> Result<MessageView, Error> {
        let wait = wait.min(POLL_MAX);
        let path = format!("messages/{id}?wait_ms={}", wait.as_millis());
        parse(&self.ask(Method::GET, &path, None, wait + PATIENCE).await?)
    }

    /// Retries a message that got a notice (`last` for the newest of the caller); it is queued when this returns.
    pub async fn retry(&self, id: &str) -> Result<Recorded, Error> {
        let path = format!("messages/{}/retry", segment(id));
        parse(&self.ask(Method::POST, &path, None, PATIENCE).await?)
    }

    /// Follows a message until its answer or until `deadline`, telling each stage and the words of the answer as they come.
    ///
    /// `None` when the deadline came, or the host ended the stream, before the message was settled.
    pub async fn follow(
        &self,
        id: MessageId,
        deadline: Instant,
        hear: impl FnMut(Heard) -> Result<(), Error>,
    ) -> Result<Option<MessageView>, Error> {
        let path = format!("messages/{id}/events");
        let body = self.request(Method::GET, &path, None, PATIENCE).await?.into_body();
        let following = events::until_settled(body, hear);
        match timeout_at(deadline, following).await {
            Ok(Ok(settled)) => Ok(settled),
            Ok(Err(events::Error::Told(error))) => Err(error),
            Ok(Err(events::Error::Stream(cause))) => Err(self.lost(&cause)),
            Err(_) => Ok(None),
        }
    }

    /// Returns the stages of a message (`last` for the newest of the caller) and what they add up to.
    pub async fn why(&self, id: &str) -> Result<Why, Error> {
        self.get(&format!("messages/{}/why", segment(id))).await
    }

    /// Returns the newest notes of an agent, or those that hold words of a query.
    pub async fn memory(&self, agent: &str, query: Option<&str>) -> Result<Notes, Error> {
        let query = query.map(|query| format!("?query={}", segment(query))).unwrap_or_default();
        self.get(&format!("agents/{}/memory{query}", segment(agent))).await
    }

    /// Adds a note of the caller to the memory of an agent.
    pub async fn remember(&self, agent: &str, note: &NewNote) -> Result<Note, Error> {
        self.post(&format!("agents/{}/memory", segment(agent)), note).await
    }

    /// Erases a note.
    pub async fn forget(&self, agent: &str, note: &str) -> Result<(), Error> {
        let path = format!("agents/{}/memory/{}", segment(agent), segment(note));
        self.ask(Method::DELETE, &path, None, PATIENCE).await.map(drop)
    }

    /// Returns a page of a conversation, from the item behind this number on.
    pub async fn transcript(&self, session: &str, after_seq: u64) -> Result<Transcript, Error> {
        self.get(&format!("sessions/{}/transcript?after_seq={after_seq}", segment(session))).await
    }

    /// Returns the last items of a conversation.
    pub async fn end_of_transcript(&self, session: &str, last: usize) -> Result<Transcript, Error> {
        self.get(&format!("sessions/{}/transcript?last={last}", segment(session))).await
    }

    /// Returns the signed head of the ledger's current end.
    pub async fn ledger_head(&self) -> Result<LedgerHead, Error> {
        self.get("audit/head").await
    }

    /// Closes the ledger's chain and begins the next.
    pub async fn rotate_ledger(&self) -> Result<Rotated, Error> {
        parse(&self.ask(Method::POST, "audit/rotate", None, ROTATE_PATIENCE).await?)
    }

    /// Accepts that heads or archives know another history.
    pub async fn accept_break(&self, reason: String) -> Result<BreakAccepted, Error> {
        let body = serde_json::to_vec(&AcceptBreak { reason }).expect("plain fields are JSON");
        parse(&self.ask(Method::POST, "audit/accept", Some(body), ROTATE_PATIENCE).await?)
    }

    /// Returns every session.
    pub async fn sessions(&self) -> Result<Vec<Session>, Error> {
        self.get("sessions").await
    }

    /// Returns one session.
    pub async fn session(&self, id: &str) -> Result<Session, Error> {
        self.get(&format!("sessions/{}", segment(id))).await
    }

    /// Ends the turn that runs in a session, or the next one, with a notice.
    pub async fn cancel_turn(&self, id: &str) -> Result<Cancelled, Error> {
        let path = format!("sessions/{}/cancel", segment(id));
        parse(&self.ask(Method::POST, &path, None, PATIENCE).await?)
    }

    /// Stops everything; returns when it is over.
    pub async fn panic(&self) -> Result<Panicked, Error> {
        parse(&self.ask(Method::POST, "panic", None, PANIC_PATIENCE).await?)
    }

    /// Lets everything go on.
    pub async fn resume(&self) -> Result<Resumed, Error> {
        parse(&self.ask(Method::POST, "resume", None, PATIENCE).await?)
    }

    /// Puts a session to sleep.
    pub async fn stop_session(&self, id: &str) -> Result<(), Error> {
        let path = format!("sessions/{}/stop", segment(id));
        self.ask(Method::POST, &path, None, PATIENCE).await.map(drop)
    }

    /// Lets a parked or quarantined session go on.
    pub async fn release_session(&self, id: &str) -> Result<(), Error> {
        let path = format!("sessions/{}/release", segment(id));
        self.ask(Method::POST, &path, None, PATIENCE).await.map(drop)
    }

    /// Removes a session and erases its content.
    pub async fn remove_session(&self, id: &str) -> Result<(), Error> {
        let path = format!("sessions/{}", segment(id));
        self.ask(Method::DELETE, &path, None, PATIENCE).await.map(drop)
    }

    /// Launches a probe in place of the session's agent that tries to break out.
    pub async fn prove(&self, session: &str) -> Result<Proof, Error> {
        let path = format!("sessions/{}/prove", segment(session));
        parse(&self.ask(Method::POST, &path, None, PROVE_PATIENCE).await?)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        parse(&self.ask(Method::GET, path, None, PATIENCE).await?)
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        parse(&self.ask(Method::POST, path, Some(written(body)?), PATIENCE).await?)
    }

    /// Sends a request and returns the body of the answer, when the host said yes.
    async fn ask(&self, method: Method, path: &str, body: Option<Vec<u8>>, patience: Duration) -> Result<Bytes, Error> {
        let until = Instant::now() + patience;
        let named = named::agent(path, body.as_deref());
        match self.request(method, path, body, patience).await {
            Ok(response) => self.whole(response.into_body(), until).await,
            Err(Error::Refused(failure)) => Err(Error::Refused(self.suggesting(failure, named).await)),
            Err(error) => Err(error),
        }
    }

    /// Sends a request and returns the answer as soon as its head is here; a refusal becomes the error that it is.
    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let until = Instant::now() + patience;
        let response = match timeout_at(until, self.exchange(method, path, body)).await {
            Ok(response) => response?,
            Err(_) => {
                return Err(self.lost(&format!("no answer within {} s", patience.as_secs())));
            }
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = self.whole(response.into_body(), until).await?;
        Err(match serde_json::from_slice::<Failure>(&body) {
            Ok(mut failure) => {
                // The owner's own file does not fit: what helps is a fresh one, whatever is wrong with it.
                if self.is_of_home && matches!(self.way, Way::Socket(_)) && status == StatusCode::UNAUTHORIZED {
                    failure.error.hint = RENEW_TOKEN.to_owned();
                }
                Error::Refused(failure)
            }
            Err(_) => Error::failed(
                "answer_unclear",
                format!("the host answered /{API_VERSION}/{path} with {status} and no reason"),
            )
            .hinting("ironctl and ironclaw-host may be of different versions"),
        })
    }

    async fn exchange(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Response<Incoming>, Error> {
        let (stream, host): (Box<dyn Stream>, &str) = match &self.way {
            Way::Socket(path) => {
                (Box::new(UnixStream::connect(path).await.map_err(|c| self.no_connection(c))?), "ironclaw")
            }
            Way::Port(address) => {
                (Box::new(TcpStream::connect(address).await.map_err(|c| self.no_connection(c))?), address)
            }
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|cause| self.lost(&cause))?;
        // An error that ends the connection ends the exchange too, and is reported there.
        tokio::spawn(async move { drop(connection.await) });
        let mut request = Request::builder()
            .method(method)
            // The paths that machines ask have no version.
            .uri(if path.starts_with('/') { path.to_owned() } else { format!("/{API_VERSION}/{path}") })
            .header(HOST, host)
            .header(AUTHORIZATION, format!("Bearer {}", self.token));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|c| Error::failed("request", format!("cannot ask /{API_VERSION}/{path}")).because(c))?;
        sender.send_request(request).await.map_err(|cause| self.lost(&cause))
    }

    async fn whole(&self, body: Incoming, until: Instant) -> Result<Bytes, Error> {
        let left = until.saturating_duration_since(Instant::now());
        match timeout(left, Limited::new(body, ANSWER_BYTES_MAX).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(cause)) => Err(self.lost(&cause)),
            Err(_) => Err(self.lost(&"its answer did not end")),
        }
    }

    fn no_connection(&self, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => match &self.way {
                Way::Socket(_) => Error::Unreachable { home: self.home.clone() },
                Way::Port(address) => Error::Unreachable { home: format!("http://{address}").into() },
            },
            _ => match &self.way {
                Way::Socket(path) => Error::failed("socket", format!("cannot reach {}", path.display())).because(cause),
                Way::Port(address) => Error::failed("socket", format!("cannot reach {address}")).because(cause),
            },
        }
    }

    fn lost(&self, cause: &dyn std::fmt::Display) -> Error {
        let message = format!("the host at {} went silent: {cause}", self.home.display());
        Error::Lost { message, hint: "look at `ironctl logs`".to_owned() }
    }
}

/// Either kind of connection.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Returns the socket that the run file of this home names.
fn socket_of(home: &Home) -> Result<Way, Error> {
    match home.run()? {
        Some(run) => Ok(Way::Socket(run.socket.into())),
        None => Err(unreachable(home)),
    }
}

/// Makes the error for a host that cannot be asked: there is none, or one that cannot be found by its home.
fn unreachable(home: &Home) -> Error {
    let path = home.path().to_owned();
    match processes::hosts(&path).first() {
        Some(host) => Error::Hidden { home: path, pid: host.pid() },
        None => Error::Unreachable { home: path },
    }
}

fn written(body: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(body).map_err(|cause| Error::failed("request", "cannot write the request").because(cause))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|cause| {
        Error::failed("answer_unclear", "the host's answer has another shape than expected")
            .because(cause)
            .hinting("ironctl and ironclaw-host may be of different versions")
    })
}

/// Encodes a name as one segment of a path: everything but RFC 3986's unreserved characters is escaped.
fn segment(name: &str) -> String {
    // A lone `.` or `..` would be a step in the path, so dots count as reserved here.
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
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(segment("assistant-2"), "assistant-2");
        assert_eq!(segment("../stop?x#y"), "%2E%2E%2Fstop%3Fx%23y");
        assert_eq!(segment("ü"), "%C3%BC");
    }
}
