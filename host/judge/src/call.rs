//! The judgement of one call in stages: denied, permitted, or with all the reasons why it needs a person.
//!
//! Pure: the caller brings everything that a stage reads, and never runs a call without the [`Permit`]. See [`stages`].

mod stages;
#[cfg(test)]
mod tests;

use crate::class::{Class, Classes};
use crate::egress::Loopback;
use crate::inputs::Inputs;
use crate::manifest::Manifest;
use crate::principal::{Principal, ReceiverPolicy};
use crate::provenance::Labels;
use ironclaw_operator::{Decider, DenialCode, StageAnswer};
use serde_json::{Map, Value};

pub use ironclaw_contract::seam::change::GuardMode as Mode;
pub use ironclaw_operator::JudgementStage as Stage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nothing stops the call here.
    Pass,
    /// The call needs a person.
    Ask(DenialCode),
    Deny(DenialCode),
    /// The mode lifted the stage; has the code that would have stopped the call, if the mode still judges it.
    Lifted(Option<DenialCode>),
    /// A flow of the schedule, which people approved, covers the call in place of this reason.
    Covered(DenialCode),
}

impl Answer {
    /// Returns its word in explanations.
    pub const fn word(self) -> StageAnswer {
        match self {
            Self::Pass => StageAnswer::Pass,
            Self::Ask(_) => StageAnswer::Ask,
            Self::Deny(_) => StageAnswer::Deny,
            Self::Lifted(_) => StageAnswer::Lifted,
            Self::Covered(_) => StageAnswer::Covered,
        }
    }

    /// Returns the code, if there is one.
    pub const fn code(self) -> Option<DenialCode> {
        match self {
            Self::Pass => None,
            Self::Ask(code) | Self::Deny(code) | Self::Covered(code) => Some(code),
            Self::Lifted(code) => code,
        }
    }
}

/// A reason why a call needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The stage that found it.
    pub stage: Stage,
    pub code: DenialCode,
    /// The arguments that it concerns, by name; empty for the call as a whole.
    pub arguments: Vec<String>,
}

impl Reason {
    /// Returns the person who can remove it.
    pub const fn decider(&self) -> Decider {
        match self.stage {
            Stage::AlwaysAsk => Decider::Policy,
            _ => Decider::Principal,
        }
    }
}

/// What a request over the network is, by the grants of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// A grant covers it; it is of this class.
    As(Class),
    /// No grant covers it; has the code of the difference.
    Missing(DenialCode),
}

/// Everything that the stages read.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// The manifest of the tool, if the tool exists.
    pub manifest: Option<&'a Manifest>,
    /// The reason why the agent does not have the tool, or may not call it now.
    pub missing: Option<DenialCode>,
    /// The arguments; `None` if they are no object of strict JSON.
    pub arguments: Option<&'a Map<String, Value>>,
    /// True if the turn may have another call.
    pub has_room: bool,
    /// The kind of principal of the turn.
    pub principal: Principal,
    /// The policy of the agent about principals.
    pub receiver: &'a ReceiverPolicy,
    /// The classes of the request that the turn works on.
    pub scope: Classes,
    /// True if the person of the request declared the scope, so that it binds contained calls too.
    pub binds_contained: bool,
    /// True if the call may write into a directory of the machine that people granted for writing.
    pub writes_granted: bool,
    /// True if people want to be asked about each call of the tool by this agent.
    pub asks_always: bool,
    /// The labels of the output with the call: those of its context.
    pub labels: Labels,
    /// The values of the control fields, bound to those that the person typed.
    pub inputs: &'a Inputs,
    /// True if the context holds notes that were kept for another person.
    pub has_notes_of_others: bool,
    /// True if a flow of the schedule has this tool, this destination, and each source of text of others in the context.
    pub is_covered: bool,
    /// Returns whether the turn's person typed a value in this task.
    pub is_typed: &'a dyn Fn(&str) -> bool,
    /// Whether a URL of this machine counts as an address.
    pub loopback: Loopback,
    /// For a request over the network, what the grants say about it.
    pub granted: Option<Granted>,
    /// How strictly calls are judged.
    pub mode: Mode,
}

/// The proof that a call is permitted. Only [`judge`] makes it, and [`Judgement::permit`] for a call that people approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    class: Class,
}

impl Permit {
    pub const fn class(self) -> Class {
        self.class
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Permitted(Permit),
    /// It may not run, and no person can change that for this call.
    Denied(DenialCode),
    /// It may run after the yes of a person for each reason.
    NeedsPerson(Vec<Reason>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// The class of the call, if the tool is classified.
    pub class: Option<Class>,
    /// True if the call does nothing but read, and sends a third party no value that the model chose.
    pub is_plain_read: bool,
    /// The answer of each stage, up to the one that denied.
    pub trace: Vec<(Stage, Answer)>,
}

impl Judgement {
    /// Returns the permit of a call that needs people, if they approved each of its reasons.
    pub fn permit(&self, is_approved: impl Fn(&Reason) -> bool) -> Option<Permit> {
        match &self.verdict {
            Verdict::Permitted(permit) => Some(*permit),
            Verdict::NeedsPerson(reasons) if reasons.iter().all(is_approved) => {
                self.class.map(|class| Permit { class })
            }
            Verdict::NeedsPerson(_) | Verdict::Denied(_) => None,
        }
    }

    /// Returns the codes that would have stopped the call in mode `enforce`.
    pub fn would_have_blocked(&self) -> impl Iterator<Item = DenialCode> {
        would_have_blocked(&self.trace)
    }
}

/// Returns the codes in the answers of stages that would have stopped the call in mode `enforce`.
pub fn would_have_blocked(trace: &[(Stage, Answer)]) -> impl Iterator<Item = DenialCode> {
    trace.iter().filter_map(|(_, answer)| match answer {
        Answer::Lifted(code) => *code,
        Answer::Pass | Answer::Ask(_) | Answer::Deny(_) | Answer::Covered(_) => None,
    })
}

pub fn judge(call: &CallContext<'_>) -> Judgement {
    let (mut trace, mut reasons) = (Vec::with_capacity(Stage::ALL.len()), Vec::new());
    let class = stages::class(call);
    let is_plain_read = stages::is_plain_read(call);
    for stage in Stage::ALL {
        let found = if call.mode == Mode::DangerousOff && stage.is_lifted_by_modes() {
            stages::Found::Lifted
        } else {
            stages::look(stage, call)
        };
        match found {
            stages::Found::Nothing => trace.push((stage, Answer::Pass)),
            stages::Found::Lifted => trace.push((stage, Answer::Lifted(None))),
            stages::Found::Fault(code) if call.mode == Mode::DangerousWarn && stage.is_lifted_by_modes() => {
                trace.push((stage, Answer::Lifted(Some(code))));
            }
            stages::Found::Fault(code) => {
                trace.push((stage, Answer::Deny(code)));
                return Judgement { verdict: Verdict::Denied(code), class, is_plain_read, trace };
            }
            stages::Found::Reasons(found) => {
                let answer: fn(DenialCode) -> Answer = match call.mode {
                    Mode::DangerousWarn if stage.is_lifted_by_modes() => |code| Answer::Lifted(Some(code)),
                    _ if call.is_covered && stage.is_covered_by_flows() => Answer::Covered,
                    _ => Answer::Ask,
                };
                for reason in found {
                    let answer = answer(reason.code);
                    trace.push((stage, answer));
                    reasons.extend(matches!(answer, Answer::Ask(_)).then_some(reason));
                }
            }
        }
    }
    let verdict = match class {
        Some(class) if reasons.is_empty() => Verdict::Permitted(Permit { class }),
        Some(_) => Verdict::NeedsPerson(reasons),
        // The stage `classified` denies such a call.
        None => Verdict::Denied(DenialCode::CallUnclassified),
    };
    Judgement { verdict, class, is_plain_read, trace }
}
