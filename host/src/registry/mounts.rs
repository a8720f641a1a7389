//! Directories of the host in an agent's jail.
//!
//! Never says whether one may be there: `gateway::checks` does, and a person. Next: `launcher`.

use crate::state::{self, Tx};
use ironclaw_contract::ids::AgentId;
use rusqlite::{Row, params};

/// A directory of the host in an agent's jail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute path on the host.
    pub source: String,
    /// Where it is in the jail: `/` and one name.
    pub target: String,
    /// Whether the agent can only read it.
    pub read_only: bool,
}

/// The mounts of an agent, by target.
pub fn of(tx: &Tx<'_>, agent: AgentId) -> Result<Vec<Mount>, state::Error> {
    let sql = "SELECT source, target, read_only FROM agent_mounts WHERE agent_id = ?1 ORDER BY target";
    let mut statement = tx.db().prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        Ok(Mount { source: row.get("source")?, target: row.get("target")?, read_only: row.get("read_only")? })
    };
    let mounts = statement.query_map([agent.to_string()], read)?.collect::<rusqlite::Result<_>>()?;
    Ok(mounts)
}

/// Says which mounts an agent has from now on.
pub fn set(tx: &mut Tx<'_>, agent: AgentId, mounts: &[Mount]) -> Result<(), state::Error> {
    let db = tx.db();
    db.execute("DELETE FROM agent_mounts WHERE agent_id = ?1", [agent.to_string()])?;
    let mut insert =
        db.prepare_cached("INSERT INTO agent_mounts (agent_id, target, source, read_only) VALUES (?1,?2,?3,?4)")?;
    for mount in mounts {
        insert.execute(params![agent.to_string(), mount.target, mount.source, mount.read_only])?;
    }
    Ok(())
}
