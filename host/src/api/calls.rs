//! Tools with their manifests, the judgement of a call, and a trial of a judgement.
//!
//! Never runs a call. Never shows a call of another person, except to an admin. See `turns::calls`.

use super::handler::{Answer, Api, Body, Caller, Reply};
use super::named::id;
use crate::calls::executor::facts::SupposedTurn;
use crate::calls::supposition;
use crate::channels::outbound::delivery::sent_files;
use crate::gateway::requests;
use crate::registry::policy::{self, Policy};
use crate::registry::tools;
use crate::registry::{self, Person, Role, egress};
use crate::sessions::store;
use crate::turns::calls::{self, CallRow, CallState, Judgement, ResultBody, Runs};
use crate::turns::items;
use crate::turns::turn;
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_contract::ids::{CallId, TurnId};
use ironclaw_contract::seam::change::Egress;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::call::{Answer as Answered, Stage};
use ironclaw_judge::manifest;
use ironclaw_judge::provenance::Provenance;
use ironclaw_judge::scope::declared::{Declaration, DeclarationError};
use ironclaw_judge::{Class, Principal};
use ironclaw_operator::{
    Bound, CallStage, CallWhy, DenialCode, EgressGrant, ManifestSchema, MessageCall, StageAnswer, TestCall, TestedCall,
    Tool, ToolRule,
};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::messages::Message;
use ironclaw_store::tables::schedules::OfTurn;
use std::sync::Arc;

/// Characters of the result of a call that `why` shows.
const RESULT_CHARACTERS_MAX: usize = 4_000;

/// `GET /v1/calls/{id}/why`
pub async fn why(Caller { api, person, .. }: Caller, Path(call): Path<String>) -> Reply<CallWhy> {
    let call: CallId = id(&call, DenialCode::CallUnknown, "call")?;
    let record = Arc::clone(&api.record);
    let found = api.state().read(move |tx| read_call(tx, &record.wrapping, &person, call));
    let unknown = || Refusal::new(DenialCode::CallUnknown, format!("you have no call {call}"));
    Ok(Json(found.await?.ok_or_else(unknown)?))
}

/// Returns the judgement of a call that this person may see.
fn read_call(tx: &ReadTx<'_>, wrapping: &WrappingKey, person: &Person, call: CallId) -> Result<Option<CallWhy>, Error> {
    let (Some(row), Some(judged)) = (calls::find(tx, call)?, calls::judgement_of(tx, call)?) else { return Ok(None) };
    let Some(turn) = turn::find(tx, row.turn)? else { return Ok(None) };
    let is_own = turn.person().is_ok_and(|principal| principal == person.id);
    if !person.role.covers(Role::Admin) && !is_own {
        return Ok(None);
    }
    // The transcript is the way to a conversation of another person, and leaves an entry in the ledger.
    let result = if is_own { result(tx, wrapping, &row)? } else { None };
    let stages: Vec<_> = recorded(&judged.stages);
    let lifted = stages.iter().filter(|stage| stage.answer == StageAnswer::Lifted).filter_map(|stage| stage.code);
    let would_have_blocked = if row.state == CallState::Refused { Vec::new() } else { lifted.collect() };
    let request = requests::find_by_call(tx, call)?;
    let summary = match row.state {
        CallState::Asked => summary_of_asked(request.as_ref().map(|request| request.status)),
        CallState::Void if row.runs == Some(Runs::Await) && tools::is_made_again(&row.tool) => {
            "The call was approved, and its agent makes it again: the equal call runs.".to_owned()
        }
        state => summary(state, judged.code),
    };
    let bound = bound_of(call, &judged)?;
    let summary = match &bound {
        Some(bound) => format!("{summary} {}.", calls::in_words(bound)),
        None => summary,
    };
    Ok(Some(CallWhy {
        call_id: call,
        session_id: row.session,
        turn_id: row.turn,
        tool: row.tool,
        class: judged.class,
        status: row.state,
        code: judged.code,
        stages,
        would_have_blocked,
        summary,
        bound,
        request: request.map(|request| request.id),
        result,
        file: sent_files::find(tx, call)?,
    }))
}

/// Returns the bound by which a call was refused.
fn bound_of(call: CallId, judged: &calls::CallJudgement) -> Result<Option<Bound>, ironclaw_state::Error> {
    let bound = judged.bound.as_deref().map(serde_json::from_str::<Bound>).transpose();
    bound.map_err(|_| ironclaw_state::Error::Stored(format!("the bound of {call} is damaged")))
}

/// Returns the beginning of the text of a call's result; `None` if the record no longer has it.
fn result(tx: &ReadTx<'_>, wrapping: &WrappingKey, row: &CallRow) -> Result<Option<String>, Error> {
    let item = row.result.map(|item| items::find(tx, item)).transpose()?.flatten();
    let (Some(item), Some(session)) = (item, store::find(tx, row.session)?) else { return Ok(None) };
    let key = session.content_key(wrapping)?;
    let body = items::body(tx, &item, &key)?;
    let text = match item.tuple.kind {
        // The outcome of a late call is a message.
        ItemKind::Message | ItemKind::Notice => body,
        ItemKind::Result | ItemKind::Output | ItemKind::Summary => serde_json::from_str::<ResultBody>(&body)
            .map(|result| result.text)
            .map_err(|_| ironclaw_state::Error::Stored(format!("the result of {} is damaged", row.id)))?,
    };
    Ok(Some(text.chars().take(RESULT_CHARACTERS_MAX).collect()))
}

/// Returns recorded answers with the meaning of their codes.
fn recorded(stages: &str) -> Vec<CallStage> {
    let told = calls::answers(stages).map(|(stage, answer, code)| CallStage {
        stage,
        answer,
        code,
        meaning: code.map(|code| code.meaning().to_owned()),
    });
    told.collect()
}

/// Returns the state of a call that waited for people, by the state of its request.
fn summary_of_asked(request: Option<ironclaw_operator::WaitingStatus>) -> String {
    use ironclaw_operator::WaitingStatus as Status;
    match request {
        Some(Status::Pending) => "The call waits for people.".to_owned(),
        Some(Status::Approved) => "The call is approved, and it was not made yet.".to_owned(),
        Some(status) => format!("The call does not wait any longer: its request is {}.", status.name()),
        None => "An equal later call of the same task took over the request of this call.".to_owned(),
    }
}

fn summary(state: CallState, code: Option<DenialCode>) -> String {
    match state {
        CallState::Permitted => "The call is permitted and has no result yet.".to_owned(),
        CallState::Asked => "The call waits for people.".to_owned(),
        CallState::Running => "The host runs the call.".to_owned(),
        CallState::Done => "The call was made, and it has its result.".to_owned(),
        CallState::Failed => "The call was made and failed; its result says why.".to_owned(),
        CallState::Queued => "The call was made. Its message waits for its delivery.".to_owned(),
        CallState::Unknown => {
            "The call was begun. It is unknown if it had its effect, and it does not run again.".to_owned()
        }
        CallState::Void => "The call was permitted. Its turn ended before it began, so it was not made.".to_owned(),
        CallState::Refused => match code {
            Some(code) => format!("The call was refused: {}", code.meaning()),
            None => "The call was refused by an earlier version of the host, which kept no code.".to_owned(),
        },
    }
}

/// `GET /v1/tools`
pub async fn tools(State(api): State<Api>) -> Reply<Vec<Tool>> {
    let agents =
        api.state().read(registry::agents).await.map_err(|error: ironclaw_state::Error| Answer::from(error))?;
    let has = |tool: &str| {
        let having = agents.iter().filter(|agent| agent.enabled_tools.iter().any(|name| name == tool));
        having.map(|agent| agent.name.clone()).collect()
    };
    let asked = |tool: &str| {
        let asked = agents.iter().filter(|agent| tools::asked_tools(&agent.enabled_tools).any(|name| name == tool));
        asked.map(|agent| agent.name.clone()).collect()
    };
    let policy = &api.gateway.now().policy;
    let view = |tool: &'static tools::Tool| Tool {
        agents: has(tool.name),
        always_asked_of: asked(tool.name),
        ..view(tool, &tool.manifest, rules(policy, tool.name))
    };
    Ok(Json(tools::builtin().iter().map(view).collect()))
}

/// `GET /v1/tools/schema`
pub async fn schema() -> Reply<ManifestSchema> {
    Ok::<_, Answer>(Json(ManifestSchema(manifest::schema())))
}

/// Returns the rules of the policy for the calls of a tool.
fn rules(policy: &Policy, tool: &str) -> Vec<ToolRule> {
    policy::decided_classes(tool).map(|class| rule_for(policy, class, tool)).collect()
}

/// Returns the rule of the policy for the calls of a tool of this class.
pub(super) fn rule_for(policy: &Policy, class: Class, tool: &str) -> ToolRule {
    let rule = policy.call_rule(class, tool);
    ToolRule {
        class,
        table: policy.call_table(class, tool).map(|calls| calls.to_string()),
        roles: rule.roles.clone(),
        approvals: rule.approvals,
        requester_may_approve: rule.requester_may_approve,
        expires_hours: rule.expires_hours,
    }
}

/// Returns the answers of the stages of a judgement with the meaning of their codes.
pub(super) fn answers(trace: &[(Stage, Answered)]) -> Vec<CallStage> {
    recorded(&calls::stages(trace))
}

fn view(tool: &tools::Tool, manifest: &manifest::Manifest, rules: Vec<ToolRule>) -> Tool {
    Tool {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        class: manifest.class,
        reach: manifest.reach,
        reversible: manifest.reversible,
        always_ask: manifest.always_ask,
        effect: manifest.effect.clone(),
        arguments: tools::fields(manifest),
        rules,
        agents: Vec::new(),
        always_asked_of: Vec::new(),
    }
}

/// `GET /v1/egress`
pub async fn egress(State(api): State<Api>) -> Reply<Vec<EgressGrant>> {
    let look = |tx: &ReadTx<'_>| Ok::<_, Error>(egress::egress_of_all(tx)?.into_iter().map(grant).collect());
    Ok(Json(api.state().read(look).await?))
}

/// `GET /v1/agents/{agent}/egress`
pub async fn egress_of(Caller { api, person, .. }: Caller, Path(agent): Path<String>) -> Reply<Vec<EgressGrant>> {
    let look = api.state().read(move |tx| {
        let agent = registry::named_agent(tx, &person, &agent).map_err(Denied::<Error>::from)?;
        let grants = egress::egress_of(tx, agent.id).map_err(Error::from)?;
        Ok::<_, Denied<Error>>(grants.into_iter().map(grant).collect())
    });
    Ok(Json(look.await?))
}

pub(super) fn grant(held: egress::EgressGrant) -> EgressGrant {
    let Egress { host, port, methods, paths, secret, upload_bytes_max, commands } = held.granted;
    EgressGrant { agent: held.agent_name, host, port, methods, paths, secret, upload_bytes_max, commands }
}

/// Returns what a supposed request declares.
///
/// # Errors
/// Refuses words that are no declaration.
fn declaration(words: &[String]) -> Result<Option<Declaration>, Refusal> {
    if words.is_empty() {
        return Ok(None);
    }
    let malformed = |error: DeclarationError| Refusal::new(DenialCode::RequestMalformed, error.to_string());
    Declaration::read(words.iter().map(String::as_str)).map(Some).map_err(malformed)
}

/// `POST /v1/tools/{tool}/test`
pub async fn test(
    Caller { api, person, .. }: Caller,
    Path(tool): Path<String>,
    Body(asked): Body<TestCall>,
) -> Reply<TestedCall> {
    let declared = supposition::declared(declaration(&asked.allow)?);
    let named = asked.agent;
    let settings = api.gateway.now();
    let look = api.state().read(move |tx| {
        let agent = registry::named_agent(tx, &person, &named).map_err(Denied::<Error>::from)?;
        let typed = match asked.typed {
            true => supposition::typed_texts(&asked.arguments),
            false => Vec::new(),
        };
        let turn = SupposedTurn {
            principal: Principal::Person,
            person: person.id,
            scope: settings.policy.receiver_of(&agent).person.asked(&declared.to_string()),
            binds_contained: declared.binds_contained(),
            labels: supposition::context(if asked.external { Provenance::Others } else { Provenance::Person }),
            typed,
            of_schedule: OfTurn::default(),
            of_agents: Vec::new(),
        };
        let call = supposition::Call { agent: &agent, person: &person, tool: &tool, arguments: &asked.arguments };
        Ok::<_, Denied<Error>>(supposition::judge_in(tx, &settings, &call, turn)?.judged)
    });
    let judged = look.await?;
    let stages = answers(&judged.by_stages.trace);
    Ok(Json(match judged.judgement {
        Judgement::Permitted { class, .. } => {
            TestedCall { status: CallState::Permitted, class: Some(class), code: None, stages, advice: None }
        }
        Judgement::NeedsPerson { class, reasons, .. } => TestedCall {
            status: CallState::Asked,
            class: Some(class),
            code: Some(calls::main_code(&reasons)),
            stages,
            advice: None,
        },
        Judgement::Refused { code, .. } => TestedCall {
            status: CallState::Refused,
            class: None,
            code: Some(code),
            stages,
            advice: Some(calls::advice(code).to_owned()),
        },
    }))
}

/// Returns the calls of every attempt at a message for its view, in their order.
pub(super) fn for_message(tx: &ReadTx<'_>, message: &Message) -> Result<Vec<MessageCall>, Error> {
    let mut all = Vec::new();
    for turn in turn::attempts_at(tx, message)? {
        all.extend(for_turn(tx, turn)?);
    }
    Ok(all)
}

fn for_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<MessageCall>, Error> {
    let mut all = Vec::new();
    for (call, judgement) in calls::for_turn(tx, turn)? {
        let request = match call.runs {
            Some(_) => requests::find_by_call(tx, call.id)?.map(|request| request.id),
            None => None,
        };
        // An equal call of a later attempt took over its request.
        let state = if call.state == CallState::Asked && request.is_none() { CallState::Void } else { call.state };
        all.push(MessageCall {
            bound: bound_of(call.id, &judgement)?,
            id: call.id,
            tool: call.tool,
            class: judgement.class,
            status: state,
            code: judgement.code,
            request,
            file: sent_files::find(tx, call.id)?,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
