//! The execution of calls that the host runs: requests to hosts of the network, commands that reach the network, messages to
//! destinations, and calls of tools of MCP servers.
//!
//! A call is judged again at the moment of its effect, its approvals are used up, and it is marked as running with its ledger entries,
//! all in one transaction; then it runs once. A crash after that leaves an unknown outcome, and never a second request. See
//! [`crate::gateway::requests`] for the approvals, and [`crate::turns::calls::http`] for the arguments.

mod effect;
pub mod facts;
mod flows;
pub mod late;
mod own_answer;
mod release;
mod returned;
mod run;
mod send;

use crate::gateway::requests;
use crate::gateway::waiting::Gateway;
use crate::reach::jail_network::{Authority, Fetchers};
use crate::reach::mcp::Servers;
use crate::reach::network_command::CommandJails;
use crate::reach::skills::Skills;
use crate::registry::latch::Latch;
use crate::registry::live_settings::Live;
use crate::registry::tools::{self, OutsideTool};
use crate::turns::calls::{self, Call, CallRow, ResultBody, ResultTarget};
use crate::turns::context::OutputBody;
use crate::turns::items;
use crate::turns::open_turns::OpenTurns;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, SessionId, TurnId};
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::provenance::{Labelled, Labels, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::deliveries;
use std::sync::Arc;

/// Runs the calls that the host runs.
pub struct Executor {
    pub record: Arc<Record>,
    /// Have the progress of the calls.
    pub turns: Arc<OpenTurns>,
    /// Have `[egress]`.
    pub settings: Arc<Live>,
    /// The emergency stop, which prevents effects.
    pub latch: Arc<Latch>,
    pub gateway: Arc<Gateway>,
    pub fetchers: Arc<Fetchers>,
    /// The authority of the gateways of commands.
    pub authority: Arc<Authority>,
    pub skills: Arc<Skills>,
    pub servers: Arc<Servers>,
    /// Make the jails of commands that reach the network.
    pub command_jails: Arc<dyn CommandJails>,
    /// The bound on the number of sessions: a message to another agent may need a new one.
    pub sessions_max: u32,
}

/// A call and its place.
#[derive(Clone)]
pub struct Place {
    pub session: SessionId,
    /// The turn that made the call.
    pub turn: TurnId,
    pub call: CallId,
    /// The key of the session's contents.
    pub key: Arc<ContentKey>,
}

/// The time at which a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Its turn waits for the result.
    InTurn,
    /// The model knows that it waited, so the result opens a follow-up turn.
    Late,
}

impl Executor {
    /// Records the result of a call that the host made as an item of its turn, with the end of the call and of its request. Returns the
    /// digest of the item.
    fn record_ended(
        &self,
        tx: &mut WriteTx<'_>,
        place: &Place,
        row: &CallRow,
        result: &ResultBody,
    ) -> Result<Digest, Error> {
        let author = Author::Tool { tool: row.tool.clone() };
        let provenance = match tools::outside(&row.tool).is_some_and(OutsideTool::sends) {
            true => Provenance::HostAbout { output: recorded(tx, row, &place.key)?.labels },
            false => self.provenance(tx, place, row, result)?,
        };
        let labelled = Labelled::new(result, provenance);
        let item = calls::record_result(tx, &self.target(place), row.id, &row.tool, author, labelled)?;
        calls::settle(tx, row.id, item.tuple.item, result.outcome)?;
        requests::finish(tx, row.id, result.outcome)?;
        deliveries::set_state_of_call(tx, row.id)?;
        Ok(item.tuple.digest)
    }

    fn target<'a>(&'a self, place: &'a Place) -> ResultTarget<'a> {
        let Place { session, turn, key, .. } = place;
        ResultTarget { session: *session, turn: *turn, key, sealer: &self.record.sealer }
    }
}

/// Returns the recorded arguments of a call, exactly those that were hashed, with the labels of its output.
pub(in crate::calls) fn recorded(tx: &ReadTx<'_>, row: &CallRow, key: &ContentKey) -> Result<Labelled<Call>, Error> {
    let damaged = || ironclaw_state::Error::Stored(format!("the output of {} is damaged", row.id));
    let output = items::find(tx, row.output)?.ok_or_else(damaged)?;
    let body: OutputBody = serde_json::from_str(&items::body(tx, &output, key)?).map_err(|_| damaged())?;
    let call = body.calls.into_iter().find(|call| call.call_id == row.id).ok_or_else(damaged)?;
    if calls::digest(&call.tool, &call.arguments) != row.digest {
        return Err(damaged().into());
    }
    Ok(Labelled { value: call, labels: Labels::recorded(&output.tuple.labels) })
}

/// Records in the ledger that the host made a call.
fn ran(tx: &mut WriteTx<'_>, place: &Place, row: &CallRow, result: &ResultBody, digest: Digest) -> Result<(), Error> {
    let ran = entry(LedgerEvent::CallRan, place, row).with("ok", result.is_ok());
    ran.with("outcome", result.outcome.name()).with("digest", digest).append(tx)?;
    Ok(())
}

fn entry(event: LedgerEvent, place: &Place, row: &CallRow) -> Entry {
    Entry::new(event).session(place.session).turn(place.turn).with("call", row.id).with("tool", row.tool.clone())
}
