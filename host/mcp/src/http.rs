//! A connection over streamable HTTP: each message is one POST, and its answer is JSON or a stream of events.
//!
//! Never sends a POST twice, never resumes a stream, and never reads more of one answer than the bound. See [`crate::traffic`].

mod headers;

use crate::Error;
use crate::message::{self, Message};
use crate::traffic::{Sorted, Traffic};
use crate::wire::{Outgoing, QUEUED_MESSAGES_MAX, Wire};
use headers::Sender;
use ironclaw_text::events::Events;
use reqwest::header::{CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use url::Url;

/// Time for a message that has no answer.
const NOTE: Duration = Duration::from_secs(5);
/// Bytes of a header `WWW-Authenticate`.
const CHALLENGE_BYTES_MAX: usize = 1024;
/// Characters of a content type in an error.
const CONTENT_TYPE_CHARS_MAX: usize = 64;
/// The code of JSON-RPC for a request that the server does not take.
const INVALID_REQUEST: i64 = -32600;

/// Starts the task of a connection. Nothing is sent before the first message.
pub(crate) fn connect(url: Url, headers: HeaderMap, http: reqwest::Client, bytes_max: usize) -> Wire {
    let traffic = Arc::new(Traffic::default());
    let (outgoing, to_send) = mpsc::channel(QUEUED_MESSAGES_MAX);
    let (responses, incoming) = mpsc::channel(QUEUED_MESSAGES_MAX);
    let sender = Sender::new(headers);
    let link = Arc::new(Link { url, http, bytes_max, sender, traffic: traffic.clone(), responses });
    // It ends when the wire is dropped, after it deleted the session.
    drop(tokio::spawn(dispatch(link, to_send)));
    Wire { outgoing, incoming, traffic, tasks: JoinSet::new() }
}

/// The outcome of reading an answer to its end.
enum Read {
    /// It had the answer to the request.
    Answered,
    /// It had other messages, or nothing.
    Unanswered,
    /// It had no message.
    Foreign,
}

struct Link {
    url: Url,
    http: reqwest::Client,
    bytes_max: usize,
    sender: Sender,
    traffic: Arc<Traffic>,
    responses: mpsc::Sender<crate::traffic::Response>,
}

/// Runs each message in a task, so that a cancellation can end the exchange of its request.
async fn dispatch(link: Arc<Link>, mut to_send: mpsc::Receiver<Outgoing>) {
    let mut tasks = JoinSet::new();
    let mut exchanges: HashMap<i64, AbortHandle> = HashMap::new();
    while let Some(outgoing) = to_send.recv().await {
        while tasks.try_join_next().is_some() {}
        exchanges.retain(|_, exchange| !exchange.is_finished());
        if let Some(id) = outgoing.cancels() {
            link.traffic.forget(id);
            if let Some(exchange) = exchanges.remove(&id) {
                exchange.abort();
            }
            // Without a session, the end of the exchange is the cancellation.
            if !link.sender.has_version() {
                let _ = outgoing.sent.send(Ok(()));
                continue;
            }
        }
        let id = outgoing.request_id();
        if let (Some(id), Some(method)) = (id, outgoing.method()) {
            link.traffic.open(id, method, outgoing.watched());
        }
        let link = link.clone();
        let exchange = tasks.spawn(async move {
            let Outgoing { message, sent, .. } = outgoing;
            let outcome = match id {
                Some(id) => link.exchange(&message, id).await,
                None => link.note(&message).await,
            };
            if let (Err(_), Some(id)) = (&outcome, id) {
                link.traffic.forget(id);
            }
            let _ = sent.send(outcome);
        });
        exchanges.extend(id.map(|id| (id, exchange)));
    }
    drop(tasks);
    if let Some(request) = link.sender.deletion(&link.http, &link.url) {
        let _ = timeout(NOTE, request.send()).await;
    }
}

impl Link {
    /// Sends a message without an answer.
    async fn note(&self, message: &Value) -> Result<(), Error> {
        let sent = timeout(NOTE, send(self.sender.post(&self.http, &self.url, message))).await;
        let response = sent.map_err(|_| Error::Late)??;
        if response.status().is_success() { Ok(()) } else { Err(refused(&response)) }
    }

    /// Sends a request, and passes its answer on.
    async fn exchange(&self, message: &Value, id: i64) -> Result<(), Error> {
        let response = send(self.sender.post(&self.http, &self.url, message)).await?;
        if response.url() != &self.url {
            return Err(Error::protocol("the client of HTTP followed a redirect"));
        }
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let status = response.status();
        if !status.is_success() {
            return self.refusal(response, method, id).await;
        }
        if method == "initialize" {
            self.sender.keep_session(response.headers())?;
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("none");
        let kind = kind.chars().filter(|letter| !letter.is_control()).take(CONTENT_TYPE_CHARS_MAX).collect::<String>();
        match self.read_events(response, id).await? {
            Read::Answered => Ok(()),
            Read::Unanswered => Err(Error::protocol("an exchange ended without the answer to its request")),
            Read::Foreign => Err(Error::Protocol(format!(
                "an answer with HTTP status {status} and content type {kind} is neither JSON nor events"
            ))),
        }
    }

    /// Reads an answer: a stream of events or JSON, as its body says.
    async fn read_events(&self, mut response: Response, id: i64) -> Result<Read, Error> {
        let too_large = || Error::TooLarge { bytes_max: self.bytes_max };
        let mut events = Events::new(self.bytes_max);
        let (mut bytes, mut has_message, mut is_over) = (0, false, false);
        while !is_over {
            match response.chunk().await.map_err(|_| Error::Gone)? {
                Some(piece) => {
                    bytes += piece.len();
                    if bytes > self.bytes_max {
                        return Err(too_large());
                    }
                    events.push(&piece).map_err(|_| too_large())?;
                }
                None if events.finish() => return Err(Error::Gone),
                None => is_over = true,
            }
            while let Some(event) = events.pop() {
                has_message = has_message || event.data.trim_ascii_start().starts_with(b"{");
                if !event.data.is_empty() && self.pass(event.data, id).await? {
                    return Ok(Read::Answered);
                }
            }
        }
        self.traffic.drop_bytes(events.skipped().len());
        let is_foreign = !has_message && events.skipped_lines() > 0;
        Ok(if is_foreign { Read::Foreign } else { Read::Unanswered })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|_| Error::Gone)? {
            if body.len() + piece.len() > self.bytes_max {
                return Err(Error::TooLarge { bytes_max: self.bytes_max });
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Reads a message of the server and passes it on. Returns whether it answers the request.
    ///
    /// # Errors
    /// [`Error::Unreadable`], unless the message answers another request.
    async fn pass(&self, text: Vec<u8>, id: i64) -> Result<bool, Error> {
        let bytes = text.len();
        match message::read(text).await {
            Message::Read(message) => Ok(self.pass_read(message, bytes, id).await),
            Message::Unread(unread) if unread.id.is_none_or(|of| of == id) => {
                match self.traffic.page(id, unread.page) {
                    Some(response) => Ok(self.responses.send(response).await.is_ok()),
                    None => Err(Error::Unreadable(unread.why)),
                }
            }
            Message::Unread(_) | Message::Other => {
                self.traffic.drop_bytes(bytes);
                Ok(false)
            }
        }
    }

    /// Passes a message on as [`Self::pass`] does.
    async fn pass_read(&self, message: Value, bytes: usize, id: i64) -> bool {
        match self.traffic.sort(message, bytes) {
            Sorted::Response(response) => {
                let is_answer = response.id == id;
                self.sender.learn(&response);
                // The receiver is gone only if the connection is dropped.
                let _ = self.responses.send(response).await;
                is_answer
            }
            Sorted::Reply(reply) => {
                let _ = self.note(&reply).await;
                false
            }
            Sorted::Dropped => false,
        }
    }

    /// Reads a status that is no success.
    async fn refusal(&self, response: Response, method: &str, id: i64) -> Result<(), Error> {
        let status = response.status();
        let error = refused(&response);
        if status == StatusCode::NOT_FOUND && self.sender.has_session() {
            self.traffic.end(Error::Gone);
            return Err(Error::Gone);
        }
        if !status.is_client_error() || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(error);
        }
        let body = if has_type(&response, "application/json") { self.body(response).await? } else { Vec::new() };
        let is_probe = method == "server/discover";
        let mut message = match message::read(body).await {
            Message::Read(message) => message,
            Message::Unread(_) | Message::Other => Value::Null,
        };
        if message.get("error").is_some_and(Value::is_object) {
            // A server that could not read the request does not know its id.
            message["id"] = json!(id);
        } else if is_probe {
            message = json!({"id": id, "error": {"code": INVALID_REQUEST, "message": error.to_string()}});
        }
        if self.pass_read(message, 0, id).await { Ok(()) } else { Err(error) }
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Error> {
    request.send().await.map_err(
        |error| {
            if error.is_connect() { Error::Unreachable(causes(&error)) } else { Error::Gone }
        },
    )
}

/// Joins the causes of a failed connection, without the address.
fn causes(error: &reqwest::Error) -> String {
    let first = std::error::Error::source(error);
    let causes = std::iter::successors(first, |cause| cause.source()).map(ToString::to_string);
    causes.collect::<Vec<_>>().join(": ")
}

fn has_type(response: &Response, wanted: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

fn refused(response: &Response) -> Error {
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|challenge| challenge.to_str().ok());
    let www_authenticate = challenge.map(|challenge| challenge[..challenge.len().min(CHALLENGE_BYTES_MAX)].to_owned());
    Error::Refused { code: response.status().as_u16(), www_authenticate }
}
