//! The assembly of an output from its pieces, from a stream or from a whole answer.
//!
//! Never holds more than the limit of an output: the first excess piece ends it. See [`crate::openai`] and
//! [`crate::anthropic`].

use super::fault::Fault;
use super::streaming::PartialAnswer;
use super::{Cut, Output, WantedCall, tokens_estimated};
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use serde_json::Value;

/// Calls of one output that are kept. It is higher than the limit of a turn, so that the host can refuse the excess calls.
const CALLS_MAX: usize = 128;
/// Bytes of the id of a call at a provider.
const ID_BYTES_MAX: usize = 512;
/// The reason for the end of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The output reached the limit of tokens.
    Length,
    /// The provider stopped it.
    Withheld,
}

/// Token counts of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Tokens of the prompt.
    pub input: Option<u64>,
    pub output: Option<u64>,
}

impl TokenCounts {
    /// Returns these counts, raised to the estimates for the bytes that were sent and received.
    pub fn at_least(self, sent: usize, received: usize) -> Self {
        let most = |count: Option<u64>, bytes| Some(count.unwrap_or_default().max(tokens_estimated(bytes)));
        Self { input: most(self.input, sent), output: most(self.output, received) }
    }
}

#[derive(Debug)]
pub struct Assembly<'a> {
    draft: &'a PartialAnswer,
    text: String,
    calls: Vec<Piece>,
    bytes: usize,
    /// Token counts that the provider has sent so far.
    pub counted: TokenCounts,
    end: Option<End>,
}

/// A call in pieces.
#[derive(Debug, Default)]
struct Piece {
    index: Option<u64>,
    id: String,
    tool: String,
    arguments: String,
}

impl<'a> Assembly<'a> {
    /// Makes an empty assembly that also writes its words to the draft.
    pub fn new(draft: &'a PartialAnswer) -> Self {
        Self { draft, text: String::new(), calls: Vec::new(), bytes: 0, counted: TokenCounts::default(), end: None }
    }

    /// Adds more words.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn words(&mut self, words: &str) -> Result<(), Fault> {
        if words.is_empty() {
            return Ok(());
        }
        self.take(words.len())?;
        self.text.push_str(words);
        self.draft.push(words);
        Ok(())
    }

    /// Adds a piece of a call. A piece with a new id or index begins a call. If a server sends neither, each piece with a name begins
    /// one.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn call(&mut self, index: Option<u64>, id: &str, tool: &str, arguments: &str) -> Result<(), Fault> {
        self.take(tool.len() + arguments.len())?;
        let known = match (index, id) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, "") if tool.is_empty() => self.calls.len().checked_sub(1),
            (None, "") => None,
            (None, id) => self.calls.iter().rposition(|call| call.id == id),
        };
        let fits = |at: &usize| {
            let call = &self.calls[*at];
            id.is_empty() || call.id.is_empty() || call.id == id
        };
        let at = match known.filter(fits) {
            Some(at) => at,
            None => {
                if self.calls.len() == CALLS_MAX || id.len() > ID_BYTES_MAX {
                    return Err(Fault::TooLarge);
                }
                self.calls.push(Piece { index, id: id.to_owned(), ..Piece::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.tool.is_empty() {
            tool.clone_into(&mut call.tool);
        }
        call.arguments.push_str(arguments);
        Ok(())
    }

    /// Adds a piece of a call from JSON. The arguments are a text, or an object from servers that follow the API loosely.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn call_json(&mut self, index: Option<u64>, id: &Value, tool: &Value, arguments: &Value) -> Result<(), Fault> {
        let (id, tool) = (id.as_str().unwrap_or_default(), tool.as_str().unwrap_or_default());
        match arguments {
            Value::Null => self.call(index, id, tool, ""),
            Value::String(arguments) => self.call(index, id, tool, arguments),
            other => self.call(index, id, tool, &other.to_string()),
        }
    }

    /// Records a reason for the end. If a stream gives several, the first one that cuts the output short is kept.
    pub const fn ends(&mut self, end: End) {
        match self.end {
            Some(End::Length | End::Withheld) => {}
            Some(End::Whole) | None => self.end = Some(end),
        }
    }

    /// Returns whether a reason for the end is recorded.
    pub const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns whether the model has sent words, calls or token counts.
    pub fn has_begun(&self) -> bool {
        self.bytes > 0 || self.counted != TokenCounts::default()
    }

    /// Returns the size of the output so far, in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the output.
    ///
    /// # Errors
    /// [`Fault::Closed`] without any content, [`Fault::Cut`] without an end. [`Fault::Truncated`] and [`Fault::Withheld`] if such an
    /// output has a call or is empty. [`Fault::Malformed`] for a call without a tool.
    pub fn finish(mut self) -> Result<Output, Fault> {
        let is_empty = self.text.trim().is_empty() && self.calls.is_empty();
        let cut = match self.end {
            None if !self.has_begun() => return Err(Fault::Closed),
            None => return Err(Fault::Cut),
            Some(End::Whole) => None,
            // Half a call may be valid JSON with another meaning.
            Some(End::Length) if !self.calls.is_empty() || is_empty => return Err(Fault::Truncated),
            Some(End::Length) => Some(Cut::Length),
            // PartialText before a missing call are not an answer.
            Some(End::Withheld) if !self.calls.is_empty() || is_empty => return Err(Fault::Withheld),
            Some(End::Withheld) => Some(Cut::Withheld),
        };
        if self.calls.iter().any(|call| call.tool.is_empty()) {
            return Err(Fault::Malformed);
        }
        let wanted = |call: Piece| {
            let arguments = match call.arguments.trim() {
                "" | "null" => "{}".to_owned(),
                _ => call.arguments,
            };
            WantedCall { tool: call.tool, arguments }
        };
        let calls = std::mem::take(&mut self.calls).into_iter().map(wanted).collect();
        Ok(Output { text: self.words_beside(cut), calls, cut })
    }

    /// Returns the words that arrived before the deadline. `None` if there are none, or if a call began, because half a call may have
    /// another meaning.
    pub fn unfinished(self) -> Option<Output> {
        if self.text.trim().is_empty() || !self.calls.is_empty() {
            return None;
        }
        let cut = Some(Cut::Time);
        Some(Output { text: self.words_beside(cut), calls: Vec::new(), cut })
    }

    /// Returns the words, so short that the mark of a cut answer fits behind them.
    fn words_beside(mut self, cut: Option<Cut>) -> String {
        let Some(cut) = cut else { return self.text };
        let room = BODY_BYTES_MAX.saturating_sub(cut.mark().len());
        self.text.truncate(self.text.floor_char_boundary(room));
        self.text
    }

    fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes += bytes;
        if self.bytes > BODY_BYTES_MAX { Err(Fault::TooLarge) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(pieces: &[(Option<u64>, &str, &str, &str)]) -> Vec<(String, String)> {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        for (index, id, tool, arguments) in pieces {
            assembly.call(*index, id, tool, arguments).expect("small");
        }
        assembly.end = Some(End::Whole);
        let output = assembly.finish().expect("an output");
        output.calls.into_iter().map(|call| (call.tool, call.arguments)).collect()
    }

    #[test]
    fn pieces_of_parallel_calls_find_their_call_without_indexes() {
        let two = [("a".to_owned(), "{\"x\":1}".to_owned()), ("b".to_owned(), "{}".to_owned())];
        // As the API specifies it.
        let by_index = [
            (Some(0), "c0", "a", ""),
            (Some(1), "c1", "b", ""),
            (Some(0), "", "", "{\"x\""),
            (Some(1), "", "", "{}"),
            (Some(0), "", "", ":1}"),
        ];
        assert_eq!(calls(&by_index), two);
        // Whole calls, all of them with index 0.
        assert_eq!(calls(&[(Some(0), "c0", "a", "{\"x\":1}"), (Some(0), "c1", "b", "{}")]), two);
        // No index, no ids.
        assert_eq!(calls(&[(None, "", "a", "{\"x\""), (None, "", "", ":1}"), (None, "", "b", "")]), two);
        // No index; id and name in every piece.
        assert_eq!(calls(&[(None, "c0", "a", "{\"x\""), (None, "c0", "a", ":1}"), (None, "c1", "b", "null")]), two);
    }

    #[test]
    fn too_large_output_ends_with_the_first_excess_piece() {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        assembly.words(&"a".repeat(BODY_BYTES_MAX)).expect("exactly");
        assert_eq!(assembly.words("a"), Err(Fault::TooLarge));
        assert_eq!(draft.watch().borrow().text.len(), BODY_BYTES_MAX);
        let mut assembly = Assembly::new(&draft);
        let many = (0..=CALLS_MAX as u64).try_for_each(|index| assembly.call(Some(index), "", "a", ""));
        assert_eq!(many, Err(Fault::TooLarge));
    }

    #[test]
    fn an_end_that_cuts_an_output_short_is_kept() {
        let draft = PartialAnswer::default();
        for (first, fault) in [(End::Length, Fault::Truncated), (End::Withheld, Fault::Withheld)] {
            for then in [End::Whole, End::Length, End::Withheld] {
                for ends in [[first, then], [End::Whole, first]] {
                    let mut assembly = Assembly::new(&draft);
                    assembly.call(None, "", "write_file", "{}").expect("small");
                    ends.into_iter().for_each(|end| assembly.ends(end));
                    assert_eq!(assembly.finish(), Err(fault), "{ends:?}");
                }
            }
        }
    }

    #[test]
    fn answer_without_an_end_or_with_half_a_call_is_no_output() {
        let draft = PartialAnswer::default();
        let with = |end, words: &str, tool: &str| {
            let mut assembly = Assembly::new(&draft);
            assembly.words(words).expect("small");
            if !tool.is_empty() {
                assembly.call(None, "", tool, "{").expect("small");
            }
            assembly.end = end;
            assembly.finish()
        };
        assert_eq!(with(None, "hello", ""), Err(Fault::Cut));
        assert_eq!(with(None, "", ""), Err(Fault::Closed));
        assert_eq!(with(Some(End::Length), "", "write_file"), Err(Fault::Truncated));
        assert_eq!(with(Some(End::Length), " ", ""), Err(Fault::Truncated));
        assert_eq!(with(Some(End::Withheld), "", ""), Err(Fault::Withheld));
        assert_eq!(with(Some(End::Withheld), "hello", "write_file"), Err(Fault::Withheld));
        let cut = |end| with(Some(end), "hello", "").map(|output| (output.text, output.cut));
        assert_eq!(cut(End::Withheld), Ok(("hello".to_owned(), Some(Cut::Withheld))));
        assert_eq!(cut(End::Length), Ok(("hello".to_owned(), Some(Cut::Length))));
        let long = with(Some(End::Withheld), &"é".repeat(BODY_BYTES_MAX / 2), "").expect("words").text;
        assert!(long.len() + Cut::Withheld.mark().len() <= BODY_BYTES_MAX, "the mark fits");
        assert_eq!(with(Some(End::Whole), "", "").expect("empty"), Output::default());
    }

    #[test]
    fn answer_out_of_time_keeps_its_words_and_no_half_call() {
        let draft = PartialAnswer::default();
        let with = |words: &str, tool: &str| {
            let mut assembly = Assembly::new(&draft);
            assembly.words(words).expect("small");
            if !tool.is_empty() {
                assembly.call(None, "", tool, "{}").expect("small");
            }
            assembly.unfinished()
        };
        let output = with("It was", "").expect("words");
        assert_eq!((output.text.as_str(), output.calls.len(), output.cut), ("It was", 0, Some(Cut::Time)));
        assert_eq!(with(" \n", ""), None);
        assert_eq!(with("I write.", "write_file"), None);
    }
}
