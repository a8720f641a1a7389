//! The answers of MCP servers whose text a person calls theirs.
//!
//! Such an answer has no other text than that at the listed paths. It loses its standing for good once an agent called a tool of the server
//! that does more than read, and while something on this host could write a directory of the server. Gives no value to a control field. See
//! [`super::returned`] for values at result paths, and [`ironclaw_judge::manifest::answer_path`].

use super::returned::confirmed_server;
use super::{Executor, Place, recorded};
use crate::registry::mcp::{self, Server, own_text};
use crate::registry::tools::catalogue::ServerTool;
use crate::sessions::store;
use crate::turns::calls::{CallOutcome, CallRow, ResultBody, ServerAnswer};
use crate::turns::turn;
use ironclaw_contract::canonical::{self, Limits};
use ironclaw_judge::manifest::answer_path;
use ironclaw_judge::provenance::Provenance;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use serde_json::Value;

/// Bounds on the text of an answer that is compared with its structured content.
const LIMITS: Limits = Limits { bytes_max: 128 * 1024, depth_max: 64, values_max: 20_000 };

impl Executor {
    /// Returns the provenance of the result of a call.
    pub(super) fn provenance(
        &self,
        tx: &ReadTx<'_>,
        place: &Place,
        row: &CallRow,
        result: &ResultBody,
    ) -> Result<Provenance, Error> {
        let Some(answer) = result.answer.as_ref().filter(|_| result.outcome == CallOutcome::Done) else {
            return Ok(Provenance::Tool);
        };
        let agent = store::agent_of(tx, place.session)?.id;
        let Some(tool) = mcp::tool_of(tx, agent, &row.tool)?.filter(|tool| !tool.manifest.mine.is_empty()) else {
            return Ok(Provenance::Tool);
        };
        let Some(server) = confirmed_server(tx, &tool, answer)? else { return Ok(Provenance::Tool) };
        let person = turn::find(tx, place.turn)?.map(|turn| turn.person()).transpose()?;
        let is_theirs = person.is_some() && server.mine.get(&tool.tool) == person.as_ref();
        let is_own = is_theirs
            && has_only_own_text(&tool, answer, &result.text)
            && is_unwritten(tx, &server, &tool)?
            // A server can repeat words of a call in its answer.
            && !recorded(tx, row, &place.key)?.labels.has_foreign();
        Ok(if is_own { Provenance::Own } else { Provenance::Tool })
    }
}

/// Returns whether each text of an answer is at a listed path, and a model gets no other text.
fn has_only_own_text(tool: &ServerTool, answer: &ServerAnswer, text: &str) -> bool {
    let Some(content) = &answer.content else { return false };
    let is_same = || canonical::parse(text.as_bytes(), LIMITS).is_ok_and(|parsed| parsed == *content);
    answer_path::covers(&tool.manifest.mine, content) && (*content == Value::String(text.to_owned()) || is_same())
}

/// Returns whether no agent wrote at a server. An argument of a former tool is unknown.
fn is_unwritten(tx: &ReadTx<'_>, server: &Server, tool: &ServerTool) -> Result<bool, Error> {
    match &tool.reading {
        Some(reading) => Ok(own_text::lost(tx, server, reading)?.is_none()),
        None => Ok(false),
    }
}
