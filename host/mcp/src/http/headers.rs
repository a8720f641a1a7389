//! The headers of each POST: session, version, and what the stateless era repeats from the body.
//!
//! Never lets a header of the caller replace one of the protocol. See [`crate::http`].

use crate::Error;
use crate::traffic::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use url::Url;

/// Bytes of the id of a session.
const SESSION_BYTES_MAX: usize = 1024;
/// Arguments of one tool that its server wants in headers.
const PARAMETERS_MAX: usize = 32;
/// Tools with such arguments that one connection remembers.
const TOOLS_MAX: usize = 1000;
/// The version in the body of a request of the stateless era.
const VERSION_IN_BODY: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers of one connection.
pub(super) struct Sender {
    fixed: HeaderMap,
    learned: Mutex<Learned>,
}

#[derive(Default)]
struct Learned {
    session: Option<HeaderValue>,
    /// The version that `initialize` agreed on.
    version: Option<HeaderValue>,
    parameters: HashMap<String, Vec<Parameter>>,
}

/// An argument that goes into a header too.
struct Parameter {
    /// A JSON pointer into the arguments.
    pointer: String,
    header: HeaderName,
}

impl Sender {
    pub(super) fn new(mut headers: HeaderMap) -> Self {
        for name in [SESSION, VERSION, METHOD, NAME] {
            headers.remove(name);
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { fixed: headers, learned: Mutex::default() }
    }

    /// Returns the POST of a message.
    pub(super) fn post(&self, http: &Client, url: &Url, json: &Value) -> RequestBuilder {
        http.post(url.clone()).headers(self.headers(json)).body(json.to_string())
    }

    /// Returns the request that ends the session, if there is one.
    pub(super) fn deletion(&self, http: &Client, url: &Url) -> Option<RequestBuilder> {
        self.has_session().then(|| http.delete(url.clone()).headers(self.headers(&Value::Null)))
    }

    fn headers(&self, message: &Value) -> HeaderMap {
        let learned = self.learned();
        let mut headers = self.fixed.clone();
        headers.extend(learned.session.clone().map(|session| (SESSION, session)));
        let Some(version) = message.pointer(VERSION_IN_BODY).and_then(Value::as_str) else {
            headers.extend(learned.version.clone().map(|version| (VERSION, version)));
            return headers;
        };
        let mut add = |name: HeaderName, text: &str| headers.extend(encoded(text).map(|value| (name, value)));
        add(VERSION, version);
        add(METHOD, message.get("method").and_then(Value::as_str).unwrap_or_default());
        if let Some(tool) = message.pointer("/params/name").and_then(Value::as_str) {
            add(NAME, tool);
            let arguments = message.pointer("/params/arguments").unwrap_or(&Value::Null);
            for parameter in learned.parameters.get(tool).into_iter().flatten() {
                if let Some(text) = arguments.pointer(&parameter.pointer).and_then(plain) {
                    add(parameter.header.clone(), &text);
                }
            }
        }
        headers
    }

    /// Keeps the id of a session.
    pub(super) fn keep_session(&self, headers: &HeaderMap) -> Result<(), Error> {
        let Some(session) = headers.get(SESSION) else { return Ok(()) };
        if session.len() > SESSION_BYTES_MAX || session.as_bytes().iter().any(|byte| !byte.is_ascii_graphic()) {
            return Err(Error::protocol("the id of the session is too long or not visible ASCII"));
        }
        let mut session = session.clone();
        session.set_sensitive(true);
        self.learned().session = Some(session);
        Ok(())
    }

    /// Learns the version from the answer to `initialize`, and the headers of tools from a listing.
    pub(super) fn learn(&self, response: &Response) {
        let Ok(result) = &response.content else { return };
        let mut learned = self.learned();
        match response.method.as_str() {
            "initialize" => learned.version = result.get("protocolVersion").and_then(Value::as_str).and_then(encoded),
            "tools/list" => {
                for tool in result.get("tools").and_then(Value::as_array).into_iter().flatten() {
                    let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
                    let mut parameters = Vec::new();
                    find(tool.pointer("/inputSchema/properties"), "", &mut parameters);
                    learned.parameters.remove(name);
                    if !parameters.is_empty() && learned.parameters.len() < TOOLS_MAX {
                        learned.parameters.insert(name.to_owned(), parameters);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns whether the server agreed on a version by `initialize`.
    pub(super) fn has_version(&self) -> bool {
        self.learned().version.is_some()
    }

    pub(super) fn has_session(&self) -> bool {
        self.learned().session.is_some()
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds the properties with the annotation `x-mcp-header`.
fn find(properties: Option<&Value>, path: &str, found: &mut Vec<Parameter>) {
    for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        let pointer = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        let wanted = schema.get("x-mcp-header").and_then(Value::as_str).filter(|wanted| !wanted.is_empty());
        let header = wanted.and_then(|wanted| HeaderName::try_from(format!("mcp-param-{wanted}")).ok());
        if let Some(header) = header.filter(|_| found.len() < PARAMETERS_MAX) {
            found.push(Parameter { pointer: pointer.clone(), header });
        }
        find(schema.get("properties"), &pointer, found);
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a text as the value of a header; in Base64 if it has other characters than visible ASCII and inner spaces.
fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text;
    if is_plain && !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text))).ok()
}
