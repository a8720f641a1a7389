//! The values of an MCP server: what agents sent to it, and what it returned at the result paths of its tools.
//!
//! What is sent is recorded before it is sent, so no answer can be older than the record. Mints no label for a server whose tools people
//! have not confirmed since the last restore: the restored record does not have everything that was sent. See
//! [`ironclaw_judge::inputs::returned`].

use super::{Executor, Place};
use crate::calls::executor::effect::ServerCall;
use crate::registry::mcp;
use crate::registry::tools::catalogue::ServerTool;
use crate::sessions::store;
use crate::turns::calls::{CallOutcome, CallRow, ResultBody};
use crate::turns::items::OfAnswer;
use ironclaw_judge::inputs::Input;
use ironclaw_judge::inputs::returned::{Known, returned};
use ironclaw_judge::manifest::results::{ResultPath, argument_name};
use ironclaw_judge::provenance::sent;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::{facts, server_values};
use ironclaw_text::{lookalike, visible};
use serde_json::Value;
use std::sync::Arc;

/// Records the values that a call sends to its server, by argument. Those that a person typed count as set by no agent.
pub(super) fn record_sent(tx: &mut WriteTx<'_>, call: &ServerCall, bound: &[Input]) -> Result<(), Error> {
    let (server, tool) = call.name_on_server();
    let mut arguments = Value::Object(call.arguments().clone());
    for input in bound {
        if let Some(value) = arguments.pointer_mut(&input.at) {
            server_values::insert_known(tx, server, &sent::wholes(&value.take()))?;
        }
    }
    for (argument, value) in arguments.as_object().into_iter().flatten() {
        server_values::insert_sent(tx, server, &argument_name(tool, argument), &sent::sent(value))?;
    }
    Ok(())
}

/// What the record has of a server.
struct OfServer<'a, 'tx> {
    tx: &'a ReadTx<'tx>,
    server: &'a str,
}

impl Known for OfServer<'_, '_> {
    type Error = Error;

    fn is_sent(&self, text: &str, path: &ResultPath) -> Result<bool, Error> {
        let arguments = server_values::arguments(self.tx, self.server, &sent::returned(text))?;
        Ok(arguments.iter().any(|argument| path.is_set_by(argument)))
    }

    fn is_old(&self, text: &str) -> Result<bool, Error> {
        server_values::is_known(self.tx, self.server, &sent::whole(text).into_iter().collect())
    }
}

impl Executor {
    /// Returns the values at the result paths of an answer, and records the values of the answer as known.
    pub(super) fn take_returned(
        &self,
        tx: &mut WriteTx<'_>,
        place: &Place,
        row: &CallRow,
        result: &ResultBody,
    ) -> Result<Option<OfAnswer>, ironclaw_store::error::Error> {
        let Some(answer) = &result.answer else { return Ok(None) };
        let agent = store::agent_of(tx, place.session)?.id;
        let Some(tool) = mcp::tool_of(tx, agent, &row.tool)?.filter(|tool| tool.has_results) else { return Ok(None) };
        let loopback = self.settings.now().host_policy.egress.loopback();
        let mut values = match result.outcome == CallOutcome::Done && is_confirmed_since_restore(tx, &tool)? {
            true => returned(&tool.manifest, answer, loopback, &OfServer { tx, server: &tool.server })?,
            false => Vec::new(),
        };
        values.retain(|value| is_plain(&value.text));
        server_values::insert_known(tx, &tool.server, &sent::wholes(answer))?;
        Ok(Some(OfAnswer { server: tool.server.clone(), values }))
    }
}

/// Returns whether people confirmed the tools of a server in this generation of the record.
fn is_confirmed_since_restore(tx: &ReadTx<'_>, tool: &Arc<ServerTool>) -> Result<bool, Error> {
    let Some((_, at)) = mcp::find(tx, &tool.server)?.and_then(|server| server.confirmed) else { return Ok(false) };
    // A generation is at least the time of its begin.
    Ok(u64::try_from(at).is_ok_and(|at| at >= facts::generation(tx).unwrap_or(u64::MAX)))
}

/// Returns whether a person sees all characters of a text as they are.
fn is_plain(text: &str) -> bool {
    visible::without_hidden(&lookalike::neutralise(text)) == text
}
