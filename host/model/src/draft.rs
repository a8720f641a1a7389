//! The draft of an answer while it arrives, without a thought that has an end and no beginning.
//!
//! Never decides what the answer is: [`crate::thoughts::ends`] does so for the whole text. The template of such a model begins the thought
//! in the prompt, so its words look like those of an answer until the end of the thought comes. See [`crate::streaming`].

use super::streaming::PartialAnswer;
use super::thoughts::ends::{answer_behind_thought, behind_end};

/// Bytes behind an end after which it cannot be the end of a thought: the rules look at the next letter.
const UNDECIDED_BYTES_MAX: usize = 64;

/// The words that watchers see.
#[derive(Debug)]
pub struct Draft<'a> {
    answer: &'a PartialAnswer,
    is_waiting: bool,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// No end of a thought came in this many bytes.
    Looking(usize),
    /// An end came in front of this place; what follows shows if it is one.
    Undecided(usize),
    /// Each further word is one of the answer.
    Open,
}

impl<'a> Draft<'a> {
    pub const fn new(answer: &'a PartialAnswer) -> Self {
        Self { answer, is_waiting: false, state: State::Looking(0) }
    }

    /// Shows no words before the end of a thought came, or the whole answer.
    pub const fn wait_for_thought(&mut self, is_waiting: bool) {
        self.is_waiting = is_waiting;
    }

    /// Shows more words. `text` is the text so far with them; `is_marked` says that its thoughts have a beginning.
    pub fn push(&mut self, words: &str, text: &str, is_marked: bool) {
        let place = match self.state {
            State::Open => return self.answer.push(words),
            State::Looking(from) => behind_end(text, from),
            State::Undecided(place) => Some(place),
        };
        let answer = place.and_then(|_| answer_behind_thought(text));
        let is_decided = is_marked || place.is_some_and(|place| text.len() > place + UNDECIDED_BYTES_MAX);
        if answer.is_some() || is_decided {
            self.state = State::Open;
            return self.answer.replace(answer.filter(|_| !is_marked).unwrap_or(text));
        }
        self.state = place.map_or(State::Looking(text.len()), State::Undecided);
        if !self.is_waiting {
            self.answer.push(words);
        }
    }

    /// Begins the words anew behind this text.
    pub fn restart(&mut self, text: &str) {
        self.state = State::Looking(0);
        self.answer.replace(if self.is_waiting { "" } else { text });
    }

    /// Shows the whole answer.
    pub fn end(&mut self, text: &str) {
        self.state = State::Open;
        self.answer.replace(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the drafts that a watcher sees behind each piece, and at the end.
    fn drafts(pieces: &[&str], is_waiting: bool, answer: &str) -> Vec<String> {
        let partial = PartialAnswer::default();
        let mut draft = Draft::new(&partial);
        draft.wait_for_thought(is_waiting);
        let (mut text, mut seen) = (String::new(), Vec::new());
        for piece in pieces {
            text.push_str(piece);
            draft.push(piece, &text, false);
            seen.push(partial.watch().borrow().text.clone());
        }
        draft.end(answer);
        seen.push(partial.watch().borrow().text.clone());
        seen
    }

    #[test]
    fn thought_without_a_beginning_is_no_draft_if_it_is_expected() {
        let pieces = ["I add", " them.\n</thi", "nk>", "\n\nIt", " is 4."];
        assert_eq!(drafts(&pieces, true, "It is 4."), ["", "", "", "It", "It is 4.", "It is 4."]);
        let first = ["I add", "I add them.\n</thi", "I add them.\n</think>", "It", "It is 4.", "It is 4."];
        assert_eq!(drafts(&pieces, false, "It is 4."), first, "the end of the thought replaces it");
    }

    #[test]
    fn answer_without_a_thought_is_shown_at_the_latest_at_its_end() {
        assert_eq!(drafts(&["It", " is 4."], true, "It is 4."), ["", "", "It is 4."]);
        assert_eq!(drafts(&["It", " is 4."], false, "It is 4."), ["It", "It is 4.", "It is 4."]);
        let explained =
            ["The tag `</think>`", " ends a thought; the answer follows behind it, in plain words.", " So."];
        let whole = explained.concat();
        let (seen, waited) = (drafts(&explained, false, &whole), drafts(&explained, true, &whole));
        assert_eq!((&seen[0], &seen[3]), (&explained[0].to_owned(), &whole));
        assert_eq!((waited[0].as_str(), &waited[3]), ("", &whole), "an end in code is none");
    }

    #[test]
    fn text_that_continues_the_draft_is_no_new_attempt() {
        let partial = PartialAnswer::default();
        let attempt = || partial.watch().borrow().attempt;
        let mut draft = Draft::new(&partial);
        draft.push("It is", "It is", false);
        draft.end("It is 4.");
        assert_eq!((attempt(), partial.watch().borrow().text.as_str()), (0, "It is 4."));
        draft.end("It was 4.");
        assert_eq!((attempt(), partial.watch().borrow().text.as_str()), (1, "It was 4."));
    }
}
