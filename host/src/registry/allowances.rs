//! The end of allowances, each with its ledger entry.
//!
//! Never makes one and never counts a use: [`crate::gateway::requests::allowance`] does.

use ironclaw_contract::ids::{AgentId, MessageId, PersonId};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, WriteTx};
use ironclaw_store::tables::agents as table;

pub use ironclaw_store::tables::agents::{
    Allowance, allowances, allowances_for, insert_allowance, promised_uses, use_allowance,
};

/// Returns the names of the tools that an allowance covers, for the ledger.
pub fn tools(allowance: &Allowance) -> String {
    allowance.tools.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Removes an allowance, unless it is gone.
pub fn end(tx: &mut WriteTx<'_>, allowance: &Allowance, by: Option<PersonId>, why: &str) -> Result<(), Error> {
    if !table::delete_allowance(tx, allowance.id)? {
        return Ok(());
    }
    let entry = Entry::new(LedgerEvent::AllowanceRemoved)
        .with("allowance", allowance.id)
        .with("person", allowance.person)
        .with("agent", allowance.agent)
        .with("tools", tools(allowance))
        .reason(why);
    match by {
        Some(by) => entry.with("by", by).append(tx)?,
        None => entry.append(tx)?,
    };
    Ok(())
}

fn end_if(tx: &mut WriteTx<'_>, is_over: impl Fn(&Allowance) -> bool, why: &str) -> Result<(), Error> {
    for allowance in table::allowances(tx)?.iter().filter(|allowance| is_over(allowance)) {
        end(tx, allowance, None, why)?;
    }
    Ok(())
}

/// Removes the allowances of a person whose access ends.
pub fn end_of_person(tx: &mut WriteTx<'_>, person: PersonId) -> Result<(), Error> {
    end_if(tx, |allowance| allowance.person == person, "the person was removed")
}

/// Removes the allowances of a person whose role is lower than before: with one agent, or with every agent.
pub fn end_of_role(tx: &mut WriteTx<'_>, person: PersonId, agent: Option<AgentId>) -> Result<(), Error> {
    let is_of =
        |allowance: &Allowance| allowance.person == person && agent.is_none_or(|agent| allowance.agent == agent);
    end_if(tx, is_of, "the person lost a role")
}

/// Removes the allowances for an agent that is removed.
pub fn end_of_agent(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<(), Error> {
    end_if(tx, |allowance| allowance.agent == agent, "the agent was removed")
}

/// Removes the allowances for tools that an agent no longer has.
pub fn end_of_tools(tx: &mut WriteTx<'_>, agent: AgentId, is_lost: impl Fn(&str) -> bool) -> Result<(), Error> {
    let is_lost = |allowance: &Allowance| allowance.agent == agent && allowance.tools.keys().all(|tool| is_lost(tool));
    end_if(tx, is_lost, "the agent no longer has the tool")
}

/// Removes the allowances that last until the answer of this task.
pub fn end_of_answer(tx: &mut WriteTx<'_>, root: MessageId) -> Result<(), Error> {
    for allowance in table::allowances_until_answer(tx, root)? {
        end(tx, &allowance, None, "the turn ended")?;
    }
    Ok(())
}

/// Removes the allowances that are of another manifest than that of `is_current`.
pub fn end_outdated(tx: &mut WriteTx<'_>, is_current: impl Fn(&Allowance) -> bool) -> Result<(), Error> {
    end_if(tx, |allowance| !is_current(allowance), "the manifest of the tool changed")
}

/// Removes every allowance, in a record that was put back to an earlier state.
pub fn end_all(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    end_if(tx, |_| true, "the record was put back to an earlier state")
}
