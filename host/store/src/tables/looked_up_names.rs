//! The addresses of the names of changes. Table: `looked_up_names`.
//!
//! See `registry::local_network`.

use ironclaw_contract::canonical;
use ironclaw_state::{Error, ReadTx, WriteTx, stored_json};
use rusqlite::params;
use std::net::IpAddr;

/// Names of which the table has the addresses.
const NAMES_MAX: i64 = 256;

/// Returns the addresses that the host found for a name; none if it looked for none.
pub fn addresses(tx: &ReadTx<'_>, name: &str) -> Result<Vec<IpAddr>, Error> {
    let sql = "SELECT addresses FROM looked_up_names WHERE name = ?1";
    Ok(tx.find(sql, [name], |row| stored_json(row, "addresses"))?.unwrap_or_default())
}

/// Sets the addresses of a name. The names whose look-up is the longest ago are forgotten beyond a bound.
pub fn put(tx: &mut WriteTx<'_>, name: &str, addresses: &[IpAddr]) -> Result<(), Error> {
    let now = tx.wall();
    tx.execute(
        "INSERT INTO looked_up_names (name, addresses, at) VALUES (?1,?2,?3) \
         ON CONFLICT (name) DO UPDATE SET addresses = excluded.addresses, at = excluded.at",
        params![name, canonical::to_string(&addresses), now],
    )?;
    let sql =
        "DELETE FROM looked_up_names WHERE name NOT IN (SELECT name FROM looked_up_names ORDER BY at DESC LIMIT ?1)";
    tx.execute(sql, [NAMES_MAX]).map(drop)
}
