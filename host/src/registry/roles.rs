//! placeholder until the merge
use crate::state::{self, Tx};
use ironclaw_contract::ids::{AgentId, PersonId};
/// Whether a person is an admin of an agent.
pub fn is_admin(tx: &Tx<'_>, agent: AgentId, person: PersonId) -> Result<bool, state::Error> {
    let sql = "SELECT count(*) FROM agent_roles WHERE agent_id = ?1 AND person_id = ?2 AND role = 'admin'";
    Ok(tx.db().prepare_cached(sql)?.query_row([agent.to_string(), person.to_string()], |row| row.get::<_, i64>(0))? > 0)
}
