//! The server-sent events of the host about one message, up to the event that settles it.
//!
//! Decides nothing. See `commands::chat::follow`, the only caller, and [`ironclaw_text::events`] for the parser.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use ironclaw_operator::{CallProgress, Draft, MessageView, Stage, Waiting};
use ironclaw_text::events::{self, Event, TooLarge};

/// Bytes of an event; a reply is far smaller.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

pub enum MessageEvent {
    Stage(Stage),
    /// A part of the answer that the model is writing.
    Draft(Draft),
    /// The newest progress of a call.
    Progress(CallProgress),
    /// The message with a new reason for its wait; the reason is empty for an ordinary wait.
    Waiting(MessageView),
    /// An approval request of the turn that is new, or whose status has changed.
    Request(Box<Waiting>),
    /// The settled message, the last event.
    Settled(MessageView),
}

/// The events of a message, in their order.
pub struct Events {
    body: Incoming,
    events: events::Events,
}

impl Events {
    /// Reads the events from the body of an answer.
    pub fn new(body: Incoming) -> Self {
        Self { body, events: events::Events::new(EVENT_BYTES_MAX) }
    }

    /// Returns the next event; `None` at the end of the stream. Cancel-safe: a dropped wait loses no event.
    pub async fn next(&mut self) -> Result<Option<MessageEvent>, Broken> {
        loop {
            while let Some(event) = self.events.pop() {
                if let Some(event) = read(&event)? {
                    return Ok(Some(event));
                }
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|cause| Broken(cause.to_string()))?;
            if let Some(data) = frame.data_ref() {
                self.events.push(data).map_err(|TooLarge| Broken("an event is too long".to_owned()))?;
            }
        }
    }
}

/// The failure of a broken stream, or of an invalid event.
pub struct Broken(pub String);

/// Reads the data of an event. An event of an unknown name is ignored.
fn read(Event { name, data }: &Event) -> Result<Option<MessageEvent>, Broken> {
    let read = match name.as_str() {
        "stage" => serde_json::from_slice(data).map(MessageEvent::Stage),
        "draft" => serde_json::from_slice(data).map(MessageEvent::Draft),
        "progress" => serde_json::from_slice(data).map(MessageEvent::Progress),
        "waiting" => serde_json::from_slice(data).map(MessageEvent::Waiting),
        "request" => serde_json::from_slice(data).map(|request| MessageEvent::Request(Box::new(request))),
        "message" => serde_json::from_slice(data).map(MessageEvent::Settled),
        _ => return Ok(None),
    };
    read.map(Some).map_err(|cause| Broken(format!("invalid event: {cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_by_their_names() {
        let stage = r#"{"seq":1,"at":"t","stage":"message.recorded","outcome":"done"}"#;
        let mut events = events::Events::new(EVENT_BYTES_MAX);
        let stream = format!(": hi\r\n\nevent: stage\r\ndata: {stage}\r\n\r\nevent: x\ndata: y\n\n");
        events.push(stream.as_bytes()).expect("short");
        let known = std::iter::from_fn(|| events.pop()).filter_map(|event| read(&event).ok().expect("well-formed"));
        let stages: Vec<_> = known
            .map(|event| matches!(event, MessageEvent::Stage(stage) if stage.stage == "message.recorded"))
            .collect();
        assert_eq!(stages, [true]);
        assert!(read(&Event { name: "stage".to_owned(), data: b"{".to_vec() }).is_err());
    }
}
