//! The stages of a judgement, each a pure function over the context of the call.
//!
//! A stage never depends on the answer of another one.

use super::{CallContext, Granted, Mode, Reason, Stage};
use crate::class::{Class, Classes};
use crate::inputs::Severity;
use crate::manifest::{Manifest, Reach, Rule};
use crate::principal::Principal;
use crate::provenance::typed::is_typed_value;
use crate::provenance::typed::values::has_untyped_address;
use ironclaw_operator::DenialCode;
use serde_json::Value;

/// What a stage found.
pub(super) enum Found {
    /// Nothing that stops the call.
    Nothing,
    /// The mode leaves the stage out.
    Lifted,
    /// A fault that no person can lift for this call.
    Fault(DenialCode),
    /// Reasons to ask, each with another code.
    Reasons(Vec<Reason>),
}

impl Found {
    fn fault_if(is_fault: bool, code: DenialCode) -> Self {
        if is_fault { Self::Fault(code) } else { Self::Nothing }
    }

    fn reason_if(is_reason: bool, stage: Stage, code: DenialCode) -> Self {
        if is_reason { Self::Reasons(vec![Reason { stage, code, arguments: Vec::new() }]) } else { Self::Nothing }
    }
}

/// Returns the class of a call: that of its manifest, or for a request over the network that of its grant.
pub(super) fn class(call: &CallContext<'_>) -> Option<Class> {
    match (call.manifest?, call.granted) {
        (Manifest { reach: Reach::Http, .. }, Some(Granted::As(class))) => Some(class),
        (manifest, _) => Some(manifest.class),
    }
}

/// Returns whether a call does nothing but read, and each value for a third party is one that the person typed, or one by reference.
pub(super) fn is_plain_read(call: &CallContext<'_>) -> bool {
    let (Some(manifest), Some(arguments)) = (call.manifest, call.arguments) else { return false };
    let only_reads = class(call) == Some(Class::Read) && manifest.also.is_empty();
    let is_outward = |name: &str| manifest.arguments.get(name).is_none_or(|argument| argument.outward);
    let is_given = |name: &str, value: &Value| call.inputs.has_whole(name) || is_typed_value(value, call.is_typed);
    only_reads && arguments.iter().all(|(name, value)| !is_outward(name) || is_given(name, value))
}

/// Returns what a stage finds.
pub(super) fn look(stage: Stage, call: &CallContext<'_>) -> Found {
    let Some(manifest) = call.manifest else {
        return Found::fault_if(stage == Stage::Known, DenialCode::CallToolUnknown);
    };
    let class = class(call).unwrap_or(manifest.class);
    let is_outward = !manifest.is_contained() && manifest.reach != Reach::Action;
    match stage {
        Stage::Known => match call.inputs.first(Severity::Unresolved) {
            _ if call.arguments.is_none() => Found::Fault(DenialCode::CallMalformed),
            Some(unresolved) => Found::Fault(unresolved.code),
            None => Found::Nothing,
        },
        Stage::Classified => Found::fault_if(!is_ruled(manifest, call), DenialCode::CallUnclassified),
        Stage::Granted => call.missing.map_or(Found::Nothing, Found::Fault),
        Stage::Receiver => {
            let may = call.receiver.allowed(call.principal).may;
            let code = match call.principal {
                Principal::Schedule => DenialCode::CallSchedule,
                Principal::Person | Principal::Guest | Principal::Agent | Principal::Unsigned => {
                    DenialCode::CallPrincipal
                }
            };
            Found::fault_if(!has_all(may, class, manifest), code)
        }
        Stage::Budget => Found::fault_if(!call.has_room, DenialCode::CallNoRoom),
        Stage::Scope => {
            let is_bound = is_outward || manifest.is_contained() && call.binds_contained;
            let lacks = is_bound && !has_all(call.scope, class, manifest) || lacks_granted(manifest, class, call);
            Found::reason_if(lacks, stage, DenialCode::CallScope)
        }
        Stage::Inputs => inputs(is_outward, class, call),
        Stage::Outward => outward(manifest, class, call),
        Stage::AlwaysAsk => always_ask(manifest, class, call),
    }
}

/// Returns whether a set has the class of a call, and the further classes of its tool.
fn has_all(set: Classes, class: Class, manifest: &Manifest) -> bool {
    set.has(class) && manifest.also.iter().all(|also| set.has(*also))
}

/// Returns whether a contained call may write into a granted directory, although the request asks neither for `write` nor for its class.
fn lacks_granted(manifest: &Manifest, class: Class, call: &CallContext<'_>) -> bool {
    let is_asked = call.scope.has(Class::Write) || has_all(call.scope, class, manifest);
    call.writes_granted && manifest.is_contained() && !is_asked
}

/// Returns whether each argument of the call has a rule, and a request over the network was compared with the grants.
fn is_ruled(manifest: &Manifest, call: &CallContext<'_>) -> bool {
    // Nothing compares the call of a tool that the agent does not have.
    let has_grants = manifest.reach != Reach::Http || call.granted.is_some() || call.missing.is_some();
    let mut names = call.arguments.into_iter().flat_map(|arguments| arguments.keys());
    has_grants && names.all(|name| manifest.arguments.contains_key(name))
}

/// Finds control fields whose value no person typed. Where each has a value that a person typed in this task, text of others in the
/// context does not choose the receiver; a call without such values asks because of that text, unless the rules of its arguments say what
/// text of others may choose.
fn inputs(is_outward: bool, class: Class, call: &CallContext<'_>) -> Found {
    if let Some(denied) = call.inputs.first(Severity::Denied) {
        return Found::Fault(denied.code);
    }
    let acts = class != Class::Read || call.manifest.is_some_and(|manifest| !manifest.also.is_empty());
    if !is_outward || !acts {
        return Found::Nothing;
    }
    let mut reasons: Vec<Reason> = Vec::new();
    for finding in &call.inputs.findings {
        let argument = finding.argument.clone();
        match reasons.iter_mut().find(|reason| reason.code == finding.code) {
            Some(reason) if reason.arguments.contains(&argument) => {}
            Some(reason) => reason.arguments.push(argument),
            None => reasons.push(Reason { stage: Stage::Inputs, code: finding.code, arguments: vec![argument] }),
        }
    }
    let is_decided = is_lifted_by_inputs(call) || is_decided_by_rules(class, call);
    if reasons.is_empty() && !is_decided && call.labels.has_foreign() {
        reasons.push(Reason { stage: Stage::Inputs, code: DenialCode::CallOrigin, arguments: Vec::new() });
    }
    if reasons.is_empty() { Found::Nothing } else { Found::Reasons(reasons) }
}

/// Returns whether the person typed the value of each control field, so that text of others does not choose the receiver.
fn is_lifted_by_inputs(call: &CallContext<'_>) -> bool {
    (call.inputs.are_met() || is_sent_to_typed_address(call)) && !call.has_notes_of_others
}

/// Returns whether text of others is in the context of a request over the network whose whole address the person typed in this task. A
/// method that can replace or remove something has to be typed too. A run of a schedule has no person who sees what it sends.
fn is_sent_to_typed_address(call: &CallContext<'_>) -> bool {
    let is_request = call.manifest.is_some_and(|manifest| manifest.reach == Reach::Http);
    let text = |name| call.arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
    let adds = |method: &str| method == "POST" || (call.is_typed)(method);
    let is_addressed = text("url").is_some_and(call.is_typed) && text("method").is_some_and(adds);
    is_request && call.principal == Principal::Person && call.labels.has_foreign() && is_addressed
}

/// Returns whether the rules of its arguments decide on a call alone: it writes and does nothing else, no control field names its object,
/// at least one argument has a rule, and none has an address, a URL or an account that no person typed: it can be a receiver later. The
/// stage `outward` finds the values that leave.
fn is_decided_by_rules(class: Class, call: &CallContext<'_>) -> bool {
    let (Some(manifest), Some(arguments)) = (call.manifest, call.arguments) else { return false };
    let only_writes =
        class == Class::Write && manifest.also.iter().all(|also| matches!(also, Class::Read | Class::Write));
    let has_control = manifest.arguments.values().any(|argument| argument.rule == Rule::Floor);
    let has_rule = !arguments.is_empty() && !has_control;
    only_writes && has_rule && !call.has_notes_of_others && !arguments.values().any(|value| has_untyped(value, call))
}

/// Returns whether a value has an address, a URL or an account that no person typed.
fn has_untyped(value: &Value, call: &CallContext<'_>) -> bool {
    texts(value).any(|text| has_untyped_address(text, call.is_typed, call.loopback))
}

/// Finds values that leave, although no person typed them.
///
/// With text of others in the context, each such value asks. Where the person typed the control fields, only an address, a URL or an
/// account asks that no person typed. A request over the network that only reads never asks: its grant has the paths, and any other is of
/// class `send`. A tool of an MCP server that only reads has no outward argument, unless a person confirmed one: the words for a search
/// engine, for example.
fn outward(manifest: &Manifest, class: Class, call: &CallContext<'_>) -> Found {
    let Some(arguments) = call.arguments else { return Found::Nothing };
    let is_granted_read = class == Class::Read && manifest.reach == Reach::Http;
    // The stage `inputs` asks about a control field.
    let is_input = |name: &str| class != Class::Read && manifest.input(name).is_some();
    let leaves = |name: &str| manifest.arguments.get(name).is_some_and(|argument| argument.outward) && !is_input(name);
    let is_lifted = is_lifted_by_inputs(call);
    if is_granted_read || !is_lifted && !call.labels.has_foreign() {
        return Found::Nothing;
    }
    let asks = |value: &Value| match is_lifted {
        true => has_untyped(value, call),
        false => !is_typed_value(value, call.is_typed),
    };
    let leaving = arguments.iter().filter(|(name, _)| leaves(name));
    let arguments: Vec<String> = leaving.filter(|(_, value)| asks(value)).map(|(name, _)| name.clone()).collect();
    if arguments.is_empty() {
        return Found::Nothing;
    }
    Found::Reasons(vec![Reason { stage: Stage::Outward, code: DenialCode::CallOutward, arguments }])
}

/// Returns the texts of a value, the names of fields among them.
fn texts(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Box::new(std::iter::empty()),
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(values) => Box::new(values.iter().flat_map(texts)),
        Value::Object(fields) => {
            Box::new(fields.iter().flat_map(|(name, value)| std::iter::once(name.as_str()).chain(texts(value))))
        }
    }
}

fn always_ask(manifest: &Manifest, class: Class, call: &CallContext<'_>) -> Found {
    if let Some(Granted::Missing(code)) = call.granted {
        return Found::reason_if(true, Stage::AlwaysAsk, code);
    }
    let asks = manifest.always_ask || call.asks_always || class == Class::Trade;
    debug_assert!(call.mode != Mode::DangerousOff || !Stage::AlwaysAsk.is_lifted_by_modes());
    Found::reason_if(asks, Stage::AlwaysAsk, DenialCode::CallAlwaysAsks)
}
