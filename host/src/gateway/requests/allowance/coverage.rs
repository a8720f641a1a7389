//! The calls that an allowance may cover: their tools, control fields and reasons, and the bounds of a new allowance.
//!
//! Counts a use only where a call begins to run. See [`super`].

#[cfg(test)]
mod tests;

use crate::gateway::requests::facts::standing::Standing;
use crate::gateway::requests::{decide, reads};
use crate::registry::allowances::{self, Allowance};
use crate::registry::policy::Policy;
use crate::registry::tools::catalogue::{Catalogue, Terms};
use crate::registry::tools::{self, GIT_PUSH, Runs};
use crate::registry::{self, Agent, mcp};
use crate::turns::calls::Call;
use crate::turns::calls::http::{self, Network};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{AgentId, MessageId, PersonId};
use ironclaw_judge::Class;
use ironclaw_judge::call::{Judgement, Reason, Verdict};
use ironclaw_judge::egress::Loopback;
use ironclaw_judge::manifest::{Manifest, Reach, Rule};
use ironclaw_ledger::Entry;
use ironclaw_operator::{AllowanceStatus, Decider, DenialCode};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Refusal;
use ironclaw_store::times::DAY_MS;
use ironclaw_text::excerpt::quoted;
use serde_json::{Map, Value};

/// The bound on the uses of an allowance.
pub const USES_MAX: u32 = 20;

/// The bound on the time of an allowance, milliseconds.
pub const TIME_MS_MAX: i64 = 30 * DAY_MS;

/// Bytes of the fixed fields, as canonical JSON.
const FIELDS_BYTES_MAX: usize = 4096;

/// The codes of the reasons that an allowance with fixed control fields lifts.
pub const LIFTED: [DenialCode; 4] =
    [DenialCode::CallScope, DenialCode::CallOrigin, DenialCode::CallInput, DenialCode::CallLinkUsed];

/// Returns whether an allowance with fixed control fields lifts a reason with this code.
pub fn is_lifted(code: DenialCode) -> bool {
    LIFTED.contains(&code)
}

/// Returns whether an allowance of some kind lifts a reason with this code.
pub fn is_lifted_by_any(code: DenialCode) -> bool {
    is_lifted(code) || reads::LIFTED.contains(&code)
}

/// Returns the codes of the reasons that an allowance lifts.
pub const fn lifted(allowance: &Allowance) -> &'static [DenialCode] {
    match allowance.root {
        Some(_) => &reads::LIFTED,
        None => &LIFTED,
    }
}

/// Returns the control fields of a tool.
pub fn control_fields(manifest: &Manifest) -> impl Iterator<Item = &String> {
    manifest.arguments.iter().filter(|(_, argument)| argument.rule == Rule::Floor).map(|(name, _)| name)
}

/// Returns whether the control fields of a call are exactly the fixed ones, and every argument has a rule.
pub fn covers(manifest: &Manifest, fields: &Map<String, Value>, arguments: &Map<String, Value>) -> bool {
    control_fields(manifest).all(|name| arguments.get(name) == fields.get(name))
        && arguments.keys().all(|name| manifest.arguments.contains_key(name))
}

/// Returns the word for the state of an allowance at a time.
pub const fn status(allowance: &Allowance, now: i64) -> AllowanceStatus {
    if allowance.uses >= allowance.uses_max {
        AllowanceStatus::UsedUp
    } else if allowance.expires_at <= now {
        AllowanceStatus::Expired
    } else {
        AllowanceStatus::Active
    }
}

/// Returns the word for the state of an allowance now, with the present terms of its tool, if the agent has it.
pub fn status_now(
    tx: &ReadTx<'_>,
    allowance: &Allowance,
    terms: Option<&Terms>,
) -> Result<AllowanceStatus, ironclaw_state::Error> {
    let status = status(allowance, tx.wall());
    let is_usable = match terms {
        Some(terms) => is_of_tool(allowance, &terms.manifest) && is_current(tx, allowance, terms)?,
        None => false,
    };
    Ok(if status == AllowanceStatus::Active && !is_usable { AllowanceStatus::Outdated } else { status })
}

/// Returns whether an allowance can permit calls of a tool with this manifest.
fn is_of_tool(allowance: &Allowance, manifest: &Manifest) -> bool {
    match allowance.root {
        Some(_) => manifest.only_reads(),
        None => refused_tool(manifest).is_none(),
    }
}

/// The caller and the call that an allowance may cover.
#[derive(Debug, Clone, Copy)]
pub struct Calling<'a> {
    /// The person of the turn.
    pub person: PersonId,
    pub agent: AgentId,
    /// The message whose task it is; `None` outside of a task.
    pub root: Option<MessageId>,
    pub call: &'a Call,
    pub arguments: &'a Map<String, Value>,
    /// True if the call does nothing but read, and sends a third party no value that the model chose.
    pub is_plain_read: bool,
}

impl Calling<'_> {
    /// Returns whether an allowance is for this call and for all of its reasons.
    fn is_covered_by(&self, allowance: &Allowance, manifest: &Manifest, class: Class, reasons: &[Reason]) -> bool {
        let is_for_call = match allowance.root {
            Some(_) => self.is_plain_read && allowance.root == self.root,
            None => has_class(class) && covers(manifest, &allowance.fields, self.arguments),
        };
        is_for_call
            && is_of_tool(allowance, manifest)
            && reasons.iter().all(|reason| lifted(allowance).contains(&reason.code))
    }
}

/// Returns whether an allowance with fixed control fields can permit calls of this class.
const fn has_class(class: Class) -> bool {
    !matches!(class, Class::Exec | Class::Trade)
}

/// Returns whether an allowance with fixed control fields can lift all of these reasons of a call of this class.
pub fn lifts_all(class: Class, reasons: &[Reason]) -> bool {
    has_class(class) && reasons.iter().all(|reason| is_lifted(reason.code))
}

/// Returns the allowance that covers a call, and has a use left beside those of other permitted calls that have not run.
pub fn usable(
    tx: &ReadTx<'_>,
    policy: &Policy,
    calling: &Calling<'_>,
    class: Class,
    reasons: &[Reason],
) -> Result<Option<Allowance>, ironclaw_state::Error> {
    let call = calling.call;
    let Some(terms) = mcp::terms(tx, calling.agent, &call.tool)? else { return Ok(None) };
    if reasons.iter().any(|reason| reason.decider() == Decider::Policy) {
        let rule = policy.call_rule(class, &call.tool);
        let person = registry::person_by_id(tx, calling.person)?;
        if !person.is_some_and(|person| decide::decides_alone(rule, class, &person, true)) {
            return Ok(None);
        }
    }
    for allowance in active(tx, calling.person, calling.agent, &terms)? {
        if !calling.is_covered_by(&allowance, &terms.manifest, class, reasons) {
            continue;
        }
        let promised = allowances::promised_uses(tx, allowance.id, call.call_id)?;
        if allowance.uses.saturating_add(promised) < allowance.uses_max {
            return Ok(Some(allowance));
        }
    }
    Ok(None)
}

/// Returns the active allowances for calls of a person's turns by an agent that have these control fields.
pub fn covering(
    tx: &ReadTx<'_>,
    person: PersonId,
    agent: AgentId,
    terms: &Terms,
    arguments: &Map<String, Value>,
) -> Result<Vec<Allowance>, ironclaw_state::Error> {
    let mut all = active(tx, person, agent, terms)?;
    all.retain(|allowance| allowance.root.is_none() && covers(&terms.manifest, &allowance.fields, arguments));
    Ok(all)
}

/// Returns the active allowances for calls of a tool by an agent in the turns of a person, whose page showed its present terms.
fn active(
    tx: &ReadTx<'_>,
    person: PersonId,
    agent: AgentId,
    terms: &Terms,
) -> Result<Vec<Allowance>, ironclaw_state::Error> {
    let mut current = Vec::new();
    for allowance in allowances::allowances_for(tx, person, agent, &terms.manifest.name)? {
        if status(&allowance, tx.wall()) == AllowanceStatus::Active && is_current(tx, &allowance, terms)? {
            current.push(allowance);
        }
    }
    Ok(current)
}

/// Returns whether the manifest and the standing facts are those that the page of an allowance showed: its host with the secret, its channel
/// or its server.
pub(super) fn is_current(tx: &ReadTx<'_>, allowance: &Allowance, terms: &Terms) -> Result<bool, ironclaw_state::Error> {
    let standing = Standing::read(tx, allowance.agent, terms, &allowance.fields)?;
    Ok(allowance.tools.get(&terms.manifest.name) == Some(&standing.digest(terms)))
}

/// Counts the use of the allowance that covers a judged call, with its ledger entry, and returns whether there was one.
pub fn count_use(
    tx: &mut WriteTx<'_>,
    policy: &Policy,
    calling: &Calling<'_>,
    judgement: &Judgement,
    place: Entry,
) -> Result<bool, ironclaw_state::Error> {
    let (Verdict::NeedsPerson(reasons), Some(class)) = (&judgement.verdict, judgement.class) else { return Ok(false) };
    let Some(allowance) = usable(tx, policy, calling, class, reasons)? else { return Ok(false) };
    let now = tx.wall();
    if !allowances::use_allowance(tx, allowance.id, now)? {
        return Ok(false);
    }
    place
        .with("call", calling.call.call_id)
        .with("allowance", allowance.id)
        .with("tool", calling.call.tool.clone())
        .with("uses", allowance.uses + 1)
        .with("count", allowance.uses_max)
        .append(tx)?;
    Ok(true)
}

#[derive(Debug, Clone)]
pub struct New {
    pub agent: Agent,
    pub tool: String,
    /// The fixed control fields.
    pub fields: Map<String, Value>,
    /// The bound on its uses.
    pub count: u32,
    /// Its end, milliseconds since the epoch.
    pub until: i64,
    /// Whether hosts of this machine may be granted.
    pub loopback: Loopback,
}

/// Returns the reason why no allowance can permit calls of a tool, if there is one.
pub fn refused_tool(manifest: &Manifest) -> Option<&'static str> {
    if matches!(manifest.class, Class::Exec | Class::Trade) {
        Some("its calls run code or buy something")
    } else if manifest.always_ask || manifest.name == GIT_PUSH {
        Some("each of its calls needs a person")
    } else if manifest.is_contained() || manifest.reach == Reach::Action {
        Some("its calls need no allowance")
    } else {
        None
    }
}

/// Checks a new allowance, and returns the terms of its tool.
pub(super) fn check(new: &New, catalogue: &Catalogue, now: i64) -> Result<Terms, Refusal> {
    let New { agent: _, tool, fields, count, until, loopback } = new;
    if !(1..=USES_MAX).contains(count) {
        let message = format!("an allowance permits 1 to {USES_MAX} calls, and not {count}");
        return Err(Refusal::new(DenialCode::AllowanceBounds, message));
    }
    if *until <= now || *until - now > TIME_MS_MAX {
        let message = "an allowance ends after now, and at most 30 days ahead";
        return Err(Refusal::new(DenialCode::AllowanceBounds, message).hint("write `--until 7d`, for example"));
    }
    let refuse_tool =
        |why: &str| Refusal::new(DenialCode::AllowanceTool, format!("no allowance for {}: {why}", quoted(tool)));
    let known = catalogue.find(tool).filter(|_| catalogue.missing(tool).is_none());
    let (Some(terms), Some(known)) = (catalogue.terms(tool), known) else {
        return Err(refuse_tool("the agent does not have this tool").hint("`ironctl agent show AGENT` has its tools"));
    };
    if let Some(why) = refused_tool(&terms.manifest) {
        return Err(refuse_tool(why));
    }
    if known.runs() != Runs::Await {
        return Err(refuse_tool("its calls never wait for a person"));
    }
    check_fields(&terms.manifest, fields)?;
    if tool == tools::HTTP_FETCH {
        let network = Network { loopback: *loopback, ..Network::default() };
        // The type of a body is a control field, and the body is none.
        let mut with_body = fields.clone();
        with_body.insert("body".to_owned(), Value::from("text"));
        let (request, _) = http::request(fields, &network)
            .or_else(|why| http::request(&with_body, &network).map_err(|_| why))
            .map_err(|why| Refusal::new(DenialCode::AllowanceFields, format!("the fields of {tool}: {why}")))?;
        let sent = request.url().as_str();
        if fields.get("url").and_then(Value::as_str) != Some(sent) {
            let message = format!("a call has its address as {sent}: fix this form");
            return Err(Refusal::new(DenialCode::AllowanceFields, message));
        }
    }
    Ok(terms)
}

fn check_fields(manifest: &Manifest, fields: &Map<String, Value>) -> Result<(), Refusal> {
    let control: Vec<&str> = control_fields(manifest).map(String::as_str).collect();
    let refuse = |message: String| {
        let hint = format!("the control fields of {} are {}", manifest.name, control.join(", "));
        Err(Refusal::new(DenialCode::AllowanceFields, message).hint(hint))
    };
    if let Some(other) = fields.keys().find(|name| !control.contains(&name.as_str())) {
        let shown = quoted(other);
        return match manifest.arguments.contains_key(other) {
            true => refuse(format!("{shown} cannot be fixed: a call may have any value there")),
            false => refuse(format!("{} has no field {shown}", manifest.name)),
        };
    }
    if fields.is_empty() {
        return refuse("an allowance fixes the control fields of the call".to_owned());
    }
    if canonical::to_string(fields).len() > FIELDS_BYTES_MAX {
        return refuse(format!("the fields are over {FIELDS_BYTES_MAX} bytes"));
    }
    Ok(())
}
