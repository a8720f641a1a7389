//! The judgement of one tool call that a model wants: permitted, or refused with a code.
//!
//! Pure: never runs or records a call. [`ironclaw_judge`] has the stages; this file brings what they read. See [`crate::registry::tools`].

use super::action::Action;
use super::canonical_text::{self, digest};
use super::http::{self, Network};
use super::output_body::Call;
use super::read_call::ReadCall;
use super::send;
use crate::registry::Agent;
use crate::registry::tools::catalogue::{Catalogue, Source};
use crate::registry::tools::{self, Class, Runs};
use crate::turns::turn::Position;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::CallId;
use ironclaw_judge::call::{self, CallContext, Reason, Stage, Verdict};
use ironclaw_judge::inputs::{self, Handles, Input, Inputs, Tool};
use ironclaw_judge::manifest::Manifest;
use ironclaw_judge::provenance::{Labels, Provenance};
use ironclaw_judge::{Allowed, Classes, Principal, ReceiverPolicy};
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_store::tables::schedules::OfTurn;
use ironclaw_text::excerpt::start;
use serde_json::{Map, Value};

/// A call with its digest and its judgement.
#[derive(Debug, Clone)]
pub struct Judged {
    pub call: Call,
    /// The arguments of the call, read once; none if they could not be read.
    pub arguments: Map<String, Value>,
    /// Digest of the recipe's name, the tool and the arguments.
    pub digest: Digest,
    /// The values of its control fields, bound to those that the person typed.
    pub inputs: Inputs,
    pub judgement: Judgement,
    /// The judgement by the stages, with the answer of each.
    pub by_stages: call::Judgement,
}

impl Judged {
    /// Returns whether the call uses the values of its control fields up: it may run, and does more than reading.
    pub fn uses_values(&self) -> bool {
        match &self.judgement {
            Judgement::Permitted { class, .. } | Judgement::NeedsPerson { class, .. } => *class != Class::Read,
            Judgement::Refused { .. } => false,
        }
    }
}

/// The judgement of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    Permitted {
        class: Class,
        /// The place where it runs.
        runs: Runs,
    },
    /// It runs after the yes of people for each reason.
    NeedsPerson {
        class: Class,
        reasons: Vec<Reason>,
        /// Details that may quote the model: for the model alone, if no person can be asked.
        detail: String,
    },
    /// It does not run, and the model receives the reason.
    Refused {
        code: DenialCode,
        /// Details that may quote the model: for the model alone, never for the ledger or a person.
        detail: String,
        /// The bound that is reached, for a code of one.
        bound: Option<Box<Bound>>,
    },
}

impl Judgement {
    /// Refuses a call because this bound is reached.
    pub fn over(code: DenialCode, bound: Bound) -> Self {
        Self::Refused { code, detail: String::new(), bound: Some(Box::new(bound)) }
    }

    /// Returns the code of a refusal that no approval changes.
    pub const fn refusal_code(&self) -> Option<DenialCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Permitted { .. } | Self::NeedsPerson { .. } => None,
        }
    }
}

/// What a turn brings to the judgement of its calls.
#[derive(Debug, Clone)]
pub struct TurnFacts {
    /// The kind of its principal.
    pub principal: Principal,
    /// The classes that its agent takes from each kind of author, within the bound of the host.
    pub receiver: ReceiverPolicy,
    /// The classes that its request asked for.
    pub scope: Classes,
    /// True if a person declared the scope, so that it binds contained calls too.
    pub binds_contained: bool,
    /// True if people granted the agent a directory of the machine for writing.
    pub has_writable: bool,
    /// The labels of the output, and of the files that its calls read.
    pub labels: Labels,
    /// The tools of the agent.
    pub catalogue: Catalogue,
    /// For requests over the network.
    pub network: Network,
    /// The values that the person typed in this task and in the message before it, for tools with control fields.
    pub handles: Handles,
    /// True if the context may hold notes that were kept for another person.
    pub has_notes_of_others: bool,
    /// Of a schedule: the list that was approved with it.
    pub of_schedule: OfTurn,
    /// Of the message of another agent: the tools that the trust groups of its chain permit.
    pub of_agents: Vec<String>,
    /// True if a schedule began the chain of the message of another agent: then no person is asked.
    pub is_of_schedule: bool,
    /// The destinations of the agent.
    pub destinations: Vec<send::Sendable>,
    /// Of a run of a schedule: its approved flows that still hold.
    pub flows: Vec<send::OpenFlow>,
    /// The position of the turn in its chain, if a rule about chains counts: it works for an agent, or may send.
    pub position: Option<Position>,
}

impl TurnFacts {
    /// Marks the values that a recorded call takes, for the calls after it.
    pub fn use_handles(&mut self, judged: &Judged) {
        if judged.uses_values() {
            judged.call.inputs.iter().for_each(|input| self.handles.mark_used(input.handle, u64::MAX));
        }
    }

    /// Adds the labels of the workspace, because the host reads files of it for a call.
    pub fn reads_workspace(&mut self) {
        self.labels = self.labels.join(Labels::from_provenance(Provenance::Workspace));
    }
}

/// A wanted call before its stages: the host has added to its arguments what it alone knows.
struct Prepared<'a> {
    /// The code of a call that the agent cannot make now.
    missing: Option<DenialCode>,
    /// The reason why the call is malformed.
    malformed: Option<String>,
    /// For a request over the network, what the grants say about it.
    looked: Option<http::Looked>,
    /// The flow of the schedule that has this call.
    flow: Option<&'a send::OpenFlow>,
}

impl<'a> Prepared<'a> {
    /// Adds the address and the form of the request to the arguments.
    fn new(turn: &'a TurnFacts, tool: &str, read: &mut Result<Map<String, Value>, String>) -> Self {
        let mut prepared = Self { missing: turn.catalogue.missing(tool), malformed: None, looked: None, flow: None };
        let arguments = match read {
            Ok(arguments) => arguments,
            Err(why) => return Self { malformed: Some(why.clone()), ..prepared },
        };
        if prepared.missing.is_none() {
            match addressed(turn, tool, arguments) {
                Ok(missing) => prepared.missing = missing,
                Err(why) => prepared.malformed = Some(why),
            }
        }
        if prepared.missing.is_none() && tool == tools::HTTP_FETCH {
            match http::write_as_sent(arguments, &turn.network) {
                Ok((request, _)) => prepared.looked = Some(http::compare_with_grants(&request, &turn.network)),
                Err(why) => prepared.malformed = Some(why),
            }
        }
        prepared.flow = send::flow(tool, arguments, &turn.flows);
        let is_over = prepared.flow.is_some_and(|flow| flow.bound.is_some());
        prepared.missing = prepared.missing.or(is_over.then_some(DenialCode::CallSends));
        prepared
    }
}

/// Judges one call that a model wants. `has_room` is true if the turn may have another call.
pub fn judge(agent: &Agent, turn: &TurnFacts, wanted: ReadCall, has_room: bool) -> Judged {
    let ReadCall { tool: name, arguments: mut read, inputs: recorded } = wanted;
    let inputs = read.as_mut().map_or_else(|_| Inputs::default(), |read| bound(turn, &name, read, &recorded));
    let prepared = Prepared::new(turn, &name, &mut read);
    let arguments = read.as_ref().ok();
    let listed = listed(turn, &name, prepared.flow.is_some());
    let by_stages = call::judge(&CallContext {
        manifest: manifest_of(turn, &name, arguments),
        missing: prepared.missing,
        arguments: arguments.filter(|_| prepared.malformed.is_none()),
        has_room,
        principal: turn.principal,
        receiver: &receiver(turn.receiver, listed),
        scope: turn.scope.or(listed),
        binds_contained: turn.binds_contained && turn.principal == Principal::Person,
        writes_granted: turn.has_writable && tools::find(&name).is_some_and(tools::Tool::may_change_files),
        asks_always: turn.catalogue.asks_always(&name),
        labels: turn.labels,
        inputs: &inputs,
        has_notes_of_others: turn.has_notes_of_others,
        is_covered: prepared.flow.zip(arguments).is_some_and(|(flow, arguments)| flow.covers(&name, arguments)),
        is_typed: &|value| turn.network.typed.has(value),
        loopback: turn.network.loopback,
        granted: prepared.looked.as_ref().map(|looked| looked.granted),
        mode: agent.mode,
    });
    let text = arguments.map_or_else(|| "{}".to_owned(), canonical_text::text);
    let tool = recorded_name(&turn.catalogue, &name);
    let judgement = judgement(turn, &name, arguments, prepared, &inputs, &by_stages);
    let digest = digest(&tool, &text);
    let call = Call { call_id: CallId::new(), tool, arguments: text, inputs: inputs.values.clone() };
    Judged { call, arguments: read.unwrap_or_default(), digest, inputs, judgement, by_stages }
}

/// Binds the values of a call to what the person typed, and writes them in place of references.
fn bound(turn: &TurnFacts, name: &str, arguments: &mut Map<String, Value>, recorded: &[Input]) -> Inputs {
    let manifest = turn.catalogue.manifest(name).filter(|manifest| !manifest.is_contained());
    let of_server = match turn.catalogue.find(name) {
        Some(Source::Server(tool)) => Some(tool),
        Some(Source::BuiltIn(_)) | None => None,
    };
    let (server, own) = of_server.map_or(("", name), |tool| (&tool.server, &tool.tool));
    let floored = of_server.map_or(&[][..], |tool| &tool.floored);
    let parameters = turn.catalogue.parameters(name);
    let tool = manifest.zip(parameters);
    let tool = tool.map(|(manifest, parameters)| Tool { server, name: own, manifest, parameters, floored });
    match tool {
        Some(_) => inputs::bind(arguments, tool, recorded, &turn.handles, &|text| turn.network.typed.has(text)),
        // The arguments stay in the jail, and may be about anything.
        None => Inputs::default(),
    }
}

/// Returns the judgement of a call by the verdict of the stages and the place where the call runs.
fn judgement(
    turn: &TurnFacts,
    tool: &str,
    arguments: Option<&Map<String, Value>>,
    prepared: Prepared<'_>,
    inputs: &Inputs,
    by_stages: &call::Judgement,
) -> Judgement {
    let runs = turn.catalogue.find(tool).map(Source::runs);
    match (&by_stages.verdict, runs) {
        (Verdict::Permitted(permit), Some(runs)) => permitted(tool, arguments, permit.class(), runs),
        (Verdict::Permitted(_), None) => refused(DenialCode::CallToolUnknown, String::new()),
        (Verdict::Denied(DenialCode::CallMalformed), _) => {
            refused(DenialCode::CallMalformed, prepared.malformed.unwrap_or_default())
        }
        (Verdict::Denied(code), _) if is_of_inputs(*code) => refused(*code, details(inputs, &[*code])),
        (Verdict::Denied(code), _) => denied(*code, turn, tool, arguments),
        (Verdict::NeedsPerson(reasons), runs) => {
            let codes: Vec<DenialCode> = reasons.iter().map(|reason| reason.code).collect();
            let detail = prepared.looked.map_or_else(|| details(inputs, &codes), |looked| looked.detail);
            match (by_stages.class, runs) {
                // Only a person can be asked: at a message of an agent the one at the start of the chain.
                (Some(class), Some(runs)) if is_asked(turn) => match permitted(tool, arguments, class, runs) {
                    Judgement::Permitted { .. } => Judgement::NeedsPerson { class, reasons: reasons.clone(), detail },
                    malformed => malformed,
                },
                _ => needs_person(reasons, &detail),
            }
        }
    }
}

/// Returns whether a code is one about the value of a control field.
const fn is_of_inputs(code: DenialCode) -> bool {
    matches!(
        code,
        DenialCode::CallInput
            | DenialCode::CallLinkUnknown
            | DenialCode::CallLinkType
            | DenialCode::CallLinkLabel
            | DenialCode::CallLinkUsed
    )
}

/// Findings in one refusal.
const DETAILS_MAX: usize = 4;

/// Returns what is wrong with the values of control fields, for these codes.
fn details(inputs: &Inputs, codes: &[DenialCode]) -> String {
    let found = inputs.findings.iter().filter(|finding| codes.contains(&finding.code));
    found.take(DETAILS_MAX).map(|finding| finding.detail.as_str()).collect::<Vec<_>>().join("; ")
}

/// Returns the manifest of a call. A message to another agent has one of its own.
fn manifest_of<'a>(turn: &'a TurnFacts, tool: &str, arguments: Option<&Map<String, Value>>) -> Option<&'a Manifest> {
    let arguments = arguments.filter(|_| tool == tools::SEND_MESSAGE);
    let to_agent = arguments.and_then(|arguments| send::to_agent(arguments, &turn.destinations));
    to_agent.or_else(|| turn.catalogue.manifest(tool))
}

/// Adds the address to the arguments of a tool that sends. Returns the code of the reason why the agent may not send there.
fn addressed(turn: &TurnFacts, tool: &str, arguments: &mut Map<String, Value>) -> Result<Option<DenialCode>, String> {
    match tool {
        tools::SEND_MESSAGE => send::complete(arguments, &turn.destinations),
        tools::SEND_FILE => send::complete_file(arguments, &turn.destinations),
        _ => Ok(None),
    }
}

/// Returns whether a call can wait for the person of the turn.
const fn is_asked(turn: &TurnFacts) -> bool {
    match turn.principal {
        Principal::Person => true,
        Principal::Agent => !turn.is_of_schedule,
        Principal::Guest | Principal::Schedule | Principal::Unsigned => false,
    }
}

/// Returns the classes that the list of a schedule, beside reading, or of a chain's trust groups permits for a tool; a flow lists its calls.
fn listed(turn: &TurnFacts, tool: &str, has_flow: bool) -> Classes {
    if has_flow {
        return WITHOUT_TRADE;
    }
    let list = match turn.principal {
        Principal::Schedule => &turn.of_schedule.may,
        // A list of groups has names of tools, and never a class.
        Principal::Agent if turn.of_agents.iter().any(|entry| entry == tool) => &turn.of_agents,
        Principal::Person | Principal::Guest | Principal::Agent | Principal::Unsigned => return Classes::NONE,
    };
    let entry = |entry: &String| match entry.parse::<Class>() {
        Ok(class) if turn.principal == Principal::Schedule => Classes::new(&[class]),
        _ if entry == tool => Classes::new(&Class::ALL),
        _ => Classes::NONE,
    };
    list.iter().map(entry).fold(Classes::NONE, Classes::or).and(WITHOUT_TRADE)
}

/// The classes that a list can permit.
const WITHOUT_TRADE: Classes = Classes::new(&[Class::Read, Class::Write, Class::Send, Class::Exec, Class::Ask]);

/// Returns the policy about principals, with the list of the turn.
fn receiver(own: ReceiverPolicy, listed: Classes) -> ReceiverPolicy {
    let with = |of: Allowed| Allowed { may: of.may.or(listed), unasked: of.unasked };
    ReceiverPolicy { schedule: with(own.schedule), agent: with(own.agent), ..own }
}

const fn refused(code: DenialCode, detail: String) -> Judgement {
    Judgement::Refused { code, detail, bound: None }
}

/// Permits a call, unless it goes out as a row and its arguments make no action: no row is written for nothing.
fn permitted(tool: &str, arguments: Option<&Map<String, Value>>, class: Class, runs: Runs) -> Judgement {
    match runs {
        Runs::Row => match Action::read(tool, arguments.cloned().unwrap_or_default()) {
            Ok(_) => Judgement::Permitted { class, runs },
            Err(detail) => refused(DenialCode::CallMalformed, detail),
        },
        Runs::Local | Runs::Host | Runs::Await => Judgement::Permitted { class, runs },
    }
}

/// Returns the code of the first reason that a person reads. A missing grant comes first: without it, no declaration of the person helps.
pub fn main_code(reasons: &[Reason]) -> DenialCode {
    let granting = reasons.iter().find(|reason| reason.stage == Stage::AlwaysAsk);
    granting.or(reasons.first()).map_or(DenialCode::CallNeedsPerson, |reason| reason.code)
}

/// Refuses a call that needs a person, with all its reasons.
pub fn needs_person(reasons: &[Reason], detail: &str) -> Judgement {
    let code = main_code(reasons);
    let words = reasons.iter().map(|reason| reason.code.name().to_owned());
    let words = words.chain(Some(detail.to_owned()).filter(|detail| !detail.is_empty()));
    refused(code, words.collect::<Vec<_>>().join(", "))
}

/// Refuses a call with its detail, and with the bound of its destination or its flow if that is the reason.
fn denied(code: DenialCode, turn: &TurnFacts, tool: &str, arguments: Option<&Map<String, Value>>) -> Judgement {
    let of_bound = arguments.filter(|_| code.is_of_bound());
    let of_flow = |arguments| send::flow(tool, arguments, &turn.flows).and_then(|flow| flow.bound.as_ref());
    let bound =
        of_bound.and_then(|arguments| send::bound(arguments, &turn.destinations).or_else(|| of_flow(arguments)));
    let bound = bound.cloned();
    Judgement::Refused { code, detail: detail_of(code, turn, tool, arguments), bound: bound.map(Box::new) }
}

/// Returns the detail of a refusal: the destinations of the agent, or the arguments that have no rule.
fn detail_of(code: DenialCode, turn: &TurnFacts, tool: &str, arguments: Option<&Map<String, Value>>) -> String {
    let manifest = turn.catalogue.manifest(tool);
    let (arguments, manifest) = match (code, arguments, manifest) {
        (DenialCode::CallDestination | DenialCode::CallDestinationEnded, ..) => return send::names(&turn.destinations),
        (DenialCode::CallUnclassified, Some(arguments), Some(manifest)) => (arguments, manifest),
        _ => return String::new(),
    };
    let unknown = arguments.keys().filter(|name| !manifest.arguments.contains_key(*name));
    let names: Vec<&str> = unknown.map(|name| start(name, TOOL_NAME_MAX)).collect();
    format!("unknown: {}", names.join(", "))
}

/// Characters that are kept of the name of an unknown tool.
pub(super) const TOOL_NAME_MAX: usize = 64;

/// Returns the name of a tool for the record and the seal. The name of an unknown tool keeps only letters, digits, `_`, `-` and `.`,
/// because a model may write terminal escapes or text that looks like a block of the host.
fn recorded_name(catalogue: &Catalogue, name: &str) -> String {
    if catalogue.find(name).is_some() {
        return name.to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    name.chars().take(TOOL_NAME_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests;
