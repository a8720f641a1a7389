//! Approvals in the record, each with its token until it is used or taken back.
//!
//! Verifies no token; [`crate::gateway::decide`] does that. See [`crate::gateway::approval`].

use crate::gateway::approval::Token;
use ironclaw_contract::ids::{ApprovalId, PersonId};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::ApprovalRoot;
use ironclaw_store::tables::changes;
use rusqlite::ToSql;

/// Records an approval of a change or a request.
pub fn add_approval(
    tx: &mut WriteTx<'_>,
    subject: impl ToSql,
    person: PersonId,
    token: &Token,
) -> Result<ApprovalId, ironclaw_state::Error> {
    let id = ApprovalId::new();
    changes::insert_approval(tx, id, subject, person, &token.to_json())?;
    Ok(id)
}

/// Authenticates every unused approval with the key of a new master key, and returns their number.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &ApprovalRoot, new: &ApprovalRoot) -> Result<u64, ironclaw_state::Error> {
    let mut count = 0;
    for live in changes::live_tokens(tx)? {
        // A token that the old key did not make stays unchanged, and is refused when it is used.
        let Ok(rekeyed) = Token::from_json(&live.token).and_then(|token| token.rekey(old, new)) else { continue };
        changes::set_token(tx, live.id, &rekeyed.to_json())?;
        count += 1;
    }
    Ok(count)
}
