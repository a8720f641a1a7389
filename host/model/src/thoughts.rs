//! The thoughts of a model at the beginning of its text, between the tags of its chat template.
//!
//! Never takes a tag behind the first words of an answer, which may explain tags. See [`crate::assembly`].

/// The tags around thoughts. A thought ends at the first of its ends.
const TAGS: [(&str, &[&str]); 11] = [
    ("<think>", &["</think>"]),
    ("<thinking>", &["</thinking>"]),
    ("<thought>", &["</thought>"]),
    ("<reasoning>", &["</reasoning>"]),
    ("<reflection>", &["</reflection>"]),
    ("<seed:think>", &["</seed:think>"]),
    ("[THINK]", &["[/THINK]"]),
    ("◁think▷", &["◁/think▷"]),
    ("<|START_THINKING|>", &["<|END_THINKING|>"]),
    ("<|channel|>analysis<|message|>", HARMONY_ENDS),
    ("<|start|>assistant<|channel|>analysis<|message|>", HARMONY_ENDS),
];
const HARMONY_ENDS: &[&str] = &["<|end|>", "<|channel|>final<|message|>"];
/// The marks in front of an answer.
const ANSWER_BEGINS: [&str; 3] =
    ["<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>", "<|START_RESPONSE|>"];
/// The marks behind an answer.
const ANSWER_ENDS: [&str; 3] = ["<|return|>", "<|end|>", "<|END_RESPONSE|>"];
/// The ends of thoughts whose beginning is in the prompt of the template.
const ENDS_ALONE: [&str; 2] = ["</think>", "</thinking>"];

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Words(String),
    Thought(String),
}

/// The reader of a text that arrives in pieces.
#[derive(Debug, Default)]
pub struct Thoughts {
    /// Text whose kind is not known yet.
    held: String,
    state: State,
    /// True after a mark of the template.
    is_marked: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// A thought may begin.
    #[default]
    Beginning,
    /// In a thought with these ends.
    Thinking(&'static [&'static str]),
    Answering,
}

impl Thoughts {
    /// Reads a piece. Returns its parts whose kind is known.
    pub fn read(&mut self, piece: &str) -> Vec<Said> {
        if let State::Answering = self.state {
            return vec![Said::Words(piece.to_owned())];
        }
        self.held.push_str(piece);
        let mut said = Vec::new();
        while let Some(part) = self.next() {
            said.extend(part);
        }
        said
    }

    /// Returns the next part; an empty one for a mark, and `None` if more text is needed.
    fn next(&mut self) -> Option<Option<Said>> {
        match self.state {
            State::Answering if self.held.is_empty() => None,
            State::Answering => Some(Some(Said::Words(std::mem::take(&mut self.held)))),
            State::Thinking(ends) => {
                let found = ends.iter().filter_map(|end| Some((find(&self.held, end)?, end.len()))).min();
                let Some((at, length)) = found else { return self.thought_so_far(ends) };
                let thought = self.held[..at].to_owned();
                self.held.drain(..at + length);
                self.state = State::Beginning;
                Some(Some(Said::Thought(thought)))
            }
            State::Beginning => {
                let text = self.held.trim_start();
                let begun = TAGS.iter().find(|(begin, _)| starts_with(text, begin));
                if let Some((begin, ends)) = begun {
                    self.held = text[begin.len()..].to_owned();
                    (self.state, self.is_marked) = (State::Thinking(ends), true);
                    return Some(None);
                }
                if let Some(begin) = ANSWER_BEGINS.iter().find(|begin| starts_with(text, begin)) {
                    self.held = text[begin.len()..].to_owned();
                    (self.state, self.is_marked) = (State::Answering, true);
                    return Some(None);
                }
                let marks = TAGS.iter().map(|(begin, _)| *begin).chain(ANSWER_BEGINS);
                if marks.into_iter().any(|mark| starts_with(mark, text)) {
                    return None;
                }
                if self.is_marked {
                    self.held = text.to_owned();
                }
                self.state = State::Answering;
                Some(None)
            }
        }
    }

    /// Returns the part of an open thought that no end can begin in.
    fn thought_so_far(&mut self, ends: &[&str]) -> Option<Option<Said>> {
        let longest = ends.iter().map(|end| end.len()).max().unwrap_or_default();
        let at = self.held.floor_char_boundary(self.held.len().saturating_sub(longest));
        let rest = self.held.split_off(at);
        let thought = std::mem::replace(&mut self.held, rest);
        (!thought.is_empty()).then_some(Some(Said::Thought(thought)))
    }

    /// Returns the rest at the end of the text.
    pub fn end(&mut self) -> Option<Said> {
        let rest = std::mem::take(&mut self.held);
        match self.state {
            _ if rest.is_empty() => None,
            State::Thinking(_) => Some(Said::Thought(rest)),
            State::Beginning if self.is_marked && rest.trim().is_empty() => None,
            State::Beginning | State::Answering => Some(Said::Words(rest)),
        }
    }

    /// Returns whether the text has marks of a template.
    pub const fn is_marked(&self) -> bool {
        self.is_marked
    }
}

/// Takes the marks of a template from the end of an answer.
pub fn without_end_marks(text: &mut String) {
    while let Some(mark) = ANSWER_ENDS.iter().find(|mark| text.trim_end().ends_with(**mark)) {
        text.truncate(text.trim_end().len() - mark.len());
    }
}

/// Splits a text whose thoughts have an end and no beginning. The end is at the end or the beginning of a line, and in no code.
pub fn split_at_lone_end(text: &str) -> Option<(&str, &str)> {
    ENDS_ALONE.iter().find_map(|end| {
        let at = text.find(end)?;
        let (thought, rest) = (&text[..at], &text[at + end.len()..]);
        let begins_line = thought.trim_end_matches([' ', '\t']).ends_with('\n') || thought.is_empty();
        let ends_line = rest.starts_with(['\n', '\r']);
        let is_code = !thought.matches('`').count().is_multiple_of(2) || thought.contains(&end.replace('/', ""));
        ((begins_line || ends_line) && !is_code).then(|| (thought, rest.trim_start()))
    })
}

/// Returns whether a text begins with a mark, in any case of its letters.
fn starts_with(text: &str, mark: &str) -> bool {
    text.get(..mark.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(mark))
}

/// Returns the place of a mark, in any case of its letters.
fn find(text: &str, mark: &str) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).find(|at| starts_with(&text[*at..], mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words and the thoughts of a text that arrives in pieces of this many characters.
    fn split(text: &str, characters: usize) -> (String, String) {
        let (mut words, mut thought, mut thoughts) = (String::new(), String::new(), Thoughts::default());
        let letters: Vec<char> = text.chars().collect();
        let mut said = Vec::new();
        for piece in letters.chunks(characters) {
            said.extend(thoughts.read(&piece.iter().collect::<String>()));
        }
        said.extend(thoughts.end());
        for part in said {
            match part {
                Said::Words(part) => words.push_str(&part),
                Said::Thought(part) => thought.push_str(&part),
            }
        }
        (words, thought)
    }

    #[test]
    fn thoughts_at_the_beginning_are_no_words_in_any_pieces() {
        for (text, words, thought) in [
            ("<think>a < b</think>\n\nIt is.", "It is.", "a < b"),
            ("\n<THINK>a</Think> It is.", "It is.", "a"),
            ("<think>\n\n</think>\n\nIt is.", "It is.", "\n\n"),
            ("<thinking>a</thinking><thinking>b</thinking>c", "c", "ab"),
            ("<reasoning>a</reasoning>b", "b", "a"),
            ("[THINK]a[/THINK]b", "b", "a"),
            ("◁think▷ä◁/think▷b", "b", "ä"),
            ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b", "a"),
            ("<|channel|>analysis<|message|>a<|channel|>final<|message|>b", "b", "a"),
            ("<think>never closed", "", "never closed"),
            ("", "", ""),
            ("<thin", "<thin", ""),
            ("  plain", "  plain", ""),
            ("The tag <think>a</think> marks thoughts.", "The tag <think>a</think> marks thoughts.", ""),
            ("`<think>` begins one.", "`<think>` begins one.", ""),
            ("<table><tr></tr></table>", "<table><tr></tr></table>", ""),
        ] {
            for characters in [1, 2, 3, 7, 1000] {
                let expected = (words.to_owned(), thought.to_owned());
                assert_eq!(split(text, characters), expected, "{text} by {characters}");
            }
        }
    }

    #[test]
    fn an_end_without_a_beginning_splits_only_plain_lines() {
        assert_eq!(split_at_lone_end("I add.\n</think>\n\nIt is 4."), Some(("I add.\n", "It is 4.")));
        assert_eq!(split_at_lone_end("I add.</think>\nIt is 4."), Some(("I add.", "It is 4.")));
        for text in [
            "The tag </think> ends it.",
            "```\n</think>\n```",
            "Write `\n</think>\n` there.",
            "Use <think>\na\n</think>\nin it.",
            "none",
        ] {
            assert_eq!(split_at_lone_end(text), None, "{text}");
        }
    }

    #[test]
    fn marks_behind_an_answer_are_no_words() {
        let mut text = "done<|end|><|return|>\n".to_owned();
        without_end_marks(&mut text);
        assert_eq!(text, "done");
    }
}
