//! The calls of one output that wait together: they differ in nothing but their values, so one page can show them all.
//!
//! Only reasons that the person of the turn can remove alone are removed for several calls by one yes, and none of a call that runs code or
//! buys something.

use super::decide;
use crate::registry::policy::Policy;
use crate::registry::{self, mcp};
use ironclaw_judge::Class;
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::tables::waiting::Status;
use ironclaw_store::tables::waiting::requests::{self, Row};
use std::collections::BTreeMap;

/// Returns the requests of an output that one page can show with this one, in their order and this one among them; none if it is alone.
pub fn waiting_with(tx: &ReadTx<'_>, policy: &Policy, row: &Row) -> Result<Vec<Row>, Error> {
    if row.status != Status::Pending {
        return Ok(Vec::new());
    }
    let ids = requests::list_for_output(tx, row.session, row.output)?;
    if ids.len() < 2 || !is_decided_alone(tx, policy, row)? {
        return Ok(Vec::new());
    }
    let (mut all, mut stale) = (Vec::new(), BTreeMap::new());
    for id in ids {
        let Some(other) = requests::find(tx, id)? else { continue };
        let waits = other.status == Status::Pending && other.expires_at > tx.wall();
        if !waits || !is_like(tx, row, &other)? || !is_decided_alone(tx, policy, &other)? {
            continue;
        }
        // The requests of one output differ in their tools alone.
        let is_stale = match stale.get(&other.tool) {
            Some(known) => *known,
            None => decide::why_stale(tx, &other)?.is_some(),
        };
        stale.insert(other.tool.clone(), is_stale);
        if !is_stale {
            all.push(other);
        }
    }
    let has_others = all.len() > 1 && all.iter().any(|other| other.id == row.id);
    Ok(if has_others { all } else { Vec::new() })
}

/// Returns whether one yes of the person of the turn is enough for a call.
fn is_decided_alone(tx: &ReadTx<'_>, policy: &Policy, row: &Row) -> Result<bool, Error> {
    let class = row.own.class;
    let needs_policy = row.own.reasons.iter().any(|reason| reason.by_policy);
    let person = registry::person_by_id(tx, row.principal)?;
    let decides = |person| decide::decides_alone(policy.call_rule(class, &row.tool), class, &person, needs_policy);
    Ok(!matches!(class, Class::Exec | Class::Trade) && person.is_some_and(decides))
}

/// Returns whether two requests have the same reasons and the same tool, or only read at the same server.
fn is_like(tx: &ReadTx<'_>, one: &Row, other: &Row) -> Result<bool, Error> {
    if one.own.class != other.own.class || one.own.reasons != other.own.reasons {
        return Ok(false);
    }
    let server = |row: &Row| {
        let terms = mcp::terms(tx, row.agent, &row.tool)?;
        Ok::<_, Error>(terms.and_then(|terms| terms.of_server).map(|of_server| of_server.server))
    };
    let is_read = one.own.class == Class::Read;
    Ok(one.tool == other.tool || is_read && server(one)?.is_some_and(|of| server(other).is_ok_and(|at| at == Some(of))))
}
