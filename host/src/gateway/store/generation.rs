//! Which history the record tells: one that was put back to an earlier state begins another, and believes no open approval of before.
//!
//! Looks at no head itself. Next: `ledger`, `daemon`.

use ironclaw_contract::canonical;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::{OptionalExtension, params};

/// Where the record keeps its generation.
const GENERATION: &str = "generation";

/// Where the record keeps which other history it has seen.
const OTHER_HISTORY: &str = "other_history";

/// Heads of other histories whose names are kept; of more the last in the order of their numbers.
const OTHER_HEADS_MAX: usize = 4096;

/// The generation of the record: a record that was put back begins another one.
pub fn generation(tx: &ReadTx<'_>) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let found: Option<String> = tx.db().prepare_cached(sql)?.query_row([GENERATION], |row| row.get(0)).optional()?;
    found.map_or(Ok(0), |text| text.parse().map_err(|_| ironclaw_state::Error::Stored("meta: generation".to_owned())))
}

/// Begins another generation, unless all that these heads know was known before: what is open may have been decided or done in
/// that other history, so a person has to look at it, and no approval from before is good any more. Returns how many changes that
/// concerns.
pub fn begin_generation(
    tx: &mut WriteTx<'_>,
    other_history: &[String],
) -> Result<Option<usize>, ironclaw_state::Error> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let known: Option<String> = tx.db().prepare_cached(sql)?.query_row([OTHER_HISTORY], |row| row.get(0)).optional()?;
    let mut known: Vec<String> = known
        .map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
        .map_err(|_| ironclaw_state::Error::Stored("meta: other_history".to_owned()))?;
    let news: Vec<String> = other_history.iter().filter(|head| !known.contains(head)).cloned().collect();
    if news.is_empty() {
        return Ok(None);
    }
    known.extend(news);
    known.sort();
    let over = known.len().saturating_sub(OTHER_HEADS_MAX);
    known.drain(..over);
    // A number that the other history, which counted from the same one, cannot have come to.
    let next = (generation(tx)? + 1).max(u64::try_from(tx.now()).unwrap_or(0));
    let db = tx.db();
    for (key, value) in [(GENERATION, next.to_string()), (OTHER_HISTORY, canonical::to_string(&known))] {
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [key, &value])?;
    }
    db.execute("UPDATE approvals SET state = 'void', ended_at = ?1 WHERE state = 'live'", [tx.now()])?;
    let unknown = db.execute(
        "UPDATE changes SET status = 'unknown', generation = ?1, outcome = ?2, shown = NULL, decided_by = NULL, decided_at = NULL \
         WHERE status IN ('pending','approved')",
        params![next as i64, "the record was put back to an earlier state: this may have been decided or done since"],
    )?;
    Entry::new(LedgerEvent::StateGeneration).with("generation", next).with("changes_unknown", unknown).append(tx)?;
    Ok(Some(unknown))
}
