//! The values of an MCP server: what agents sent to it, and what it returned at the result paths of its tools.
//!
//! What is sent is recorded before it is sent, so no answer can be older than the record. Mints no label for a server whose tools people
//! have not confirmed since the last restore, because the restored record does not have everything that was sent, and none for an answer
//! of a service that was replaced meanwhile. See [`ironclaw_judge::inputs::returned`].

use super::effect::ServerCall;
use super::{Executor, Place};
use crate::registry::mcp::{self, Server};
use crate::registry::tools::catalogue::ServerTool;
use crate::sessions::store;
use crate::turns::calls::{self, CallOutcome, ResultBody, ServerAnswer};
use crate::turns::items::OfAnswer;
use ironclaw_judge::inputs::Input;
use ironclaw_judge::inputs::returned::{Known, Returned, returned};
use ironclaw_judge::manifest::results::{ResultPath, argument_name};
use ironclaw_judge::provenance::{Labels, sent};
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::{facts, server_values};
use ironclaw_text::{lookalike, visible};
use serde_json::Value;
use std::collections::BTreeSet;

/// Records the values that a call sends to its server, by argument. Those that a person typed count as set by no agent.
pub(super) fn record_sent(tx: &mut WriteTx<'_>, call: &ServerCall, bound: &[Input]) -> Result<(), Error> {
    let origin = call.origin();
    for argument in call.arguments().keys() {
        server_values::insert_argument(tx, &origin, &argument_name(call.tool_name(), argument))?;
    }
    let mut arguments = Value::Object(call.arguments().clone());
    for input in bound {
        if let Some(value) = arguments.pointer_mut(&input.at) {
            server_values::insert_known(tx, &origin, &sent::sent(&value.take()))?;
        }
    }
    for (argument, value) in arguments.as_object().into_iter().flatten() {
        server_values::insert_sent(tx, &origin, &argument_name(call.tool_name(), argument), &sent::sent(value))?;
    }
    Ok(())
}

/// What the record has of a server.
struct OfServer<'a, 'tx> {
    tx: &'a ReadTx<'tx>,
    origin: &'a str,
    /// The arguments of its present tools. One of a former tool can have set each path.
    arguments: &'a BTreeSet<String>,
}

impl Known for OfServer<'_, '_> {
    type Error = Error;

    fn is_sent(&self, marks: &BTreeSet<String>, path: &ResultPath) -> Result<bool, Error> {
        let sent = server_values::arguments(self.tx, self.origin, marks)?;
        Ok(sent.iter().any(|argument| path.is_set_by(argument) || !self.arguments.contains(argument)))
    }

    fn is_old(&self, marks: &BTreeSet<String>) -> Result<bool, Error> {
        server_values::is_known(self.tx, self.origin, marks)
    }
}

impl Executor {
    /// Returns the values at the result paths of an answer, and records the values of the answer as known, also if the turn of its
    /// call is over.
    pub(super) fn take_returned(
        &self,
        tx: &mut WriteTx<'_>,
        place: &Place,
        result: &ResultBody,
    ) -> Result<Option<OfAnswer>, Error> {
        let Some(answer) = &result.answer else { return Ok(None) };
        if !mcp::has_result_paths(tx, &answer.origin)? {
            return Ok(None);
        }
        let called = calls::find(tx, place.call)?.zip(store::find(tx, place.session)?);
        let tool = called.map(|(row, session)| mcp::tool_of(tx, session.agent, &row.tool)).transpose()?.flatten();
        let taken = match tool {
            Some(tool) if result.outcome == CallOutcome::Done => self.values_of(tx, &tool, answer)?,
            Some(_) | None => None,
        };
        let text = sent::sent(&Value::String(result.text.clone()));
        let content = answer.content.as_ref().map(sent::sent).unwrap_or_default();
        server_values::insert_known(tx, &answer.origin, &text.into_iter().chain(content).collect())?;
        Ok(taken)
    }

    /// Returns the values of an answer to a call of a tool, as people confirmed it now.
    fn values_of(&self, tx: &ReadTx<'_>, tool: &ServerTool, answer: &ServerAnswer) -> Result<Option<OfAnswer>, Error> {
        let ServerAnswer { content, origin, service, pin: _ } = answer;
        let (Some(arguments), Some(content)) = (&tool.arguments, content) else { return Ok(None) };
        if confirmed_server(tx, tool, answer)?.is_none() {
            return Ok(None);
        }
        let loopback = self.settings.now().host_policy.egress.loopback();
        let values = returned(&tool.manifest, content, loopback, &OfServer { tx, origin, arguments })?;
        let values = values.into_iter().map(|value| match is_plain(&value.text) {
            true => value,
            false => Returned { labels: Labels::NONE, ..value },
        });
        Ok(Some(OfAnswer { server: tool.server.clone(), service: *service, values: values.collect() }))
    }
}

/// Returns the server of an answer, if people confirmed it and the tool as they answered, since the last restore.
pub(super) fn confirmed_server(
    tx: &ReadTx<'_>,
    tool: &ServerTool,
    answer: &ServerAnswer,
) -> Result<Option<Server>, Error> {
    let Some(server) = mcp::find(tx, &tool.server)? else { return Ok(None) };
    let is_same = mcp::service(&server.described) == answer.service && tool.pin == answer.pin;
    // A generation is at least the time of its begin.
    let begun = i64::try_from(facts::generation(tx)?).unwrap_or(i64::MAX);
    let is_confirmed = server.confirmed.as_ref().is_some_and(|confirmed| confirmed.1 >= begun);
    Ok(Some(server).filter(|_| is_same && is_confirmed))
}

/// Returns whether a person sees all characters of a text as they are.
fn is_plain(text: &str) -> bool {
    visible::without_hidden(&lookalike::neutralise(text)) == text
}
