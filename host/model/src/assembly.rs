//! The assembly of an output from its pieces, from a stream or from a whole answer.
//!
//! Never holds more than the limit of an output: the first excess piece ends it. See [`crate::openai`] and
//! [`crate::anthropic`].

use super::attached::collected::{Collected, Place};
use super::attached::{Attached, endpoint_digest};
use super::call_pieces::{self, CALLS_MAX, CallPieces, Finished, Piece};
use super::end::End;
use super::fault::Fault;
use super::growing_text::{Effect, GrowingText};
use super::reasoning::Reasoning;
use super::spec::Spec;
use super::streaming::PartialAnswer;
use super::thoughts::{self, Said, Thoughts};
use super::{Cut, Output, ToolSchema, tokens_estimated};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// States that were dropped since the host started, for the log.
static STATES_DROPPED: AtomicU64 = AtomicU64::new(0);

/// Numbers of the calls of one choice.
const CHOICE_CALLS: u64 = 1 << 16;

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
    /// The endpoint to which its state is bound, with its name.
    endpoint: Option<(Digest, String)>,
    text: String,
    /// The pieces of the words of a message, and those of its thoughts.
    word_pieces: GrowingText,
    thought_pieces: GrowingText,
    thoughts: Thoughts,
    reasoning: Reasoning,
    calls: CallPieces,
    /// The calls of the other choices of the answer.
    other_calls: CallPieces,
    /// The number of the choice that the next pieces belong to.
    choice: u64,
    state: Collected,
    /// Bytes of everything that the model sent.
    received: usize,
    /// Token counts that the provider has sent so far.
    pub counted: TokenCounts,
    end: Option<End>,
}

impl<'a> Assembly<'a> {
    /// Makes an empty assembly that also writes its words to the draft.
    pub fn new(draft: &'a PartialAnswer) -> Self {
        Self {
            draft,
            endpoint: None,
            text: String::new(),
            word_pieces: GrowingText::default(),
            thought_pieces: GrowingText::default(),
            thoughts: Thoughts::default(),
            reasoning: Reasoning::default(),
            calls: CallPieces::default(),
            other_calls: CallPieces::default(),
            choice: 0,
            state: Collected::default(),
            received: 0,
            counted: TokenCounts::default(),
            end: None,
        }
    }

    /// Binds the state of the output to the endpoint that attaches it.
    pub fn bound_to(self, spec: &Spec) -> Self {
        Self { endpoint: Some((endpoint_digest(spec), spec.name.clone())), ..self }
    }

    /// Notes the tools of the request, whose names may come in pieces.
    pub fn offering(mut self, tools: &[ToolSchema]) -> Self {
        for calls in [&mut self.calls, &mut self.other_calls] {
            calls.offer(tools.iter().map(|tool| tool.name.as_str()));
        }
        self
    }

    /// Turns to a choice of the answer. The output has the words of choice 0, and the calls of another one if choice 0 has none.
    pub const fn turn_to_choice(&mut self, choice: u64) {
        self.choice = choice;
    }

    /// Returns whether a call has begun, in any choice.
    pub const fn has_calls(&self) -> bool {
        !self.calls.is_empty() || !self.other_calls.is_empty()
    }

    /// Adds more words. Thoughts at their beginning are reasoning.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn words(&mut self, words: &str) -> Result<(), Fault> {
        if words.is_empty() {
            return Ok(());
        }
        self.received += words.len();
        for said in self.thoughts.read(words) {
            if let Said::Words(words) = &said {
                self.check_room(words.len())?;
            }
            self.said(&said);
        }
        Ok(())
    }

    /// Adds a piece of the words of a message, which may repeat those before. The last piece does so if it is equal to all of them.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn piece_of_words(&mut self, piece: &str, is_last: bool) -> Result<(), Fault> {
        if is_last && self.word_pieces.is_repeated_by(piece) {
            return Ok(());
        }
        match self.word_pieces.push(piece) {
            Effect::Nothing => Ok(()),
            Effect::More(more) => self.words(more),
            Effect::Instead(text) => {
                self.text.clear();
                self.thoughts = Thoughts::default();
                self.draft.begin();
                self.words(&text)
            }
        }
    }

    fn said(&mut self, said: &Said) {
        match said {
            Said::Words(words) => {
                self.text.push_str(words);
                self.draft.push(words);
            }
            Said::Thought(thought) => self.reasoning.push(thought),
        }
    }

    /// Adds thoughts of the model, which are no words of its answer.
    pub fn thought(&mut self, thought: &str) {
        self.received += thought.len();
        self.reasoning.push(thought);
    }

    /// Adds a piece of the thoughts of a message, which may repeat those before.
    pub fn piece_of_thought(&mut self, piece: &str) {
        match self.thought_pieces.push(piece) {
            Effect::Nothing => {}
            Effect::More(more) => self.thought(more),
            Effect::Instead(text) => {
                self.reasoning = Reasoning::default();
                self.thought(&text);
            }
        }
    }

    /// Separates the next thoughts from those before.
    pub fn begin_thought(&mut self) {
        self.reasoning.begin();
    }

    /// Adds a piece of a call. Returns the position of the call, if it is one.
    ///
    /// # Errors
    /// [`Fault::TooLarge`], [`Fault::UnclearCalls`].
    pub fn call(&mut self, piece: Piece<'_>) -> Result<Option<usize>, Fault> {
        self.received += piece.tool.len() + piece.arguments.len();
        let at = match self.choice {
            0 => self.calls.add(piece)?,
            choice => {
                let index = piece.index.unwrap_or_default().saturating_add(choice.saturating_mul(CHOICE_CALLS));
                self.other_calls.add(Piece { index: Some(index), ..piece })?.map(|at| at + CALLS_MAX)
            }
        };
        self.check_room(0)?;
        Ok(at)
    }

    /// Ends the newest call and the blocks with this index.
    pub fn close(&mut self, index: Option<u64>) {
        self.calls.close(index);
        self.state.close_blocks(index);
    }

    /// Begins a call at this index, where blocks end.
    pub fn begin_call(&mut self, index: Option<u64>) {
        self.state.close_blocks(index);
    }

    /// Adds the fields of a message that the API does not define.
    pub fn attach_to_message(&mut self, fields: &Map<String, Value>) {
        self.state.message(fields);
    }

    /// Adds the fields of a call that the API does not define.
    pub fn attach_to_call(&mut self, at: Option<usize>, place: Place, fields: &Value) {
        if let (Some(at), Some(fields)) = (at, fields.as_object()) {
            self.state.call(at, place, fields);
        }
    }

    /// Adds a block that is neither words nor a call.
    pub fn attach_block(&mut self, index: Option<u64>, block: &Value) {
        self.state.block(index, self.text.len(), self.calls.len(), block);
    }

    /// Adds a piece of such a block.
    pub fn attach_to_block(&mut self, index: Option<u64>, fields: &Map<String, Value>) {
        self.state.block_piece(index, fields);
    }

    /// Adds a piece of the input of such a block. Returns whether there is an open one with this index.
    pub fn attach_input(&mut self, index: Option<u64>, piece: &str) -> bool {
        self.state.block_input(index, piece)
    }

    /// Adds a part of the content of a message of Chat Completions, with its words.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn part(&mut self, part: &Value, words: &str, is_whole: bool) -> Result<(), Fault> {
        let before = self.text.len();
        self.words(words)?;
        if let Some(fields) = part.as_object() {
            self.state.part(before..self.text.len(), fields, is_whole);
        }
        Ok(())
    }

    /// Returns whether it has such a block with this index.
    pub fn has_block(&self, index: Option<u64>) -> bool {
        self.state.has_block(index)
    }

    /// Ends an event, or a whole answer. A state with a key that came twice in one object is dropped.
    pub fn end_event(&mut self, has_doubled_key: bool) {
        self.state.end_event(has_doubled_key);
    }

    /// Records a reason for the end. If a stream gives several, the first one that cuts the output short is kept.
    pub const fn ends(&mut self, end: End) {
        self.end = Some(end.after(self.end));
    }

    /// Returns whether a reason for the end is recorded.
    pub const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns whether the model has sent words, calls or token counts.
    pub fn has_begun(&self) -> bool {
        self.received > 0 || self.has_calls() || self.counted != TokenCounts::default()
    }

    /// Returns the size of the output so far with its thoughts, in bytes.
    pub const fn bytes(&self) -> usize {
        self.received
    }

    /// Returns the output.
    ///
    /// # Errors
    /// [`Fault::Closed`] without any content, [`Fault::Cut`] without an end. [`Fault::Truncated`] and [`Fault::Withheld`] if such an
    /// output has a call or is empty. [`Fault::UnknownEnd`] for calls behind an unknown reason, [`Fault::BadCall`] for an end with
    /// calls and without one. [`Fault::Malformed`] for a call without a tool, [`Fault::UnclearCalls`].
    pub fn finish(mut self) -> Result<Output, Fault> {
        self.end_words();
        if self.text.trim().is_empty() && !self.has_calls() {
            self.text.clear();
        }
        let is_empty = self.text.is_empty() && !self.has_calls();
        let cut = match self.end {
            None if !self.has_begun() => return Err(Fault::Closed),
            None | Some(End::Broken) => return Err(Fault::Cut),
            Some(End::Calls) if !self.has_calls() => return Err(Fault::BadCall),
            // A reason that the host does not know may say that a call is not whole.
            Some(End::Unknown) if self.has_calls() => return Err(Fault::UnknownEnd),
            Some(End::Whole | End::Calls | End::Unknown) => None,
            // Half a call may be valid JSON with another meaning.
            Some(End::Length) if self.has_calls() || is_empty => return Err(Fault::Truncated),
            Some(End::Full) if self.has_calls() || is_empty => return Err(Fault::ContextTooLong),
            Some(End::Length | End::Full) => Some(Cut::Length),
            // PartialText before a missing call are not an answer.
            Some(End::Withheld) if self.has_calls() || is_empty => return Err(Fault::Withheld),
            Some(End::Withheld) => Some(Cut::Withheld),
        };
        let (first, others) = (std::mem::take(&mut self.calls), std::mem::take(&mut self.other_calls));
        let calls = call_pieces::chosen(first.finish()?, others.finish()?)?;
        let attached = match is_empty {
            true => None,
            false => self.attached(&calls),
        };
        let calls = calls.into_iter().map(|finished| finished.call).collect();
        let reasoning = std::mem::take(&mut self.reasoning).finish();
        Ok(Output { calls, attached, reasoning, ..Output::new(self.words_beside(cut), cut) })
    }

    /// Takes the rest of the words, and the marks of a template from them.
    fn end_words(&mut self) {
        if let Some(rest) = self.thoughts.end() {
            self.said(&rest);
        }
        if let Some(cleaned) = thoughts::ends::cleaned(&self.text, self.thoughts.is_marked()) {
            for thought in &cleaned.thoughts {
                self.reasoning.begin();
                self.reasoning.push(thought);
            }
            self.text = cleaned.text;
            // The draft has the thoughts and the marks as words.
            self.draft.begin();
            self.draft.push(&self.text);
        }
    }

    /// Returns the state of the output with these calls, and notes one that was dropped.
    fn attached(&mut self, kept: &[Finished]) -> Option<Arc<Attached>> {
        let state = std::mem::take(&mut self.state);
        self.reasoning.or(|| state.reasoning());
        let (digest, name) = self.endpoint.take().unzip();
        let (attached, dropped) = state.finish(digest, kept);
        if let Some(dropped) = dropped {
            let count = STATES_DROPPED.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(
                model = name,
                count,
                why = dropped.words(),
                "the state that a provider attached was dropped"
            );
        }
        attached.map(Arc::new)
    }

    /// Returns the words that arrived before the deadline. `None` if there are none, or if a call began, because half a call may have
    /// another meaning.
    pub fn unfinished(mut self) -> Option<Output> {
        self.end_words();
        if self.text.trim().is_empty() || self.has_calls() {
            return None;
        }
        let cut = Some(Cut::Time);
        let reasoning = std::mem::take(&mut self.reasoning).finish();
        Some(Output { reasoning, ..Output::new(self.words_beside(cut), cut) })
    }

    /// Returns the words, so short that the mark of a cut answer fits behind them.
    fn words_beside(mut self, cut: Option<Cut>) -> String {
        let Some(cut) = cut else { return self.text };
        let room = BODY_BYTES_MAX.saturating_sub(cut.mark().len());
        self.text.truncate(self.text.floor_char_boundary(room));
        self.text
    }

    /// Refuses an output that is larger than the limit with so many more bytes.
    fn check_room(&self, bytes: usize) -> Result<(), Fault> {
        if self.text.len() + self.calls.bytes() + self.other_calls.bytes() + bytes > BODY_BYTES_MAX {
            Err(Fault::TooLarge)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece<'a>(tool: &'a str, arguments: &'a str) -> Piece<'a> {
        Piece { tool, arguments, ..Piece::default() }
    }

    #[test]
    fn too_large_output_ends_with_the_first_excess_piece() {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        assembly.words(&"a".repeat(BODY_BYTES_MAX)).expect("exactly");
        assert_eq!(assembly.words("a"), Err(Fault::TooLarge));
        assert_eq!(draft.watch().borrow().text.len(), BODY_BYTES_MAX);
        let mut assembly = Assembly::new(&draft);
        let many = (0..=128)
            .try_for_each(|index| assembly.call(Piece { index: Some(index), tool: "a", ..Piece::default() }).map(drop));
        assert_eq!(many, Err(Fault::TooLarge));
    }

    #[test]
    fn thoughts_in_tags_are_neither_words_nor_draft() {
        for (pieces, thought) in [
            (&["<thi", "nk>I gre", "et.</thi", "nk>\n", "\nHello", " there."][..], "I greet."),
            (&["I greet.\n</think>", "\n\nHello there."], "I greet."),
            (&["Hello there."], ""),
        ] {
            let draft = PartialAnswer::default();
            let mut assembly = Assembly::new(&draft);
            pieces.iter().for_each(|piece| assembly.words(piece).expect("small"));
            assembly.ends(End::Whole);
            let output = assembly.finish().expect("an output");
            assert_eq!((output.text.as_str(), output.reasoning.as_str()), ("Hello there.", thought));
            assert_eq!(draft.watch().borrow().text, "Hello there.");
        }
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        assembly.words("<think>never closed").expect("small");
        assert_eq!(draft.watch().borrow().text, "");
        assembly.ends(End::Length);
        assert_eq!(assembly.finish(), Err(Fault::Truncated), "thoughts alone are no answer");
    }

    #[test]
    fn an_end_that_cuts_an_output_short_is_kept() {
        let draft = PartialAnswer::default();
        for (first, fault) in [(End::Length, Fault::Truncated), (End::Withheld, Fault::Withheld)] {
            for then in [End::Whole, End::Length, End::Withheld] {
                for ends in [[first, then], [End::Whole, first]] {
                    let mut assembly = Assembly::new(&draft);
                    assembly.call(piece("write_file", "{}")).expect("small");
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
                assembly.call(piece(tool, "{")).expect("small");
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
                assembly.call(piece(tool, "{}")).expect("small");
            }
            assembly.unfinished()
        };
        let output = with("It was", "").expect("words");
        assert_eq!((output.text.as_str(), output.calls.len(), output.cut), ("It was", 0, Some(Cut::Time)));
        assert_eq!(with(" \n", ""), None);
        assert_eq!(with("I write.", "write_file"), None);
    }
}
