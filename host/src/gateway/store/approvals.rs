//! What people said about a change: kept with its token until it is used up or taken back.
//!
//! Believes no token; that is done where the change is. Next: `approval`, `gateway::decide`.

use crate::approval::Token;
use ironclaw_contract::ids::{ApprovalId, ChangeId, PersonId};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ApprovalRoot;
use rusqlite::params;

/// Takes back every approval of a change that is not used.
pub fn void(tx: &ReadTx<'_>, change: ChangeId) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE approvals SET state = 'void', ended_at = ?2 WHERE change_id = ?1 AND state = 'live'";
    tx.db().prepare_cached(sql)?.execute(params![change, tx.now()])?;
    Ok(())
}

/// Takes back one approval.
pub fn void_one(tx: &ReadTx<'_>, approval: ApprovalId) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE approvals SET state = 'void', ended_at = ?2 WHERE id = ?1 AND state = 'live'";
    tx.db().prepare_cached(sql)?.execute(params![approval, tx.now()])?;
    Ok(())
}

/// Uses one approval up. False when somebody else did: then it is good for nothing.
pub fn consume(tx: &ReadTx<'_>, approval: ApprovalId) -> Result<bool, ironclaw_state::Error> {
    let sql = "UPDATE approvals SET state = 'used', ended_at = ?2 WHERE id = ?1 AND state = 'live'";
    Ok(tx.db().prepare_cached(sql)?.execute(params![approval, tx.now()])? == 1)
}

/// What somebody said about a change.
#[derive(Debug, Clone)]
pub struct Given {
    /// The approval.
    pub id: ApprovalId,
    /// Who.
    pub person: PersonId,
    /// As it is stored; not believed yet.
    pub token: String,
    /// `live used void`.
    pub state: String,
}

/// Every approval of a change, oldest first.
pub fn approvals(tx: &ReadTx<'_>, change: ChangeId) -> Result<Vec<Given>, ironclaw_state::Error> {
    let sql = "SELECT * FROM approvals WHERE change_id = ?1 ORDER BY given_at, id";
    let mut statement = tx.db().prepare_cached(sql)?;
    let given = statement.query_map([change], |row| {
        Ok(Given {
            id: row.get("id")?,
            person: row.get("person_id")?,
            token: row.get("token")?,
            state: row.get("state")?,
        })
    })?;
    Ok(given.collect::<rusqlite::Result<_>>()?)
}

/// Keeps an approval.
pub fn give(
    tx: &ReadTx<'_>,
    change: ChangeId,
    person: PersonId,
    token: &Token,
) -> Result<ApprovalId, ironclaw_state::Error> {
    let id = ApprovalId::new();
    tx.db()
        .prepare_cached(
            "INSERT INTO approvals (id, change_id, person_id, token, state, given_at) VALUES (?1,?2,?3,?4,'live',?5)",
        )?
        .execute(params![id, change, person, token.to_json(), tx.now()])?;
    Ok(id)
}

/// Brings every approval that is not used under the key of a fresh master key; returns how many there are.
pub fn rewrap(tx: &ReadTx<'_>, old: &ApprovalRoot, new: &ApprovalRoot) -> Result<u64, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT id, token FROM approvals WHERE state = 'live'")?;
    let found: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    drop(statement);
    let mut count = 0;
    for (id, token) in found {
        // One that does not verify now would not under the fresh key either, and stays what it is: refused when it is used.
        let Ok(passed) = Token::from_json(&token).and_then(|token| token.pass(old, new)) else { continue };
        tx.db().execute("UPDATE approvals SET token = ?2 WHERE id = ?1", [&id, &passed.to_json()])?;
        count += 1;
    }
    Ok(count)
}
