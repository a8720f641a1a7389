//! The kind `groups`: agents that may send messages to each other, and the tools that they may ask each other to use.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope, gone, incomplete, listed};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::live_settings::HostPolicy;
use crate::registry::tools;
use crate::registry::{self, Agent, groups};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{Change, Group};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Map, Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, restarts_sessions: false };

/// The separator between the name of an MCP server and the name of its tool.
const OF_SERVER: &str = "__";

impl Check for Group {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        if self.removes() {
            if groups::find(tx, &self.name)?.is_none() {
                let refusal = Refusal::new(DenialCode::GroupUnknown, format!("there is no group {:?}", self.name));
                return Err(refusal.hint("`ironctl group list` shows the groups").into());
            }
            return Ok(Change::Groups(self.clone()));
        }
        groups::check_room(tx, &self.name)?;
        let Some(by) = context.person(tx)? else { return Err(incomplete().into()) };
        let named = |name: &String| Ok(registry::named_agent(tx, &by, name)?.name);
        let mut agents = self.agents.iter().map(named).collect::<Result<Vec<String>, Denied>>()?;
        agents.sort();
        agents.dedup();
        if agents.len() < 2 {
            let refusal = Refusal::new(DenialCode::RequestMalformed, "a group has at least two different agents");
            return Err(refusal.hint("name each agent once").into());
        }
        let mut allowed = self.tools.clone();
        allowed.sort();
        if let Some(unknown) = allowed.iter().find(|name| tools::find(name).is_none() && !name.contains(OF_SERVER)) {
            let refusal = Refusal::new(DenialCode::ToolUnknown, format!("there is no tool {unknown:?}"));
            return Err(refusal.hint("`ironctl tool list` shows the tools").into());
        }
        Ok(Change::Groups(Self { agents, tools: allowed, ..self.clone() }))
    }

    fn current(&self, tx: &ReadTx<'_>, _agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let none = || Self { name: self.name.clone(), remove: Some(true), ..Self::default() };
        Ok(json!(groups::find(tx, &self.name)?.map_or_else(none, |group| group.payload())))
    }

    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let mut agents = Map::new();
        for name in &self.agents {
            let found = registry::find_agent(tx, name)?;
            agents.insert(name.clone(), found.map_or(Value::Null, |agent| json!({ "agent": agent.id })));
        }
        Ok(json!({ "agents": agents }))
    }
}

impl Page for Group {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let name = page.show(&self.name);
        if self.removes() {
            page.add(format!("Remove the trust group {name}."));
            return page.add(
                "Its agents can no longer send messages to each other, unless another group has both.".to_owned(),
            );
        }
        let ids = |name: &String| page.facts["agents"][name.as_str()]["agent"].as_str().unwrap_or_default().to_owned();
        let agents: Vec<(String, String)> = self.agents.iter().map(|name| (ids(name), name.clone())).collect();
        let agents: Vec<String> = agents.iter().map(|(id, name)| page.named(id, name)).collect();
        page.add(format!("Let the agents {} send messages to each other: trust group {name}.", agents.join(", ")));
        page.add("An agent also needs a destination for each agent that it sends to.".to_owned());
        page.add("A message of an agent gives the receiver no authority. The person at the start of the chain answers its approval requests.".to_owned());
        match self.tools.is_empty() {
            true => page.add("At such a message, an agent can only answer. It can use no tool.".to_owned()),
            false => {
                let tools: Vec<String> = self.tools.iter().map(|tool| page.show(tool)).collect();
                page.add(format!(
                    "At such a message, an agent may use these of its own tools: {}.",
                    listed(&tools, "none")
                ));
                page.warn(
                    "TEXT THAT ONE AGENT READ, also of strangers, can reach each other agent of the group and its tools."
                        .to_owned(),
                );
            }
        }
    }
}

impl Apply for Group {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        if self.removes() {
            writers::groups::set(tx, approved, self, None)?;
            return Ok(format!("group {} removed", self.name));
        }
        let find = |name: &String| {
            let found = registry::find_agent(tx, name)?;
            found.map(|agent| agent.id).ok_or_else(|| Denied::from(gone(format!("agent {name}"))))
        };
        let members = self.agents.iter().map(find).collect::<Result<Vec<AgentId>, Denied>>()?;
        writers::groups::set(tx, approved, self, Some(&members))?;
        Ok(format!("group {} has {}", self.name, self.agents.join(", ")))
    }
}
