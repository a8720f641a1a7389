//! The assembly of an output from its pieces, from a stream or from a whole answer.
//!
//! Never holds more than the limit of an output: the first excess piece ends it. See [`crate::openai`] and
//! [`crate::anthropic`].

use super::attached::collected::{Collected, Place};
use super::attached::{Attached, endpoint_digest};
use super::call_pieces::{self, CALLS_MAX, CallPieces, Finished, Piece};
use super::draft::Draft;
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
    draft: Draft<'a>,
    /// The endpoint to which its state is bound, with its name.
    endpoint: Option<(Digest, String)>,
    text: String,
    /// The pieces of the words of a message, or of one of its blocks.
    word_pieces: GrowingText,
    /// The number of this block.
    word_block: Option<u64>,
    /// What is in front of these words.
    before_words: BeforeWords,
    /// The pieces of the thoughts of a message, or of one of its blocks.
    thought_pieces: GrowingText,
    /// The thoughts in front of them.
    before_thoughts: Reasoning,
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
    /// True if its words began with a thought that has no beginning.
    begins_in_thought: bool,
}

/// What an output has in front of words that may grow.
#[derive(Debug, Default)]
struct BeforeWords {
    bytes: usize,
    thoughts: Thoughts,
    reasoning: Reasoning,
}

impl<'a> Assembly<'a> {
    /// Makes an empty assembly that also writes its words to the draft.
    pub fn new(draft: &'a PartialAnswer) -> Self {
        Self {
            draft: Draft::new(draft),
            endpoint: None,
            text: String::new(),
            word_pieces: GrowingText::default(),
            word_block: None,
            before_words: BeforeWords::default(),
            thought_pieces: GrowingText::default(),
            before_thoughts: Reasoning::default(),
            thoughts: Thoughts::default(),
            reasoning: Reasoning::default(),
            calls: CallPieces::default(),
            other_calls: CallPieces::default(),
            choice: 0,
            state: Collected::default(),
            received: 0,
            counted: TokenCounts::default(),
            end: None,
            begins_in_thought: false,
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

    /// Lets the draft wait for the end of a thought that has no beginning.
    pub fn waiting_for_thought(mut self, is_waiting: bool) -> Self {
        self.draft.wait_for_thought(is_waiting);
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
        if !self.word_pieces.has_begun() {
            let reasoning = self.reasoning.clone();
            self.before_words = BeforeWords { bytes: self.text.len(), thoughts: self.thoughts.clone(), reasoning };
        }
        match self.word_pieces.push(piece) {
            Effect::Nothing => Ok(()),
            Effect::More(more) => self.words(more),
            Effect::Instead(text) => {
                let BeforeWords { bytes, thoughts, reasoning } = std::mem::take(&mut self.before_words);
                self.text.truncate(bytes);
                if self.thoughts.is_marked() {
                    self.reasoning = reasoning;
                }
                self.thoughts = thoughts;
                self.draft.restart(&self.text);
                self.words(&text)
            }
        }
    }

    /// Begins the words of a block, whose pieces do not repeat those of the blocks before.
    pub fn begin_words(&mut self, block: Option<u64>) {
        self.word_pieces = GrowingText::default();
        self.word_block = block;
    }

    /// Adds a piece of the words of a block, as [`Self::piece_of_words`] does.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn piece_of_block(&mut self, block: Option<u64>, piece: &str) -> Result<(), Fault> {
        if block != self.word_block {
            self.begin_words(block);
        }
        self.piece_of_words(piece, false)
    }

    fn said(&mut self, said: &Said) {
        match said {
            Said::Words(words) => {
                self.text.push_str(words);
                self.draft.push(words, &self.text, self.thoughts.is_marked());
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
        if !self.thought_pieces.has_begun() {
            self.before_thoughts = self.reasoning.clone();
        }
        match self.thought_pieces.push(piece) {
            Effect::Nothing => {}
            Effect::More(more) => self.thought(more),
            Effect::Instead(text) => {
                self.reasoning = std::mem::take(&mut self.before_thoughts);
                self.thought(&text);
            }
        }
    }

    /// Separates the next thoughts from those before. Their pieces do not repeat those.
    pub fn begin_thought(&mut self) {
        self.reasoning.begin();
        self.thought_pieces = GrowingText::default();
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
        let begins_in_thought = self.begins_in_thought;
        Ok(Output { calls, attached, reasoning, begins_in_thought, ..Output::new(self.words_beside(cut), cut) })
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
            self.begins_in_thought = cleaned.begins_in_thought;
        }
        self.draft.end(&self.text);
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
mod tests;
