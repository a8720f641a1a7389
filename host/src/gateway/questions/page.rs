//! The page of a question: the words of the agent, line by line, with the answers to choose from.
//!
//! Marks each line of the agent, so that none looks like one of the host. See [`crate::gateway::review_page`] for the lines.

use crate::gateway::review_page::{Page, put_text};
use crate::gateway::waiting::{Gateway, Shown};
use crate::registry;
use crate::sessions::store;
use ironclaw_contract::canonical;
use ironclaw_operator::{Details, QuestionDetails};
use ironclaw_state::{ReadTx, keys};
use ironclaw_store::error::Error;
use ironclaw_store::tables::waiting::questions::Row;
use ironclaw_text::visible;
use serde::{Deserialize, Serialize};

/// The text of a question as the agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    pub(super) question: String,
    /// The answers to choose from.
    pub(super) options: Vec<String>,
    /// True if the person may type an answer.
    pub(super) free_text: bool,
}

impl Body {
    /// Returns the text that is sealed.
    pub(super) fn to_json(&self) -> String {
        canonical::to_string(self)
    }
}

/// Returns the text of a question.
///
/// # Errors
/// Errors of the record and of the key, and a damaged text.
pub(super) fn body(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<Body, Error> {
    let damaged = || ironclaw_state::Error::Stored(format!("{}: its text", row.id));
    let session = store::find(tx, row.session)?.ok_or_else(damaged)?;
    let key = session.content_key(&all.record.wrapping)?;
    let text = key.open(row.id.item(), &row.text)?;
    let text = String::from_utf8(text).map_err(|_| Error::from(keys::Error::Sealed("the text of a question")))?;
    Ok(serde_json::from_str(&text).map_err(|_| damaged())?)
}

/// Returns the page of a question. For a text that cannot be read it says so, and the question takes no answer.
pub(super) fn show(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<Shown, Error> {
    let body = match body(tx, all, row) {
        Ok(body) => Some(body),
        Err(error) if error.is_damage() => None,
        Err(error) => return Err(error),
    };
    let agent = registry::agent_by_id(tx, row.agent)?.map_or_else(|| row.agent.to_string(), |agent| agent.name);
    let (agent, to) = (visible::name(&agent), visible::name(&registry::person_name(tx, row.principal)?));
    let effect = format!("Agent {agent} asks {to} a question.");
    let mut page = Page::default();
    page.heading(&format!("QUESTION {}", row.id));
    page.sentence("  ", &effect);
    match &body {
        Some(body) => {
            page.sentence("  ", "It asks in its own words:");
            body.question.lines().for_each(|line| put_text(&mut page, "  ", line));
            if !body.options.is_empty() {
                page.heading("ANSWERS TO CHOOSE FROM");
            }
            for (number, option) in (1..).zip(&body.options) {
                page.put(&format!("  {number}  "), &visible::name(option));
            }
        }
        None => page.sentence("  ", "Its text cannot be read. Reject it."),
    }
    page.heading("IDENTIFIERS");
    page.sentence("  ", &format!("agent {}, session {}", row.agent, row.session));
    page.sentence("  ", &format!("person {}, message {}", row.principal, row.root));
    page.sentence("  ", &format!("digest of tool and arguments {}", row.digest));
    page.sentence("  ", &format!("asked {}", ironclaw_ledger::rfc3339(row.created_at)));
    let question = body.as_ref().map(|body| body.question.clone());
    let details = body.map(|body| {
        Details::Question(QuestionDetails { options: body.options, free_text: body.free_text, answer: row.answer })
    });
    Ok(Shown { question, ..Shown::new(page.finish(), effect, details) })
}
