//! The thoughts and marks that only a whole text shows: ends without a beginning, thoughts behind words, and marks behind an answer.
//!
//! Never takes a mark in code or in a sentence, which explains it. See [`super`].

use super::{TAGS, find};

/// The ends of thoughts whose beginning is in the prompt of the template.
const ENDS_ALONE: [&str; 8] = [
    "</think>",
    "</thinking>",
    "</thought>",
    "</reasoning>",
    "</mm:think>",
    "</seed:think>",
    "[/THINK]",
    "<|end_of_thought|>",
];
/// Bytes of the longest of them.
const END_BYTES_MAX: usize = 20;
/// The words of a harmony template that lost its marks: in front of the thoughts, and of the answer.
const STRIPPED: (&str, &str) = ("analysis", "assistantfinal");
/// The marks behind an answer.
const ANSWER_ENDS: [&str; 13] = [
    "<|return|>",
    "<|end|>",
    "<|END_RESPONSE|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_solution|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "[END FINAL RESPONSE]",
    "</s>",
];
/// The marks that are marks only behind thoughts.
const ENDS_BEHIND_THOUGHTS: [&str; 2] = ["</answer>", "</response>"];

/// A text without its thoughts and marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    pub text: String,
    pub thoughts: Vec<String>,
    /// True if the text began with a thought that has no beginning.
    pub begins_in_thought: bool,
}

/// Takes the thoughts and marks from a whole text. `is_marked` says that marks of a template were in front of it. Returns `None` for a
/// text without any.
pub fn cleaned(text: &str, is_marked: bool) -> Option<Cleaned> {
    let mut cleaned = Cleaned { text: text.to_owned(), thoughts: Vec::new(), begins_in_thought: false };
    if !is_marked && let Some((thought, answer)) = split_at_lone_end(text).or_else(|| split_at_stripped(text)) {
        cleaned = Cleaned { text: answer.to_owned(), thoughts: vec![thought.to_owned()], begins_in_thought: true };
    }
    while let Some((text, thought)) = without_thought(&cleaned.text, is_marked) {
        cleaned.text = text;
        cleaned.thoughts.push(thought);
    }
    without_end_marks(&mut cleaned.text, is_marked || !cleaned.thoughts.is_empty());
    (cleaned.text != text).then_some(cleaned)
}

/// Returns the place behind the first end of a thought at or behind `from`, if there is one.
pub fn behind_end(text: &str, from: usize) -> Option<usize> {
    let from = text.floor_char_boundary(from.saturating_sub(END_BYTES_MAX));
    ENDS_ALONE.iter().filter_map(|end| Some(from + text[from..].find(end)? + end.len())).min()
}

/// Returns the answer behind a thought without a beginning; `None` if the text has none, or none yet.
pub fn answer_behind_thought(text: &str) -> Option<&str> {
    split_at_lone_end(text).map(|(_, answer)| answer).filter(|answer| !answer.is_empty())
}

/// Takes the marks of a template from the end of an answer. A mark behind a blank is a word of a sentence.
fn without_end_marks(text: &mut String, is_marked: bool) {
    let behind_thoughts = if is_marked { &ENDS_BEHIND_THOUGHTS[..] } else { &[] };
    let has_strike = text.contains("<s>");
    loop {
        let end = text.trim_end();
        let mut marks = ANSWER_ENDS.iter().chain(behind_thoughts).filter(|mark| !(has_strike && **mark == "</s>"));
        let Some(mark) = marks.find(|mark| end.ends_with(**mark)) else { return };
        let kept = &end[..end.len() - mark.len()];
        if kept.ends_with([' ', '`', '"', '\'']) || is_in_code(kept) {
            return;
        }
        text.truncate(kept.len());
    }
}

/// Splits a text whose thoughts have an end and no beginning: the end is at the end or the beginning of a line, or directly between two
/// letters, and in no code.
fn split_at_lone_end(text: &str) -> Option<(&str, &str)> {
    ENDS_ALONE.iter().find_map(|end| {
        let at = text.find(end)?;
        let (thought, rest) = (&text[..at], &text[at + end.len()..]);
        let begins_line = thought.trim_end_matches([' ', '\t']).ends_with('\n') || thought.is_empty();
        let ends_line = rest.starts_with(['\n', '\r']);
        let is_in_word = thought.ends_with(|letter: char| !letter.is_whitespace() && letter != '`')
            && (rest.starts_with(char::is_alphanumeric)
                || (thought.ends_with(['.', '!', '?']) && rest.starts_with(' ')));
        let is_code = is_in_code(thought) || thought.contains(&end.replace('/', ""));
        ((begins_line || ends_line || is_in_word) && !is_code).then(|| (thought, rest.trim_start()))
    })
}

/// Splits a text of a harmony template that lost its marks.
fn split_at_stripped(text: &str) -> Option<(&str, &str)> {
    let (thought, answer) = text.trim_start().strip_prefix(STRIPPED.0)?.split_once(STRIPPED.1)?;
    Some((thought, answer.trim_start()))
}

/// Returns the text without the first thought in tags behind words, and the thought: behind other thoughts, or directly behind a letter.
fn without_thought(text: &str, is_marked: bool) -> Option<(String, String)> {
    TAGS.iter().filter(|(begin, _)| begin.starts_with('<')).find_map(|(begin, ends)| {
        let at = find(text, begin)?;
        let (before, rest) = (&text[..at], &text[at + begin.len()..]);
        let (length, end) = ends.iter().filter_map(|end| Some((find(rest, end)?, end))).min_by_key(|(at, _)| *at)?;
        let is_directly = before.ends_with(|letter: char| !letter.is_whitespace() && letter != '`' && letter != '"');
        let behind = rest[length + end.len()..].trim_start();
        let joined = [before.trim_end(), behind].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>();
        let is_thought = (is_marked || is_directly) && !is_in_code(before);
        is_thought.then(|| (joined.join("\n\n"), rest[..length].to_owned()))
    })
}

/// Returns whether code marks are open at the end of a text.
fn is_in_code(text: &str) -> bool {
    !text.matches('`').count().is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_that_only_a_whole_text_shows_are_taken() {
        for (text, is_marked, answer, thought) in [
            ("I add.\n</think>\n\nIt is 4.", false, "It is 4.", "I add.\n"),
            ("I add.</think>\nIt is 4.", false, "It is 4.", "I add."),
            ("I add</think>It is 4.", false, "It is 4.", "I add"),
            ("I add.</think> It is 4.", false, "It is 4.", "I add."),
            ("I add.[/THINK]It is 4.", false, "It is 4.", "I add."),
            ("analysisI add.assistantfinalIt is 4.", false, "It is 4.", "I add."),
            ("It is 4.<think>I add.</think>Is it?", false, "It is 4.\n\nIs it?", "I add."),
            ("It is 4.\n<think>I add.</think>", true, "It is 4.", "I add."),
        ] {
            let cleaned = cleaned(text, is_marked).expect(text);
            assert_eq!((cleaned.text.as_str(), cleaned.thoughts.concat().as_str()), (answer, thought), "{text}");
        }
    }

    #[test]
    fn marks_in_code_or_in_a_sentence_stay() {
        for text in [
            "The tag </think> ends it.",
            "```\n</think>\n```",
            "Write `\n</think>\n` there.",
            "Use <think>\na\n</think>\nin it.",
            "A thought is `<think>a</think>`.",
            "none",
            "The mark of the end is </s>",
            "The mark is `<|im_end|>`",
            "A struck <s>word</s>",
            "analysis of the file: it is empty",
            "<answer>4</answer>",
        ] {
            assert_eq!(cleaned(text, false), None, "{text}");
        }
    }

    #[test]
    fn marks_behind_an_answer_are_no_words() {
        for (text, is_marked) in [
            ("done<|end|><|return|>\n", true),
            ("done</answer>", true),
            ("done</s>", false),
            ("done<|im_end|>\n", false),
            ("done\n<|eot_id|>", false),
            ("done<end_of_turn>\n</s>", false),
            ("done<｜end▁of▁sentence｜>", false),
        ] {
            assert_eq!(cleaned(text, is_marked).expect(text).text.trim(), "done", "{text}");
        }
    }
}
