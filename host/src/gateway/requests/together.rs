//! The decisions on more than one call: those of one output that one page shows, and the tools that only read until a turn ends.
//!
//! Approves no call that the page does not show, and none for which one yes of the person of the turn is not enough. See [`super::sheet`]
//! for the calls, and [`super::reads`] for the tools.

use super::page::together::{self, Together};
use super::reads::{self, Reads};
use super::{Row, allowance, sheet, table};
use crate::gateway::waiting::{Gateway, WaitingId, decide};
use crate::registry::{Person, Signer};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::RequestId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use std::sync::Arc;

impl Gateway {
    /// Records the approval of a person for each call of the page of several calls with this digest.
    ///
    /// # Errors
    /// Refuses another page, and as [`decide::approve`] does.
    pub async fn approve_together(
        self: &Arc<Self>,
        by: &Signer,
        id: RequestId,
        shown: Digest,
    ) -> Result<(), Denied<Error>> {
        let (all, by) = (Arc::clone(self), by.clone());
        self.decide_together("approved", move |tx| approve(tx, &all, &by, id, &shown).map(drop)).await
    }

    /// Records the approval of a person for the page with this digest, of one call or of several, and for the tools that it names until the
    /// turn ends.
    ///
    /// # Errors
    /// Refuses a page that names no such tools, a person with too many allowances, and as [`decide::approve`] does.
    pub async fn approve_until_answer(
        self: &Arc<Self>,
        by: &Signer,
        id: RequestId,
        shown: Digest,
    ) -> Result<(), Denied<Error>> {
        let (all, by) = (Arc::clone(self), by.clone());
        self.decide_together("approved", move |tx| approve_until_answer(tx, &all, &by, id, &shown)).await
    }

    /// Records the rejection of each call of a page of several calls, with a reason for the agent.
    ///
    /// # Errors
    /// Refuses a call that waits alone, and as [`decide::reject`] does.
    pub async fn reject_together(
        self: &Arc<Self>,
        by: &Signer,
        id: RequestId,
        reason: String,
    ) -> Result<(), Denied<Error>> {
        let (all, by) = (Arc::clone(self), by.clone());
        self.decide_together("rejected", move |tx| reject(tx, &all, &by, id, &reason)).await
    }

    async fn decide_together(
        &self,
        point: &'static str,
        work: impl FnOnce(&mut WriteTx<'_>) -> Result<(), Denied<Error>> + Send + 'static,
    ) -> Result<(), Denied<Error>> {
        let decided = self.record.state.decide(work).await;
        failpoint::reach(point);
        self.announce();
        decided
    }
}

/// Returns the page of the calls that wait together with this one, for a person who may see it.
///
/// # Errors
/// Refuses a call that the person may not see as unknown, and one that waits alone.
pub fn show(tx: &ReadTx<'_>, all: &Gateway, by: &Person, id: RequestId) -> Result<Together, Denied<Error>> {
    decide::seen(tx, all, by, id.into())?;
    found(tx, all, id)
}

fn found(tx: &ReadTx<'_>, all: &Gateway, id: RequestId) -> Result<Together, Denied<Error>> {
    let rows = sheet::waiting_with(tx, &all.now().policy, &row(tx, id)?)?;
    together::page(tx, all, &rows)?.ok_or_else(|| alone(id).into())
}

fn row(tx: &ReadTx<'_>, id: RequestId) -> Result<Row, Denied<Error>> {
    table::find(tx, id)?.ok_or_else(|| decide::unknown(id.into()).into())
}

fn alone(id: RequestId) -> Refusal {
    let message = format!("no other call of the same output waits together with {id}");
    Refusal::new(DenialCode::RequestAlone, message).hint(format!("decide on it alone: `ironctl inbox show {id}`"))
}

/// Approves each call of the page with the digest `shown`, and returns the page.
fn approve(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    by: &Signer,
    id: RequestId,
    shown: &Digest,
) -> Result<Together, Denied<Error>> {
    decide::seen(tx, all, &by.person, id.into())?;
    let page = found(tx, all, id)?;
    if page.digest != *shown {
        let message = format!("the calls that wait together with {id} differ from the page that was shown");
        let hint = format!("read it again: `ironctl approve {id} --together`");
        return Err(Refusal::new(DenialCode::ShownDiffers, message).hint(hint).into());
    }
    for call in &page.calls {
        decide::approve(tx, all, by, call.id.into(), &call.digest)?;
    }
    let ids: Vec<WaitingId> = page.calls.iter().map(|call| call.id.into()).collect();
    Entry::new(LedgerEvent::RequestShownTogether)
        .session(row(tx, id)?.session)
        .with("requests", canonical::to_string(&ids))
        .with("by", by.person.id)
        .with("face", by.face)
        .with("shown", page.digest)
        .append(tx)?;
    Ok(page)
}

fn approve_until_answer(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    by: &Signer,
    id: RequestId,
    shown: &Digest,
) -> Result<(), Denied<Error>> {
    decide::seen(tx, all, &by.person, id.into())?;
    let asked = row(tx, id)?;
    let policy = &all.now().policy;
    let waits_alone = sheet::waiting_with(tx, policy, &asked)?.is_empty();
    // The pages have the tools, so that a page with this digest names exactly them.
    let offered = reads::offered(tx, policy, &asked)?.filter(|_| by.person.id == asked.principal);
    let offered: Reads = offered.ok_or_else(|| not_offered(&asked))?;
    allowance::make_room(tx, &by.person)?;
    match waits_alone {
        true => decide::approve(tx, all, by, id.into(), shown)?,
        false => drop(approve(tx, all, by, id, shown)?),
    }
    allowance::add_reads(tx, &by.person, &asked, offered)?;
    Ok(())
}

fn not_offered(asked: &Row) -> Refusal {
    let message = format!("the page of {} names no tools that this person can permit until the answer", asked.id);
    Refusal::new(DenialCode::AllowanceTool, message)
        .hint(format!("approve the call alone: `ironctl approve {}`", asked.id))
}

fn reject(tx: &mut WriteTx<'_>, all: &Gateway, by: &Signer, id: RequestId, reason: &str) -> Result<(), Denied<Error>> {
    decide::seen(tx, all, &by.person, id.into())?;
    let rows = sheet::waiting_with(tx, &all.now().policy, &row(tx, id)?)?;
    if rows.is_empty() {
        return Err(alone(id).into());
    }
    for row in rows {
        decide::reject(tx, all, by, row.id.into(), reason)?;
    }
    Ok(())
}
