//! The page of a request: exactly what the call would do, with each string made safe to read.
//!
//! Never names the turn and the call: a later try at the same message has others. It shows the facts of the call as the record has them
//! now, and each approval is bound to the digests of the page and of the facts. See [`layout`] for the lines, and [`super::facts`].

mod layout;
#[cfg(test)]
mod tests;
pub(super) mod together;

#[cfg(test)]
pub(super) use layout::put_facts;

use super::facts::read::Reading;
use super::facts::{Facts, section};
use super::reasons::{is_for_grant, origin_view};
use super::{reads, sheet};
use crate::gateway::review_page::Page;
use crate::gateway::waiting::{Gateway, Shown};
use crate::registry::policy::Rule;
use crate::registry::tools::catalogue::{OfServer, Terms};
use crate::registry::{self, mcp};
use crate::sessions::store as sessions;
use ironclaw_judge::Class;
use ironclaw_judge::inputs::ArgumentOrigin;
use ironclaw_operator::{CallDetails, Details, ReadsUntilAnswer, RequestReason};
use ironclaw_state::ReadTx;
use ironclaw_state::keys;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::waiting::requests::{self, Row, StoredReason};
use ironclaw_store::tables::{agent_messages, items, turns};
use ironclaw_text::visible;
use layout::{View, decides};
use serde_json::{Map, Value};

/// Returns the effect of a call in the words of the host: the server, the tool and its class, then its manifest's sentence with the
/// values.
pub fn effect(tool: &str, terms: Option<&Terms>, class: Class, arguments: &Map<String, Value>) -> String {
    let before = match terms.and_then(|terms| terms.of_server.as_ref()) {
        Some(OfServer { server, tool, .. }) => {
            let (server, tool) = (visible::name(server), visible::name(tool));
            format!("This host calls the tool {tool} of MCP server {server} (class {class}): it ")
        }
        None => format!("This host runs {tool} (class {class}): it "),
    };
    format!("{before}{}.", words(terms, arguments))
}

/// Returns the sentence of a manifest with the values of these arguments.
fn words(terms: Option<&Terms>, arguments: &Map<String, Value>) -> String {
    sentence(terms, |name| match arguments.get(name) {
        Some(Value::String(text)) => visible::name(text),
        Some(value) => visible::name(&value.to_string()),
        None if name == "method" => "\"GET\"".to_owned(),
        None => "(nothing)".to_owned(),
    })
}

/// Returns the sentence of a manifest with these words in the place of each argument.
fn sentence(terms: Option<&Terms>, word: impl Fn(&str) -> String) -> String {
    let mut rest = terms.map_or("runs", |terms| terms.manifest.effect.as_str());
    let mut words = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        words.push_str(before);
        words.push_str(&word(name));
        rest = after;
    }
    words.push_str(rest);
    words
}

/// Returns the arguments of a request, exactly as hashed.
///
/// # Errors
/// Errors of the record and of the key, and damaged arguments.
pub fn arguments(tx: &ReadTx<'_>, record: &Record, row: &Row) -> Result<Map<String, Value>, Error> {
    let damaged = || ironclaw_state::Error::Stored(format!("{}: its arguments", row.id));
    let session = sessions::find(tx, row.session)?.ok_or_else(damaged)?;
    let key = session.content_key(&record.wrapping)?;
    let text = key.open(row.id.item(), &row.arguments)?;
    let text = String::from_utf8(text).map_err(|_| Error::from(keys::Error::Sealed("the arguments of a call")))?;
    if crate::turns::calls::digest(&row.tool, &text) != row.digest {
        return Err(damaged().into());
    }
    Ok(serde_json::from_str(&text).map_err(|_| damaged())?)
}

/// Returns the facts of the call of a request, as the record has them now.
///
/// # Errors
/// Errors of the record and of the key, and damaged arguments.
pub(super) fn facts_of_row(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<Facts, Error> {
    let arguments = arguments(tx, &all.record, row)?;
    let reading = Reading {
        session: row.session,
        agent: row.agent,
        call: row.call,
        tool: &row.tool,
        arguments: &arguments,
        loopback: all.settings.now().host_policy.egress.loopback(),
        is_without_grant: row.own.reasons.iter().any(|reason| is_for_grant(reason.code)),
    };
    Ok(Facts::read(tx, &reading)?)
}

/// Returns the name of the agent whose message the turn of a request works at.
fn asking_agent(tx: &ReadTx<'_>, row: &Row) -> Result<Option<String>, ironclaw_state::Error> {
    let Some(of_agent) = agent_messages::find(tx, row.root)? else { return Ok(None) };
    let found = registry::agent_by_id(tx, of_agent.source_agent)?;
    Ok(Some(found.map_or_else(|| of_agent.source_agent.to_string(), |agent| agent.name)))
}

/// Returns the page of a request, or for damaged arguments a page that says so. No approval fits the second one, and people can reject it.
pub fn show_or_damage(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<Shown, Error> {
    let damaged = match show(tx, all, row) {
        Err(error) if error.is_damage() => error,
        shown => return shown,
    };
    let effect = format!("The arguments of this call of {} cannot be read ({damaged}). Reject it.", row.tool);
    let mut page = Page::default();
    page.heading(&format!("DAMAGED APPROVAL REQUEST {}", row.id));
    page.sentence("  ", &visible::name(&effect));
    Ok(Shown { reasons: reasons(row), ..Shown::new(page.finish(), effect, None) })
}

/// Returns the page of a request.
///
/// # Errors
/// Errors of the record and of the key, and damaged arguments.
pub fn show(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<Shown, Error> {
    let policy = &all.now().policy;
    let class = row.own.class;
    let facts = facts_of_row(tx, all, row)?;
    let agent = registry::agent_by_id(tx, row.agent)?.map_or_else(|| "(removed)".to_owned(), |agent| agent.name);
    let person = registry::person_name(tx, row.principal)?;
    let sheet = requests::list_for_output(tx, row.session, row.output)?;
    let at = sheet.iter().position(|other| *other == row.id).map_or(1, |at| at + 1);
    let (position, of) = (u32::try_from(at).unwrap_or(u32::MAX), u32::try_from(sheet.len().max(1)).unwrap_or(u32::MAX));
    let together = sheet::waiting_with(tx, policy, row)?;
    // The page of several calls has what a yes can cover beside them.
    let reads = if together.is_empty() { reads::offered(tx, policy, row)? } else { None };
    let terms = mcp::terms(tx, row.agent, &row.tool)?;
    let effect = effect(&row.tool, terms.as_ref(), class, facts.arguments());
    let view = View {
        id: row.id,
        effect: &effect,
        agent: &agent,
        person: &person,
        of_agent: asking_agent(tx, row)?,
        facts: &facts,
        origins: &row.own.origins,
        reasons: &row.own.reasons,
        rule: policy.call_rule(class, &row.tool),
        reads: reads.as_ref(),
        sources: sources(tx, &row.own.origins, &person)?,
        identifiers: vec![
            format!("agent {}, session {}", row.agent, row.session),
            format!("person {}, message {}", row.principal, row.root),
            format!("digest of tool and arguments {}", row.digest),
            format!("requested {}, generation {}", ironclaw_ledger::rfc3339(row.created_at), row.generation),
        ],
    };
    let text = layout::render(&view);
    // The list of the values that leave.
    let leaving = row.own.origins.iter().filter(|_| facts.leaves_machine());
    let origins = leaving.map(origin_view).collect();
    let arguments = Value::Object(facts.arguments().clone());
    let together = together.iter().map(|other| other.id).collect();
    let until_answer = reads.map(ReadsUntilAnswer::from);
    let details = Details::Call(CallDetails { class, arguments, origins, position, of, together, until_answer });
    let shown = Shown::new(text, effect, Some(details));
    Ok(Shown { facts: Some(facts.digest()), reasons: reasons(row), ..shown })
}

fn reasons(row: &Row) -> Vec<RequestReason> {
    row.own.reasons.iter().map(StoredReason::view).collect()
}

/// Returns a sentence for each value with an item of its own: the message or the result that has it.
fn sources(tx: &ReadTx<'_>, origins: &[ArgumentOrigin], person: &str) -> Result<Vec<String>, ironclaw_state::Error> {
    let mut sources = Vec::new();
    for origin in origins {
        let Some(handle) = origin.handle else { continue };
        let Some(item) = origin.item.map(|item| items::find(tx, item)).transpose()?.flatten() else { continue };
        let at = ironclaw_ledger::rfc3339(item.tuple.issued_at);
        let source = match origin.typed {
            true => format!("typed by {} in the message of {at}", visible::name(person)),
            false => {
                let call = turns::find_call_by_result(tx, item.tuple.session, item.tuple.item)?;
                let tool = call.map_or_else(|| "a tool".to_owned(), |call| call.tool);
                format!("returned by {} in the result of {at}", visible::name(&tool))
            }
        };
        sources.push(format!("{}: {source} (id {handle})", visible::name(&origin.argument)));
    }
    Ok(sources)
}

/// Returns the people who remove the reasons, for a sentence.
pub(super) fn deciders(reasons: &[StoredReason], rule: &Rule, person: &str) -> String {
    let mut all: Vec<String> = reasons.iter().map(|reason| decides(reason, rule, person)).collect();
    all.dedup();
    all.join(" and ")
}
