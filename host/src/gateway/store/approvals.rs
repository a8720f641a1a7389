//! What people said about a change: kept with its token until it is used up or taken back.
//!
//! Believes no token; that is done where the change is. Next: `approval`, `gateway::decide`.

use crate::approval::Token;
use crate::tables::changes;
use ironclaw_contract::ids::{ApprovalId, ChangeId, PersonId};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::ApprovalRoot;

/// Keeps an approval.
pub fn give(
    tx: &mut WriteTx<'_>,
    change: ChangeId,
    person: PersonId,
    token: &Token,
) -> Result<ApprovalId, ironclaw_state::Error> {
    let id = ApprovalId::new();
    changes::insert_approval(tx, id, change, person, &token.to_json())?;
    Ok(id)
}

/// Brings every approval that is not used under the key of a fresh master key; returns how many there are.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &ApprovalRoot, new: &ApprovalRoot) -> Result<u64, ironclaw_state::Error> {
    let mut count = 0;
    for live in changes::live_tokens(tx)? {
        // One that does not verify now would not under the fresh key either, and stays what it is: refused when it is used.
        let Ok(passed) = Token::from_json(&live.token).and_then(|token| token.pass(old, new)) else { continue };
        changes::set_token(tx, live.id, &passed.to_json())?;
        count += 1;
    }
    Ok(count)
}
