//! A text that arrives in pieces, with its two readings: parts that are joined, or texts that grow.
//!
//! Never takes a part for a text that grows by one sign alone: short and equal pieces are parts. See [`crate::assembly`].

/// Least bytes of a text that grows.
const GROWN_BYTES_MIN: usize = 12;
/// Least bytes of a text that is repeated as a whole, and of a first text that one more piece shows to grow.
const REPEATED_BYTES_MIN: usize = 16;
/// Least number of different characters in a text that says something by its repetition.
const DISTINCT_MIN: usize = 4;

/// The effect of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// The text continues with this.
    More(&'a str),
    /// The text is this, in place of what came before.
    Instead(String),
    /// The piece repeats the text.
    Nothing,
}

/// The text so far.
#[derive(Debug, Default)]
pub struct GrowingText {
    /// The pieces, joined.
    joined: String,
    /// The last piece, if each piece repeats the one before and continues it.
    grown: Option<String>,
    is_grown: bool,
    pieces: usize,
    first_bytes: usize,
}

impl GrowingText {
    /// Adds a piece.
    pub fn push<'a>(&mut self, piece: &'a str) -> Effect<'a> {
        if piece.is_empty() {
            return Effect::Nothing;
        }
        if self.pieces > 1 && !self.is_grown && self.is_repeated_by(piece) {
            return Effect::Nothing;
        }
        self.pieces += 1;
        self.joined.push_str(piece);
        if self.pieces == 1 {
            self.first_bytes = piece.len();
            self.grown = Some(piece.to_owned());
            return Effect::More(piece);
        }
        let Some(before) = self.grown.take() else { return Effect::More(piece) };
        let more = piece.strip_prefix(before.as_str()).filter(|more| self.is_grown || !more.is_empty());
        let Some(more) = more else {
            let was_grown = std::mem::take(&mut self.is_grown);
            return if was_grown { Effect::Instead(self.joined.clone()) } else { Effect::More(piece) };
        };
        self.grown = Some(piece.to_owned());
        if self.is_grown {
            return if more.is_empty() { Effect::Nothing } else { Effect::More(more) };
        }
        self.is_grown =
            (self.pieces > 2 || is_telling(&before, REPEATED_BYTES_MIN)) && is_telling(piece, GROWN_BYTES_MIN);
        if self.is_grown { Effect::Instead(piece.to_owned()) } else { Effect::More(piece) }
    }

    /// Returns whether a piece has arrived.
    pub const fn has_begun(&self) -> bool {
        self.pieces > 0
    }

    /// Returns whether a piece repeats the text so far, which is sure only of the last piece.
    pub fn is_repeated_by(&self, piece: &str) -> bool {
        piece == self.joined && is_telling(piece, REPEATED_BYTES_MIN)
    }

    /// Returns the text, if it grew.
    pub fn grown(&self) -> Option<&str> {
        self.grown.as_deref().filter(|_| self.is_grown)
    }
}

/// Returns whether a text is so long and so varied that it comes twice only as a repetition.
pub fn is_telling(text: &str, bytes_min: usize) -> bool {
    let mut seen = Vec::with_capacity(DISTINCT_MIN);
    text.len() >= bytes_min
        && text.chars().any(|letter| {
            if !seen.contains(&letter) {
                seen.push(letter);
            }
            seen.len() == DISTINCT_MIN
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of these pieces.
    fn read(pieces: &[&str]) -> String {
        let (mut growing, mut text) = (GrowingText::default(), String::new());
        for piece in pieces {
            match growing.push(piece) {
                Effect::More(more) => text.push_str(more),
                Effect::Instead(other) => text = other,
                Effect::Nothing => {}
            }
        }
        text
    }

    #[test]
    fn pieces_are_joined_unless_they_grow_or_repeat_the_whole() {
        for (pieces, text) in [
            (&["Hello ", "Hello there", "Hello there."][..], "Hello there."),
            (
                &["Hello ", "Hello there", "Hello there.", "Hello there.", " "],
                "Hello Hello thereHello there.Hello there. ",
            ),
            (&["I", "I have", "I have to think", "I have to think"], "I have to think"),
            (&["I have to think about it", "I have to think about it once."], "I have to think about it once."),
            (&["Hello ", "there, reader.", "Hello there, reader."], "Hello there, reader."),
            (&["Hello ", "there."], "Hello there."),
            (&["no no no no no no no ", "no no no no no no no "], "no no no no no no no no no no no no no no "),
            (&["Hello there, reader. ", "Hello there, reader. "], "Hello there, reader. Hello there, reader. "),
            (&["ha", "ha", "haha"], "hahahaha"),
            (&["1", "10", "100"], "110100"),
            (&["--------", "--------", "----------------"], "--------------------------------"),
            (&["a", "", "b"], "ab"),
        ] {
            assert_eq!(read(pieces), text, "{pieces:?}");
        }
    }
}
