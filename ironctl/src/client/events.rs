//! Reads the host's server-sent events about one message, up to the one that settles it.
//!
//! Never keeps more than one event in memory, and refuses one longer than its bound. See `client::Client::follow`, the only
//! caller.

use crate::failure;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use ironclaw_contract::operator::{Draft, MessageView, Stage};

/// One event and what is not yet a whole one; a reply is far smaller.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An event of a message before its answer.
pub enum Heard {
    /// A stage of it.
    Stage(Stage),
    /// Words of its answer, while it is being made.
    Words(Draft),
    /// The message, when the reason for its wait changes; the reason is empty when it waits for nothing unusual.
    Waiting(MessageView),
}

/// The reason that following ended early.
pub enum Error {
    /// The caller's own failure.
    Told(failure::Error),
    /// The stream broke, or held what is not an event.
    Stream(String),
}

/// Reads until the `message` event, telling each `stage` and `draft`; `None` when the stream ends without one.
pub async fn until_settled(
    mut body: Incoming,
    mut hear: impl FnMut(Heard) -> Result<(), failure::Error>,
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
                Some(Item::Heard(heard)) => hear(heard).map_err(Error::Told)?,
                Some(Item::Settled(view)) => return Ok(Some(view)),
                None => {}
            }
        }
    }
    Ok(None)
}

/// Bytes as they come, handed out a line at a time.
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
    Heard(Heard),
    Settled(MessageView),
}

/// The event whose lines are coming in.
#[derive(Default)]
struct Event {
    name: String,
    data: String,
}

impl Event {
    /// Takes one line in; an empty one ends the event. Names that we do not know are skipped.
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
        let unclear = |cause: serde_json::Error| Error::Stream(format!("unclear event: {cause}"));
        match self.name.as_str() {
            "stage" => serde_json::from_str(&self.data).map(Heard::Stage).map(Item::Heard).map(Some).map_err(unclear),
            "draft" => serde_json::from_str(&self.data).map(Heard::Words).map(Item::Heard).map(Some).map_err(unclear),
            "waiting" => {
                serde_json::from_str(&self.data).map(Heard::Waiting).map(Item::Heard).map(Some).map_err(unclear)
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
    fn events_split_anywhere_are_read_whole() {
        let stage = r#"{"seq":1,"at":"t","stage":"message.recorded","outcome":"done"}"#;
        let stream = format!(": hi\r\n\nevent: stage\r\ndata: {stage}\r\n\r\nevent: x\ndata: y\n\n");
        for size in 1..stream.len() {
            let mut lines = Lines::default();
            let mut event = Event::default();
            let mut stages = Vec::new();
            for chunk in stream.as_bytes().chunks(size) {
                lines.push(chunk).ok().expect("short");
                while let Some(line) = lines.next_line().ok().expect("UTF-8") {
                    if let Some(Item::Heard(Heard::Stage(stage))) = event.take(&line).ok().expect("well-formed") {
                        stages.push(stage.stage);
                    }
                }
            }
            assert_eq!(stages, ["message.recorded"], "in chunks of {size}");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; EVENT_BYTES_MAX];
        assert!(lines.push(&chunk).is_ok());
        assert!(lines.push(b"x").is_err());
    }
}
