//! The brackets of a JSON text that arrives in pieces: they say where it ends.
//!
//! Does not check the text. See [`super`].

/// The open brackets of a text so far.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
    has_begun: bool,
    in_string: bool,
    is_escaped: bool,
}

impl Nesting {
    /// Returns whether each bracket so far is closed.
    pub(super) const fn is_closed(&self) -> bool {
        self.has_begun && self.depth == 0
    }

    /// Reads the next piece. Returns the place behind the bracket that closes the text.
    pub(super) fn end_in(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, byte) in piece.iter().enumerate() {
            if std::mem::take(&mut self.is_escaped) {
                continue;
            }
            match byte {
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => {
                    self.depth += 1;
                    self.has_begun = true;
                }
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.is_closed() {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
