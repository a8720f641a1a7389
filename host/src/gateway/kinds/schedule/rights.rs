//! The list of a schedule, and the rights of its creator, which are checked at the request and before each run.
//!
//! A list never gives a run more than its creator may have decided alone: see [`crate::registry::policy::Rule::admits_principal`].

use crate::gateway::{Proposed, Requester};
use crate::registry::policy::Policy;
use crate::registry::schedules::flows;
use crate::registry::tools::GIT_PUSH;
use crate::registry::{self, Agent, Person, mcp, roles};
use ironclaw_contract::seam::change::{Change, Schedule};
use ironclaw_judge::Class;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::excerpt::quoted;

/// The classes that a list may name beside reading, which every run may do.
const LISTED: [Class; 4] = [Class::Read, Class::Write, Class::Send, Class::Exec];

/// Returns a list of classes and tools in its one form: sorted, without `read`.
///
/// # Errors
/// Refuses a class or tool that no list may have, and a tool that the agent does not have.
pub(super) fn completed(tx: &ReadTx<'_>, agent: &Agent, may: &[String]) -> Result<Vec<String>, Denied> {
    let catalogue = mcp::catalogue(tx, agent)?;
    let mut list = Vec::with_capacity(may.len());
    for entry in may {
        match entry.parse::<Class>() {
            Ok(Class::Read) => {}
            Ok(class) if LISTED.contains(&class) => list.push(entry.clone()),
            Ok(class) => return Err(refuse(format!("calls of the class {class} always need a person")).into()),
            Err(_) if catalogue.missing(entry).is_some() => {
                let (name, shown) = (&agent.name, quoted(entry));
                let message = format!("agent {name} has no tool {shown}, and no class has this name");
                return Err(refuse(message).into());
            }
            Err(_) if entry == GIT_PUSH => {
                return Err(refuse("each push waits for a person, and a run asks none".to_owned()).into());
            }
            Err(_) => list.push(entry.clone()),
        }
    }
    list.sort();
    list.dedup();
    Ok(list)
}

fn refuse(message: String) -> Refusal {
    let refusal = Refusal::new(DenialCode::ScheduleMay, message);
    refusal.hint("a list has classes (write, send, exec) and tools of the agent: `ironctl agent show AGENT`")
}

/// A right that the creator of a schedule does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The person may not talk to the agent.
    Access,
    /// The person may not use a class in the list.
    Role(Class),
}

impl Lost {
    /// Returns its word in the history of a schedule.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Access => "creator_access",
            Self::Role(_) => "creator_role",
        }
    }
}

/// Returns the first right that a list needs and its creator does not have.
pub fn lost(
    tx: &ReadTx<'_>,
    policy: &Policy,
    creator: &Person,
    agent: &Agent,
    may: &[String],
) -> Result<Option<Lost>, ironclaw_state::Error> {
    if !roles::role_for(tx, creator, agent)?.may_talk() {
        return Ok(Some(Lost::Access));
    }
    let catalogue = mcp::catalogue(tx, agent)?;
    for entry in may {
        let classes = match (entry.parse::<Class>(), catalogue.manifest(entry)) {
            (Ok(class), _) => vec![class],
            (Err(_), Some(manifest)) => manifest.classes().iter().collect(),
            // A run cannot call a tool that the agent no longer has.
            (Err(_), None) => Vec::new(),
        };
        let is_lost = |class: &&Class| !policy.call_rule(**class, entry).admits_principal(**class, creator.role);
        if let Some(class) = classes.iter().find(is_lost) {
            return Ok(Some(Lost::Role(*class)));
        }
    }
    Ok(None)
}

/// Returns the schedule that a change adds or alters.
const fn schedule_of(change: &Change) -> Option<&Schedule> {
    match change {
        Change::Schedule(schedule) => Some(schedule),
        _ => None,
    }
}

/// Refuses a schedule that asks for more than its creator has.
pub(in crate::gateway) fn check(tx: &ReadTx<'_>, policy: &Policy, proposed: &Proposed) -> Result<(), Denied> {
    let schedules: Vec<&Schedule> = match &proposed.change {
        Change::Schedule(schedule) => vec![schedule],
        Change::Skills(skill) => skill.parts.iter().filter_map(|part| schedule_of(part.change())).collect(),
        _ => Vec::new(),
    };
    if schedules.is_empty() {
        return Ok(());
    }
    let creator = match &proposed.requester {
        Requester::Person(person) => *person,
        Requester::Agent { principal, .. } => *principal,
    };
    let Some(agent) = proposed.agent else { return Ok(()) };
    let agent = registry::known_agent(tx, agent)?;
    let Some(person) = registry::person_by_id(tx, creator)? else { return Ok(()) };
    for schedule in schedules {
        let may = schedule.may.clone().unwrap_or_default().into_iter();
        let used: Vec<String> = may.chain(flows::tools(schedule.flows.as_deref().unwrap_or_default())).collect();
        let message = match lost(tx, policy, &person, &agent, &used)? {
            None => continue,
            Some(Lost::Access) => format!("you may not talk to agent {}", agent.name),
            Some(Lost::Role(class)) => format!("your role may not use calls of the class {class}"),
        };
        return Err(Refusal::new(DenialCode::ScheduleRole, message).hint("leave the class out of the list").into());
    }
    Ok(())
}
