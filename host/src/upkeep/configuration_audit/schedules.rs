//! The findings about schedules: those that fail or that the host paused, and those whose runs act outside without a question.
//!
//! Looks at the rows, and judges no prompt. See [`crate::runtime::schedules`] for the runs.

use crate::registry;
use crate::registry::schedules::{self, Schedule, State, paused_by_host};
use crate::registry::tools;
use crate::runtime::schedules::remedy;
use ironclaw_judge::Class;
use ironclaw_operator::Finding;
use ironclaw_state::{Error, ReadTx};

/// Adds the findings about every schedule.
pub(super) fn find(tx: &ReadTx<'_>, all: &mut Vec<Finding>) -> Result<(), Error> {
    for row in schedules::all(tx)?.into_iter().filter(|row| row.state != State::Removed) {
        let agent = registry::agent_name(tx, row.agent)?;
        let (schedule, name) = (row.id, row.name.clone());
        if let Some(reason) = paused_by_host(&row) {
            let (reason, remedy) = (reason.to_owned(), remedy(tx, &row, reason)?);
            all.push(Finding::SchedulePaused { schedule, name, agent, reason, remedy });
            continue;
        }
        if row.state != State::Active {
            continue;
        }
        if let Some(since) = row.failing_since {
            let since = ironclaw_ledger::rfc3339(since);
            all.push(Finding::ScheduleFailing { schedule, name: name.clone(), agent: agent.clone(), since });
        }
        if acts_outside(&row) {
            let may = row.may.clone();
            all.push(Finding::ScheduleUnasked { schedule, name: name.clone(), agent: agent.clone(), may });
        }
        for flow in &row.flows {
            all.push(Finding::ScheduleSends {
                schedule,
                name: name.clone(),
                agent: agent.clone(),
                to: flow.to.clone(),
                recipient: flow.recipient.clone().unwrap_or_default(),
                from: flow.from.iter().map(|source| source.directory.clone()).collect(),
            });
        }
    }
    Ok(())
}

/// Returns whether the list of a schedule has more than notes and files of its own. A tool of an MCP server acts outside.
fn acts_outside(row: &Schedule) -> bool {
    let is_inside = |class: Class| matches!(class, Class::Read | Class::Write);
    let stays = |entry: &String| match entry.parse::<Class>() {
        Ok(class) => is_inside(class),
        Err(_) => tools::manifest(entry).is_some_and(|tool| tool.classes().iter().all(is_inside)),
    };
    !row.may.iter().all(stays)
}
