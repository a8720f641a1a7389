//! The words of a question about a page, and their meaning.
//!
//! Never takes a part of a word, or a number of another request. See [`super::ask`].

/// The words of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    One,
    /// For a change whose text the person may edit.
    Edited,
    /// For one of several objects, which the person may skip.
    Inbox,
    /// For a call in a conversation. The number binds the answer to the page, and a model cannot write the brackets.
    Turn {
        position: u32,
        of: u32,
    },
}

/// What a question offers beside a yes and a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offered {
    /// The page has details.
    pub details: bool,
    /// A yes can cover tools that only read, until the turn ends.
    pub turn: bool,
    /// The number of the calls on the page, if it shows several.
    pub calls: Option<usize>,
}

/// The meaning of a typed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Approve,
    /// Approve, and permit the tools that only read until the turn ends.
    ApproveUntilAnswer,
    Reject,
    /// Show each call of the page by itself.
    Each,
    Details,
    Edit,
    Skip,
    Quit,
}

impl Words {
    /// Returns the question. `more` lines of the page are left, and Enter shows them.
    pub(super) fn question(self, offered: Offered, more: usize) -> String {
        let details = if offered.details { "details, " } else { "" };
        let each = if offered.calls.is_some() { "each, " } else { "" };
        let above = if more == 0 { String::new() } else { format!("-- {more} more lines, Enter shows them --") };
        let turn = |number: &str| if offered.turn { format!("{number}turn, ") } else { String::new() };
        match self {
            Self::One => format!("{above}\napprove, {}reject, {each}{details}quit? ", turn("")),
            Self::Edited => format!("{above}\napprove, reject, edit, {details}quit? "),
            Self::Inbox => format!("{above}\napprove, {}reject, {each}{details}skip, quit? ", turn("")),
            Self::Turn { .. } => {
                let number = self.number(offered);
                let turn = turn(&format!("{number} "));
                format!("{above}\n{} {number} yes, {turn}{number} no, {each}{details}later? ", self.mark(offered))
            }
        }
    }

    /// Returns the word that binds an answer to the page on the screen: the number of its call, or `all`.
    fn number(self, offered: Offered) -> String {
        match (offered.calls, self) {
            (Some(_), _) => "all".to_owned(),
            (None, Self::Turn { position, .. }) => position.to_string(),
            // The inbox shows one page at a time.
            (None, Self::One | Self::Edited | Self::Inbox) => "1".to_owned(),
        }
    }

    /// Returns the meaning of a whole line; `None` if it decides nothing. The words of a conversation and those of the inbox are the same
    /// everywhere.
    pub(super) fn read(self, line: &str, offered: Offered) -> Option<Word> {
        match (self, line) {
            (_, "details") if offered.details => Some(Word::Details),
            (_, "each") if offered.calls.is_some() => Some(Word::Each),
            (Self::Edited, "edit") => Some(Word::Edit),
            (_, "approve") => Some(Word::Approve),
            (Self::One | Self::Inbox, "turn") if offered.turn => Some(Word::ApproveUntilAnswer),
            (_, "reject") => Some(Word::Reject),
            (Self::Turn { .. }, "no") => Some(Word::Reject),
            (Self::Inbox | Self::Turn { .. }, "skip" | "later") => Some(Word::Skip),
            (Self::One | Self::Edited, "later") | (_, "quit") => Some(Word::Quit),
            (_, line) => match line.split_once(' ').filter(|(first, _)| *first == self.number(offered))?.1 {
                "yes" => Some(Word::Approve),
                "turn" if offered.turn => Some(Word::ApproveUntilAnswer),
                "no" => Some(Word::Reject),
                _ => None,
            },
        }
    }

    /// Returns the answer to a line without a meaning.
    pub(super) fn advice(self, offered: Offered) -> String {
        match self {
            Self::One | Self::Edited | Self::Inbox => "nothing was decided: type a whole word".to_owned(),
            Self::Turn { .. } => {
                let number = self.number(offered);
                format!("nothing was decided: type \"{number} yes\", \"{number} no\" or \"later\"")
            }
        }
    }

    /// Returns the mark of the host's lines about the calls of a turn; empty for other questions.
    pub fn mark(self, offered: Offered) -> String {
        match (self, offered.calls) {
            (Self::One | Self::Edited | Self::Inbox, _) => String::new(),
            (Self::Turn { .. }, Some(calls)) => format!("⟦approval requests: {calls} calls⟧"),
            (Self::Turn { position, of }, None) => format!("⟦approval request {position} of {of}⟧"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DETAILS: Offered = Offered { details: true, turn: false, calls: None };

    #[test]
    fn only_the_number_of_the_request_decides_in_a_turn() {
        let (words, bare) = (Words::Turn { position: 2, of: 3 }, Offered::default());
        assert_eq!(words.question(DETAILS, 0), "\n⟦approval request 2 of 3⟧ 2 yes, 2 no, details, later? ");
        assert_eq!(words.read("2 yes", bare), Some(Word::Approve));
        assert_eq!((words.read("2 no", bare), words.read("no", bare)), (Some(Word::Reject), Some(Word::Reject)));
        assert_eq!(
            (words.read("later", bare), words.read("details", DETAILS)),
            (Some(Word::Skip), Some(Word::Details))
        );
        for line in [
            "", "yes", "2", "1 yes", "3 no", "02 yes", "2  yes", "2 yes ", " 2 yes", "2 YES", "details", "2 turn",
            "all yes", "each",
        ] {
            assert_eq!(words.read(line, bare), None, "{line:?}");
        }
        for line in ["yes", "no", "2 yes", "Approve", "approve ", "1 yes ", "turn", "all yes"] {
            assert_eq!((Words::Inbox.read(line, DETAILS), Words::One.read(line, DETAILS)), (None, None), "{line}");
        }
    }

    #[test]
    fn page_of_several_calls_is_decided_by_all() {
        let (words, five) = (Words::Turn { position: 1, of: 5 }, Offered { calls: Some(5), ..DETAILS });
        let question = "\n⟦approval requests: 5 calls⟧ all yes, all no, each, details, later? ";
        assert_eq!(words.question(five, 0), question);
        assert_eq!((words.read("all yes", five), words.read("1 yes", five)), (Some(Word::Approve), None));
        assert_eq!((words.read("all no", five), words.read("each", five)), (Some(Word::Reject), Some(Word::Each)));
        assert_eq!((words.read("all turn", five), Words::Inbox.read("each", five)), (None, Some(Word::Each)));
        assert_eq!(Words::Inbox.question(five, 0), "\napprove, reject, each, details, skip, quit? ");
    }

    #[test]
    fn turn_is_a_word_only_where_the_page_offers_it() {
        let (words, reads) = (Words::Turn { position: 1, of: 1 }, Offered { turn: true, ..Offered::default() });
        assert_eq!(words.question(reads, 0), "\n⟦approval request 1 of 1⟧ 1 yes, 1 turn, 1 no, later? ");
        assert_eq!((words.read("1 turn", reads), words.read("turn", reads)), (Some(Word::ApproveUntilAnswer), None));
        assert_eq!(Words::Inbox.read("turn", reads), Some(Word::ApproveUntilAnswer));
        assert_eq!(Words::One.question(reads, 0), "\napprove, turn, reject, quit? ");
        let all = Offered { calls: Some(2), ..reads };
        assert_eq!(words.read("all turn", all), Some(Word::ApproveUntilAnswer));
    }

    #[test]
    fn each_question_takes_the_words_of_the_others() {
        let bare = Offered::default();
        for words in [Words::One, Words::Edited, Words::Inbox, Words::Turn { position: 1, of: 1 }] {
            for line in ["approve", "1 yes"] {
                assert_eq!(words.read(line, bare), Some(Word::Approve), "{words:?} {line}");
            }
            for line in ["reject", "1 no"] {
                assert_eq!(words.read(line, bare), Some(Word::Reject), "{words:?} {line}");
            }
            assert!(matches!(words.read("later", bare), Some(Word::Skip | Word::Quit)), "{words:?}");
            assert_eq!(words.read("quit", bare), Some(Word::Quit), "{words:?}");
            assert_eq!(words.read("edit", bare).is_some(), words == Words::Edited, "{words:?}");
        }
        assert_eq!((Words::Inbox.read("skip", DETAILS), Words::One.read("skip", DETAILS)), (Some(Word::Skip), None));
    }
}
