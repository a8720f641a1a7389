//! The phrases of a language that take `send` away from whole sentences.
//!
//! Holds no phrase of its own. See [`crate::scope::withholding`].

use super::Pattern;
use super::tables::LanguageTable;

/// Patterns of whole sentences that take `send` away.
#[derive(Debug)]
pub struct Withholds {
    /// Phrases that take nothing away, although they have words of the others, and the words of messages.
    pub plain: Pattern,
    /// Conditions that count even there.
    pub strong: Pattern,
    /// Conditions, doubts, reports and refusals.
    pub doubts: [Pattern; 5],
    /// Stories and examples, also in the sentence before. They are doubts too.
    pub pretends: Pattern,
    /// Words at the start of a clause that take back what was said.
    pub back: Pattern,
    /// The forms of a question that is a request.
    pub polite: Pattern,
    /// Whole clauses that may stand before a colon and a request.
    pub salutes: Pattern,
}

impl Withholds {
    pub(super) fn new(table: &'static LanguageTable) -> Self {
        let pattern = |pattern| Pattern::new(table, pattern);
        let [plain, strong, condition, doubt, report, refusal, pretence, inverted, back, polite, salutes] =
            table.withholds.each_ref().map(pattern);
        let doubts = [condition, doubt, report, refusal, inverted];
        Self { plain, strong, doubts, pretends: pretence, back, polite, salutes }
    }
}
