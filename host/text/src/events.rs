//! The incremental parser of server-sent events. It reads each byte once.
//!
//! Holds at most one incomplete event, and does not decode its data. Ids of events and times for a retry are ignored.

use std::collections::VecDeque;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its data, with a line feed between two lines.
    pub data: Vec<u8>,
}

/// The error of an event that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// State of the parser of one stream.
#[derive(Debug, Default)]
pub struct Events {
    /// Bytes of the longest event.
    bytes_max: usize,
    line: Vec<u8>,
    /// The name of the incomplete event.
    name: String,
    /// The data of the incomplete event.
    data: Option<Vec<u8>>,
    /// The last line ended with a carriage return, so a line feed directly behind it belongs to that end.
    after_return: bool,
    /// A line has ended. A byte order mark is allowed before the first line only.
    has_begun: bool,
    /// Bytes since the last event.
    since: usize,
    ready: VecDeque<Event>,
}

impl Events {
    /// Makes the parser of a stream; each event has at most this many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Returns the next complete event.
    pub fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Parses the next piece of the stream.
    ///
    /// # Errors
    /// [`TooLarge`] for an event over the limit.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), TooLarge> {
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = piece.split_at(end);
            self.hold(line)?;
            piece = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
            self.end_line();
        }
        self.hold(piece)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.since += bytes.len();
        if self.since > self.bytes_max {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let begun = std::mem::replace(&mut self.has_begun, true);
        let line = if begun { &line[..] } else { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line) };
        if line.is_empty() {
            self.since = 0;
            let name = std::mem::take(&mut self.name);
            self.ready.extend(self.data.take().map(|data| Event { name, data }));
            return;
        }
        let end = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(end);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (field, &mut self.data) {
            (b"event", _) => self.name = String::from_utf8_lossy(value).into_owned(),
            (b"data", Some(data)) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            (b"data", none) => *none = Some(value.to_vec()),
            // A comment, or another field.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT_BYTES_MAX: usize = 1 << 20;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let mut events = Events::new(EVENT_BYTES_MAX);
        pieces.iter().for_each(|piece| events.push(piece).expect("small"));
        std::iter::from_fn(|| events.pop()).collect()
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let stream =
            "\u{feff}data: a\r\n\r\n: ping\nevent: x\ndata:b\ndata: \u{e9}\n\ndata\r\rid: 7\n\ndata: cut".as_bytes();
        let event = |name: &str, data: &str| Event { name: name.to_owned(), data: data.into() };
        let whole = [event("", "a"), event("x", "b\n\u{e9}"), event("", "")];
        assert_eq!(read(&[stream]), whole);
        assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), whole);
        for at in 0..stream.len() {
            assert_eq!(read(&[&stream[..at], &stream[at..]]), whole, "cut at {at}");
        }
    }

    #[test]
    fn event_without_an_end_is_too_large() {
        for start in [&b""[..], b"data: ", b"data: a\n", b": "] {
            let mut events = Events::new(EVENT_BYTES_MAX);
            events.push(start).expect("small");
            events.push(&vec![b'x'; EVENT_BYTES_MAX - start.len()]).expect("within the limit");
            // The limit does not count the ends of lines.
            assert_eq!(events.push(b"xx"), Err(TooLarge));
        }
    }
}
