//! The server-sent events of the host about one message, up to the event that settles it.
//!
//! Keeps one event in memory at a time, and refuses an event over a bound. See `client::Client::follow`, the only caller.

use crate::failure;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use ironclaw_contract::operator::{Draft, MessageView, Stage};

/// Bytes of an event and of an incomplete line; a reply is far smaller.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An event of a message before its answer.
pub enum MessageEvent {
    /// A stage of the message.
    Stage(Stage),
    /// A part of the answer that the model is writing.
    Draft(Draft),
    /// The message with a new reason for its wait; the reason is empty for an ordinary wait.
    Waiting(MessageView),
}

/// The failure of a stream of events.
pub enum Error {
    /// A failure of the callback.
    Caller(failure::Error),
    /// A broken stream, or an invalid event.
    Stream(String),
}

/// Reads until the `message` event and calls `on_event` for each event before it; `None` if the stream ends without one.
pub async fn until_settled(
    mut body: Incoming,
    mut on_event: impl FnMut(MessageEvent) -> Result<(), failure::Error>,
) -> Result<Option<MessageView>, Error> {
    let mut lines = Lines::default();
    let mut event = Event::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|cause| Error::Stream(cause.to_string()))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        lines.push(data)?;
        while let Some(line) = lines.next_line()? {
            match event.take(&line)? {
                Some(Item::Before(event)) => on_event(event).map_err(Error::Caller)?,
                Some(Item::Settled(view)) => return Ok(Some(view)),
                None => {}
            }
        }
    }
    Ok(None)
}

/// The bytes of the stream, split into lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, data: &[u8]) -> Result<(), Error> {
        if self.0.len() + data.len() > EVENT_BYTES_MAX {
            return Err(Error::Stream("an event is too long".to_owned()));
        }
        self.0.extend_from_slice(data);
        Ok(())
    }

    fn next_line(&mut self) -> Result<Option<String>, Error> {
        let Some(end) = self.0.iter().position(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let mut line: Vec<u8> = self.0.drain(..=end).collect();
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map(Some).map_err(|_| Error::Stream("an event is not UTF-8".to_owned()))
    }
}

enum Item {
    /// An event before the answer.
    Before(MessageEvent),
    /// The settled message.
    Settled(MessageView),
}

/// An event that is not complete yet.
#[derive(Default)]
struct Event {
    name: String,
    data: String,
}

impl Event {
    /// Adds a line to the event; an empty line ends it. An event of an unknown name is ignored.
    fn take(&mut self, line: &str) -> Result<Option<Item>, Error> {
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
                    return Err(Error::Stream("an event is too long".to_owned()));
                }
                self.data.push_str(value);
            }
            _ => {} // comments that keep the connection open, ids, retry times
        }
        Ok(None)
    }

    fn finish(self) -> Result<Option<Item>, Error> {
        let unclear = |cause: serde_json::Error| Error::Stream(format!("invalid event: {cause}"));
        match self.name.as_str() {
            "stage" => {
                serde_json::from_str(&self.data).map(MessageEvent::Stage).map(Item::Before).map(Some).map_err(unclear)
            }
            "draft" => {
                serde_json::from_str(&self.data).map(MessageEvent::Draft).map(Item::Before).map(Some).map_err(unclear)
            }
            "waiting" => {
                serde_json::from_str(&self.data).map(MessageEvent::Waiting).map(Item::Before).map(Some).map_err(unclear)
            }
            "message" => serde_json::from_str(&self.data).map(Item::Settled).map(Some).map_err(unclear),
            _ => Ok(None),
        }
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
                    if let Some(Item::Before(MessageEvent::Stage(stage))) = event.take(&line).ok().expect("well-formed")
                    {
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
