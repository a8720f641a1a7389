//! The granted directories in an agent's jail.

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::agent_name;
use crate::registry::mounts::{Mount, list_for_agent, own};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables;

/// Replaces all mounts of an agent.
///
/// # Errors
/// Errors of the record, and a source that is not UTF-8, because the record would show another path.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    mounts: &[Mount],
) -> Result<(), ironclaw_state::Error> {
    let before = as_text(&list_for_agent(tx, agent)?);
    tables::sessions::mark_uids_shared(tx, agent)?;
    tables::agents::replace_mounts(tx, agent, mounts)?;
    let name = agent_name(tx, agent)?;
    let writable = mounts.iter().filter(|mount| !mount.read_only).filter_map(|mount| mount.source.to_str());
    own::record_written(tx, &format!("agent {name}"), writable)?;
    changed_entry(LedgerEvent::AgentMounts, approved, agent, before.as_bytes(), as_text(mounts).as_bytes())
        .append(tx)?;
    Ok(())
}

fn as_text(mounts: &[Mount]) -> String {
    let text = |mount: &Mount| {
        let mine = mount.mine.map(|person| format!("mine {person}"));
        let parts = [mount.source.display().to_string(), mount.target.clone(), mount.read_only.to_string()];
        parts.into_iter().chain(mine).collect::<Vec<_>>()
    };
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
        let mount = |target: &str, read_only| Mount {
            source: "/srv/x".into(),
            target: target.to_owned(),
            read_only,
            mine: None,
        };
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
                    tx.execute(sql, [agent.to_string()])?;
                }
                set(tx, &Approved::by_test(PersonId::new()), first, &two)?;
                let both = list_for_agent(tx, first)?;
                set(tx, &Approved::by_test(PersonId::new()), first, &one)?;
                let mut noted = 0;
                ironclaw_ledger::chain::walk(tx, 0, |entry| {
                    noted += usize::from(entry.canonical.contains("\"agent.mounts\""));
                    Ok::<_, ironclaw_state::Error>(())
                })?;
                assert_eq!(noted, 2, "each change of the mounts is in the ledger");
                Ok::<_, ironclaw_state::Error>((both, list_for_agent(tx, first)?, list_for_agent(tx, other)?))
            };
            let found = state.write(work).await.expect("written");
            state.close().await;
            found
        });
        assert_eq!(found, (vec![mount("/a", true), mount("/b", false)], vec![mount("/c", true)], Vec::new()));
    }
}
