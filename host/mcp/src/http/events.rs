//! Splits a stream of events into their data.
//!
//! Never keeps more than one event; [`crate::http`] bounds the bytes of the stream.

use std::mem;

/// The part of the stream that is no whole event yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
}

impl Events {
    /// Adds bytes, and returns the data of each event that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut whole = Vec::new();
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for line in lines {
            self.line.extend_from_slice(line);
            whole.extend(self.end_line());
        }
        self.line.extend_from_slice(last);
        whole
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if line.is_empty() {
            let data = mem::take(&mut self.data);
            return Some(data).filter(|data| !data.is_empty());
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_split_at_any_byte() {
        let stream = b": note\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid: 4\ndata:two\n\n\ndata: cut";
        for cut in 0..stream.len() {
            let mut events = Events::default();
            let mut found = events.push(&stream[..cut]);
            found.extend(events.push(&stream[cut..]));
            assert_eq!(found, [b"{\"a\":\n1}".to_vec(), b"two".to_vec()], "cut at {cut}");
        }
    }
}
