//! Generations of the record: a record that was put back to an earlier state begins another one, in which no earlier approval is valid.
//!
//! Reads no head of the ledger itself. See [`ironclaw_ledger`] and [`crate::daemon`].

use crate::registry::allowances;
use crate::registry::tokens;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables::{agents, channels, facts, mcp};

/// The bound on the kept names of heads of other histories. Of more heads the last ones in sorted order are kept.
const OTHER_HEADS_MAX: usize = 4096;

/// Begins another generation, unless all of these heads were known before, and returns its number. What waits may have been decided or
/// carried out in the other history: the caller doubts it, with [`crate::gateway::waiting::doubt_all`] in the same transaction.
pub fn begin(tx: &mut WriteTx<'_>, other_history: &[String]) -> Result<Option<u64>, ironclaw_state::Error> {
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
    allowances::end_all(tx)?;
    end_own_sources(tx)?;
    // The other history may have ended a session of a browser.
    tokens::end_sessions(tx, None)?;
    Ok(Some(next))
}

/// Ends that people call directories, answers of servers and senders theirs: this record does not know who could write there in the other
/// history, nor which declaration ended in it.
fn end_own_sources(tx: &mut WriteTx<'_>) -> Result<(), ironclaw_state::Error> {
    let directories = agents::end_declared_mounts(tx)?;
    let servers = mcp::end_declared_answers(tx)?;
    let senders = channels::delete_own_senders(tx)?;
    if directories + servers + senders == 0 {
        return Ok(());
    }
    let entry = Entry::new(LedgerEvent::StateOwnSourcesEnded).with("directories", directories);
    entry.with("servers", servers).with("senders", senders).append(tx)?;
    Ok(())
}
