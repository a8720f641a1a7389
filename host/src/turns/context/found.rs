//! The tools that an agent found with `find_tools` in a conversation, whose definitions its prompts contain.
//!
//! Reads the recorded results, so the tools are the same after a restart, another try and a summary. See [`crate::registry::tools::levels`] for the
//! bounds.

use crate::registry::tools::FIND_TOOLS;
use crate::turns::calls::ResultBody;
use crate::turns::items;
use ironclaw_contract::ids::SessionId;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::items as table;
use serde::Deserialize;

const RESULTS_MAX: usize = 8;

/// The names in a result.
#[derive(Deserialize)]
struct Found {
    tools: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Returns the names of the tools that the last searches of a session found, the newest first.
pub fn names(tx: &ReadTx<'_>, session: SessionId, key: &ContentKey) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for item in table::results_of_tool(tx, session, FIND_TOOLS, RESULTS_MAX)? {
        let result: ResultBody = items::parse_body(&items::body(tx, &item, key)?)?;
        // A search without a result has other words.
        if let Ok(found) = serde_json::from_str::<Found>(&result.text) {
            names.extend(found.tools.into_iter().map(|tool| tool.name));
        }
    }
    Ok(names)
}
