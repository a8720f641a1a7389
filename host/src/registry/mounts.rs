//! Directories of the host that an agent's jail has: what people granted, as it stands in the record.
//!
//! Never says whether one may be granted, and never looks at a disk. Next: `runtime::launch`, which mounts them.

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::params;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A directory of the host in an agent's jail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Where it is in the jail: `/` and one name.
    pub target: String,
    /// Whether the agent can only read it.
    pub read_only: bool,
}

/// The mounts of an agent, by target.
pub fn of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Mount>, ironclaw_state::Error> {
    let sql = "SELECT source, target, read_only FROM agent_mounts WHERE agent_id = ?1 ORDER BY target";
    let mut statement = tx.db().prepare_cached(sql)?;
    let mounts = statement.query_map([agent], |row| {
        Ok(Mount { source: row.get::<_, String>(0)?.into(), target: row.get(1)?, read_only: row.get(2)? })
    })?;
    Ok(mounts.collect::<rusqlite::Result<_>>()?)
}

/// Puts these in the place of all mounts of an agent.
///
/// # Errors
/// Also for a source that is not UTF-8, because the record would show another one.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    mounts: &[Mount],
) -> Result<(), ironclaw_state::Error> {
    let before = as_text(&of(tx, agent)?);
    note_shared_uids(tx, agent)?;
    tx.db().prepare_cached("DELETE FROM agent_mounts WHERE agent_id = ?1")?.execute([agent])?;
    let sql = "INSERT INTO agent_mounts (agent_id, target, source, read_only) VALUES (?1, ?2, ?3, ?4)";
    for mount in mounts {
        let source = std::str::from_utf8(mount.source.as_os_str().as_bytes())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        let mut insert = tx.db().prepare_cached(sql)?;
        insert.execute(params![agent, mount.target, source, mount.read_only])?;
    }
    changed_entry(LedgerEvent::AgentMounts, approved, agent, before.as_bytes(), as_text(mounts).as_bytes())
        .append(tx)?;
    Ok(())
}

/// Notes for the sessions of an agent that can write to a granted directory that files there may belong to their uids. Is called before
/// the grants go.
pub(super) fn note_shared_uids(tx: &ReadTx<'_>, agent: AgentId) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE sessions SET uid_shared = 1 WHERE agent_id = ?1 \
               AND EXISTS (SELECT 1 FROM agent_mounts WHERE agent_id = ?1 AND read_only = 0)";
    tx.db().prepare_cached(sql)?.execute([agent])?;
    Ok(())
}

fn as_text(mounts: &[Mount]) -> String {
    let text = |mount: &Mount| [mount.source.display().to_string(), mount.target.clone(), mount.read_only.to_string()];
    canonical::to_string(&mounts.iter().map(text).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::PersonId;
    use ironclaw_contract::seam::crypt::SessionKey;
    use ironclaw_ledger::Entry;
    use ironclaw_state::State;

    #[test]
    fn mounts_of_an_agent_are_replaced_as_a_whole_and_private() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mount = |target: &str, read_only| Mount { source: "/srv/x".into(), target: target.to_owned(), read_only };
        let (two, one) = ([mount("/a", true), mount("/b", false)], [mount("/c", true)]);
        let (first, other) = (AgentId::new(), AgentId::new());
        let found = runtime.block_on(async {
            let path = directory.path().join("state.db");
            State::create(&path).expect("made");
            let state = State::open(&path, &SessionKey::new([7; 32])).expect("it opens");
            let work = move |tx: &mut WriteTx<'_>| {
                Entry::new(LedgerEvent::LedgerOpened).append(tx)?;
                for agent in [first, other] {
                    let sql = "INSERT INTO agents (id, name, model, persona, enabled_tools, mode, created_at) \
                               VALUES (?1, ?1, 'scripted', '', '[]', 'enforce', 0)";
                    tx.db().execute(sql, [agent.to_string()])?;
                }
                set(tx, &Approved::by_test(PersonId::new()), first, &two)?;
                let both = of(tx, first)?;
                set(tx, &Approved::by_test(PersonId::new()), first, &one)?;
                let mut noted = 0;
                ironclaw_ledger::chain::walk(tx, 0, |entry| {
                    noted += usize::from(entry.canonical.contains("\"agent.mounts\""));
                    Ok::<_, ironclaw_state::Error>(())
                })?;
                assert_eq!(noted, 2, "each change of them is noted");
                Ok::<_, ironclaw_state::Error>((both, of(tx, first)?, of(tx, other)?))
            };
            let found = state.write(work).await.expect("written");
            state.close().await;
            found
        });
        assert_eq!(found, (vec![mount("/a", true), mount("/b", false)], vec![mount("/c", true)], Vec::new()));
    }
}
