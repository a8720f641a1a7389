//! A part of a line about what waits: its number, its effect and its requester.
//!
//! Only fields that every kind has. A text is on one line, because a reason of several lines could look like the next question.

use ironclaw_operator::{Details, Requester, WaitingEntry, WaitingId, WaitingKind};

/// Characters of a question or an effect.
const EFFECT_CHARS_MAX: usize = 100;

/// Returns a text on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the kind, and the beginning of the question or the effect: `call: Send a POST.`
pub fn in_a_line(entry: &WaitingEntry) -> String {
    let effect = one_line(entry.question.as_ref().unwrap_or(&entry.effect));
    let cut = if effect.chars().count() > EFFECT_CHARS_MAX { "…" } else { "" };
    let what = match calls_together(entry).len() {
        0 => entry.kind.to_string(),
        calls => format!("{calls} calls, the first"),
    };
    format!("{what}: {}{cut}", effect.chars().take(EFFECT_CHARS_MAX).collect::<String>())
}

/// Returns the calls that wait together with one, itself among them; none if it waits alone or is for other people.
pub fn calls_together(entry: &WaitingEntry) -> Vec<WaitingId> {
    match &entry.details {
        Some(Details::Call(call)) if entry.yours => call.together.iter().map(|call| (*call).into()).collect(),
        _ => Vec::new(),
    }
}

/// Formats a requester: `agent helper for ana`.
pub fn requester(requester: &Requester) -> String {
    let person = requester.on_behalf_of.as_ref().map(|person| format!(" for {}", person.name));
    format!("{} {}{}", requester.kind, requester.name, person.unwrap_or_default())
}

/// Formats the number of approvals: `1 of 2`; empty for a question, which needs none.
pub fn approvals(entry: &WaitingEntry) -> String {
    match entry.approvals.needed {
        0 => String::new(),
        needed => format!("{} of {needed}", entry.approvals.by.len()),
    }
}

/// Formats the number of those that wait for this person; `None` without one.
pub fn count_yours(entries: &[WaitingEntry]) -> Option<String> {
    count(WaitingKind::ALL.map(|kind| {
        let yours = entries.iter().filter(|entry| entry.yours && entry.kind == kind);
        (kind, yours.count() as u64)
    }))
}

/// Formats `1 change waits`, `2 calls and 1 change wait`, `1 call, 1 question and 1 change wait`; `None` if nothing waits.
pub fn count(numbers: impl IntoIterator<Item = (WaitingKind, u64)>) -> Option<String> {
    let (mut listed, mut sum) = (Vec::new(), 0);
    for (kind, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
        listed.push(format!("{number} {kind}{}", if number == 1 { "" } else { "s" }));
        sum += number;
    }
    let last = listed.pop()?;
    let first = if listed.is_empty() { String::new() } else { format!("{} and ", listed.join(", ")) };
    Some(format!("{first}{last} {}", if sum == 1 { "waits" } else { "wait" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kinds_are_in_words() {
        let words = |calls, questions, changes| {
            count(WaitingKind::ALL.into_iter().zip([calls, questions, changes])).unwrap_or_default()
        };
        assert_eq!(words(0, 0, 0), "");
        assert_eq!(words(0, 1, 0), "1 question waits");
        assert_eq!(words(0, 0, 2), "2 changes wait");
        assert_eq!(words(2, 0, 1), "2 calls and 1 change wait");
        assert_eq!(words(1, 1, 1), "1 call, 1 question and 1 change wait");
    }
}
