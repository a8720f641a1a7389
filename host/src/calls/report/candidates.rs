//! The changes that would have let the call of a request run without a question, each alone.
//!
//! Proposes nothing that the rules do not permit: no change lets a call of the class `exec` or `trade` run, and none lifts `always_ask`.
//! See [`super::savings`], which counts them.

use super::savings::Asking;
use crate::gateway::requests::allowance::{self, New};
use crate::gateway::requests::is_for_grant;
use crate::gateway::waiting::Gateway;
use crate::registry::tools::HTTP_FETCH;
use crate::registry::tools::catalogue::Source;
use crate::registry::{self, Person, mcp};
use crate::turns::calls::http;
use crate::turns::items;
use ironclaw_contract::canonical;
use ironclaw_judge::egress::Grant;
use ironclaw_judge::{Class, Classes, Principal};
use ironclaw_operator::{DenialCode, ReportedChange, SavedRequest, SavingChange};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::waiting::requests::Row;
use ironclaw_store::times::DAY_MS;

/// The days of a proposed allowance, the most that one can have.
const DAYS: i64 = allowance::TIME_MS_MAX / DAY_MS;

/// A change.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub change: SavingChange,
    agent: String,
    effect: String,
    command: String,
    /// The most requests that it can save.
    pub uses_max: usize,
    /// Of an allowance: its person, and its content.
    pub allowance: Option<(Person, New)>,
}

impl Candidate {
    fn new(change: SavingChange, asking: &Asking, effect: String, command: String) -> Self {
        Self { change, agent: asking.agent.name.clone(), effect, command, uses_max: usize::MAX, allowance: None }
    }

    /// Returns a text that equal changes share.
    pub fn key(&self) -> String {
        let person = self.allowance.as_ref().map(|allowance| allowance.0.id);
        format!("{} {} {} {person:?}", self.change, self.command, self.effect)
    }

    /// Returns the change as people and scripts read it.
    pub fn view(self, saves: usize, examples: Vec<SavedRequest>) -> ReportedChange {
        let (effect, command) = match self.allowance {
            Some(_) => (
                format!("{}, {saves} within {DAYS}d", self.effect),
                format!("{} --count {saves} --until {DAYS}d", self.command),
            ),
            None => (self.effect, self.command),
        };
        ReportedChange {
            change: self.change,
            agent: self.agent,
            person: self.allowance.map(|allowance| allowance.0.name),
            effect,
            command,
            saves: saves as u64,
            examples,
        }
    }
}

/// Returns the changes that would have let the call run, each alone.
pub fn list(tx: &ReadTx<'_>, all: &Gateway, row: &Row, asking: &Asking) -> Result<Vec<Candidate>, Error> {
    let found = [
        allowance(tx, all, row, asking)?,
        unasked(tx, row, asking)?,
        message(asking),
        grant(asking),
        manifest(tx, asking)?,
    ];
    Ok(found.into_iter().flatten().collect())
}

/// Returns an allowance of the person with the control fields of the call.
fn allowance(tx: &ReadTx<'_>, all: &Gateway, row: &Row, asking: &Asking) -> Result<Option<Candidate>, Error> {
    let lifts = asking.codes.iter().all(|code| allowance::is_lifted(*code));
    if asking.turn.principal_kind != Principal::Person || !lifts {
        return Ok(None);
    }
    let Some(fields) = allowance::fixed_fields(tx, &all.record, row)? else { return Ok(None) };
    let Some(by) = registry::person_by_id(tx, row.principal)? else { return Ok(None) };
    let (agent, tool) = (asking.agent.clone(), row.tool.clone());
    let command = allowance::command(&agent.name, &tool, &fields);
    let effect = format!("{} permits calls of {tool} with these fields", by.name);
    let loopback = all.now().host_policy.egress.loopback();
    let new = New { agent, tool, fields, count: allowance::USES_MAX, until: tx.wall() + DAYS * DAY_MS, loopback };
    let candidate = Candidate::new(SavingChange::Allowance, asking, effect, command);
    Ok(Some(Candidate { uses_max: allowance::USES_MAX as usize, allowance: Some((by, new)), ..candidate }))
}

/// Returns the classes that a call needs in its scope; `None` if the scope is no reason, or if a class asks always or is never added here.
fn classes(asking: &Asking) -> Option<Classes> {
    if asking.turn.principal_kind != Principal::Person || !asking.codes.contains(&DenialCode::CallScope) {
        return None;
    }
    let manifest = asking.facts.catalogue.manifest(&asking.judged.call.tool)?;
    let needed: Classes = std::iter::once(asking.class).chain(manifest.also.iter().copied()).collect();
    let may = asking.facts.receiver.person.may;
    let is_excluded = needed.has(Class::Exec) || needed.has(Class::Trade) || needed.and(may) != needed;
    (!is_excluded).then_some(needed)
}

/// Returns the classes with commas or another text between them.
fn words(classes: Classes, between: &str) -> String {
    classes.iter().map(Class::name).collect::<Vec<_>>().join(between)
}

/// Returns the setting by which messages need no word for classes that need none by default.
fn unasked(tx: &ReadTx<'_>, row: &Row, asking: &Asking) -> Result<Option<Candidate>, Error> {
    let allowed = asking.facts.receiver.person;
    let usual = ironclaw_judge::ReceiverPolicy::default().person.unasked;
    let Some(needed) = classes(asking).filter(|needed| needed.and(usual) == *needed) else { return Ok(None) };
    let unasked = allowed.unasked.or(needed);
    let message = items::find(tx, row.root.item())?;
    let Some(message) = message.filter(|_| unasked != allowed.unasked) else { return Ok(None) };
    let mut facts = asking.facts.clone();
    facts.receiver.person.unasked = unasked;
    facts.scope = facts.scope.or(facts.receiver.person.asked(&message.tuple.scope));
    if !asking.runs_with(&facts) {
        return Ok(None);
    }
    let name = &asking.agent.name;
    let effect = format!("messages of people to {name} need no word for the class {}", words(needed, " and "));
    let command = format!("ironctl agent set {name} --unasked person={}", words(unasked, ","));
    Ok(Some(Candidate::new(SavingChange::Unasked, asking, effect, command)))
}

/// Returns the word by which the message asks for the class of the call.
fn message(asking: &Asking) -> Option<Candidate> {
    let needed = classes(asking)?;
    let mut facts = asking.facts.clone();
    facts.scope = facts.scope.or(needed);
    if !asking.runs_with(&facts) {
        return None;
    }
    // A declaration of the whole scope takes no `+`.
    let declared = facts.scope.iter().filter(|class| *class != Class::Ask).collect::<Classes>();
    let (sign, written) = if facts.binds_contained { ("", declared) } else { ("+", needed) };
    let options: String = written.iter().map(|class| format!(" --allow {sign}{}", class.name())).collect();
    let text: String = written.iter().map(|class| format!(" {sign}{}", class.name())).collect();
    let effect = format!("messages begin with /allow{text} if such a call is wanted");
    let command = format!("ironctl chat {}{options}", asking.agent.name);
    Some(Candidate::new(SavingChange::Message, asking, effect, command))
}

/// Returns the grant of the request of the call alone.
fn grant(asking: &Asking) -> Option<Candidate> {
    if asking.judged.call.tool != HTTP_FETCH || !asking.codes.iter().any(|code| is_for_grant(*code)) {
        return None;
    }
    let mut facts = asking.facts.clone();
    let (request, _) = http::request(asking.call.arguments()?, &facts.network).ok()?;
    let missing = http::allowed(&request, &facts.network).err()?;
    let grant = Grant::check(missing.proposal()?, facts.network.loopback).ok()?;
    facts.network.grants.push(grant);
    if !asking.runs_with(&facts) {
        return None;
    }
    let name = &asking.agent.name;
    let effect = format!("{name} may send such requests to {}", request.url().host());
    Some(Candidate::new(SavingChange::Grant, asking, effect, missing.command(name)?))
}

/// Returns the looser manifest of a tool of a server.
fn manifest(tx: &ReadTx<'_>, asking: &Asking) -> Result<Option<Candidate>, Error> {
    let Some(Source::Server(tool)) = asking.facts.catalogue.find(&asking.judged.call.tool) else { return Ok(None) };
    let Some(looser) = mcp::looser::looser(tx, tool)? else { return Ok(None) };
    let mut facts = asking.facts.clone();
    facts.catalogue = facts.catalogue.with_manifest(&looser.manifest);
    if !asking.runs_anew_with(&facts) {
        return Ok(None);
    }
    let server = &tool.server;
    let effect = format!("{} of {server}: {}", canonical::to_string(&tool.tool), looser.parts.join(", "));
    let command = looser.command(server, &tool.tool);
    Ok(Some(Candidate::new(SavingChange::Manifest, asking, effect, command)))
}
