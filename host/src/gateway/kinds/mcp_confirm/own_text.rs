//! The persons whose own text the tools of a server return, by a confirmation.
//!
//! Never gives the text of a tool to a person who did not confirm it: a tool that stays as it was keeps its person. See
//! [`crate::calls::executor`], which labels the results.

use super::super::kind::proposer;
use crate::gateway::decide::proof::Approved;
use crate::registry::mcp;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::McpConfirm;
use ironclaw_judge::manifest::{self, Manifest};
use ironclaw_operator::McpListed;
use ironclaw_state::ReadTx;
use std::collections::BTreeMap;

/// Returns the persons by the names of the tools on the server.
pub(super) fn declared(
    tx: &ReadTx<'_>,
    approved: &Approved,
    wanted: &McpConfirm,
) -> Result<BTreeMap<String, PersonId>, ironclaw_state::Error> {
    let parsed = |text: &Option<String>| -> BTreeMap<String, Manifest> {
        text.as_deref().and_then(|text| manifest::parse(text).ok()).unwrap_or_default()
    };
    let now: Vec<(String, Manifest)> =
        parsed(&wanted.manifest).into_iter().filter(|entry| !entry.1.mine.is_empty()).collect();
    let Some(server) = mcp::find(tx, &wanted.server)?.filter(|_| !now.is_empty()) else {
        return Ok(BTreeMap::new());
    };
    let (seen, confirmed) = (server.seen()?, server.confirmed()?);
    let before = parsed(&server.manifest);
    let proposer = proposer(tx, approved)?;
    let person = |tool: &str, manifest: &Manifest| {
        let is_listed = seen.as_ref().is_some_and(|seen| seen.beside(confirmed.as_ref(), tool) == McpListed::Same);
        let held = server.mine.get(tool).copied();
        match before.get(tool).filter(|_| is_listed) {
            // The page only names it, so it keeps its person, or none since a restore of the record.
            Some(before) if before == manifest => held,
            Some(before) if before.mine == manifest.mine => held.or(proposer),
            Some(_) | None => proposer,
        }
    };
    Ok(now.into_iter().filter_map(|(tool, manifest)| person(&tool, &manifest).map(|person| (tool, person))).collect())
}
