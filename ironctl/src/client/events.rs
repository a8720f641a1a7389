//! The server-sent events of the host about one message, up to the event that settles it.
//!
//! Keeps one event in memory at a time, and refuses an event over a bound. See `commands::chat::follow`, the only caller.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use ironclaw_contract::operator::{CallProgress, CallRequest, Draft, MessageView, Stage};

/// Bytes of an event and of an incomplete line; a reply is far smaller.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An event of a message.
pub enum MessageEvent {
    /// A stage of the message.
    Stage(Stage),
    /// A part of the answer that the model is writing.
    Draft(Draft),
    /// The newest progress of a call.
    Progress(CallProgress),
    /// The message with a new reason for its wait; the reason is empty for an ordinary wait.
    Waiting(MessageView),
    /// An approval request of the turn that is new, or whose status has changed.
    Request(Box<CallRequest>),
    /// The settled message, the last event.
    Settled(MessageView),
}

/// The events of a message, in their order.
pub struct Events {
    body: Incoming,
    lines: Lines,
    event: Event,
}

impl Events {
    /// Reads the events from the body of an answer.
    pub fn new(body: Incoming) -> Self {
        Self { body, lines: Lines::default(), event: Event::default() }
    }

    /// Returns the next event; `None` at the end of the stream. Cancel-safe: a dropped wait loses no event.
    pub async fn next(&mut self) -> Result<Option<MessageEvent>, Broken> {
        loop {
            while let Some(line) = self.lines.next_line()? {
                if let Some(event) = self.event.take(&line)? {
                    return Ok(Some(event));
                }
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|cause| Broken(cause.to_string()))?;
            if let Some(data) = frame.data_ref() {
                self.lines.push(data)?;
            }
        }
    }
}

/// The failure of a broken stream, or of an invalid event.
pub struct Broken(pub String);

/// The bytes of the stream, split into lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, data: &[u8]) -> Result<(), Broken> {
        if self.0.len() + data.len() > EVENT_BYTES_MAX {
            return Err(Broken("an event is too long".to_owned()));
        }
        self.0.extend_from_slice(data);
        Ok(())
    }

    fn next_line(&mut self) -> Result<Option<String>, Broken> {
        let Some(end) = self.0.iter().position(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let mut line: Vec<u8> = self.0.drain(..=end).collect();
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map(Some).map_err(|_| Broken("an event is not UTF-8".to_owned()))
    }
}

/// An event that is not complete yet.
#[derive(Default)]
struct Event {
    name: String,
    data: String,
}

impl Event {
    /// Adds a line to the event; an empty line ends it. An event of an unknown name is ignored.
    fn take(&mut self, line: &str) -> Result<Option<MessageEvent>, Broken> {
        if line.is_empty() {
            return std::mem::take(self).finish();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                if self.data.len() + value.len() > EVENT_BYTES_MAX {
                    return Err(Broken("an event is too long".to_owned()));
                }
                self.data.push_str(value);
            }
            _ => {} // comments that keep the connection open, ids, retry times
        }
        Ok(None)
    }

    fn finish(self) -> Result<Option<MessageEvent>, Broken> {
        let data = self.data.as_str();
        let read = match self.name.as_str() {
            "stage" => serde_json::from_str(data).map(MessageEvent::Stage),
            "draft" => serde_json::from_str(data).map(MessageEvent::Draft),
            "progress" => serde_json::from_str(data).map(MessageEvent::Progress),
            "waiting" => serde_json::from_str(data).map(MessageEvent::Waiting),
            "request" => serde_json::from_str(data).map(|request| MessageEvent::Request(Box::new(request))),
            "message" => serde_json::from_str(data).map(MessageEvent::Settled),
            _ => return Ok(None),
        };
        read.map(Some).map_err(|cause| Broken(format!("invalid event: {cause}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_whole_from_any_chunks() {
        let stage = r#"{"seq":1,"at":"t","stage":"message.recorded","outcome":"done"}"#;
        let stream = format!(": hi\r\n\nevent: stage\r\ndata: {stage}\r\n\r\nevent: x\ndata: y\n\n");
        for size in 1..stream.len() {
            let mut lines = Lines::default();
            let mut event = Event::default();
            let mut stages = Vec::new();
            for chunk in stream.as_bytes().chunks(size) {
                lines.push(chunk).ok().expect("short");
                while let Some(line) = lines.next_line().ok().expect("UTF-8") {
                    if let Some(MessageEvent::Stage(stage)) = event.take(&line).ok().expect("well-formed") {
                        stages.push(stage.stage);
                    }
                }
            }
            assert_eq!(stages, ["message.recorded"], "in chunks of {size}");
        }
    }

    #[test]
    fn endless_line_is_refused() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; EVENT_BYTES_MAX];
        assert!(lines.push(&chunk).is_ok());
        assert!(lines.push(b"x").is_err());
    }
}
