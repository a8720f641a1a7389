//! Single facts about this host. Tables: `meta`.

use ironclaw_contract::canonical;
use ironclaw_state::{Error, ReadTx, WriteTx};

/// The key of the generation of the record.
const GENERATION: &str = "generation";

/// The key of the heads of other histories that were seen.
const OTHER_HISTORY: &str = "other_history";

/// The key of the number up to which the open deliveries may have been sent in another history of the record.
const DOUBTFUL_DELIVERIES: &str = "deliveries_doubtful";

/// Returns the generation of the record, which is 0 until another one begins.
pub fn generation(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let found: Option<String> = tx.find(sql, [GENERATION], |row| row.get(0))?;
    found.map_or(Ok(0), |text| text.parse().map_err(|_| Error::Stored("meta: generation".to_owned())))
}

/// Sets the generation of the record.
pub fn set_generation(tx: &mut WriteTx<'_>, generation: u64) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
    tx.execute(sql, [GENERATION, &generation.to_string()])?;
    Ok(())
}

/// Returns the heads of other histories that were seen.
pub fn other_history(tx: &ReadTx<'_>) -> Result<Vec<String>, Error> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let found: Option<String> = tx.find(sql, [OTHER_HISTORY], |row| row.get(0))?;
    found
        .map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
        .map_err(|_| Error::Stored("meta: other_history".to_owned()))
}

/// Sets the heads of other histories that were seen.
pub fn set_other_history(tx: &mut WriteTx<'_>, heads: &[String]) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
    tx.execute(sql, [OTHER_HISTORY, &canonical::to_string(&heads)])?;
    Ok(())
}

/// Notes that the record was put back: what is open now may have been sent in the other history.
pub fn doubt_deliveries(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO meta (key, value) SELECT ?1, coalesce(max(rowid), 0) FROM deliveries";
    tx.execute(sql, [DOUBTFUL_DELIVERIES])?;
    Ok(())
}

/// Deletes the number up to which open deliveries may have been sent in another history, and returns it.
pub fn take_doubtful_deliveries(tx: &mut WriteTx<'_>) -> Result<Option<i64>, Error> {
    let sql = "DELETE FROM meta WHERE key = ?1 RETURNING CAST(value AS INTEGER)";
    tx.find(sql, [DOUBTFUL_DELIVERIES], |row| row.get(0))
}
