//! A model server on loopback with the Chat Completions API and the Messages API, with and without streaming. It fails on demand.
//!
//! A closure chooses the response to each request. The server listens only on loopback. `main.rs` is a program with it.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::ReceiverStream;

/// The interval between pieces of a slow stream.
const DRIP_EVERY: Duration = Duration::from_millis(20);

/// The API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/messages`
    Messages,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The API.
    pub api: Api,
    /// The key: the bearer token, or `x-api-key`.
    pub key: Option<String>,
    /// The header with the key.
    pub key_header: Option<&'static str>,
    /// The body.
    pub body: Value,
}

impl Seen {
    /// Returns whether the request asks for a stream.
    pub fn streams(&self) -> bool {
        self.body["stream"] == true
    }

    /// Returns the conversation as (role, text), oldest first. The role of a tool result is `tool`.
    pub fn conversation(&self) -> Vec<(String, String)> {
        let mut parts = Vec::new();
        for message in self.body["messages"].as_array().into_iter().flatten() {
            let role = message["role"].as_str().unwrap_or_default();
            match &message["content"] {
                Value::String(text) => parts.push((role.to_owned(), text.clone())),
                Value::Array(blocks) => {
                    for block in blocks {
                        let text = match &block["content"] {
                            Value::Array(inner) => inner.iter().filter_map(|part| part["text"].as_str()).collect(),
                            Value::String(text) => text.clone(),
                            _ => block["text"].as_str().unwrap_or_default().to_owned(),
                        };
                        match block["type"].as_str() {
                            Some("tool_result") => parts.push(("tool".to_owned(), text)),
                            Some("text") => parts.push((role.to_owned(), text)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        parts
    }

    /// Returns the system text, of both APIs.
    pub fn system(&self) -> String {
        let text = match self.api {
            Api::Chat => &self.body["messages"][0]["content"],
            Api::Messages => &self.body["system"][0]["text"],
        };
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Returns every mark of a cached beginning.
    pub fn cache_marks(&self) -> Vec<Value> {
        let contents = self.body["messages"].as_array().into_iter().flatten().map(|message| &message["content"]);
        let blocks = std::iter::once(&self.body["system"]).chain(contents).filter_map(Value::as_array).flatten();
        blocks.filter_map(|block| block.get("cache_control").cloned()).collect()
    }

    /// Returns the last text of a user, without the host's remarks around it.
    pub fn asked(&self) -> String {
        let remark = |text: &&str| text.starts_with("[The host: ");
        let conversation = self.conversation();
        let said = conversation.iter().rev().filter(|(role, _)| role == "user");
        said.flat_map(|(_, text)| text.rsplit("\n\n")).find(|text| !remark(text)).unwrap_or_default().to_owned()
    }

    /// Returns the tool results after the last text of a user, oldest first.
    pub fn results(&self) -> Vec<String> {
        let conversation = self.conversation();
        let from = conversation.iter().rposition(|(role, _)| role == "user").map_or(0, |at| at + 1);
        conversation[from..].iter().filter(|(role, _)| role == "tool").map(|(_, text)| text.clone()).collect()
    }
}

/// Marks of cached beginnings that the Messages API permits in one request.
const CACHE_MARKS_MAX: usize = 4;

/// The response to a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// This text. A stream sends it word by word.
    Say(String),
    /// This text, cut off at the limit of tokens.
    Limit(String),
    /// This text and calls of these tools.
    Call(String, Vec<(String, Value)>),
    /// This status with these headers and this body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// No response; the connection stays open.
    Hang,
    /// The beginning of a stream, or half of an answer. Then the connection is closed.
    Cut(String),
    /// The beginning of a stream. Then the connection stays open without more data.
    Stall(String),
    /// Status 200 with this body, for every request.
    Raw(String),
    /// Status 200 with these events, for every request.
    Events(Vec<String>),
    /// This status, and an endless body without a line end. With status 200 it is declared as a stream.
    Flood(u16),
    /// An endless stream of comments.
    Drip,
    /// Another response after a delay.
    After(Duration, Box<Act>),
}

/// Answers to other requests, by path.
pub type Pages = Vec<(&'static str, Value)>;

type Respond = dyn Fn(&Seen) -> Act + Send + Sync;

/// The server. It stops when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    respond: Box<Respond>,
    pages: Pages,
    seen: Mutex<Vec<Seen>>,
    /// Has one reference for each stalled stream with a listener.
    stalled: Arc<()>,
}

impl Server {
    /// Listens on a port that the system selects.
    pub fn start(respond: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Self {
        Self::listen(0, respond).expect("loopback has a free port")
    }

    /// Listens on a port that the system selects, and has these answers at other paths.
    pub fn with_pages(pages: Pages, respond: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Self {
        Self::serve(0, pages, Box::new(respond)).expect("loopback has a free port")
    }

    /// Listens on this port of 127.0.0.1.
    ///
    /// # Errors
    /// Fails if the port is in use.
    pub fn listen(port: u16, respond: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> io::Result<Self> {
        Self::serve(port, Pages::new(), Box::new(respond))
    }

    fn serve(port: u16, pages: Pages, respond: Box<Respond>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        // Does not block on the runtime, so that a test with its own runtime can start a server.
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { respond, pages, seen: Mutex::default(), stalled: Arc::default() });
        let app = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/messages", post(messages))
            .fallback(page)
            .with_state(Arc::clone(&shared));
        // Without this option every second piece of a stream waits about 40 ms for an acknowledgement.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    /// Returns the address, e.g. `http://127.0.0.1:40123`. The Chat Completions API is below `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of stalled streams with a listener.
    pub fn stalled(&self) -> usize {
        Arc::strong_count(&self.shared.stalled) - 1
    }

    /// Returns all requests so far, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().expect("not poisoned").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn page(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    match (shared.pages.iter().find(|(path, _)| *path == uri.path()), uri.path()) {
        (Some((_, body)), _) => axum::Json(body.clone()).into_response(),
        (None, "/v1/models") => axum::Json(json!({
            "object": "list", "data": [{ "id": "small", "object": "model", "owned_by": "local" }],
        }))
        .into_response(),
        (None, _) => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn chat(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    answer(&shared, Api::Chat, key(&headers), &body).await
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    if !headers.contains_key("anthropic-version") {
        return (StatusCode::BAD_REQUEST, "anthropic-version is missing").into_response();
    }
    answer(&shared, Api::Messages, key(&headers), &body).await
}

/// Returns the header with the key, and the key.
fn key(headers: &HeaderMap) -> Option<(&'static str, String)> {
    ["authorization", "x-api-key", "api-key"].into_iter().find_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name, value.strip_prefix("Bearer ").unwrap_or(value).to_owned()))
    })
}

async fn answer(shared: &Shared, api: Api, key: Option<(&'static str, String)>, body: &Bytes) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return (StatusCode::BAD_REQUEST, "no JSON").into_response();
    };
    let (key_header, key) = key.unzip();
    let seen = Seen { api, key, key_header, body };
    let marks = seen.cache_marks();
    let is_ephemeral = |mark: &Value| *mark == json!({ "type": "ephemeral" });
    if marks.len() > CACHE_MARKS_MAX || !marks.iter().all(is_ephemeral) {
        return (StatusCode::BAD_REQUEST, "cache_control is not valid").into_response();
    }
    let mut act = (shared.respond)(&seen);
    shared.seen.lock().expect("not poisoned").push(seen.clone());
    while let Act::After(wait, next) = act {
        tokio::time::sleep(wait).await;
        act = *next;
    }
    match act {
        Act::Status(status, headers, body) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut response = (status, body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().expect("a header"));
            }
            response
        }
        Act::Hang => std::future::pending().await,
        Act::Raw(body) => body.into_response(),
        Act::Events(events) => ([("content-type", "text/event-stream")], events.concat()).into_response(),
        Act::Drip => {
            let comment = |()| async {
                tokio::time::sleep(DRIP_EVERY).await;
                Some((Ok::<_, io::Error>(Bytes::from_static(b": still here\n\n")), ()))
            };
            let body = Body::from_stream(futures_util::stream::unfold((), comment));
            ([("content-type", "text/event-stream")], body).into_response()
        }
        Act::Flood(status) => {
            let kind = if status == 200 { "text/event-stream" } else { "text/plain" };
            let piece = Bytes::from(vec![b'a'; 1 << 16]);
            let body = Body::from_stream(futures_util::stream::repeat(piece).map(Ok::<_, io::Error>));
            (StatusCode::from_u16(status).expect("a status"), [("content-type", kind)], body).into_response()
        }
        Act::Say(text) if seen.streams() => stream(&seen, &text, &[], End::Well),
        Act::Limit(text) if seen.streams() => stream(&seen, &text, &[], End::Limit),
        Act::Call(text, calls) if seen.streams() => stream(&seen, &text, &calls, End::Well),
        Act::Cut(text) if seen.streams() => stream(&seen, &text, &[], End::Cut),
        Act::Stall(text) if seen.streams() => {
            let (parts, body) = stream(&seen, &text, &[], End::Never).into_parts();
            let held = Arc::clone(&shared.stalled);
            // Dropped with the connection.
            let body = body.into_data_stream().inspect(move |_| _ = &held);
            Response::from_parts(parts, Body::from_stream(body))
        }
        Act::Say(text) => axum::Json(whole(&seen, &text, &[], End::Well)).into_response(),
        Act::Limit(text) => axum::Json(whole(&seen, &text, &[], End::Limit)).into_response(),
        Act::Call(text, calls) => axum::Json(whole(&seen, &text, &calls, End::Well)).into_response(),
        Act::Stall(text) | Act::Cut(text) => {
            let half = whole(&seen, &text, &[], End::Well).to_string();
            let half = Bytes::from(half[..half.len() / 2].to_owned());
            // Without a pause the connection could end before the first half is sent.
            let cut = async {
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            };
            let begun = futures_util::stream::once(async { Ok(half) });
            Body::from_stream(begun.chain(futures_util::stream::once(cut))).into_response()
        }
        Act::After(..) => unreachable!("waited for above"),
    }
}

/// Returns the tokens of a text. This server counts four bytes as a token.
fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Returns the usage for the Messages API. This server has the beginning of each prompt with a mark in its cache.
fn messages_usage(seen: &Seen, output: usize) -> Value {
    let input = tokens(&seen.body.to_string());
    let cached = if seen.cache_marks().is_empty() { 0 } else { input / 2 };
    let stored = cached / 2;
    json!({
        "input_tokens": input - cached, "output_tokens": output,
        "cache_creation_input_tokens": stored, "cache_read_input_tokens": cached - stored,
    })
}

/// Returns the reason for the end of an output: of Chat Completions, then of Messages.
const fn reasons(has_calls: bool, end: End) -> [&'static str; 2] {
    match end {
        End::Limit => ["length", "max_tokens"],
        End::Well | End::Cut | End::Never if has_calls => ["tool_calls", "tool_use"],
        End::Well | End::Cut | End::Never => ["stop", "end_turn"],
    }
}

fn whole(seen: &Seen, text: &str, calls: &[(String, Value)], end: End) -> Value {
    let (input, output) = (tokens(&seen.body.to_string()), tokens(text));
    let [finish, stop] = reasons(!calls.is_empty(), end);
    match seen.api {
        Api::Chat => {
            let mut message = json!({ "role": "assistant", "content": text });
            if !calls.is_empty() {
                let call = |(n, (tool, arguments)): (usize, &(String, Value))| json!({ "id": format!("call_{n}"), "type": "function", "function": { "name": tool, "arguments": arguments.to_string() } });
                message["tool_calls"] = calls.iter().enumerate().map(call).collect();
            }
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": seen.body["model"],
                "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
                "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output },
            })
        }
        Api::Messages => {
            let mut content = Vec::new();
            if !text.is_empty() {
                content.push(json!({ "type": "text", "text": text }));
            }
            for (n, (tool, arguments)) in calls.iter().enumerate() {
                content
                    .push(json!({ "type": "tool_use", "id": format!("toolu_{n}"), "name": tool, "input": arguments }));
            }
            json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": seen.body["model"], "content": content,
                "stop_reason": stop, "stop_sequence": null,
                "usage": messages_usage(seen, output),
            })
        }
    }
}

/// The end of an output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Well,
    Limit,
    Cut,
    Never,
}

fn stream(seen: &Seen, text: &str, calls: &[(String, Value)], end: End) -> Response {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let events = match seen.api {
        Api::Chat => chat_events(seen, &words, calls, end),
        Api::Messages => messages_events(seen, &words, calls, end),
    };
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, io::Error>>(1);
    tokio::spawn(async move {
        for event in events {
            if sender.send(Ok(event.into())).await.is_err() {
                return;
            }
        }
        match end {
            End::Well | End::Limit => {}
            End::Cut => drop(sender.send(Err(io::Error::other("cut"))).await),
            End::Never => sender.closed().await,
        }
    });
    ([("content-type", "text/event-stream")], Body::from_stream(ReceiverStream::new(receiver))).into_response()
}

/// Returns the JSON of arguments in pieces of a few characters.
fn pieces(arguments: &Value) -> Vec<String> {
    let characters: Vec<char> = arguments.to_string().chars().collect();
    characters.chunks(7).map(String::from_iter).collect()
}

fn chat_events(seen: &Seen, words: &[&str], calls: &[(String, Value)], end: End) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let body = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": seen.body["model"], "choices": [choice] });
        format!("data: {body}\n\n")
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    events.extend(words.iter().map(|word| chunk(json!({ "content": word }), Value::Null)));
    for (n, (tool, arguments)) in calls.iter().enumerate() {
        let call = json!({ "index": n, "id": format!("call_{n}"), "type": "function", "function": { "name": tool, "arguments": "" } });
        events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
        // Arguments are sent in pieces, as by real servers.
        for piece in pieces(arguments) {
            let call = json!({ "index": n, "function": { "arguments": piece } });
            events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
        }
    }
    if matches!(end, End::Well | End::Limit) {
        let [finish, _] = reasons(!calls.is_empty(), end);
        events.push(chunk(json!({}), json!(finish)));
        if seen.body["stream_options"]["include_usage"] == true {
            let (input, output) = (tokens(&seen.body.to_string()), tokens(&words.concat()));
            let usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
            let body = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": seen.body["model"], "choices": [], "usage": usage });
            events.push(format!("data: {body}\n\n"));
        }
        events.push("data: [DONE]\n\n".to_owned());
    }
    events
}

fn messages_events(seen: &Seen, words: &[&str], calls: &[(String, Value)], end: End) -> Vec<String> {
    let ends = matches!(end, End::Well | End::Limit);
    let event = |body: Value| format!("event: {}\ndata: {body}\n\n", body["type"].as_str().unwrap_or_default());
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": seen.body["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": messages_usage(seen, 1),
    });
    let mut events =
        vec![event(json!({ "type": "message_start", "message": message })), event(json!({ "type": "ping" }))];
    let mut index = 0;
    if !words.is_empty() {
        let block = json!({ "type": "text", "text": "" });
        events.push(event(json!({ "type": "content_block_start", "index": index, "content_block": block })));
        for word in words {
            let delta = json!({ "type": "text_delta", "text": word });
            events.push(event(json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        }
        if ends {
            events.push(event(json!({ "type": "content_block_stop", "index": index })));
        }
        index += 1;
    }
    for (n, (tool, arguments)) in calls.iter().enumerate() {
        let block = json!({ "type": "tool_use", "id": format!("toolu_{n}"), "name": tool, "input": {} });
        events.push(event(json!({ "type": "content_block_start", "index": index, "content_block": block })));
        for piece in pieces(arguments) {
            let delta = json!({ "type": "input_json_delta", "partial_json": piece });
            events.push(event(json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        }
        events.push(event(json!({ "type": "content_block_stop", "index": index })));
        index += 1;
    }
    if ends {
        let [_, stop] = reasons(!calls.is_empty(), end);
        let output = tokens(&words.concat());
        let delta = json!({ "stop_reason": stop, "stop_sequence": null });
        events.push(event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": output } })));
        events.push(event(json!({ "type": "message_stop" })));
    }
    events
}
