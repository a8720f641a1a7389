//! The stages of a judgement, each a pure function over the context of the call.
//!
//! A stage never depends on the answer of another one.

use super::{CallContext, Granted, Mode, Reason, Stage};
use crate::class::{Class, Classes};
use crate::manifest::{Manifest, Reach};
use crate::principal::Principal;
use crate::provenance::ArgumentOrigin;
use ironclaw_operator::DenialCode;

/// What a stage found.
pub(super) enum Found {
    /// Nothing that stops the call.
    Nothing,
    /// The mode leaves the stage out.
    Lifted,
    /// A fault that no person can lift for this call.
    Fault(DenialCode),
    /// A reason to ask.
    Reason(Reason),
}

impl Found {
    fn fault_if(is_fault: bool, code: DenialCode) -> Self {
        if is_fault { Self::Fault(code) } else { Self::Nothing }
    }

    fn reason_if(is_reason: bool, stage: Stage, code: DenialCode) -> Self {
        if is_reason { Self::Reason(Reason { stage, code, arguments: Vec::new() }) } else { Self::Nothing }
    }
}

/// Returns the class of a call: that of its manifest, or for a request over the network that of its grant.
pub(super) fn class(call: &CallContext<'_>) -> Option<Class> {
    match (call.manifest?, call.granted) {
        (Manifest { reach: Reach::Http, .. }, Some(Granted::As(class))) => Some(class),
        (manifest, _) => Some(manifest.class),
    }
}

/// Returns what a stage finds.
pub(super) fn look(stage: Stage, call: &CallContext<'_>) -> Found {
    let Some(manifest) = call.manifest else {
        return Found::fault_if(stage == Stage::Known, DenialCode::CallToolUnknown);
    };
    let class = class(call).unwrap_or(manifest.class);
    let is_outward = !manifest.is_contained() && manifest.reach != Reach::Action;
    match stage {
        Stage::Known => Found::fault_if(call.arguments.is_none(), DenialCode::CallMalformed),
        Stage::Classified => Found::fault_if(!is_ruled(manifest, call), DenialCode::CallUnclassified),
        Stage::Granted => call.missing.map_or(Found::Nothing, Found::Fault),
        Stage::Receiver => {
            let may = call.receiver.allowed(call.principal).may;
            // An approved change enabled the contained tool for the people of this agent.
            let is_own = manifest.is_contained() && call.principal == Principal::Person;
            let code = match call.principal {
                Principal::Schedule => DenialCode::CallSchedule,
                Principal::Person | Principal::Guest | Principal::Agent | Principal::Unsigned => {
                    DenialCode::CallPrincipal
                }
            };
            Found::fault_if(!is_own && !has_all(may, class, manifest), code)
        }
        Stage::Budget => Found::fault_if(!call.has_room, DenialCode::CallNoRoom),
        Stage::Scope => {
            Found::reason_if(is_outward && !has_all(call.scope, class, manifest), stage, DenialCode::CallScope)
        }
        Stage::Inputs => {
            let acts = matches!(class, Class::Write | Class::Send | Class::Exec | Class::Trade);
            Found::reason_if(is_outward && acts && call.labels.has_foreign(), stage, DenialCode::CallOrigin)
        }
        Stage::Outward => outward(manifest, class, call),
        Stage::AlwaysAsk => always_ask(manifest, class, call),
    }
}

/// Returns whether a set has the class of a call, and the further classes of its tool.
fn has_all(set: Classes, class: Class, manifest: &Manifest) -> bool {
    set.has(class) && manifest.also.iter().all(|also| set.has(*also))
}

/// Returns whether each argument of the call has a rule, and a request over the network was compared with the grants.
fn is_ruled(manifest: &Manifest, call: &CallContext<'_>) -> bool {
    // Nothing compares the call of a tool that the agent does not have.
    let has_grants = manifest.reach != Reach::Http || call.granted.is_some() || call.missing.is_some();
    let mut names = call.arguments.into_iter().flat_map(|arguments| arguments.keys());
    has_grants && names.all(|name| manifest.arguments.contains_key(name))
}

/// Finds values that leave, although no person typed them and the context holds text of others.
///
/// A request over the network that only reads never asks: its grant has the paths, and any other is of class `send`. A tool of an MCP
/// server that only reads has no outward argument, unless a person confirmed one: the words for a search engine, for example.
fn outward(manifest: &Manifest, class: Class, call: &CallContext<'_>) -> Found {
    let Some(arguments) = call.arguments else { return Found::Nothing };
    let is_granted_read = class == Class::Read && manifest.reach == Reach::Http;
    if is_granted_read || !call.labels.has_foreign() {
        return Found::Nothing;
    }
    let leaves = |name: &str| manifest.arguments.get(name).is_some_and(|argument| argument.outward);
    let origins = ArgumentOrigin::list(arguments, leaves, call.is_typed).into_iter();
    let arguments: Vec<String> = origins.filter(|origin| !origin.typed).map(|origin| origin.argument).collect();
    if arguments.is_empty() {
        return Found::Nothing;
    }
    Found::Reason(Reason { stage: Stage::Outward, code: DenialCode::CallOutward, arguments })
}

fn always_ask(manifest: &Manifest, class: Class, call: &CallContext<'_>) -> Found {
    if let Some(Granted::Missing(code)) = call.granted {
        return Found::reason_if(true, Stage::AlwaysAsk, code);
    }
    let asks = manifest.always_ask || class == Class::Trade;
    debug_assert!(call.mode != Mode::DangerousOff || !Stage::AlwaysAsk.is_lifted_by_modes());
    Found::reason_if(asks, Stage::AlwaysAsk, DenialCode::CallAlwaysAsks)
}
