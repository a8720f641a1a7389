//! Which history the record tells: one that was put back to an earlier state begins another, and believes no open approval of before.
//!
//! Looks at no head itself. Next: `ledger`, `daemon`.

use crate::tables::{changes, facts};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_state::WriteTx;

/// Heads of other histories whose names are kept; of more the last in the order of their numbers.
const OTHER_HEADS_MAX: usize = 4096;

/// Begins another generation, unless all that these heads know was known before: what is open may have been decided or done in
/// that other history, so a person has to look at it, and no approval from before is good any more. Returns how many changes that
/// concerns.
pub fn begin_generation(
    tx: &mut WriteTx<'_>,
    other_history: &[String],
) -> Result<Option<usize>, ironclaw_state::Error> {
    let mut known = facts::other_history(tx)?;
    let news: Vec<String> = other_history.iter().filter(|head| !known.contains(head)).cloned().collect();
    if news.is_empty() {
        return Ok(None);
    }
    known.extend(news);
    known.sort();
    let over = known.len().saturating_sub(OTHER_HEADS_MAX);
    known.drain(..over);
    // A number that the other history, which counted from the same one, cannot have come to.
    let next = (facts::generation(tx)? + 1).max(u64::try_from(tx.now()).unwrap_or(0));
    facts::set_generation(tx, next)?;
    facts::set_other_history(tx, &known)?;
    changes::void_all_approvals(tx)?;
    let outcome = "the record was put back to an earlier state: this may have been decided or done since";
    let unknown = changes::mark_unknown(tx, next, outcome)?;
    Entry::new(LedgerEvent::StateGeneration).with("generation", next).with("changes_unknown", unknown).append(tx)?;
    Ok(Some(unknown))
}
