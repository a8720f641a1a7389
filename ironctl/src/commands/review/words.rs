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

/// The meaning of a typed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Approve,
    Reject,
    Details,
    Edit,
    Skip,
    Quit,
}

impl Words {
    /// Returns the question. `more` lines of the page are left, and Enter shows them.
    pub(super) fn question(self, has_details: bool, more: usize) -> String {
        let details = if has_details { "details, " } else { "" };
        let above = if more == 0 { String::new() } else { format!("-- {more} more lines, Enter shows them --") };
        match self {
            Self::One => format!("{above}\napprove, reject, {details}quit? "),
            Self::Edited => format!("{above}\napprove, reject, edit, {details}quit? "),
            Self::Inbox => format!("{above}\napprove, reject, {details}skip, quit? "),
            Self::Turn { position, .. } => {
                format!("{above}\n{} {position} yes, {position} no, {details}later? ", self.mark())
            }
        }
    }

    /// Returns the meaning of a whole line; `None` if it decides nothing. The words of a conversation and those of the inbox are the same
    /// everywhere; the inbox shows one page at a time, which has the number 1.
    pub(super) fn read(self, line: &str, has_details: bool) -> Option<Word> {
        let number = match self {
            Self::One | Self::Edited | Self::Inbox => 1,
            Self::Turn { position, .. } => position,
        };
        match (self, line) {
            (_, "details") if has_details => Some(Word::Details),
            (Self::Edited, "edit") => Some(Word::Edit),
            (_, "approve") => Some(Word::Approve),
            (_, "reject") => Some(Word::Reject),
            (Self::Turn { .. }, "no") => Some(Word::Reject),
            (Self::Inbox | Self::Turn { .. }, "skip" | "later") => Some(Word::Skip),
            (Self::One | Self::Edited, "later") | (_, "quit") => Some(Word::Quit),
            (_, line) => match line.split_once(' ') {
                Some((first, "yes")) if first == number.to_string() => Some(Word::Approve),
                Some((first, "no")) if first == number.to_string() => Some(Word::Reject),
                Some(_) | None => None,
            },
        }
    }

    /// Returns the answer to a line without a meaning.
    pub(super) fn advice(self) -> String {
        match self {
            Self::One | Self::Edited | Self::Inbox => "nothing was decided: type a whole word".to_owned(),
            Self::Turn { position, .. } => {
                format!("nothing was decided: type \"{position} yes\", \"{position} no\" or \"later\"")
            }
        }
    }

    /// Returns the mark of the host's lines about a request of a turn; empty for other questions.
    pub fn mark(self) -> String {
        match self {
            Self::One | Self::Edited | Self::Inbox => String::new(),
            Self::Turn { position, of } => format!("⟦approval request {position} of {of}⟧"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_the_request_decides_in_a_turn() {
        let words = Words::Turn { position: 2, of: 3 };
        assert_eq!(words.question(true, 0), "\n⟦approval request 2 of 3⟧ 2 yes, 2 no, details, later? ");
        assert_eq!(words.read("2 yes", false), Some(Word::Approve));
        assert_eq!((words.read("2 no", false), words.read("no", false)), (Some(Word::Reject), Some(Word::Reject)));
        assert_eq!((words.read("later", false), words.read("details", true)), (Some(Word::Skip), Some(Word::Details)));
        for line in ["", "yes", "2", "1 yes", "3 no", "02 yes", "2  yes", "2 yes ", " 2 yes", "2 YES", "details"] {
            assert_eq!(words.read(line, false), None, "{line:?}");
        }
        for line in ["yes", "no", "2 yes", "Approve", "approve ", "1 yes "] {
            assert_eq!((Words::Inbox.read(line, true), Words::One.read(line, true)), (None, None), "{line}");
        }
    }

    #[test]
    fn each_question_takes_the_words_of_the_others() {
        for words in [Words::One, Words::Edited, Words::Inbox, Words::Turn { position: 1, of: 1 }] {
            for line in ["approve", "1 yes"] {
                assert_eq!(words.read(line, false), Some(Word::Approve), "{words:?} {line}");
            }
            for line in ["reject", "1 no"] {
                assert_eq!(words.read(line, false), Some(Word::Reject), "{words:?} {line}");
            }
            assert!(matches!(words.read("later", false), Some(Word::Skip | Word::Quit)), "{words:?}");
            assert_eq!(words.read("quit", false), Some(Word::Quit), "{words:?}");
            assert_eq!(words.read("edit", false).is_some(), words == Words::Edited, "{words:?}");
        }
        assert_eq!((Words::Inbox.read("skip", true), Words::One.read("skip", true)), (Some(Word::Skip), None));
    }
}
