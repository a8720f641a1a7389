//! The parser of error answers: the status, the known words of servers, and the requested wait.
//!
//! Never returns a provider's words except as a detail for the operator. See [`crate::fault`] for the faults, and [`words`] for the
//! places of the words.

mod known;
mod wait;
mod wait_headers;
mod words;

use super::context_size;
use super::fault::Fault;
use ironclaw_text::events::Events;
use serde_json::Value;
use std::time::Duration;
use words::Found;

pub use wait_headers::{is_final, reset, retry_after};

/// Bytes of an event in the body of an error.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// The subject of a refusal after which a request with other options may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaint {
    /// The server does not know the option for the usage of a stream.
    Usage,
    /// The server limits the output with another field.
    LimitField,
    /// The limit on the output is too large for the model.
    LimitSize,
    /// The server does not take the thoughts that it attached itself.
    Thoughts,
    /// The server needs the thoughts of earlier turns.
    ThoughtsMissing,
    /// The server does not take another field that it attached itself.
    State,
    /// The server needs a text beside calls.
    NullContent,
    /// The server does not take an empty text beside calls.
    EmptyContent,
    /// The server takes one call in a message.
    CallsTogether,
}

/// The body of an error: words to recognise, and words to show.
#[derive(Debug, Default)]
pub struct ErrorBody {
    /// Every type, code and message, in lower case.
    recognised: String,
    pub words: String,
    /// The status in the body itself.
    status: Option<u16>,
    /// The wait that the words request.
    pub wait: Option<Duration>,
}

impl ErrorBody {
    /// Parses the body of an error answer; it may have any content.
    pub fn read(body: &[u8]) -> Self {
        if let Ok(body) = serde_json::from_slice::<Value>(body) {
            return Self::from_json(&body);
        }
        let mut events = Events::new(EVENT_BYTES_MAX);
        let is_small = events.push(body).is_ok();
        events.finish();
        let first = std::iter::from_fn(|| events.pop()).find_map(|event| match serde_json::from_slice(&event.data) {
            Ok(body) => Some(Self::from_json(&body)),
            Err(_) => (event.name == "error").then(|| Self::from_text(&String::from_utf8_lossy(&event.data))),
        });
        first.filter(|error| is_small && !error.words.is_empty()).unwrap_or_else(|| {
            // A page or a plain text, also one in which a line looks like an event.
            Self::from_text(&String::from_utf8_lossy(body))
        })
    }

    /// Parses the text of an error: words, a page of HTML, or words around JSON.
    pub fn from_text(text: &str) -> Self {
        Self::new(words::in_text(text))
    }

    /// Parses the JSON of an error.
    pub fn from_json(body: &Value) -> Self {
        let mut error = Self::new(words::in_json(body));
        // llama.cpp has the number beside its words.
        if let Some(tokens) = body["error"]["n_ctx"].as_u64() {
            let number = format!(" (n_ctx: {tokens})");
            error.words += &number;
            error.recognised += &number;
        }
        error
    }

    /// Returns the error in this JSON, if there is one. Servers also send errors with status 200 or within a stream.
    pub fn in_answer(body: &Value) -> Option<Self> {
        words::error_in(body).map(Self::from_json)
    }

    fn new(found: Found) -> Self {
        let Found { words, recognised, status } = found;
        let status = status.or_else(|| known::status(&recognised));
        let wait = wait::requested(&recognised);
        Self { recognised, words, status, wait }
    }

    /// Returns the fault of an error answer with status 200.
    pub fn fault_inside(&self, has_key: bool) -> Fault {
        match self.status {
            Some(status) => self.fault(status, None, has_key),
            None => self.fault_of_page(has_key).unwrap_or_else(|| self.fault(500, None, has_key)),
        }
    }

    /// Returns the fault of an error answer with this status. The wait of its header precedes the one of its words.
    pub fn fault(&self, status: u16, retry_after: Option<Duration>, has_key: bool) -> Fault {
        let retry_after = retry_after.or(self.wait);
        if let Some(fault) = self.named_fault(status, retry_after, has_key) {
            return fault;
        }
        match status {
            300..=399 => Fault::Redirected,
            403 if self.has(known::NOT_SERVED) && !self.has(&["api key", "api_key"]) => Fault::BadRequest(status),
            401 | 403 if has_key => Fault::KeyRefused,
            401 | 403 => Fault::KeyWanted,
            402 => Fault::NoCredit,
            404 => Fault::ModelUnknown,
            413 => Fault::ContextTooLong,
            429 => Fault::RateLimited { retry_after },
            503 | 529 => Fault::Overloaded { retry_after },
            // By definition, 408 and 409 are transient, unlike the other 4xx.
            408 | 409 | 500..=599 => Fault::ServerError { status, retry_after },
            _ if self.has(known::MODEL) => Fault::ModelUnknown,
            _ => Fault::BadRequest(status),
        }
    }

    /// Returns the fault that the words name, whatever the status says; `None` if they name none.
    fn named_fault(&self, status: u16, retry_after: Option<Duration>, has_key: bool) -> Option<Fault> {
        if (300..=399).contains(&status) {
            return None;
        }
        let key = if has_key { Fault::KeyRefused } else { Fault::KeyWanted };
        if self.has(known::NO_TOOLS) {
            return Some(Fault::NoTools);
        }
        if self.has(known::BAD_CALL) || (self.has(known::CALL) && self.has(known::UNREAD) && !self.has(known::SENT)) {
            return Some(Fault::BadCall);
        }
        // The first that fits, from the narrowest to the widest words.
        if self.has(known::CREDIT) {
            return Some(Fault::NoCredit);
        }
        if context_size::is_refusal(&self.recognised) || self.has(known::TOO_LARGE) {
            return Some(Fault::ContextTooLong);
        }
        let named = [
            (known::FILTER, Fault::Withheld),
            (known::KEY, key),
            (known::RATE, Fault::RateLimited { retry_after }),
            (known::OVERLOAD, Fault::Overloaded { retry_after }),
        ];
        let named = named.into_iter().find(|(words, _)| self.has(words)).map(|(_, fault)| fault);
        // The widest words come last. A limit on the rate counts tokens too.
        let is_about_size = || status != 429 && context_size::is_about_size(&self.recognised);
        named.or_else(|| is_about_size().then_some(Fault::ContextTooLong))
    }

    /// Returns the fault that the words of an error without any status name, which came in place of an answer with status 200.
    pub fn fault_of_page(&self, has_key: bool) -> Option<Fault> {
        let named = self.named_fault(200, self.wait, has_key);
        let unnamed = || {
            let is_page = self.recognised.trim_start().starts_with('<');
            let is_unfit = self.has(known::UNFIT) && !self.has(known::UNWELL);
            match self.has(known::MODEL) {
                _ if is_page => None,
                true => Some(Fault::ModelUnknown),
                false => is_unfit.then_some(Fault::BadRequest(400)),
            }
        };
        named.or_else(unnamed)
    }

    /// Returns whether the error is about the option for the usage of a stream, which older servers do not know.
    pub fn complains_of_usage(&self) -> bool {
        self.has(&["stream_options", "include_usage"])
    }

    /// Returns the complaint about the limit on the output, if there is one.
    pub fn limit_complaint(&self) -> Option<Complaint> {
        if !self.has(&["max_tokens", "max_completion_tokens"]) {
            None
        } else if self.has(&["unsupported", "not supported", "unrecognized", "instead"]) {
            Some(Complaint::LimitField)
        } else {
            Some(Complaint::LimitSize)
        }
    }

    fn has(&self, any: &[&str]) -> bool {
        any.iter().any(|words| self.recognised.contains(words))
    }
}

#[cfg(test)]
mod tests;
