//! The explanation of a call over the API: the facts that decide on it, its judgement at each kind of request, and the commands that
//! change it.
//!
//! Judges nothing and makes no call: see [`crate::calls::supposition`].

mod example;
mod remedies;

use super::calls::{answers, rule_for};
use super::handler::{Api, Body, Caller, Reply};
use super::usage;
use crate::calls::supposition::{self, Call, Outcome};
use crate::gateway::requests::{Asked, allowance};
use crate::registry::live_settings::LiveSettings;
use crate::registry::policy;
use crate::registry::schedules::{self, names};
use crate::registry::tools;
use crate::registry::tools::catalogue::{Catalogue, Source};
use crate::registry::{self, Agent, Person, mcp};
use crate::turns::budget::book::UsagePart;
use crate::turns::calls::{self, CallState, Judgement};
use axum::Json;
use axum::extract::Path;
use ironclaw_judge::Class;
use ironclaw_judge::call::Reason;
use ironclaw_ledger::rfc3339;
use ironclaw_operator::{Ceiling, CoveringAllowance, Decider, DenialCode, ExplainCall, ExplainedCall, Situation};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::schedules::{OfTurn, list_of_schedule};
use serde_json::{Map, Value};

/// `POST /v1/tools/{tool}/explain`
pub async fn explain(
    Caller { api, person, .. }: Caller,
    Path(tool): Path<String>,
    Body(asked): Body<ExplainCall>,
) -> Reply<ExplainedCall> {
    let own = api.clone();
    let look = api.state().read(move |tx| explain_in(tx, &own, &person, tool, asked));
    Ok(Json(look.await?))
}

fn explain_in(
    tx: &ReadTx<'_>,
    api: &Api,
    by: &Person,
    tool: String,
    asked: ExplainCall,
) -> Result<ExplainedCall, Denied<Error>> {
    let settings = api.gateway.now();
    let agent = registry::named_agent(tx, by, &asked.agent).map_err(Denied::<Error>::from)?;
    let person = match &asked.person {
        Some(named) => registry::known_person(tx, by, named).map_err(Denied::<Error>::from)?,
        None => by.clone(),
    };
    let schedule = match &asked.schedule {
        Some(named) => Some((named.clone(), list(tx, by, &agent, named)?)),
        None => None,
    };
    let catalogue = mcp::catalogue(tx, &agent)?;
    let is_example = asked.arguments.is_none();
    let arguments = example::completed(tx, &agent, &person, &catalogue, &tool, asked.arguments)?;
    let call = Call { agent: &agent, person: &person, tool: &tool, arguments: &arguments };
    let mut judged = Vec::new();
    for request in supposition::requests(tx, &agent, schedule)? {
        let outcome = supposition::judge(tx, &settings, &call, &request)?;
        judged.push((request, outcome));
    }
    let class = judged.iter().find_map(|(_, outcome)| outcome.judged.by_stages.class);
    let situations: Vec<Situation> =
        judged.iter().map(|(request, outcome)| situation(&settings, &person, request, outcome)).collect();
    let manifest = catalogue.manifest(&tool);
    let is_decided = |class: &Class| policy::decided_classes(&tool).any(|decided| decided == *class);
    let looser = match catalogue.find(&tool) {
        Some(Source::Server(found)) => mcp::looser::looser(tx, found).map_err(Error::from)?,
        _ => None,
    };
    Ok(ExplainedCall {
        known: manifest.is_some(),
        missing: catalogue.missing(&tool),
        class,
        reach: manifest.map(|manifest| manifest.reach),
        mode: agent.mode,
        rule: class.filter(is_decided).map(|class| rule_for(&settings.policy, class, &tool)),
        fields: manifest.map(tools::fields).unwrap_or_default(),
        allowances: covering(tx, &agent, &person, &catalogue, &tool, &arguments)?,
        ceilings: ceilings(tx, &settings, &agent)?,
        remedies: remedies::list(&agent, &catalogue, &call, &judged, asked.schedule.as_deref(), looser.as_ref()),
        situations,
        agent: agent.name.clone(),
        person: person.name.clone(),
        example: is_example,
        tool,
        arguments,
    })
}

/// Returns the list of a schedule of the agent that the caller may see.
fn list(tx: &ReadTx<'_>, by: &Person, agent: &Agent, named: &str) -> Result<OfTurn, Denied<Error>> {
    let row = names::known(tx, by, named).map_err(Denied::<Error>::from)?;
    let list = list_of_schedule(tx, agent.id, row.id).map_err(Error::from)?;
    Ok(list.ok_or_else(|| schedules::unknown(named))?)
}

/// Returns the judgement at one request as people and scripts read it.
fn situation(settings: &LiveSettings, person: &Person, request: &supposition::Request, outcome: &Outcome) -> Situation {
    let stages = answers(&outcome.judged.by_stages.trace);
    let shown = |status, code: Option<DenialCode>, deciders, allowance| Situation {
        request: request.kind,
        of: request.of.clone(),
        status,
        code,
        deciders,
        allowance,
        stages,
    };
    match (&outcome.judged.judgement, &outcome.at_once) {
        (Judgement::Permitted { .. }, _) => shown(CallState::Permitted, None, Vec::new(), None),
        (Judgement::Refused { code, .. }, _) | (Judgement::NeedsPerson { .. }, Some(Asked::Refused(code))) => {
            shown(CallState::Refused, Some(*code), Vec::new(), None)
        }
        (Judgement::NeedsPerson { .. }, Some(Asked::Over(_))) => {
            shown(CallState::Refused, Some(DenialCode::CallAskedTooOften), Vec::new(), None)
        }
        (Judgement::NeedsPerson { .. }, Some(Asked::Allowed(id))) => {
            shown(CallState::Permitted, None, Vec::new(), u64::try_from(*id).ok())
        }
        (Judgement::NeedsPerson { class, reasons, .. }, Some(Asked::Waits(_)) | None) => {
            let code = calls::main_code(reasons);
            let tool = &outcome.judged.call.tool;
            shown(CallState::Asked, Some(code), deciders(settings, person, *class, tool, reasons), None)
        }
    }
}

/// Returns the people who decide about a call with these reasons.
fn deciders(settings: &LiveSettings, person: &Person, class: Class, tool: &str, reasons: &[Reason]) -> Vec<String> {
    let is_by = |decider| reasons.iter().any(|reason| reason.decider() == decider);
    let mut all = Vec::new();
    if is_by(Decider::Principal) {
        all.push(person.name.clone());
    }
    if is_by(Decider::Policy) {
        let rule = settings.policy.call_rule(class, tool);
        let roles: Vec<&str> = rule.roles.iter().map(|role| role.name()).collect();
        let others = if rule.requester_may_approve { "" } else { ", not the requester" };
        all.push(format!("{} of {}{others}", rule.approvals, roles.join(" or ")));
    }
    all
}

/// Returns the allowances of the person that cover the call.
fn covering(
    tx: &ReadTx<'_>,
    agent: &Agent,
    person: &Person,
    catalogue: &Catalogue,
    tool: &str,
    arguments: &str,
) -> Result<Vec<CoveringAllowance>, Error> {
    let (Some(terms), Ok(arguments)) = (catalogue.terms(tool), serde_json::from_str::<Map<String, Value>>(arguments))
    else {
        return Ok(Vec::new());
    };
    let found = allowance::covering(tx, person.id, agent.id, &terms, &arguments)?;
    let shown = |held: registry::allowances::Allowance| {
        Some(CoveringAllowance {
            id: u64::try_from(held.id).ok()?,
            uses_left: held.uses_max.saturating_sub(held.uses),
            expires_at: rfc3339(held.expires_at),
        })
    };
    Ok(found.into_iter().filter_map(shown).collect())
}

/// Returns the ceilings of the agent and of the host for a day.
fn ceilings(tx: &ReadTx<'_>, settings: &LiveSettings, agent: &Agent) -> Result<Vec<Ceiling>, Error> {
    let part = UsagePart { agent: Some(agent.id), ..UsagePart::default() };
    let all = usage::ceilings(tx, &settings.host_policy.budget, part)?;
    Ok(all.into_iter().filter(|ceiling| ceiling.name.is_daily()).collect())
}
