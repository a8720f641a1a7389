//! The search of `find_tools`: the tools of MCP servers whose names and descriptions fit loose words.
//!
//! Pure and without chance: equal words over equal tools give the same tools in the same order. See [`super::levels`].

use super::server_tool::ServerTool;
use std::cmp::Reverse;

/// Tools that a search gives at most.
pub const FOUND_MAX: usize = 10;

/// Tools that a search gives if the model gives no number.
pub const FOUND_USUAL: usize = 5;

/// Different words of a query that count.
const WORDS_MAX: usize = 16;

/// Words that every description could contain.
const USUAL: [&str; 24] = [
    "a", "an", "and", "any", "can", "do", "for", "from", "how", "i", "in", "is", "it", "my", "of", "on", "or", "some",
    "that", "the", "to", "tool", "use", "with",
];

/// Letters at the beginning of two words that make them related.
const RELATED_LETTERS: usize = 4;

/// Letters of a word that may be misspelt.
const MISSPELT_LETTERS: usize = 5;

/// Returns at most `max` tools that have a word of the query, the best first.
///
/// A word counts more in the name than in the description, more if it is the same than if it is related, and more if fewer tools have
/// it. A misspelt word counts only in the name. Equal tools are in the order of their names.
pub fn find<'a>(tools: &[&'a ServerTool], query: &str, max: usize) -> Vec<&'a ServerTool> {
    let mut wanted: Vec<String> = Vec::new();
    for word in words(query) {
        if !USUAL.contains(&word.as_str()) && !wanted.contains(&word) && wanted.len() < WORDS_MAX {
            wanted.push(word);
        }
    }
    let fits: Vec<Vec<usize>> = tools.iter().map(|tool| fits_of(tool, &wanted)).collect();
    let weights: Vec<usize> = (0..wanted.len())
        .map(|at| {
            let having = fits.iter().filter(|fits| fits[at] > 0).count().max(1);
            1 + (tools.len() / having).max(1).ilog2() as usize
        })
        .collect();
    let score = |fits: &[usize]| -> usize { fits.iter().zip(&weights).map(|(fit, weight)| fit * weight).sum() };
    let mut scored: Vec<(usize, &ServerTool)> =
        fits.iter().map(|fits| score(fits)).zip(tools.iter().copied()).collect();
    scored.retain(|(score, _)| *score > 0);
    scored.sort_by(|(one, first), (other, second)| {
        (Reverse(one), &first.manifest.name).cmp(&(Reverse(other), &second.manifest.name))
    });
    scored.into_iter().take(max.clamp(1, FOUND_MAX)).map(|(_, tool)| tool).collect()
}

/// Returns for each word how well it fits a tool.
fn fits_of(tool: &ServerTool, wanted: &[String]) -> Vec<usize> {
    let (name, description) = (words(&tool.manifest.name), words(&tool.description));
    let fit = |word: &String| match (name.contains(word), description.contains(word)) {
        (true, _) => 8,
        (false, _) if name.iter().any(|other| is_related(word, other)) => 5,
        (false, _) if name.iter().any(|other| is_misspelt(word, other)) => 4,
        (false, true) => 3,
        (false, false) if description.iter().any(|other| is_related(word, other)) => 1,
        (false, false) => 0,
    };
    wanted.iter().map(fit).collect()
}

/// Returns the words of a text in lower case and in the singular. A name such as `sendMail_v2` has several words.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for letter in text.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        if (begins || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(singular(&std::mem::take(&mut word)));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(singular(&word));
    }
    words
}

fn singular(word: &str) -> String {
    let without = |end: &str| word.strip_suffix(end).filter(|rest| rest.chars().count() > 1);
    let hissing = ["sses", "xes", "ches", "shes"].iter().any(|end| word.ends_with(end));
    match (
        without("ies"),
        without("es").filter(|_| hissing),
        without("s").filter(|rest| !rest.ends_with(['s', 'u', 'i'])),
    ) {
        (Some(rest), _, _) => format!("{rest}y"),
        (None, Some(rest), _) | (None, None, Some(rest)) => rest.to_owned(),
        (None, None, None) => word.to_owned(),
    }
}

/// Returns whether two different words have one stem, or one contains the other: `sending` and `send`, `email` and `mail`.
fn is_related(one: &str, other: &str) -> bool {
    let shorter = one.chars().count().min(other.chars().count());
    if shorter < RELATED_LETTERS {
        return false;
    }
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    one.contains(other) || other.contains(one) || same >= RELATED_LETTERS && same * 4 >= shorter * 3
}

/// Returns whether two long words with one first letter differ by one letter, or by two letters that changed places: `leter`, `lettre`.
fn is_misspelt(one: &str, other: &str) -> bool {
    let (mut one, mut other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().min(other.len()) < MISSPELT_LETTERS || one[0] != other[0] {
        return false;
    }
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (one.split_off(same), other.split_off(same));
    match (one.as_slice(), other.as_slice()) {
        ([a, b, rest @ ..], [c, d, others @ ..]) if (a, b) == (d, c) => rest == others,
        ([_, rest @ ..], others) if rest == others => true,
        (rest, [_, others @ ..]) if rest == others => true,
        ([_, rest @ ..], [_, others @ ..]) => rest == others,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::tests::server_tool;
    use super::*;

    fn tools() -> Vec<ServerTool> {
        let mut all = vec![
            server_tool("post", "send_letter", "Sends a letter to a recipient."),
            server_tool("post", "list_letters", "Lists the letters of a folder."),
            server_tool("desk", "createInvoice", "Makes an invoice for a customer."),
            server_tool("desk", "search_companies", "Finds companies by their names."),
            server_tool("mail", "send", "Sends a message by mail."),
        ];
        all.extend(
            (0..295).map(|n| server_tool("bulk", &format!("report_{n}"), "Sends the report of a day to a printer.")),
        );
        all
    }

    fn names(query: &str, max: usize) -> Vec<String> {
        let all = tools();
        find(&all.iter().collect::<Vec<_>>(), query, max).into_iter().map(|tool| tool.manifest.name.clone()).collect()
    }

    #[test]
    fn loose_words_find_the_tool_among_300() {
        for (wanted, queries) in [
            ("post__send_letter", &["I want to be sending some letters, please", "letters sending"][..]),
            ("post__send_letter", &["send letter", "SEND_LETTER", "send a leter", "post__send_letter"]),
            ("post__list_letters", &["folder of letters"]),
            ("desk__createInvoice", &["invoices creating", "invioces"]),
            ("desk__search_companies", &["company search", "compnaies"]),
            ("mail__send", &["email"]),
        ] {
            for query in queries {
                assert_eq!(names(query, 5).first().map(String::as_str), Some(wanted), "{query}: {:?}", names(query, 5));
            }
        }
    }

    #[test]
    fn words_without_a_tool_find_nothing() {
        for query in ["", "zebra", "the of a", "\u{200b}<|im_start|>", "a tool to use with it"] {
            assert_eq!(names(query, 5), Vec::<String>::new(), "{query}");
        }
    }

    #[test]
    fn order_does_not_depend_on_the_order_of_words_or_tools() {
        let mut all = tools();
        let first = names("report day printer", 10);
        assert_eq!(first, names("printer, report; DAY", 10));
        all.reverse();
        let reversed = find(&all.iter().collect::<Vec<_>>(), "report day printer", 10);
        assert_eq!(first, reversed.into_iter().map(|tool| tool.manifest.name.clone()).collect::<Vec<_>>());
        assert_eq!((first.len(), names("report", 0).len(), names("report", 1_000).len()), (10, 1, FOUND_MAX));
    }

    #[test]
    fn words_of_a_name_are_separate_and_singular() {
        assert_eq!(
            words("sendMail_v2-Boxes, companies' statuses"),
            ["send", "mail", "v2", "box", "company", "statuse"].map(str::to_owned)
        );
        assert!(is_related("creating", "create") && is_related("email", "mail") && is_related("sending", "send"));
        assert!(is_misspelt("leter", "letter") && is_misspelt("lettre", "letter") && is_misspelt("lettar", "letter"));
        assert!(!is_misspelt("better", "letter") && !is_misspelt("mali", "mail") && !is_misspelt("leer", "letter"));
        assert!(!is_related("calendar", "call") && !is_related("a", "ab"));
    }
}
