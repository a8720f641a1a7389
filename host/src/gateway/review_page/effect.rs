//! What would happen, in sentences: one for each effect of each kind, and which of them can do harm.
//!
//! Never the whole: what exactly is set stands below it. Next: `review_page`.

mod settings;

use super::{Names, View, named};
use crate::tools::RUN_COMMAND;
use ironclaw_contract::seam::change::{
    Access, AgentRole, Change, CreateAgent, EnabledTools, Engage, McpAccess, McpRegister, Mount, Packages, Permissions,
    Persona, ToolDifference, Wiring,
};
use serde_json::Value;

/// One effect.
#[derive(Debug)]
pub struct Sentence {
    /// Whether it is shown as one that can do harm.
    pub can_harm: bool,
    /// Safe text.
    pub words: String,
}

/// Every effect.
pub fn sentences(view: &View<'_>, names: &Names<'_>) -> Vec<Sentence> {
    let agent = match view.agent {
        Some((id, name)) => format!("Agent {}", named(id, name, names)),
        None => "No agent".to_owned(),
    };
    let mut said = Said { sentences: Vec::new(), names };
    match view.change {
        Change::Persona(persona) => said.persona(&agent, persona, view.before),
        Change::EnabledTools(EnabledTools::All(tools)) => said.tools(&agent, tools, view.before),
        Change::EnabledTools(EnabledTools::Difference(difference)) => said.difference(&agent, difference),
        Change::Packages(packages) => said.packages(&agent, packages, view.facts),
        Change::Wiring(wiring) => said.wiring(&agent, wiring),
        Change::Permissions(permissions) => said.permissions(&agent, permissions),
        Change::Mounts(mounts) => said.mounts(&agent, mounts),
        Change::CreateAgent(new) => said.create_agent(new),
        Change::McpAccess(access) => said.mcp_access(&agent, access),
        Change::McpRegister(server) => said.mcp_register(server, view.before, view.facts),
        Change::Settings(settings) => said.settings(&agent, settings, view.before, view.facts),
    }
    said.sentences
}

/// `1 line`, `2 lines`.
fn lines_of(text: &str) -> String {
    match text.split('\n').count() {
        1 => "1 line".to_owned(),
        many => format!("{many} lines"),
    }
}

struct Said<'a> {
    sentences: Vec<Sentence>,
    names: &'a Names<'a>,
}

impl Said<'_> {
    fn say(&mut self, words: String) {
        self.sentences.push(Sentence { can_harm: false, words });
    }

    fn warn(&mut self, words: String) {
        self.sentences.push(Sentence { can_harm: true, words });
    }

    fn list<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> String {
        let shown: Vec<String> = names.into_iter().map(|name| self.names.show(name)).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }

    fn persona(&mut self, agent: &str, persona: &Persona, before: &Value) {
        let text = &persona.instructions;
        let now = before.get("instructions").and_then(Value::as_str).map_or(0, str::len);
        if text.is_empty() {
            return self.say(format!("{agent} would be told nothing about itself any more (now: {now} bytes)."));
        }
        let lines = lines_of(text);
        self.say(format!(
            "{agent} would be told another text about itself, of {lines} and {} bytes (now: {now} bytes). It would act by it in \
             every conversation.",
            text.len()
        ));
    }

    fn tools(&mut self, agent: &str, tools: &[String], before: &Value) {
        let had: Vec<&str> = before.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let has = |tool: &str| tools.iter().any(|other| other == tool);
        let new: Vec<&str> = tools.iter().map(String::as_str).filter(|tool| !had.contains(tool)).collect();
        let lost: Vec<&str> = had.iter().copied().filter(|tool| !has(tool)).collect();
        let kept: Vec<&str> = had.iter().copied().filter(|tool| has(tool)).collect();
        self.say(format!(
            "{agent} would be allowed to call exactly these tools: {}.",
            self.list(tools.iter().map(String::as_str))
        ));
        self.say(format!("New: {}. No longer: {}. As before: {}.", self.list(new), self.list(lost), self.list(kept)));
        self.run_command(agent, tools, had.contains(&RUN_COMMAND));
    }

    /// A difference that was not applied to what the agent has: a checked change holds the whole list.
    fn difference(&mut self, agent: &str, difference: &ToolDifference) {
        let ToolDifference { add, remove } = difference;
        self.say(format!(
            "{agent} would be allowed to call these tools beside its own: {}; and no longer these: {}.",
            self.list(add.iter().map(String::as_str)),
            self.list(remove.iter().map(String::as_str))
        ));
        self.run_command(agent, add, false);
    }

    /// What it means to have the tool that runs programs.
    fn run_command(&mut self, agent: &str, tools: &[String], is_old: bool) {
        if tools.iter().any(|tool| tool == RUN_COMMAND) {
            let now = if is_old { ", as it is now" } else { "" };
            self.warn(format!(
                "{agent} would be allowed to run programs in its jail{now}: run_command. They reach every file, every mount and \
                 every package that is in the jail."
            ));
        }
    }

    fn packages(&mut self, agent: &str, packages: &Packages, facts: &Value) {
        let Packages { apt, npm } = packages;
        if apt.is_empty() && npm.is_empty() {
            return self.say(format!("{agent} would have no software in its jail beside the host's own."));
        }
        self.say(format!(
            "{agent} would have exactly this software in its jail, with whatever it needs: from apt {}; from npm {}.",
            self.list(apt.iter().map(String::as_str)),
            self.list(npm.iter().map(String::as_str))
        ));
        for (of, setting, else_from) in
            [("apt", "sources", "the sources of this machine"), ("npm", "registry", "npm's own registry")]
        {
            let known = &facts["clients"][of];
            if let Some(client) = known["client"].as_str() {
                let from = match known[setting].as_str() {
                    Some(named) => format!("the {setting} {} of this host's settings", self.names.show(named)),
                    None => else_from.to_owned(),
                };
                self.say(format!("What is of {of} would be fetched with {}, from {from}.", self.names.show(client)));
            }
        }
        self.warn(
            "The publishers of this software decide what comes: it would be the version that is there then. The agent could use all \
             of it."
                .to_owned(),
        );
    }

    fn wiring(&mut self, agent: &str, wiring: &Wiring) {
        let channel = self.names.show(&wiring.channel);
        match (wiring.engage, &wiring.pattern) {
            (Engage::None, _) => self.say(format!("{agent} would not hear channel {channel} any more.")),
            (Engage::Pattern, Some(pattern)) => self.say(format!(
                "{agent} would hear channel {channel} and answer the messages that fit the pattern {}; it would read the others too.",
                self.names.show(pattern)
            )),
            (Engage::All, _) | (Engage::Pattern, None) => {
                self.warn(format!("{agent} would hear channel {channel} and answer EVERY message that comes there."));
            }
        }
    }

    fn permissions(&mut self, agent: &str, permissions: &Permissions) {
        let Permissions { access, grant, revoke } = permissions;
        match access {
            Some(Access::Everyone) => {
                self.warn(format!("{agent} could be talked to by EVERYBODY whom this host knows."))
            }
            Some(Access::Members) => {
                self.say(format!(
                    "{agent} could be talked to only by owners and admins of this host and by those with a role of this agent."
                ));
            }
            None => self.say(format!("{agent} could be talked to by the same as now, but for these:")),
        }
        for grant in grant {
            let identity = self.names.show(&grant.identity);
            match grant.role {
                AgentRole::Admin => self.warn(format!(
                    "The person linked to {identity} would be an ADMIN of this agent. They could talk to it, and APPROVE its persona, its \
                     tools (run_command, which runs programs on this machine, among them) and who may talk to it."
                )),
                AgentRole::Member => self.say(format!("The person linked to {identity} would be a member of this agent. They could talk to it.")),
            }
        }
        for identity in revoke {
            let identity = self.names.show(identity);
            self.say(format!("The person linked to {identity} would have no role of this agent any more."));
        }
    }

    fn mounts(&mut self, agent: &str, mounts: &[Mount]) {
        if mounts.is_empty() {
            return self.say(format!("{agent} would have no directory of this machine in its jail."));
        }
        let many = match mounts.len() {
            1 => "1 directory of this machine in its jail, and no other".to_owned(),
            many => format!("{many} directories of this machine in its jail, and no others"),
        };
        self.say(format!("{agent} would have {many}:"));
        for Mount { source, target, read_only } in mounts {
            let source = self.names.show(source);
            let target = match target {
                Some(target) => format!("at {}", self.names.show(target)),
                None => "at a place named like it".to_owned(),
            };
            match read_only {
                Some(true) => self.say(format!("It could READ everything in {source}, {target}.")),
                Some(false) => self.warn(format!(
                    "It could WRITE to {source}, {target}: change and delete everything there, and read it."
                )),
                None => self.say(format!(
                    "It could READ everything in {source}, {target}; nothing is said about writing, and then it cannot."
                )),
            }
        }
    }

    fn create_agent(&mut self, new: &CreateAgent) {
        let CreateAgent { name, persona, enabled_tools, members, wirings } = new;
        let agent = format!("The new agent {}", self.names.show(name));
        self.say(format!("A new agent {} would be made.", self.names.show(name)));
        match persona.as_ref().filter(|persona| !persona.instructions.is_empty()) {
            Some(persona) => self.say(format!(
                "It would be told about itself what stands below, {} and {} bytes.",
                lines_of(&persona.instructions),
                persona.instructions.len()
            )),
            None => self.say("It would be told nothing about itself.".to_owned()),
        }
        self.say(format!("It would be allowed to call: {}.", self.list(enabled_tools.iter().map(String::as_str))));
        self.run_command(&agent, enabled_tools, false);
        let members = self.list(members.iter().map(String::as_str));
        self.say(format!("Beside owners and admins of this host, these could talk to it: {members}."));
        for wiring in wirings {
            self.wiring(&agent, wiring);
        }
    }

    fn mcp_access(&mut self, agent: &str, access: &McpAccess) {
        let server = self.names.show(&access.server);
        match &access.tools {
            Some(tools) if tools.is_empty() => {
                return self
                    .say(format!("{agent} would not be allowed to call any tool of MCP server {server} any more."));
            }
            Some(tools) => self.say(format!(
                "{agent} would be allowed to call exactly these tools of MCP server {server}: {}.",
                self.list(tools.iter().map(String::as_str))
            )),
            None => {
                self.say(format!("{agent} would be allowed to call every tool that MCP server {server} declares now."))
            }
        }
        self.warn(format!("What it says in these calls would leave this machine and go to the operator of {server}."));
    }

    fn mcp_register(&mut self, server: &McpRegister, before: &Value, facts: &Value) {
        let McpRegister { name, url, tools, headers } = server;
        let (name, url) = (self.names.show(name), self.names.show(url));
        match before.is_null() {
            true => self.say(format!("MCP server {name} at {url} would be known to this host.")),
            false => {
                let was = before["url"].as_str().unwrap_or_default();
                let at = if was == server.url { "as now".to_owned() } else { format!("now: {}", self.names.show(was)) };
                self.warn(format!(
                    "MCP server {name}, which this host knows already, would be REPLACED: it would be at {url} ({at})."
                ));
            }
        }
        let declared = self.list(tools.iter().map(|tool| tool.name.as_str()));
        self.say(format!("It would have these tools: {declared}."));
        self.holders(&name, facts, !headers.is_empty());
        for header in headers {
            let (header, secret) = (self.names.show(&header.name), self.names.show(&header.secret));
            self.warn(format!("Every request to {url} would carry the SECRET {secret}, in the header {header}."));
        }
    }

    /// What it means for the agents that have tools of the server now.
    fn holders(&mut self, server: &str, facts: &Value, is_sent: bool) {
        let mut is_used = false;
        for (agent, grant) in facts["grants"].as_object().into_iter().flatten() {
            let tools = |of: &str| -> Vec<String> {
                grant[of].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let (has, keeps) = (tools("has"), tools("keeps"));
            let lost = has.iter().filter(|tool| !keeps.contains(tool)).map(String::as_str);
            let (agent, lost) =
                (named(grant["agent"].as_str().unwrap_or_default(), agent, self.names), self.list(lost));
            if keeps.is_empty() {
                self.say(format!("Agent {agent} would lose every tool that it has of {server}: {lost}."));
                continue;
            }
            is_used = true;
            let keeps = self.list(keeps.iter().map(String::as_str));
            let sent = if is_sent { "with the secrets that are named below" } else { "without a secret" };
            self.warn(format!(
                "Agent {agent} has tools of {server} and would KEEP these: {keeps}. It would lose: {lost}. From then on its requests \
                 would go out as is said here, {sent}."
            ));
        }
        if !is_used {
            self.say("No agent could use it yet: that is a change of its own.".to_owned());
        }
    }
}
