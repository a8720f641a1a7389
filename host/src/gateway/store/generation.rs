//! Generations of the record: a record that was put back to an earlier state begins another one, in which no earlier approval is valid.
//!
//! Reads no head of the ledger itself. See [`ironclaw_ledger`] and [`crate::daemon`].

use crate::registry::allowances;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables::{changes, facts, requests};

/// The bound on the kept names of heads of other histories. Of more heads the last ones in sorted order are kept.
const OTHER_HEADS_MAX: usize = 4096;

/// Begins another generation, unless all of these heads were known before. A change that is open may have been decided or applied in
/// the other history, so a person has to review it, and no earlier approval stays valid. Returns the number of these changes. The caller
/// withdraws the approval requests, in the same transaction.
pub fn begin_generation(
    tx: &mut WriteTx<'_>,
    other_history: &[String],
) -> Result<Option<usize>, ironclaw_state::Error> {
    let mut known = facts::other_history(tx)?;
    let unknown_heads: Vec<String> = other_history.iter().filter(|head| !known.contains(head)).cloned().collect();
    if unknown_heads.is_empty() {
        return Ok(None);
    }
    known.extend(unknown_heads);
    known.sort();
    let over = known.len().saturating_sub(OTHER_HEADS_MAX);
    known.drain(..over);
    // The other history counted up from the same number. It cannot have reached the present time.
    let next = (facts::generation(tx)? + 1).max(u64::try_from(tx.now()).unwrap_or(0));
    facts::set_generation(tx, next)?;
    facts::set_other_history(tx, &known)?;
    changes::void_all_approvals(tx)?;
    let outcome = "the record was put back to an earlier state: this may have been decided or applied since";
    let unknown = changes::mark_unknown(tx, next, outcome)?;
    let open = requests::every_open(tx)?.len();
    allowances::end_all(tx)?;
    Entry::new(LedgerEvent::StateGeneration)
        .with("generation", next)
        .with("changes_unknown", unknown)
        .with("requests_withdrawn", open)
        .append(tx)?;
    Ok(Some(unknown))
}
