//! Allowances: consents to several calls that would need the person of their turn, each with a count and an end.
//!
//! One kind is for calls of a tool with fixed control fields, up to a time. The other one is for the tools of a server that only read, up to
//! the answer of a task ([`super::reads`]). Never counts a use itself: [`super::use_approvals`] does, in the transaction that marks the call as
//! running.

mod coverage;
mod given;
mod offers;
mod page;

pub use coverage::{
    Calling, New, TIME_MS_MAX, USES_MAX, control_fields, count_use, covering, is_lifted, is_lifted_by_any, lifted,
    lifts_all, refused_tool, status, status_now, usable,
};
pub use given::read_texts;
pub use offers::{Offer, UNTIL, command, compared, fixed_fields, offers};
pub use page::{Shown, show};

use super::reads::{self, Reads};
use crate::registry::allowances::{self, Allowance};
use crate::registry::{self, Person, Role, mcp};
use coverage::is_current;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_ledger::Entry;
use ironclaw_operator::{AllowanceStatus, Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::waiting::requests::Row;
use ironclaw_text::excerpt::quoted;
use serde_json::Map;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The bound on the active allowances of a person.
const OF_PERSON_MAX: usize = 32;

/// Returns the bound on the allowances of a person, with their count.
pub fn bound(tx: &ReadTx<'_>, person: &Person) -> Result<Bound, ironclaw_state::Error> {
    let now = tx.wall();
    let own = allowances::allowances(tx)?.into_iter().filter(|held| held.person == person.id);
    Ok(bound_of_person(person, own.filter(|held| status(held, now) == AllowanceStatus::Active).count()))
}

fn bound_of_person(person: &Person, active: usize) -> Bound {
    let name = format!("allowances of {}", person.name);
    Bound::new(name, OF_PERSON_MAX, active, "remove one: `ironctl allowance remove ID`")
}

/// Records an allowance of a person for their own turns, exactly as the page with the digest `shown` has it.
///
/// # Errors
/// Refuses bounds, tools and fields that no allowance has, another page, and an allowance that would have let a rejected call through.
pub fn add(
    tx: &mut WriteTx<'_>,
    record: &Record,
    by: &Person,
    new: &New,
    shown: &Digest,
) -> Result<Allowance, Denied<Error>> {
    // Read again: the person may have been removed while the request was in flight.
    let Some(by) = registry::person_by_id(tx, by.id)? else {
        return Err(Refusal::new(DenialCode::PersonUnknown, "the person no longer exists").into());
    };
    let page = show(tx, record, &by, new)?;
    if page.digest != *shown {
        let refusal = Refusal::new(DenialCode::ShownDiffers, "the allowance differs from the page that was shown");
        return Err(refusal.hint("read it again: `ironctl allowance add`").into());
    }
    make_room(tx, &by)?;
    let made = Allowance {
        id: 0,
        person: by.id,
        agent: new.agent.id,
        tools: BTreeMap::from([(new.tool.clone(), page.manifest)]),
        fields: new.fields.clone(),
        root: None,
        uses_max: new.count,
        uses: 0,
        created_at: tx.wall(),
        expires_at: new.until,
    };
    Ok(insert(tx, made)?)
}

/// Records what a person permitted with the yes to a request, until the turn ends.
pub(super) fn add_reads(
    tx: &mut WriteTx<'_>,
    by: &Person,
    row: &Row,
    offered: Reads,
) -> Result<Allowance, ironclaw_state::Error> {
    let now = tx.wall();
    let Reads { tools, count, .. } = offered;
    let made = Allowance {
        id: 0,
        person: by.id,
        agent: row.agent,
        tools,
        fields: Map::new(),
        root: Some(row.root),
        uses_max: count,
        uses: 0,
        created_at: now,
        expires_at: now + reads::TIME_MS,
    };
    insert(tx, made)
}

/// Ends the allowances of a person that permit nothing any longer.
///
/// # Errors
/// Refuses the next one if the person has their number of active allowances.
pub(super) fn make_room(tx: &mut WriteTx<'_>, by: &Person) -> Result<(), Denied<Error>> {
    let (now, mut active) = (tx.wall(), 0);
    for held in allowances::allowances(tx)?.into_iter().filter(|held| held.person == by.id) {
        match status(&held, now) {
            AllowanceStatus::Active => active += 1,
            why => allowances::end(tx, &held, None, why.name())?,
        }
    }
    if active >= OF_PERSON_MAX {
        return Err(Refusal::over(DenialCode::AllowanceTooMany, bound_of_person(by, active)).into());
    }
    Ok(())
}

/// Records a new allowance with its ledger entry, and returns it with its number.
fn insert(tx: &mut WriteTx<'_>, new: Allowance) -> Result<Allowance, ironclaw_state::Error> {
    let made = Allowance { id: allowances::insert_allowance(tx, &new)?, ..new };
    let mut entry = Entry::new(LedgerEvent::AllowanceAdded)
        .with("allowance", made.id)
        .with("person", made.person)
        .with("agent", made.agent)
        .with("tools", allowances::tools(&made))
        .with("manifests", Digest::of(&canonical::to_vec(&made.tools)))
        .with("digest", Digest::of(&canonical::to_vec(&made.fields)))
        .with("count", made.uses_max)
        .with("expires", made.expires_at);
    if let Some(root) = made.root {
        entry = entry.with("until_answer_to", root);
    }
    entry.append(tx)?;
    Ok(made)
}

/// Returns the allowance of this number, if a person may see it: its own person, admins and owners.
///
/// # Errors
/// Refuses any other one as unknown.
pub fn known(tx: &ReadTx<'_>, by: &Person, id: i64) -> Result<Allowance, Denied<Error>> {
    let found = seen(tx, by)?.into_iter().find(|allowance| allowance.id == id);
    found.ok_or_else(|| unknown(id).into())
}

/// Returns the refusal of a number that no allowance has.
pub fn unknown(id: impl Display) -> Refusal {
    let refusal = Refusal::new(DenialCode::AllowanceUnknown, format!("there is no allowance {}", quoted(id)));
    refusal.hint("`ironctl allowance list` shows the allowances")
}

/// Returns the allowances that a person may see.
pub fn seen(tx: &ReadTx<'_>, by: &Person) -> Result<Vec<Allowance>, ironclaw_state::Error> {
    let mut all = allowances::allowances(tx)?;
    all.retain(|allowance| allowance.person == by.id || matches!(by.role, Role::Owner | Role::Admin));
    Ok(all)
}

/// Removes an allowance that a person may see.
///
/// # Errors
/// Refuses any other one as unknown.
pub fn remove(tx: &mut WriteTx<'_>, by: &Person, id: i64) -> Result<Allowance, Denied<Error>> {
    let found = known(tx, by, id)?;
    allowances::end(tx, &found, Some(by.id), "removed by a person")?;
    Ok(found)
}

/// Removes the allowances whose tools have other manifests now, or whose standing facts are others.
pub fn end_outdated(tx: &mut WriteTx<'_>) -> Result<(), ironclaw_state::Error> {
    let mut outdated = Vec::new();
    for allowance in allowances::allowances(tx)? {
        let mut is_outdated = true;
        for tool in allowance.tools.keys() {
            let terms = mcp::terms(tx, allowance.agent, tool)?;
            is_outdated &= terms.map(|terms| is_current(tx, &allowance, &terms)).transpose()? != Some(true);
        }
        if is_outdated {
            outdated.push(allowance.id);
        }
    }
    allowances::end_outdated(tx, |allowance| !outdated.contains(&allowance.id))
}
