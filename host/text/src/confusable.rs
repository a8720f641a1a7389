//! Warnings about names and identities: characters that look like others, and names that look like the name of another person.
//!
//! Never decides: the host compares identities byte for byte, and no warning makes two of them equal. See [`crate::visible`].

use std::fmt;
use unicode_security::skeleton;

/// Warnings shown for one text; more would hide the text.
const MARKS_MAX: usize = 4;

/// Returns whether a reader can take one text for the other (UTS 39, "confusable", in any case), or they are equal.
pub fn look_alike(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

fn folded(text: &str) -> String {
    // Case first: the skeleton of a capital I is a small l.
    skeleton(&text.to_lowercase()).filter(|c| !is_unseen(*c)).collect()
}

/// Returns whether a character has no width on a screen, or changes the order of others.
pub fn is_unseen(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the warnings about this text. `others` are the texts of other people, each with its owner.
pub fn warnings<'a>(text: &str, others: impl IntoIterator<Item = (&'a str, impl fmt::Display)>) -> Vec<String> {
    let mut marks = Vec::new();
    for character in text.chars().filter(|character| !character.is_ascii()) {
        let code = u32::from(character);
        if is_unseen(character) {
            marks.push(format!("holds U+{code:04X}, which is invisible"));
            continue;
        }
        let mut bytes = [0; 4];
        let read_as: String = skeleton(character.to_lowercase().collect::<String>().as_str()).collect();
        if read_as != *character.encode_utf8(&mut bytes) && read_as.is_ascii() && !read_as.is_empty() {
            marks.push(format!("holds U+{code:04X}, which reads as {read_as:?}"));
        }
    }
    if text.trim() != text {
        marks.push("begins or ends with a space".to_owned());
    }
    let own = folded(text);
    for (other, whose) in others {
        if other != text && folded(other) == own {
            marks.push(format!("looks like {other} of {whose}"));
        }
    }
    marks.dedup();
    if marks.len() > MARKS_MAX {
        let more = marks.len() - MARKS_MAX;
        marks.truncate(MARKS_MAX);
        marks.push(format!("and {more} more"));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_marked_and_plain_names_are_not() {
        let others = [("chat:alice", "Alice (per_1)")];
        assert_eq!(warnings("chat:bob", others), Vec::<String>::new());
        assert_eq!(warnings("chat:alice", others), Vec::<String>::new(), "itself");
        let cyrillic = warnings("chat:\u{430}lice", others);
        assert_eq!(cyrillic, ["holds U+0430, which reads as \"a\"", "looks like chat:alice of Alice (per_1)"]);
        assert_eq!(warnings("chat:a1ice", others), ["looks like chat:alice of Alice (per_1)"]);
        assert_eq!(warnings("chat:Alice", others), ["looks like chat:alice of Alice (per_1)"]);
        assert_eq!(warnings("chat:al\u{200b}ice", others).len(), 2);
        assert_eq!(warnings("chat:müller", others), Vec::<String>::new(), "letters of other scripts are plain");
    }
}
