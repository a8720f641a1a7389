//! The incremental parser of a stream of events: server-sent events, and JSON texts in a row. It reads each byte once.
//!
//! The body decides, not its content type. Holds at most one incomplete event, and does not decode its data. Ids of events and times
//! for a retry are ignored; a line that is no part of a stream is skipped and counted. See [`nesting`].

mod nesting;

use nesting::Nesting;
use std::collections::VecDeque;

/// Bytes of skipped lines that are kept, for the words of an error page.
const SKIPPED_BYTES_MAX: usize = 4096;
/// The mark of the order of bytes, which some servers send first.
const MARK: &[u8] = "\u{feff}".as_bytes();

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
    /// Bytes of the longest JSON text that is no event.
    text_bytes_max: usize,
    line: Vec<u8>,
    /// The name of the incomplete event.
    name: String,
    /// The data of the incomplete event.
    data: Option<Vec<u8>>,
    /// The incomplete JSON text that is no event.
    text: Option<Vec<u8>>,
    /// The brackets of the incomplete data or text.
    nesting: Nesting,
    /// The last line ended with a carriage return, so a line feed directly behind it belongs to that end.
    after_return: bool,
    /// A line has ended. A byte order mark is allowed before the first line only.
    has_begun: bool,
    /// Bytes since the last event.
    since: usize,
    ready: VecDeque<Event>,
    skipped_lines: u64,
    skipped: Vec<u8>,
}

impl Events {
    /// Makes the parser of a stream; each event has at most this many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, text_bytes_max: bytes_max, ..Self::default() }
    }

    /// Permits this many bytes to a JSON text that is no event, such as a whole answer.
    #[must_use]
    pub fn with_texts(self, text_bytes_max: usize) -> Self {
        Self { text_bytes_max, ..self }
    }

    /// Returns the next complete event. A JSON text that is no event is one without a name.
    pub fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Returns the number of lines that were no part of a stream.
    pub const fn skipped_lines(&self) -> u64 {
        self.skipped_lines
    }

    /// Returns the beginning of the lines that were no part of a stream.
    pub fn skipped(&self) -> &[u8] {
        &self.skipped
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

    /// Ends the stream: its last line and its last event need no end of their own. Returns whether it broke off within an event.
    pub fn finish(&mut self) -> bool {
        if !self.line.is_empty() {
            self.end_line();
        }
        let is_cut = self.text.take().is_some()
            || self.data.as_deref().is_some_and(|data| starts_json(data) && !self.nesting.is_closed());
        if is_cut {
            self.data = None;
        }
        self.end_event();
        is_cut
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.since += bytes.len();
        if self.since > self.bytes_max {
            let is_text =
                self.text.is_some() || starts_json(&self.line) || (self.line.is_empty() && starts_json(bytes));
            if !is_text || self.since > self.text_bytes_max {
                return Err(TooLarge);
            }
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let begun = std::mem::replace(&mut self.has_begun, true);
        let line = if begun { &line[..] } else { line.strip_prefix(MARK).unwrap_or(&line) };
        let line = line.trim_ascii_start();
        if self.text.is_some() {
            if !starts_field(line) {
                return self.add_text(line);
            }
            // No JSON text has such a line: the text before it was none.
            let broken = self.text.take().unwrap_or_default();
            self.skip(&broken);
        }
        if line.is_empty() {
            return self.end_event();
        }
        if starts_json(line) {
            self.end_event();
            return self.add_text(line);
        }
        let end = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(end);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field.trim_ascii_end().to_ascii_lowercase().as_slice() {
            b"event" => {
                self.end_whole_event(true);
                self.name = String::from_utf8_lossy(value.trim_ascii_end()).into_owned();
            }
            b"data" => self.add_data(value),
            // Some servers send an error without an event around it.
            b"error" if line.len() > end => {
                self.end_event();
                self.ready.push_back(Event { name: "error".to_owned(), data: value.to_vec() });
            }
            // A comment.
            b"" if line.len() > end => {}
            b"id" | b"retry" => {}
            _ => self.skip(line),
        }
    }

    /// Adds a line to the data of the incomplete event.
    fn add_data(&mut self, mut value: &[u8]) {
        // Some proxies wrap the events of another server once more.
        while let Some(inner) = value.trim_ascii_start().strip_prefix(b"data:") {
            value = inner.strip_prefix(b" ").unwrap_or(inner);
        }
        self.end_whole_event(starts_json(value));
        let data = match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data
            }
            none => {
                self.nesting = Nesting::default();
                none.insert(Vec::new())
            }
        };
        data.extend_from_slice(value);
        self.nesting.end_in(value);
    }

    /// Ends the event if its data is whole: some servers end no event with a blank line. Only JSON says that it is whole; other data
    /// is, if an event follows.
    fn end_whole_event(&mut self, another_follows: bool) {
        let Some(data) = &self.data else { return };
        let is_whole = if starts_json(data) { self.nesting.is_closed() } else { another_follows };
        if is_whole {
            self.end_event();
        }
    }

    fn end_event(&mut self) {
        self.since = 0;
        let name = std::mem::take(&mut self.name);
        self.ready.extend(self.data.take().map(|data| Event { name, data }));
    }

    /// Adds a line to the incomplete JSON text, and takes each text that it ends.
    fn add_text(&mut self, line: &[u8]) {
        let mut rest = line;
        loop {
            if self.text.is_none() {
                rest = rest.trim_ascii_start();
                if rest.is_empty() {
                    return;
                }
                if !starts_json(rest) {
                    return self.skip(rest);
                }
                self.nesting = Nesting::default();
            }
            let text = self.text.get_or_insert_default();
            let Some(end) = self.nesting.end_in(rest) else {
                text.extend_from_slice(rest);
                text.push(b'\n');
                return;
            };
            text.extend_from_slice(&rest[..end]);
            let data = self.text.take().unwrap_or_default();
            self.ready.push_back(Event { name: String::new(), data });
            self.since = 0;
            rest = &rest[end..];
        }
    }

    fn skip(&mut self, line: &[u8]) {
        self.skipped_lines = self.skipped_lines.saturating_add(1);
        let room = SKIPPED_BYTES_MAX.saturating_sub(self.skipped.len());
        self.skipped.extend(line.iter().chain(b"\n").take(room));
        // A skipped line is no part of an event, so it does not count against the bound of the next one.
        if self.data.is_none() {
            self.since = 0;
        }
    }
}

/// Returns whether a text begins as an object or a list of JSON.
fn starts_json(text: &[u8]) -> bool {
    let text = text.strip_prefix(MARK).unwrap_or(text);
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Returns whether a line begins as a line of server-sent events.
fn starts_field(line: &[u8]) -> bool {
    [&b":"[..], b"data:", b"event:", b"id:", b"retry:"].iter().any(|field| line.starts_with(field))
}

#[cfg(test)]
mod tests;
