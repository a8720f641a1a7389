//! One yes for the reading calls of a turn: the tools of a server that only read, which the page of a request offers until the answer.
//!
//! Records nothing: [`super::allowance`] does. Offered with a request whose call only reads, and which the person of the turn can approve alone. Never covers a value for a third party that neither the
//! person typed nor the call took by reference. The turn that ends next in the task ends it, also if its message is tried again.

use super::decide;
use super::facts::standing::Standing;
use crate::registry::policy::Policy;
use crate::registry::{self, mcp};
use ironclaw_contract::canonical::Digest;
use ironclaw_judge::{Class, Principal};
use ironclaw_operator::{DenialCode, ReadsUntilAnswer};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::turns;
use ironclaw_store::tables::waiting::requests::Row;
use ironclaw_store::times::HOUR_MS;
use serde_json::Map;
use std::collections::BTreeMap;

/// The bound on the calls.
const COUNT_MAX: u32 = 20;

/// The end if no turn ends in the task, milliseconds from the yes.
pub const TIME_MS: i64 = HOUR_MS;

/// The codes of the reasons that the yes lifts.
pub const LIFTED: [DenialCode; 2] = [DenialCode::CallScope, DenialCode::CallAlwaysAsks];

/// What a yes to a request can cover beside its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    /// The server of the tools.
    pub server: String,
    /// The name of each tool on the server.
    pub names: Vec<String>,
    /// The tools with the digests of their manifests and of the standing facts of their calls.
    pub tools: BTreeMap<String, Digest>,
    /// The bound on its uses.
    pub count: u32,
}

impl From<Reads> for ReadsUntilAnswer {
    fn from(Reads { server, tools, count, .. }: Reads) -> Self {
        Self { server, tools: tools.into_keys().collect(), count }
    }
}

/// Returns what a yes to a request can cover beside its call: the tools of its server that the agent has and that only read. It covers
/// nothing for a call that needs another person too.
pub fn offered(tx: &ReadTx<'_>, policy: &Policy, row: &Row) -> Result<Option<Reads>, Error> {
    let (class, reasons) = (row.own.class, &row.own.reasons);
    if class != Class::Read || !reasons.iter().all(|reason| LIFTED.contains(&reason.code)) {
        return Ok(None);
    }
    let (rule, needs_policy) = (policy.call_rule(class, &row.tool), reasons.iter().any(|reason| reason.by_policy));
    let person = registry::person_by_id(tx, row.principal)?;
    let decides = person.is_some_and(|person| decide::decides_alone(rule, class, &person, needs_policy));
    let is_of_person = turns::find(tx, row.turn)?.is_some_and(|turn| turn.principal_kind == Principal::Person);
    let agent = registry::agent_by_id(tx, row.agent)?.filter(|_| decides && is_of_person);
    let (Some(agent), Some(asked)) = (agent, mcp::terms(tx, row.agent, &row.tool)?) else { return Ok(None) };
    let Some(server) = asked.of_server.as_ref().map(|found| found.server.clone()) else { return Ok(None) };
    let catalogue = mcp::catalogue(tx, &agent)?;
    // The tools of one server have the same standing facts.
    let standing = Standing::read(tx, agent.id, &asked, &Map::new())?;
    let mut found = Reads { server, names: Vec::new(), tools: BTreeMap::new(), count: COUNT_MAX };
    for tool in catalogue.server_tools() {
        let is_read = tool.manifest.only_reads() && tool.server == found.server;
        if let Some(terms) = catalogue.terms(&tool.manifest.name).filter(|_| is_read) {
            found.tools.insert(tool.manifest.name.clone(), standing.digest(&terms));
            found.names.push(tool.tool.clone());
        }
    }
    Ok(Some(found).filter(|found| !found.tools.is_empty()))
}
