//! The reading of an answer: a stream of events, JSON texts in a row, or one whole answer, as its body says.
//!
//! Skips and counts what is no part of an answer. An answer that carries its end is complete, also if the connection breaks behind it.
//! See [`ironclaw_text::events`] for the parser, [`crate::openai`] and [`crate::anthropic`] for the two formats.

use super::anthropic;
use super::assembly::Assembly;
use super::end::End;
use super::error_body::ErrorBody;
use super::fault::Fault;
use super::http::{Answer, EVENT_BYTES_MAX, STREAM_BYTES_MAX, WHOLE_BYTES_MAX};
use super::json::{self, Refused};
use super::openai::{self, Step};
use ironclaw_text::events::{Event, Events, TooLarge};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Longest wait for the usage after the end of an answer, for servers that do not close the stream.
const USAGE_WAIT: Duration = Duration::from_secs(2);
/// Longest wait for the end of the body after the last event; after it, the connection is not reused.
const CLOSE_WAIT: Duration = Duration::from_millis(100);
/// Bytes of a skipped text that are kept, for the words of a refusal in an unknown form.
const SKIPPED_BYTES_MAX: usize = 4096;
/// Answers or events in one list.
const LIST_MAX: usize = 4096;

/// The format of requests and answers.
#[derive(Debug, Clone, Copy)]
pub enum Protocol {
    Chat,
    Messages,
}

/// The state of the reading of one answer.
struct Reading<'a, 'b> {
    protocol: Protocol,
    assembly: &'a mut Assembly<'b>,
    has_key: bool,
    /// Number of events that were no part of the answer.
    skipped: u64,
    /// The first of them.
    first_skipped: String,
}

/// Reads an answer into the assembly, and counts the lines and events that are no part of it.
///
/// # Errors
/// The fault, with the words of the server. An answer that has ended has no fault behind its end.
pub async fn read(
    mut answer: Answer,
    protocol: Protocol,
    assembly: &mut Assembly<'_>,
    has_key: bool,
    skipped: &mut u64,
) -> Result<(), Refused> {
    let mut events = Events::new(EVENT_BYTES_MAX).with_texts(WHOLE_BYTES_MAX);
    let mut reading = Reading { protocol, assembly, has_key, skipped: 0, first_skipped: String::new() };
    let broken = loop {
        if reading.take_all(&mut events).await? == Step::Done {
            reading.check_begun()?;
            // A connection is reusable only after its body is read to the end.
            let _ = timeout(CLOSE_WAIT, answer.piece(STREAM_BYTES_MAX)).await;
            *skipped = events.skipped_lines().saturating_add(reading.skipped);
            return Ok(());
        }
        if reading.assembly.has_ended() {
            answer.wait_at_most(USAGE_WAIT);
        }
        match answer.piece(STREAM_BYTES_MAX).await {
            Ok(Some(piece)) => {
                if events.push(&piece).is_err_and(|TooLarge| true) {
                    break Some(Fault::TooLarge);
                }
            }
            Ok(None) => break None,
            Err(fault) => break Some(fault),
        }
    };
    let is_cut = events.finish();
    let rest = reading.take_all(&mut events).await;
    *skipped = events.skipped_lines().saturating_add(reading.skipped);
    if reading.assembly.has_ended() {
        return Ok(());
    }
    match broken {
        Some(fault) => Err((fault, String::new())),
        None => {
            rest?;
            reading.end(&events, is_cut)
        }
    }
}

impl Reading<'_, '_> {
    /// Reads the complete events. An error behind the end of the answer is none of the answer.
    async fn take_all(&mut self, events: &mut Events) -> Result<Step, Refused> {
        while let Some(event) = events.pop() {
            match self.take(event).await {
                Ok(Step::Done) => return Ok(Step::Done),
                Ok(Step::More) => {}
                Err(_) if self.assembly.has_ended() => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(Step::More)
    }

    /// Reads one event and parses it once: it is an error, the next piece of the answer, or no part of it.
    async fn take(&mut self, event: Event) -> Result<Step, Refused> {
        let is_error = matches!(event.name.as_str(), "error" | "exception");
        // A server that cuts a letter in two still sends an answer.
        let data = String::from_utf8(event.data)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let data = data.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
        if openai::is_last(data, self.assembly) {
            return Ok(Step::Done);
        }
        if !data.starts_with(['{', '[']) {
            if is_error && !data.is_empty() {
                return Err(self.refused(&ErrorBody::from_text(data)));
            }
            self.skip(data);
            return Ok(Step::More);
        }
        let json::Parsed { value, has_doubled_key } = match json::read_answer(data.as_bytes().to_vec()).await {
            Ok(parsed) => parsed,
            // `[ping]` is no list, and half an object is a part of an answer.
            Err((Fault::Malformed, _)) if data.starts_with('[') => {
                self.skip(data);
                return Ok(Step::More);
            }
            Err(refused) => return Err(refused),
        };
        let step = self.take_values(value, is_error);
        self.assembly.end_event(has_doubled_key);
        step
    }

    fn take_values(&mut self, value: Value, is_error: bool) -> Result<Step, Refused> {
        let values = match value {
            Value::Array(list) => list,
            value => vec![value],
        };
        for value in values.into_iter().take(LIST_MAX) {
            if is_error {
                return Err(self.refused(&ErrorBody::from_json(&value)));
            }
            if self.take_value(value)? == Step::Done {
                return Ok(Step::Done);
            }
        }
        Ok(Step::More)
    }

    fn take_value(&mut self, value: Value) -> Result<Step, Refused> {
        let value = unwrapped(value);
        if let Some(error) = ErrorBody::in_answer(&value) {
            return Err(self.refused(&error));
        }
        if let Some(reason) = bad_call(&value) {
            return Err((Fault::BadCall, reason.to_owned()));
        }
        let without_words = |fault| (fault, String::new());
        match (self.protocol, form(self.protocol, &value)) {
            (_, Form::OtherApi) => Err(without_words(Fault::OtherApi)),
            (_, Form::Foreign) => {
                self.skip(&value.to_string());
                Ok(Step::More)
            }
            // A last event may repeat the whole answer behind its pieces.
            (Protocol::Chat, Form::Whole) if self.assembly.has_begun() => {
                openai::repeated(&value, self.assembly).map_err(without_words)
            }
            (Protocol::Chat, Form::Whole) => {
                openai::whole(&value, self.assembly).map(|()| Step::Done).map_err(without_words)
            }
            (Protocol::Chat, Form::Event) => openai::event(&value, self.assembly).map_err(without_words),
            (Protocol::Messages, Form::Whole) if self.assembly.has_begun() => {
                self.assembly.ends(End::read(&value["stop_reason"]).unwrap_or(End::Whole));
                Ok(Step::Done)
            }
            (Protocol::Messages, Form::Whole) => {
                anthropic::whole(&value, self.assembly).map(|()| Step::Done).map_err(without_words)
            }
            (Protocol::Messages, Form::Event) => anthropic::event(&value, self.assembly).map_err(without_words),
        }
    }

    fn skip(&mut self, text: &str) {
        self.skipped = self.skipped.saturating_add(1);
        if self.first_skipped.is_empty() {
            text[..text.floor_char_boundary(SKIPPED_BYTES_MAX)].clone_into(&mut self.first_skipped);
        }
    }

    fn refused(&self, error: &ErrorBody) -> Refused {
        (error.fault_inside(self.has_key), error.words.clone())
    }

    /// Checks an answer with an end and without any other part.
    ///
    /// # Errors
    /// The fault that a skipped line names.
    fn check_begun(&self) -> Result<(), Refused> {
        if self.assembly.has_begun() || self.first_skipped.is_empty() {
            return Ok(());
        }
        let error = ErrorBody::read(self.first_skipped.as_bytes());
        error.fault_of_page(self.has_key).map_or(Ok(()), |fault| Err((fault, error.words)))
    }

    /// Judges the end of a body whose answer has no end.
    ///
    /// # Errors
    /// [`Fault::Cut`] within an event, and [`Fault::Malformed`] for a body without any part of an answer, unless its words name
    /// another fault.
    fn end(&self, events: &Events, is_cut: bool) -> Result<(), Refused> {
        if is_cut {
            return Err((Fault::Cut, String::new()));
        }
        let is_empty = events.skipped_lines() == 0 && self.skipped == 0;
        if self.assembly.has_begun() || is_empty {
            return Ok(());
        }
        let text = match events.skipped() {
            [] => self.first_skipped.clone(),
            lines => String::from_utf8_lossy(lines).into_owned(),
        };
        let error = ErrorBody::read(text.as_bytes());
        Err((error.fault_of_page(self.has_key).unwrap_or(Fault::Malformed), error.words))
    }
}

/// Fields in which a gateway of its own has the answer of a server.
const WRAPPERS: [&str; 4] = ["data", "result", "response", "body"];

/// Takes an answer, or an event of one, out of the object of a gateway around it.
fn unwrapped(mut value: Value) -> Value {
    let is_answer = |inner: &Value| {
        let is_message = inner["type"] == "message" || inner["role"] == "assistant";
        inner["choices"].is_array() || (is_message && inner["content"].is_array())
    };
    if is_answer(&value) {
        return value;
    }
    match WRAPPERS.iter().find(|name| value.get(**name).is_some_and(is_answer)) {
        Some(name) => value[*name].take(),
        None => value,
    }
}

/// The form of a JSON text.
enum Form {
    /// A whole answer.
    Whole,
    /// An event of a stream.
    Event,
    /// A part of an answer of the other API.
    OtherApi,
    /// No part of an answer.
    Foreign,
}

/// The types of the events and answers of the Messages API that have words, calls or a beginning.
const TYPES_OF_MESSAGES: [&str; 4] = ["message", "message_start", "content_block_start", "content_block_delta"];

fn form(protocol: Protocol, value: &Value) -> Form {
    match protocol {
        Protocol::Chat => match value["choices"].get(0) {
            Some(choice) if choice["message"].is_object() && !choice["delta"].is_object() => Form::Whole,
            Some(_) => Form::Event,
            None if value["choices"].is_array() => Form::Event,
            None if value["type"].as_str().is_some_and(|kind| TYPES_OF_MESSAGES.contains(&kind)) => Form::OtherApi,
            None if value["usage"].is_object() => Form::Event,
            None => Form::Foreign,
        },
        Protocol::Messages if value["choices"].get(0).is_some() && !value["content"].is_array() => Form::OtherApi,
        Protocol::Messages => match value["type"].as_str() {
            Some("message") => Form::Whole,
            None if value["content"].is_array() => Form::Whole,
            None if value["content"].is_string() && value["role"] == "assistant" => Form::Whole,
            Some(_) => Form::Event,
            None => Form::Foreign,
        },
    }
}

/// Returns the reason of the end of an answer whose call the server cannot read.
fn bad_call(value: &Value) -> Option<&str> {
    let reasons = [&value["choices"][0]["finish_reason"], &value["choices"][0]["native_finish_reason"]];
    reasons.into_iter().filter_map(Value::as_str).find(|reason| {
        let reason = reason.to_ascii_lowercase();
        let has = |word: &str| reason.contains(word);
        (has("malformed") || has("unexpected") || has("invalid")) && (has("call") || has("tool"))
    })
}
