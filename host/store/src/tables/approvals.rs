//! The approvals of what waits for people. Tables: `approvals`.

use super::waiting::WaitingId;
use crate::rows::rows;
use ironclaw_contract::ids::{ApprovalId, PersonId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

ironclaw_contract::words! {
    /// The state of an approval.
    pub enum ApprovalState {
        Live = "live",
        Used = "used",
        /// Its subject ended, or its person lost the right to approve.
        Void = "void",
    }
}

ironclaw_contract::stored_as_text!(ApprovalState);

rows! {
    #[derive(Debug, Clone)]
    pub struct Approval {
        pub id: ApprovalId,
        /// The person who approved.
        pub person: PersonId = "person_id",
        /// The stored token, not verified yet.
        pub token: String,
        pub state: ApprovalState,
    }
}

/// Returns every approval of a subject, oldest first.
pub fn list(tx: &ReadTx<'_>, subject: WaitingId) -> Result<Vec<Approval>, Error> {
    let sql = "SELECT * FROM approvals WHERE subject = ?1 ORDER BY given_at, id";
    tx.list(sql, [subject], Approval::read)
}

pub fn insert(tx: &mut WriteTx<'_>, subject: WaitingId, person: PersonId, token: &str) -> Result<ApprovalId, Error> {
    let (id, now) = (ApprovalId::new(), tx.now());
    let sql = "INSERT INTO approvals (id, subject, person_id, token, state, given_at) VALUES (?1,?2,?3,?4,'live',?5)";
    tx.execute(sql, params![id, subject, person, token, now])?;
    Ok(id)
}

/// Marks an approval as used, and returns whether it was live before.
pub fn mark_used(tx: &mut WriteTx<'_>, approval: ApprovalId) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE approvals SET state = 'used', ended_at = ?2 WHERE id = ?1 AND state = 'live'";
    Ok(tx.execute(sql, params![approval, now])? == 1)
}

/// Voids an approval, unless it is used.
pub fn void(tx: &mut WriteTx<'_>, approval: ApprovalId) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE approvals SET state = 'void', ended_at = ?2 WHERE id = ?1 AND state = 'live'";
    tx.execute(sql, params![approval, now]).map(drop)
}

/// Voids every unused approval of a subject.
pub fn void_for_subject(tx: &mut WriteTx<'_>, subject: WaitingId) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE approvals SET state = 'void', ended_at = ?2 WHERE subject = ?1 AND state = 'live'";
    tx.execute(sql, params![subject, now]).map(drop)
}

/// Voids every unused approval of the host.
pub fn void_all(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    let now = tx.now();
    tx.execute("UPDATE approvals SET state = 'void', ended_at = ?1 WHERE state = 'live'", [now]).map(drop)
}

/// Returns every unused approval of the host.
pub fn list_live(tx: &ReadTx<'_>) -> Result<Vec<Approval>, Error> {
    tx.list("SELECT * FROM approvals WHERE state = 'live'", [], Approval::read)
}

/// Returns the subjects that wait and have an unused approval.
pub fn partially_approved(tx: &ReadTx<'_>) -> Result<Vec<WaitingId>, Error> {
    let sql = "SELECT DISTINCT waiting.id FROM approvals JOIN waiting ON waiting.id = approvals.subject \
               WHERE state = 'live' AND status IN ('pending','doubtful')";
    tx.list(sql, [], |row| row.get(0))
}

pub fn set_token(tx: &mut WriteTx<'_>, approval: ApprovalId, token: &str) -> Result<(), Error> {
    tx.execute("UPDATE approvals SET token = ?2 WHERE id = ?1", params![approval, token]).map(drop)
}
