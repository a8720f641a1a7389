//! Who gave a role or a token, with which token of their own, and when in the order of the ledger.
//!
//! Order goes by numbers of the ledger and never by a clock. Judges nothing. Next: `gateway::voices`.

use super::TokenId;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_state::ReadTx;
use rusqlite::{OptionalExtension, Row, params};

/// A person who gives something, and the token that they came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Giver {
    /// Who.
    pub person: PersonId,
    /// Their token; `None` where it is not known.
    pub token: Option<TokenId>,
}

impl From<PersonId> for Giver {
    fn from(person: PersonId) -> Self {
        Self { person, token: None }
    }
}

/// When something was given, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Number of its entry in the ledger; 0 for what is older than this column.
    pub seq: u64,
    /// Everybody who gave it; empty where the host did, or where it is not known.
    pub by: Vec<Giver>,
}

/// Notes who set the role of a person on this host.
pub(super) fn note_role(
    tx: &ReadTx<'_>,
    person: PersonId,
    seq: u64,
    by: Option<&Giver>,
) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE people SET role_seq = ?2, role_by = ?3 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute(params![person, seq as i64, as_pairs(by)])?;
    Ok(())
}

/// Notes who gave a token to its person.
pub(super) fn note_token(
    tx: &ReadTx<'_>,
    token: &TokenId,
    seq: u64,
    by: Option<&Giver>,
) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE tokens SET issued_seq = ?2, issued_by = ?3 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute(params![token, seq as i64, as_pairs(by)])?;
    Ok(())
}

/// Notes who gave a person a role of an agent.
pub(super) fn note_agent_role(
    tx: &ReadTx<'_>,
    agent: AgentId,
    person: PersonId,
    seq: u64,
    by: &[Giver],
) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE agent_roles SET given_seq = ?3, given_by = ?4 WHERE agent_id = ?1 AND person_id = ?2";
    tx.db().prepare_cached(sql)?.execute(params![agent, person, seq as i64, as_pairs(by)])?;
    Ok(())
}

/// Who set the role of a person on this host.
pub fn role_of_host(tx: &ReadTx<'_>, person: PersonId) -> Result<Option<Given>, ironclaw_state::Error> {
    let sql = "SELECT role_seq, role_by FROM people WHERE id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([person], given).optional()?)
}

/// Who gave a token to its person; none for a token that is no longer in the record.
pub fn token(tx: &ReadTx<'_>, token: &TokenId) -> Result<Option<Given>, ironclaw_state::Error> {
    let sql = "SELECT issued_seq, issued_by FROM tokens WHERE id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([token], given).optional()?)
}

/// Who gave a person their role of an agent, if they have one.
pub fn role_of_agent(
    tx: &ReadTx<'_>,
    agent: AgentId,
    person: PersonId,
) -> Result<Option<Given>, ironclaw_state::Error> {
    let sql = "SELECT given_seq, given_by FROM agent_roles WHERE agent_id = ?1 AND person_id = ?2";
    Ok(tx.db().prepare_cached(sql)?.query_row(params![agent, person], given).optional()?)
}

/// As the record has it: a canonical list of pairs, each of a person and a token or null.
fn as_pairs<'a>(by: impl IntoIterator<Item = &'a Giver>) -> String {
    let pairs: Vec<(PersonId, Option<String>)> =
        by.into_iter().map(|giver| (giver.person, giver.token.as_ref().map(ToString::to_string))).collect();
    canonical::to_string(&pairs)
}

fn given(row: &Row<'_>) -> rusqlite::Result<Given> {
    let seq = row.get::<_, i64>(0)? as u64;
    let text: Option<String> = row.get(1)?;
    let pairs: Vec<(PersonId, Option<String>)> = match text {
        None => Vec::new(),
        Some(text) => serde_json::from_str(&text).map_err(|_| ironclaw_state::bad("given by"))?,
    };
    let giver = |(person, token): (PersonId, Option<String>)| {
        let token = token.map(|token| token.parse()).transpose().map_err(|_| ironclaw_state::bad("given by"))?;
        Ok(Giver { person, token })
    };
    Ok(Given { seq, by: pairs.into_iter().map(giver).collect::<rusqlite::Result<_>>()? })
}
