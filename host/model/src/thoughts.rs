//! The thoughts of a model in its text, between the tags of its chat template.
//!
//! Takes tags at the beginning of a text while it arrives. Behind the first words, which may explain tags, it takes them only at the end,
//! and only where no explanation has them: see [`ends`]. See also [`crate::assembly`].

pub mod ends;

/// The tags around thoughts. A thought ends at the first of its ends.
pub(crate) const TAGS: [(&str, &[&str]); 26] = [
    ("<think>", &["</think>"]),
    ("<thinking>", &["</thinking>"]),
    ("<thought>", &["</thought>"]),
    ("<reasoning>", &["</reasoning>"]),
    ("<reflection>", &["</reflection>"]),
    ("<analysis>", &["</analysis>"]),
    ("<thoughts>", &["</thoughts>"]),
    ("<thinking_process>", &["</thinking_process>"]),
    ("<internal_monologue>", &["</internal_monologue>"]),
    ("<scratchpad>", &["</scratchpad>"]),
    ("<inner_monologue>", &["</inner_monologue>"]),
    ("<antThinking>", &["</antThinking>"]),
    ("<seed:think>", &["</seed:think>"]),
    ("<mm:think>", &["</mm:think>"]),
    ("<ds_think>", &["</ds_think>"]),
    ("<details type=\"reasoning\" done=\"true\">", &["</details>"]),
    ("[THINK]", &["[/THINK]"]),
    ("◁think▷", &["◁/think▷"]),
    ("<|thinking|>", &["<|/thinking|>"]),
    ("<|begin_of_thought|>", &["<|end_of_thought|>"]),
    ("<|channel>thought", &["<channel|>"]),
    ("<unused94>", &["<unused95>"]),
    ("Here are my reasoning steps:", &["[BEGIN FINAL RESPONSE]"]),
    ("<|START_THINKING|>", &["<|END_THINKING|>"]),
    ("<|channel|>analysis<|message|>", HARMONY_ENDS),
    ("<|start|>assistant<|channel|>analysis<|message|>", HARMONY_ENDS),
];
const HARMONY_ENDS: &[&str] = &["<|end|>", "<|channel|>final<|message|>"];
/// The marks in front of an answer.
const ANSWER_BEGINS: [&str; 5] = [
    "<|start|>assistant<|channel|>final<|message|>",
    "<|channel|>final<|message|>",
    "final<|message|>",
    "<|message|>",
    "<|START_RESPONSE|>",
];
/// The marks in front of an answer that are marks only behind thoughts.
const BEGINS_BEHIND_THOUGHTS: [&str; 4] = ["<answer>", "<response>", "<|begin_of_solution|>", "[BEGIN FINAL RESPONSE]"];
/// The marks in front of thoughts or of an answer.
const SKIPPED: [&str; 3] = ["<|assistant|>", "<|im_start|>assistant", "<|end|>"];
/// Bytes of the attributes of a tag.
const ATTRIBUTES_BYTES_MAX: usize = 80;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Words(String),
    Thought(String),
}

/// The reader of a text that arrives in pieces.
#[derive(Debug, Clone, Default)]
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
                let begun = TAGS.iter().find_map(|(begin, ends)| Some((begin_length(text, begin)?, *ends)));
                if let Some((length, ends)) = begun {
                    self.held = text[length..].to_owned();
                    (self.state, self.is_marked) = (State::Thinking(ends), true);
                    return Some(None);
                }
                let behind_thoughts = if self.is_marked { &BEGINS_BEHIND_THOUGHTS[..] } else { &[] };
                let answers = || ANSWER_BEGINS.iter().chain(behind_thoughts);
                if let Some(begin) = answers().find(|begin| starts_with(text, begin)) {
                    self.held = text[begin.len()..].to_owned();
                    (self.state, self.is_marked) = (State::Answering, true);
                    return Some(None);
                }
                if let Some(mark) = SKIPPED.iter().find(|mark| starts_with(text, mark)) {
                    self.held = text[mark.len()..].to_owned();
                    self.is_marked = true;
                    return Some(None);
                }
                let mut marks = TAGS.iter().map(|(begin, _)| begin).chain(answers()).chain(&SKIPPED);
                if marks.any(|mark| starts_with(mark, text)) || may_begin(text) {
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

/// Returns the length of a tag at the beginning of a text, which may have attributes.
fn begin_length(text: &str, begin: &str) -> Option<usize> {
    if starts_with(text, begin) {
        return Some(begin.len());
    }
    let name = begin.strip_suffix('>').filter(|name| name.starts_with('<') && starts_with(text, name))?;
    let attributes = text[name.len()..].find('>').filter(|length| *length <= ATTRIBUTES_BYTES_MAX)?;
    text[name.len()..].starts_with(char::is_whitespace).then_some(name.len() + attributes + 1)
}

/// Returns whether a text may be the beginning of a tag with attributes.
fn may_begin(text: &str) -> bool {
    let is_open = |(begin, _): &(&str, _)| {
        let name = begin.strip_suffix('>').filter(|name| name.starts_with('<') && starts_with(text, name));
        name.is_some_and(|name| {
            let rest = &text[name.len()..];
            rest.starts_with(char::is_whitespace) && !rest.contains('>') && rest.len() <= ATTRIBUTES_BYTES_MAX
        })
    };
    TAGS.iter().any(is_open)
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
            ("<think >a</think>It is.", "It is.", "a"),
            ("<think type=\"x\">a</think>It is.", "It is.", "a"),
            ("<thinkers> and others", "<thinkers> and others", ""),
            ("<think a b", "<think a b", ""),
            ("<scratchpad>a</scratchpad>b", "b", "a"),
            ("<mm:think>a</mm:think>b", "b", "a"),
            ("<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>b", "b", "a"),
            ("<|channel>thought\na<channel|>b", "b", "\na"),
            ("<unused94>a<unused95>b", "b", "a"),
            ("<|assistant|><think>a</think>b", "b", "a"),
            ("<think>a</think><answer>b", "b", "a"),
            ("<answer>b", "<answer>b", ""),
            ("final<|message|>b", "b", ""),
            ("finally", "finally", ""),
            ("Here are my reasoning steps:\na\n[BEGIN FINAL RESPONSE]\nb", "b", "\na\n"),
        ] {
            for characters in [1, 2, 3, 7, 1000] {
                let expected = (words.to_owned(), thought.to_owned());
                assert_eq!(split(text, characters), expected, "{text} by {characters}");
            }
        }
    }
}
