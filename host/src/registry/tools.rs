//! The built-in tools: their names, places of execution, and the schemas of their arguments.
//!
//! Never runs one, and never decides on a call. Their classes are in [`ironclaw_judge::manifest`]. See [`crate::turns::calls`].

pub use crate::store::tables::turns::Runs;
pub use ironclaw_judge::Class;

pub mod catalogue;
mod definitions;
pub mod find;
pub mod levels;

use crate::store::refusal::Refusal;
use definitions::{
    actions, find_tools, git_push, http_fetch, memory, network_command, read_skill, run_command, schedule_manage,
    send_file, send_message, workspace,
};
use ironclaw_contract::operator::DenialCode;
use ironclaw_text::excerpt::quoted;
use serde_json::Value;
use std::sync::LazyLock;

/// The tools of an agent's own workspace, which an agent has by default.
pub const WORKSPACE: [&str; 4] = ["read_file", "write_file", "list_dir", "search_files"];
/// The tools of an agent's memory, which an agent has by default.
pub const MEMORY: [&str; 2] = ["remember", "recall"];
/// Runs a command with the machine's programs. No agent has it by default, since it needs a jail with programs to execute.
pub const RUN_COMMAND: &str = "run_command";
/// Proposes a change of the agent. An agent has it by default.
pub const REQUEST_CHANGE: &str = "request_capability_change";
/// The tools that make requests to the host. All are actions of the contract under the same name; `request_capability_change` is the
/// envelope of every kind of change.
pub const ACTIONS: [&str; 4] = ["schedule_task", ASK_QUESTION, SKILL_INSTALL, REQUEST_CHANGE];
/// Tools of the contract without a handler in this version. None can be enabled or offered to a model.
pub const UNHANDLED: [&str; 0] = [];
/// Asks for a skill by its name. No agent has it by default, but [`REQUEST_CHANGE`] takes its name as a kind.
pub const SKILL_INSTALL: &str = "skill_install";
/// Reads a text of a skill. The host offers it by itself to an agent with a skill.
pub const READ_SKILL: &str = "read_skill";
/// Sends a message to a destination. The host offers it by itself to an agent with a destination.
pub const SEND_MESSAGE: &str = "send_message";
/// Sends a file of the workspace to a destination, or into the conversation. No agent has it by default.
pub const SEND_FILE: &str = "send_file";
/// The tools that the host offers by itself to an agent that has what they need.
const AUTOMATIC: [&str; 5] = [NETWORK_COMMAND, GIT_PUSH, FIND_TOOLS, SEND_MESSAGE, READ_SKILL];
/// Lists, pauses, resumes and removes the schedules that the agent asked for. No agent has it by default.
pub const MANAGE_SCHEDULES: &str = "schedule_manage";
/// Asks the person of the turn. No agent has it by default. An agent that lacks it asks in its answer, so no prompt names it.
pub const ASK_QUESTION: &str = "ask_user_question";
/// Sends a request to a granted host of the network. No agent has it by default, since it needs a grant.
pub const HTTP_FETCH: &str = "http_fetch";
/// Runs a command that reaches granted hosts. The host offers it by itself to an agent with [`RUN_COMMAND`] and such a host.
pub const NETWORK_COMMAND: &str = "network_command";
/// Pushes commits to a granted repository. The host offers it by itself to an agent with [`RUN_COMMAND`] and a grant with pushes.
pub const GIT_PUSH: &str = "git_push";
/// Finds tools of MCP servers by loose words. The host offers it by itself while an agent has many of them.
pub const FIND_TOOLS: &str = "find_tools";
/// Most seconds of a command.
pub const COMMAND_SECONDS_MAX: u32 = 120;
/// Bytes of one note of the memory: a page. A longer text belongs in a file.
pub const REMEMBERED_BYTES_MAX: usize = 4 * 1024;
/// Most notes of one `recall`.
pub const RECALLED_MAX: usize = 20;
/// Most options of a question.
pub const QUESTION_OPTIONS_MAX: usize = 8;
/// A tool as a model sees it and as the host judges it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: &'static str,
    /// Its description, for a model.
    pub description: &'static str,
    /// The place of execution.
    pub runs: Runs,
    /// JSON Schema of its arguments: an object without additional properties at any depth, except in the payload of a change, which has a
    /// schema of its own.
    pub parameters: Value,
}

/// Keywords of a schema that a model does not need: the sandbox and the host check them, and they cost tokens in each request.
const CHECKED_KEYWORDS: [&str; 4] = ["additionalProperties", "maxLength", "minLength", "minimum"];

impl Tool {
    /// Returns the schema of its arguments as a model gets it: names, types and descriptions.
    pub fn parameters_for_model(&self) -> Value {
        without_checks(&self.parameters)
    }
}

fn without_checks(schema: &Value) -> Value {
    let is_kept = |(keyword, _): &(&String, &Value)| !CHECKED_KEYWORDS.contains(&keyword.as_str());
    match schema {
        Value::Object(fields) => {
            fields.iter().filter(is_kept).map(|(name, value)| (name.clone(), without_checks(value))).collect()
        }
        other => other.clone(),
    }
}

/// Returns the tools that an agent has by default.
pub fn usual() -> impl Iterator<Item = &'static str> {
    WORKSPACE.into_iter().chain(MEMORY).chain([REQUEST_CHANGE])
}

/// Returns the tools that an agent may have: those with a handler in this version.
pub fn handled() -> impl Iterator<Item = &'static Tool> {
    builtin().iter().filter(|tool| !UNHANDLED.contains(&tool.name) && !AUTOMATIC.contains(&tool.name))
}

/// Returns the tools that a model with these enabled tools sees.
pub fn offered(enabled: &[String]) -> impl Iterator<Item = &'static Tool> {
    handled().filter(move |tool| enabled.iter().any(|name| name == tool.name))
}

/// Refuses names of tools that no agent can have.
///
/// # Errors
/// `tool_unknown` and `tool_unhandled` name the first such tool; the hint lists the valid ones.
pub fn check(names: &[String]) -> Result<(), Refusal> {
    for name in names {
        let (code, message) = match find(name) {
            Some(tool) if UNHANDLED.contains(&tool.name) => {
                (DenialCode::ToolUnhandled, format!("{name} cannot be enabled: this version has no handler for it"))
            }
            Some(tool) if AUTOMATIC.contains(&tool.name) => {
                let (name, with) = (tool.name, automatic_with(tool.name));
                (DenialCode::ToolUnhandled, format!("{name} cannot be enabled: an agent with {with} has it"))
            }
            Some(_) => continue,
            None => (DenialCode::ToolUnknown, format!("there is no tool {}", quoted(name))),
        };
        let may: Vec<&str> = handled().map(|tool| tool.name).collect();
        return Err(Refusal::new(code, message).hint(format!("tools that can be enabled: {}", may.join(", "))));
    }
    Ok(())
}

/// Returns what an agent has to which the host offers this tool by itself.
fn automatic_with(tool: &str) -> String {
    match tool {
        GIT_PUSH => format!("{RUN_COMMAND} and a grant with pushes"),
        NETWORK_COMMAND => format!("{RUN_COMMAND} and a host that is granted for commands"),
        SEND_MESSAGE => "a destination".to_owned(),
        READ_SKILL => "a skill".to_owned(),
        _ => "many tools of MCP servers".to_owned(),
    }
}

/// Returns every built-in tool: [`WORKSPACE`], [`MEMORY`], [`RUN_COMMAND`], [`NETWORK_COMMAND`], [`GIT_PUSH`], [`HTTP_FETCH`], [`FIND_TOOLS`], [`READ_SKILL`], [`MANAGE_SCHEDULES`], [`SEND_MESSAGE`], [`SEND_FILE`], then [`ACTIONS`], in that order.
pub fn builtin() -> &'static [Tool] {
    static BUILTIN: LazyLock<Vec<Tool>> = LazyLock::new(|| {
        let others = [
            run_command(),
            network_command(),
            git_push(),
            http_fetch(),
            find_tools(),
            read_skill(),
            schedule_manage(),
            send_message(),
            send_file(),
        ];
        workspace().into_iter().chain(memory()).chain(others).chain(actions()).collect()
    });
    &BUILTIN
}

/// Returns the built-in tool of exactly this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    builtin().iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests;
