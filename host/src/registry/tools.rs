//! The built-in tools: their names, places of execution, and the schemas of their arguments.
//!
//! Never runs one, and never decides on a call. Their classes are in [`ironclaw_judge::manifest`]. See [`crate::turns::calls`].

pub use definitions::Tool;
pub use ironclaw_judge::Class;
pub use ironclaw_store::tables::turns::Runs;
pub use names::{
    ASK_QUESTION, COMMAND_SECONDS_MAX, FIND_TOOLS, GIT_PUSH, HTTP_FETCH, MANAGE_SCHEDULES, MEMORY, NETWORK_COMMAND,
    QUESTION_OPTIONS_MAX, READ_SKILL, RECALLED_MAX, REMEMBERED_BYTES_MAX, REQUEST_CHANGE, RUN_COMMAND, SEND_FILE,
    SEND_MESSAGE, SKILL_INSTALL, WORKSPACE,
};

pub mod catalogue;
mod definitions;
pub mod find;
pub mod levels;
mod names;
mod server_tool;

use definitions::{
    actions, find_tools, git_push, http_fetch, memory, network_command, read_skill, run_command, schedule_manage,
    send_file, send_message, workspace,
};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::quoted;
use names::AUTOMATIC;
use std::sync::LazyLock;

/// Returns the tools that an agent has by default.
pub fn usual() -> impl Iterator<Item = &'static str> {
    WORKSPACE.into_iter().chain(MEMORY).chain([REQUEST_CHANGE])
}

/// Returns the tools that people may enable for an agent.
pub fn handled() -> impl Iterator<Item = &'static Tool> {
    builtin().iter().filter(|tool| !AUTOMATIC.contains(&tool.name))
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

/// Returns every built-in tool: [`WORKSPACE`], [`MEMORY`], [`RUN_COMMAND`], [`NETWORK_COMMAND`], [`GIT_PUSH`], [`HTTP_FETCH`], [`FIND_TOOLS`], [`READ_SKILL`], [`MANAGE_SCHEDULES`], [`SEND_MESSAGE`], [`SEND_FILE`], then `ACTIONS`, in that order.
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
