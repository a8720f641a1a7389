//! The page of several calls of one output: each with its values, and what they have in common once.
//!
//! Never leaves out a value or a fact of a call: what is not equal in all calls is in the section of each. See [`super::layout`] for the
//! page of one call.
//!
//! ```text
//! APPROVAL REQUESTS: n calls
//!   the effect; who asks; what goes with each call, and where a server runs
//! IN EACH CALL
//!   argument: value ⟦origin⟧
//! CALL 1 OF n
//!   argument: value ⟦origin⟧
//! REASONS
//!   code (arguments): meaning. Decides: people.
//! UNTIL THE ANSWER, WITH THE WORD turn
//!   the tools whose calls this word permits too
//!
//! DETAILS
//!   the id of each call, and the digest of its own page
//! ```

use super::layout::{mark, put_arguments, put_details_of_reads, put_reads, put_reasons};
use super::{asking_agent, facts_of_row, section, sentence, show, words};
use crate::gateway::requests::facts::Facts;
use crate::gateway::requests::reads::{self, Reads};
use crate::gateway::review_page::{Page, plain};
use crate::gateway::waiting::Gateway;
use crate::registry::{self, mcp};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::RequestId;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::waiting::requests::Row;
use ironclaw_text::visible;
use serde_json::{Map, Value};

/// The page of several calls.
#[derive(Debug, Clone)]
pub struct Together {
    pub calls: Vec<Shown>,
    /// The exact text of the page.
    pub text: String,
    pub digest: Digest,
    /// What a yes can cover beside the calls.
    pub reads: Option<Reads>,
}

/// A call on the page.
#[derive(Debug, Clone)]
pub struct Shown {
    pub id: RequestId,
    /// The digest of its own page.
    pub digest: Digest,
}

/// A call on the page, with what the record has of it.
struct Member<'a> {
    row: &'a Row,
    facts: Facts,
    shown: Digest,
    /// The effect in the words of the host, after the name of the tool.
    effect: String,
    /// What a person has to read before a yes, beside the values.
    needed: String,
}

impl<'a> Member<'a> {
    fn read(tx: &ReadTx<'_>, all: &Gateway, row: &'a Row) -> Result<Self, Error> {
        let facts = facts_of_row(tx, all, row)?;
        let terms = mcp::terms(tx, row.agent, &row.tool)?;
        let mut needed = Page::default();
        section::put_needed(&mut needed, &facts);
        let effect = words(terms.as_ref(), facts.arguments());
        let shown = show(tx, all, row)?.digest;
        Ok(Self { row, facts, shown, effect, needed: needed.finish() })
    }

    /// Returns whether an argument has this value, from the same origin.
    fn has(&self, name: &str, of: &Self) -> bool {
        let origin = |member: &Self| mark(&member.row.own.origins, name);
        self.facts.arguments().get(name) == of.facts.arguments().get(name) && origin(self) == origin(of)
    }
}

/// Returns the page of these calls of one output; `None` for none.
///
/// # Errors
/// Errors of the record and of the key, and damaged arguments.
pub fn page(tx: &ReadTx<'_>, all: &Gateway, rows: &[Row]) -> Result<Option<Together>, Error> {
    let Some(first) = rows.first() else { return Ok(None) };
    let members = rows.iter().map(|row| Member::read(tx, all, row)).collect::<Result<Vec<_>, Error>>()?;
    let reads = reads::offered(tx, &all.now().policy, first)?;
    let agent = registry::agent_by_id(tx, first.agent)?.map_or_else(|| "(removed)".to_owned(), |agent| agent.name);
    let person = registry::person_name(tx, first.principal)?;
    let mut page = Page::default();
    page.heading(&format!("APPROVAL REQUESTS: {} calls", members.len()));
    page.sentence("  ", &effect(tx, &members)?);
    let (shown_agent, shown_person) = (visible::name(&agent), visible::name(&person));
    page.sentence(
        "  ",
        &format!("Agent {shown_agent} asks on behalf of {shown_person}. A yes permits each call once."),
    );
    if let Some(of_agent) = asking_agent(tx, first)? {
        let of_agent = visible::name(&of_agent);
        page.sentence(
            "  ",
            &format!("It works at a message of the agent {of_agent}, and not at words of this person."),
        );
    }
    put_calls(&mut page, &members);
    let rule = all.now();
    put_reasons(&mut page, &first.own.reasons, rule.policy.call_rule(first.own.class, &first.tool), &person);
    put_reads(&mut page, reads.as_ref());
    page.heading("DETAILS");
    for (at, member) in members.iter().enumerate() {
        page.sentence("  ", &format!("call {}: {}, digest of its page {}", at + 1, member.row.id, member.shown));
    }
    page.sentence("  ", &format!("agent {}, session {}", first.agent, first.session));
    page.sentence("  ", &format!("person {}, message {}", first.principal, first.root));
    put_details_of_reads(&mut page, reads.as_ref(), &person);
    let text = page.finish();
    let calls = members.iter().map(|member| Shown { id: member.row.id, digest: member.shown }).collect();
    Ok(Some(Together { calls, digest: Digest::of(text.as_bytes()), text, reads }))
}

/// Returns the effect of the calls: with the names of arguments in the place of their values, if they are of one tool.
fn effect(tx: &ReadTx<'_>, members: &[Member<'_>]) -> Result<String, Error> {
    let (row, count) = (members[0].row, members.len());
    let terms = mcp::terms(tx, row.agent, &row.tool)?;
    let class = row.own.class;
    let is_one_tool = members.iter().all(|member| member.row.tool == row.tool);
    let (calls, server) = match terms.as_ref().and_then(|terms| terms.of_server.as_ref()) {
        Some(of_server) => {
            (visible::name(&of_server.tool), format!(" of MCP server {}", visible::name(&of_server.server)))
        }
        None => (visible::name(&row.tool), String::new()),
    };
    if !is_one_tool {
        return Ok(format!("This host makes {count} calls of tools{server} (class {class})."));
    }
    let it = sentence(terms.as_ref(), |name| format!("the value of {}", plain(name)));
    Ok(format!("This host calls the tool {calls}{server} (class {class}) {count} times: it {it}."))
}

/// Writes the values of each call, and above them those that all calls have in common.
fn put_calls(page: &mut Page, members: &[Member<'_>]) {
    let (first, count) = (&members[0], members.len());
    let is_one_tool = members.iter().all(|member| member.row.tool == first.row.tool);
    let has_one_place = members.iter().all(|member| member.needed == first.needed);
    if has_one_place {
        section::put_needed(page, &first.facts);
    }
    let is_common = |name: &String| members.iter().all(|member| member.has(name, first));
    let some = |member: &Member<'_>, common: bool| -> Map<String, Value> {
        let all = member.facts.arguments().iter().filter(|(name, _)| is_common(name) == common);
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let common = some(first, true);
    if !common.is_empty() {
        page.close_heading("IN EACH CALL");
        put_arguments(page, &common, &first.row.own.origins);
    }
    for (at, member) in members.iter().enumerate() {
        page.close_heading(&format!("CALL {} OF {count}", at + 1));
        if !is_one_tool {
            page.sentence("  ", &format!("{} {}.", member.row.tool, member.effect));
        }
        if !has_one_place {
            section::put_needed(page, &member.facts);
        }
        let own = some(member, false);
        if own.is_empty() {
            page.sentence("  ", "(no other value)");
        }
        put_arguments(page, &own, &member.row.own.origins);
    }
}
