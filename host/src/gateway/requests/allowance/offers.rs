//! Offers of allowances: repetitions that a person approved on several days, and never rejected.
//!
//! Makes no allowance. Each offer fits the rules of a new allowance and is compared with the requests in the record. See [`super::add`].

use super::super::page::arguments;
use super::coverage::{New, check, control_fields, covering};
use super::page::{Compared, compare, has_lifted_reasons};
use crate::registry::{self, Person, mcp};
use ironclaw_contract::ids::{AgentId, MessageId};
use ironclaw_judge::egress::Loopback;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::waiting::requests::{self, Row};
use ironclaw_store::times::DAY_MS;
use ironclaw_text::shell::quoted;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The messages, and the days, of which an offer needs decisions.
const DECISIONS_MIN: usize = 3;

/// The uses that an offer names.
const COUNT: u32 = 5;

/// The end that an offer names, as a duration.
pub const UNTIL: &str = "7d";

/// The same in milliseconds.
const TIME_MS: i64 = 7 * DAY_MS;

/// The approved requests that offers are made from, the newest.
const READ_MAX: usize = 500;

/// An offer of an allowance.
#[derive(Debug, Clone)]
pub struct Offer {
    pub new: New,
    /// The typed messages whose calls the person approved.
    pub messages: usize,
    /// The days of these decisions, UTC.
    pub days: usize,
    /// The comparison with earlier requests.
    pub compared: Compared,
}

/// The approved calls with equal control fields.
#[derive(Default)]
struct Repeated {
    messages: BTreeSet<MessageId>,
    days: BTreeSet<i64>,
    fields: Map<String, Value>,
}

/// Returns the offers for a person, by agent and tool.
pub fn offers(tx: &ReadTx<'_>, record: &Record, by: &Person, loopback: Loopback) -> Result<Vec<Offer>, Error> {
    let mut repeated: BTreeMap<(AgentId, String, String), Repeated> = BTreeMap::new();
    for row in requests::approved_by_own_person(tx, by.id, READ_MAX)? {
        let Some(fields) = fixed_fields(tx, record, &row)? else { continue };
        let key = (row.agent, row.tool.clone(), ironclaw_contract::canonical::to_string(&fields));
        let same = repeated.entry(key).or_default();
        same.messages.insert(row.root);
        same.days.insert(row.created_at.div_euclid(DAY_MS));
        same.fields = fields;
    }
    let mut offers = Vec::new();
    for ((agent, tool, _), same) in repeated {
        let (messages, days) = (same.messages.len(), same.days.len());
        if messages < DECISIONS_MIN || days < DECISIONS_MIN {
            continue;
        }
        let Some(agent) = registry::agent_by_id(tx, agent)? else { continue };
        let until = tx.wall() + TIME_MS;
        let new = New { agent, tool, fields: same.fields, count: COUNT, until, loopback };
        match compared(tx, record, by, &new) {
            Ok(Some(compared)) => offers.push(Offer { new, messages, days, compared }),
            Ok(None) | Err(Denied::Refused(_)) => {}
            Err(Denied::Failed(error)) => return Err(error),
        }
    }
    Ok(offers)
}

/// Returns the control fields of a request that an allowance could have covered.
pub fn fixed_fields(tx: &ReadTx<'_>, record: &Record, row: &Row) -> Result<Option<Map<String, Value>>, Error> {
    let terms = mcp::terms(tx, row.agent, &row.tool)?.filter(|_| has_lifted_reasons(row));
    let Some(terms) = terms else { return Ok(None) };
    // The arguments of an erased or a damaged request are gone.
    let Ok(mut arguments) = arguments(tx, record, row) else { return Ok(None) };
    arguments.retain(|name, _| control_fields(&terms.manifest).any(|control| control == name));
    Ok(Some(arguments))
}

/// Compares an allowance that its person could add with the requests in the record. Returns `None` for one that no allowance may have, or
/// that an allowance covers already.
///
/// # Errors
/// Refuses one that would have let a rejected request through.
pub fn compared(tx: &ReadTx<'_>, record: &Record, by: &Person, new: &New) -> Result<Option<Compared>, Denied<Error>> {
    let Ok(terms) = check(new, &mcp::catalogue(tx, &new.agent)?, tx.wall()) else { return Ok(None) };
    if !covering(tx, by.id, new.agent.id, &terms, &new.fields)?.is_empty() {
        return Ok(None);
    }
    compare(tx, record, by, new, &terms.manifest).map(Some)
}

/// Returns the command that adds an allowance with these control fields, up to its count and its end.
pub fn command(agent: &str, tool: &str, fields: &Map<String, Value>) -> String {
    let mut command = format!("ironctl allowance add {agent} {tool}");
    for (name, value) in fields {
        let written = match value {
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        };
        command.push_str(&format!(" --field {}", quoted(&written)));
    }
    command
}
