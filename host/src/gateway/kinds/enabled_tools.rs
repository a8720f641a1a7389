//! The kind `enabled_tools`: the tools that an agent may call.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope, concerned, incomplete, listed};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::Agent;
use crate::registry::live_settings::HostPolicy;
use crate::registry::policy::{Policy, Rule};
use crate::registry::tools::{self, RUN_COMMAND, gives_tool};
use ironclaw_contract::seam::change::{Change, EnabledTools, ToolDifference};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Agent, restarts_sessions: true };

impl Check for EnabledTools {
    fn complete(&self, _tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        let tools = match self {
            EnabledTools::All(tools) => complete(tools.clone())?,
            EnabledTools::Difference(difference) => apply_difference(difference.clone(), context.agent)?,
        };
        Ok(Change::EnabledTools(EnabledTools::All(tools)))
    }

    fn current(&self, _tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let mut tools = agent.enabled_tools.clone();
        tools.sort();
        Ok(json!(tools))
    }

    fn facts(&self, _tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({}))
    }

    /// One approval is enough for a change that only makes calls ask, as for other changes that only tighten.
    fn rule(&self, of_kind: Rule, _policy: &Policy, before: &Value, _facts: &Value) -> Rule {
        match self {
            EnabledTools::All(tools) if only_tightens(&entries(before), tools) => {
                Rule { approvals: 1, requester_may_approve: true, ..of_kind }
            }
            EnabledTools::All(_) | EnabledTools::Difference(_) => of_kind,
        }
    }
}

/// Returns the entries of a setting.
fn entries(before: &Value) -> Vec<String> {
    before.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns whether a change keeps every tool, and makes calls of more tools ask.
fn only_tightens(had: &[String], has: &[String]) -> bool {
    let is_same =
        |one: &[String], other: &[String]| one.iter().filter(|tool| gives_tool(tool)).all(|tool| other.contains(tool));
    let keeps_asking = tools::asked_tools(had).all(|tool| tools::asked_tools(has).any(|other| other == tool));
    is_same(had, has) && is_same(has, had) && keeps_asking
}

/// Returns the checked tools of a list, sorted.
pub(super) fn complete(mut wanted: Vec<String>) -> Result<Vec<String>, Refusal> {
    tools::check(&wanted)?;
    wanted.sort();
    Ok(wanted)
}

/// Returns the tools of an agent after a difference is applied to its current tools.
fn apply_difference(difference: ToolDifference, agent: Option<&Agent>) -> Result<Vec<String>, Refusal> {
    let ToolDifference { add, remove } = difference;
    // A tool that cannot be enabled can still be removed.
    if let Some(unknown) = remove.iter().find(|name| gives_tool(name) && tools::find(name).is_none()) {
        tools::check(std::slice::from_ref(unknown))?;
    }
    let had = agent.map(|agent| agent.enabled_tools.clone()).unwrap_or_default();
    let mut after: Vec<String> = had.into_iter().filter(|tool| !remove.contains(tool)).collect();
    let new: Vec<String> = add.into_iter().filter(|tool| !after.contains(tool)).collect();
    after.extend(new);
    complete(after)
}

impl Page for EnabledTools {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        match self {
            EnabledTools::All(tools) => all(page, agent, tools),
            EnabledTools::Difference(wanted) => difference(page, agent, wanted),
        }
    }
}

fn all(page: &mut Effects<'_>, agent: &str, tools: &[String]) {
    let all = entries(page.before);
    let had: Vec<&str> = all.iter().map(String::as_str).filter(|tool| gives_tool(tool)).collect();
    let has = |tool: &str| tools.iter().any(|other| other == tool);
    let given = tools.iter().map(String::as_str).filter(|tool| gives_tool(tool));
    let new: Vec<&str> = given.filter(|tool| !had.contains(tool)).collect();
    let lost: Vec<&str> = had.iter().copied().filter(|tool| !has(tool)).collect();
    let kept: Vec<&str> = had.iter().copied().filter(|tool| has(tool)).collect();
    page.add(format!(
        "Change the tools that {agent} may call: {} added, {} removed, {} kept.",
        new.len(),
        lost.len(),
        kept.len()
    ));
    page.add(format!("Added: {}.", page.list(new)));
    page.add(format!("Removed: {}.", page.list(lost)));
    page.add(format!("Kept: {}.", page.list(kept)));
    page.add("The agent may call no other tools of this host.".to_owned());
    let runs = had.contains(&RUN_COMMAND);
    asks(page, &all, tools);
    warn_of_programs(page, "The agent", tools, runs);
}

/// Describes the tools whose calls begin or cease to ask people.
fn asks(page: &mut Effects<'_>, had: &[String], has: &[String]) {
    let asked = |entries: &[String]| -> Vec<String> { tools::asked_tools(entries).map(str::to_owned).collect() };
    let (before, after) = (asked(had), asked(has));
    let new: Vec<&str> = after.iter().filter(|tool| !before.contains(tool)).map(String::as_str).collect();
    let lost: Vec<&str> = before.iter().filter(|tool| !after.contains(tool)).map(String::as_str).collect();
    if !after.is_empty() {
        page.add(format!(
            "People are asked about each call of these tools: {}.",
            page.list(after.iter().map(String::as_str))
        ));
    }
    if !new.is_empty() {
        page.add(format!("New among them: {}.", page.list(new)));
    }
    if !lost.is_empty() {
        page.warn(format!("Calls of these tools NO LONGER ask people each time: {}.", page.list(lost)));
    }
}

/// Describes a difference that was not applied to the agent's tools. A checked change has the whole list instead.
fn difference(page: &mut Effects<'_>, agent: &str, difference: &ToolDifference) {
    let ToolDifference { add, remove } = difference;
    page.add(format!("Change the tools that {agent} may call."));
    page.add(format!("Added to its own: {}.", page.list(add.iter().map(String::as_str))));
    page.add(format!("Removed: {}.", page.list(remove.iter().map(String::as_str))));
    warn_of_programs(page, "The agent", add, false);
}

/// The effect of `run_command`, for the middle of a sentence.
pub(super) const RUNS_PROGRAMS: &str = "runs programs in the jail of the agent";

/// Warns if the tool that runs programs is among these. `agent` begins the sentence.
pub(super) fn warn_of_programs(page: &mut Effects<'_>, agent: &str, tools: &[String], is_old: bool) {
    if tools.iter().any(|tool| tool == RUN_COMMAND) {
        let now = if is_old { ", as now" } else { "" };
        page.warn(format!(
            "{agent} can RUN PROGRAMS: run_command {RUNS_PROGRAMS}{now}. These programs can read every file there, and change and \
             delete files in the workspace and in the directories that the agent may write, also without write_file. They reach no \
             network."
        ));
    }
}

impl Apply for EnabledTools {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let EnabledTools::All(tools) = self else { return Err(incomplete().into()) };
        let agent = concerned(tx, approved)?;
        writers::agents::set_tools(tx, approved, &agent, tools)?;
        Ok(format!("agent {} may call {}", agent.name, listed(tools, "no tool")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::DenialCode;

    #[test]
    fn only_more_asking_with_the_same_tools_tightens() {
        let entries = |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        let had = ["read_file", "write_file", "write_file:ask"];
        for (has, tightens) in [
            (&["read_file", "write_file", "write_file:ask", "read_file:ask"][..], true),
            (&["write_file:ask", "write_file", "read_file"], true),
            (&["read_file", "write_file"], false),
            (&["read_file", "write_file", "read_file:ask"], false),
            (&["read_file", "write_file", "write_file:ask", "run_command", "run_command:ask"], false),
            (&["write_file", "write_file:ask"], false),
        ] {
            assert_eq!(only_tightens(&entries(&had), &entries(has)), tightens, "{has:?}");
        }
    }

    #[test]
    fn entry_of_a_tool_that_does_not_exist_is_refused() {
        let code = |name: &str| complete(vec![name.to_owned()]).map_err(|refusal| refusal.code);
        assert_eq!(code("find_tools:ask"), Ok(vec!["find_tools:ask".to_owned()]), "any built-in tool can ask");
        for name in ["rm:ask", ":ask", "write_file:ask:ask", "write_file:always"] {
            assert_eq!(code(name), Err(DenialCode::ToolUnknown), "{name}");
        }
    }
}
