//! The kind `enabled_tools`: the tools that an agent may call.

use super::{
    Apply, Check, CheckContext, Page, Preparation, Prepared, Properties, Scope, concerned, incomplete, listed,
};
use crate::gateway::Grounds;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Agent};
use crate::tools::{self, RUN_COMMAND};
use ironclaw_contract::seam::change::{Change, EnabledTools, ToolDifference};
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::{Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Agent, begins_anew: true };

impl Check for EnabledTools {
    fn complete(&self, _tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        let tools = match self {
            EnabledTools::All(tools) => complete(tools.clone())?,
            EnabledTools::Difference(difference) => with(difference.clone(), context.agent)?,
        };
        Ok(Change::EnabledTools(EnabledTools::All(tools)))
    }

    fn current(&self, _tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let mut tools = agent.enabled_tools.clone();
        tools.sort();
        Ok(json!(tools))
    }

    fn facts(&self, _tx: &ReadTx<'_>, _grounds: &Grounds) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({}))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        Some(json!(self))
    }
}

/// Returns the tools of a list in its one order.
pub(super) fn complete(mut wanted: Vec<String>) -> Result<Vec<String>, Refusal> {
    tools::check(&wanted)?;
    wanted.sort();
    Ok(wanted)
}

/// Returns all tools that an agent has once a difference is applied to those that it has now.
fn with(difference: ToolDifference, agent: Option<&Agent>) -> Result<Vec<String>, Refusal> {
    let ToolDifference { add, remove } = difference;
    // What cannot be enabled may still be taken away.
    if let Some(unknown) = remove.iter().find(|name| tools::find(name).is_none()) {
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
    let had: Vec<&str> = page.before.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let has = |tool: &str| tools.iter().any(|other| other == tool);
    let new: Vec<&str> = tools.iter().map(String::as_str).filter(|tool| !had.contains(tool)).collect();
    let lost: Vec<&str> = had.iter().copied().filter(|tool| !has(tool)).collect();
    let kept: Vec<&str> = had.iter().copied().filter(|tool| has(tool)).collect();
    page.say(format!(
        "{agent} would be allowed to call exactly these tools: {}.",
        page.list(tools.iter().map(String::as_str))
    ));
    page.say(format!("New: {}. No longer: {}. As before: {}.", page.list(new), page.list(lost), page.list(kept)));
    run_command(page, agent, tools, had.contains(&RUN_COMMAND));
}

/// A difference that was not applied to what the agent has: a checked change holds the whole list.
fn difference(page: &mut Effects<'_>, agent: &str, difference: &ToolDifference) {
    let ToolDifference { add, remove } = difference;
    page.say(format!(
        "{agent} would be allowed to call these tools beside its own: {}; and no longer these: {}.",
        page.list(add.iter().map(String::as_str)),
        page.list(remove.iter().map(String::as_str))
    ));
    run_command(page, agent, add, false);
}

/// Says what it means to have the tool that runs programs.
pub(super) fn run_command(page: &mut Effects<'_>, agent: &str, tools: &[String], is_old: bool) {
    if tools.iter().any(|tool| tool == RUN_COMMAND) {
        let now = if is_old { ", as it is now" } else { "" };
        page.warn(format!(
            "{agent} would be allowed to run programs in its jail{now}: run_command. They reach every file, every mount and \
             every package that is in the jail."
        ));
    }
}

impl Apply for EnabledTools {
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let EnabledTools::All(tools) = self else { return Err(incomplete().into()) };
        let agent = concerned(tx, approved)?;
        registry::set_tools(tx, approved, &agent, tools)?;
        Ok(format!("agent {} may call {}", agent.name, listed(tools, "no tool")))
    }
}
