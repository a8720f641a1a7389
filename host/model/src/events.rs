//! The incremental parser of server-sent events. It reads each byte once.
//!
//! Holds at most one incomplete event, and keeps only its data: names and ids of events are ignored. See
//! [`crate::remote`].

use super::fault::Fault;
use super::http::EVENT_BYTES_MAX;
use std::collections::VecDeque;

/// State of the parser of one stream.
#[derive(Debug, Default)]
pub struct Events {
    /// The incomplete line.
    line: Vec<u8>,
    /// The data of the incomplete event.
    data: Option<Vec<u8>>,
    /// The last line ended with a carriage return, so a line feed directly behind it belongs to that end.
    after_return: bool,
    /// A line has ended. A byte order mark is allowed before the first line only.
    has_begun: bool,
    /// Bytes since the last event.
    since: usize,
    ready: VecDeque<String>,
}

impl Events {
    /// Returns the data of the next complete event.
    pub fn next(&mut self) -> Option<String> {
        self.ready.pop_front()
    }

    /// Parses the next piece of the stream.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] for an event over the limit, [`Fault::Malformed`] for one that is not UTF-8.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), Fault> {
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
            self.end_line()?;
        }
        self.hold(piece)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.since += bytes.len();
        if self.since > EVENT_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), Fault> {
        let line = std::mem::take(&mut self.line);
        let begun = std::mem::replace(&mut self.has_begun, true);
        let line = if begun { &line[..] } else { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line) };
        if line.is_empty() {
            self.since = 0;
            if let Some(data) = self.data.take() {
                self.ready.push_back(String::from_utf8(data).map_err(|_| Fault::Malformed)?);
            }
            return Ok(());
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', value @ ..]) => value.strip_prefix(b" ").unwrap_or(value),
            // A comment, or another field.
            Some(_) | None => return Ok(()),
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        pieces.iter().for_each(|piece| events.push(piece).expect("small"));
        std::iter::from_fn(|| events.next()).collect()
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let stream =
            "\u{feff}data: a\r\n\r\n: ping\nevent: x\ndata:b\ndata: \u{e9}\n\ndata\r\rid: 7\n\ndata: cut".as_bytes();
        let whole = ["a", "b\n\u{e9}", ""];
        assert_eq!(read(&[stream]), whole);
        assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), whole);
        for at in 0..stream.len() {
            assert_eq!(read(&[&stream[..at], &stream[at..]]), whole, "cut at {at}");
        }
    }

    #[test]
    fn event_without_an_end_is_too_large() {
        let mut events = Events::default();
        events.push(b"data: ").expect("small");
        assert_eq!(events.push(&vec![b'x'; EVENT_BYTES_MAX]), Err(Fault::TooLarge));
        assert_eq!(Events::default().push(b"data: \xff\n\n"), Err(Fault::Malformed));
    }
}
