//! The judgement of a call that is not made, at a supposed request of each kind.
//!
//! Has no rule of its own: it calls the functions that judge a real call, and records nothing. See [`calls::judge`] and
//! [`requests::answer_at_once`].

use crate::calls::executor::facts::{self, SupposedTurn};
use crate::gateway::requests::allowance::Calling;
use crate::gateway::requests::{self, Asked, Needing};
use crate::registry::live_settings::LiveSettings;
use crate::registry::tools::{self, OutsideTool};
use crate::registry::{Agent, Person, groups};
use crate::turns::calls::{self, Judged, Judgement};
use ironclaw_judge::Principal;
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_judge::provenance::{Labels, Provenance};
use ironclaw_judge::scope::declared::Declaration;
use ironclaw_judge::scope::recorded::Recorded;
use ironclaw_model::WantedCall;
use ironclaw_operator::Supposition;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::schedules::OfTurn;
use serde_json::Value;

/// A call that is not made.
pub struct Call<'a> {
    pub agent: &'a Agent,
    /// The person on whose behalf it would be made.
    pub person: &'a Person,
    pub tool: &'a str,
    /// The arguments, as JSON text.
    pub arguments: &'a str,
}

/// A supposed request.
pub struct Request {
    pub kind: Supposition,
    /// The schedule or the trust group.
    pub of: Option<String>,
    /// The list of the schedule.
    pub of_schedule: OfTurn,
    /// The tools of the trust group.
    pub of_agents: Vec<String>,
}

impl Request {
    fn new(kind: Supposition) -> Self {
        Self { kind, of: None, of_schedule: OfTurn::default(), of_agents: Vec::new() }
    }
}

/// The judgement of a call at a supposed request.
pub struct Outcome {
    pub judged: Judged,
    /// The answer without a question, if the call needs people and none is asked.
    pub at_once: Option<Asked>,
}

/// Returns a request of each kind: for a run of `schedule`, and for a message of an agent in each trust group.
pub fn requests(
    tx: &ReadTx<'_>,
    agent: &Agent,
    schedule: Option<(String, OfTurn)>,
) -> Result<Vec<Request>, ironclaw_state::Error> {
    let mut all = Vec::new();
    for kind in Supposition::ALL {
        match (kind, &schedule) {
            (Supposition::Schedule, Some((id, list))) => {
                all.push(Request { of: Some(id.clone()), of_schedule: list.clone(), ..Request::new(kind) });
            }
            (Supposition::Agent, _) => {
                let held = groups::all(tx)?.into_iter().filter(|group| group.agents.contains(&agent.name));
                let before = all.len();
                all.extend(held.map(|group| Request {
                    of: Some(group.name),
                    of_agents: group.tools,
                    ..Request::new(kind)
                }));
                if all.len() == before {
                    all.push(Request::new(kind));
                }
            }
            _ => all.push(Request::new(kind)),
        }
    }
    Ok(all)
}

/// Judges a call at a supposed request.
pub fn judge(tx: &ReadTx<'_>, settings: &LiveSettings, call: &Call<'_>, request: &Request) -> Result<Outcome, Error> {
    let receiver = settings.policy.receiver_of(call.agent);
    let (principal, scope, provenance) = match request.kind {
        Supposition::Asked => (Principal::Person, receiver.person.may, Provenance::Person),
        Supposition::AskedWithOthers | Supposition::TypedWithOthers => {
            (Principal::Person, receiver.person.may, Provenance::Others)
        }
        Supposition::Unasked => (Principal::Person, receiver.person.unasked, Provenance::Person),
        Supposition::Schedule => (Principal::Schedule, receiver.schedule.unasked, Provenance::Person),
        Supposition::Agent => (Principal::Agent, receiver.agent.unasked, Provenance::Agent),
        Supposition::Guest => (Principal::Guest, receiver.guest.unasked, Provenance::Others),
    };
    let turn = SupposedTurn {
        principal,
        person: call.person.id,
        scope,
        binds_contained: false,
        labels: context(provenance),
        typed: match request.kind {
            Supposition::TypedWithOthers => typed_texts(call.arguments),
            _ => Vec::new(),
        },
        of_schedule: request.of_schedule.clone(),
        of_agents: request.of_agents.clone(),
    };
    judge_in(tx, settings, call, turn)
}

/// Returns the labels of an output whose context is one text of this provenance.
pub fn context(provenance: Provenance) -> Labels {
    Labels::from_provenance(Provenance::Model { context: Labels::from_provenance(provenance) })
}

/// Judges a call in a supposed turn.
pub fn judge_in(
    tx: &ReadTx<'_>,
    settings: &LiveSettings,
    call: &Call<'_>,
    turn: SupposedTurn,
) -> Result<Outcome, Error> {
    let of_person = turn.principal == Principal::Person;
    let mut facts = facts::for_supposed(tx, settings, call.agent, turn)?;
    // A push has files of the workspace, which the host reads before the judgement.
    if tools::outside(call.tool).is_some_and(OutsideTool::reads_workspace) {
        facts.reads_workspace();
    }
    let wanted = WantedCall { tool: call.tool.to_owned(), arguments: call.arguments.to_owned() };
    let mut wanted = calls::ReadCall::read(wanted);
    wanted.remove_host_arguments();
    let judged = calls::judge(call.agent, &facts, wanted, true);
    let at_once = match &judged.judgement {
        Judgement::NeedsPerson { class, reasons, .. } => {
            let (person, agent) = (call.person.id, call.agent.id);
            let calling = Calling {
                person,
                agent,
                root: None,
                call: &judged.call,
                arguments: &judged.arguments,
                is_plain_read: judged.by_stages.is_plain_read,
            };
            let needing = Needing { calling, agent: call.agent, class: *class, reasons, of_person };
            requests::answer_at_once(tx, settings, &needing)?
        }
        Judgement::Permitted { .. } | Judgement::Refused { .. } => None,
    };
    Ok(Outcome { judged, at_once })
}

/// Returns every text, name and number in the arguments of a call as if a person had typed it, and each value with its field.
pub fn typed_texts(arguments: &str) -> Vec<String> {
    let read: Value = serde_json::from_str(arguments).unwrap_or_default();
    let mut texts = Vec::new();
    collect(&read, &mut texts);
    let named = read.as_object().into_iter().flatten().filter_map(|(name, value)| match value {
        Value::String(text) => Some(format!("{name}: {text}")),
        Value::Number(number) => Some(format!("{name}: {number}")),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    texts.extend(named);
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => texts.push(number.to_string()),
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                texts.push(name.clone());
                collect(value, texts);
            }
        }
    }
}

/// Returns the scope of a message of a person with this declaration, or without one, whose words ask for nothing.
pub fn declared(declaration: Option<Declaration>) -> Recorded {
    Recorded::new(&[], declaration, None, Telling::Typed)
}
