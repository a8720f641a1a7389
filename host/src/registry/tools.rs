//! The built-in tools: how an agent gets them, and where their calls run.
//!
//! Never runs one, and never decides on a call. A tool is one file of `builtin`. See [`Place`].

pub use builtin::ask_user_question::{NAME as ASK_USER_QUESTION, QUESTION_OPTIONS_MAX};
pub use builtin::find_tools::NAME as FIND_TOOLS;
pub use builtin::git_push::NAME as GIT_PUSH;
pub use builtin::http_fetch::NAME as HTTP_FETCH;
pub use builtin::list_dir::NAME as LIST_DIR;
pub use builtin::network_command::NAME as NETWORK_COMMAND;
pub use builtin::read_file::NAME as READ_FILE;
pub use builtin::read_skill::NAME as READ_SKILL;
pub use builtin::recall::{NAME as RECALL, RECALLED_MAX};
pub use builtin::remember::{NAME as REMEMBER, REMEMBERED_BYTES_MAX};
pub use builtin::request_change::NAME as REQUEST_CHANGE;
pub use builtin::run_command::{COMMAND_SECONDS_MAX, NAME as RUN_COMMAND};
pub use builtin::schedule_task::NAME as SCHEDULE_TASK;
pub use builtin::search_files::NAME as SEARCH_FILES;
pub use builtin::send_file::NAME as SEND_FILE;
pub use builtin::send_message::NAME as SEND_MESSAGE;
pub use builtin::skill_install::NAME as SKILL_INSTALL;
pub use builtin::write_file::NAME as WRITE_FILE;
pub use ironclaw_judge::Class;
pub use ironclaw_store::tables::turns::Runs;
pub use place::{OutsideTool, Place, RecordTool};
pub use tool::{Held, Tool};

mod builtin;
pub mod catalogue;
mod declared;
pub mod find;
pub mod levels;
mod place;
mod server_tool;
mod tool;

use ironclaw_judge::manifest::{Argument, Manifest};
use ironclaw_operator::{DenialCode, InputType, ToolArgument};
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::quoted;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Returns the tools that an agent has by default.
pub fn usual() -> impl Iterator<Item = &'static str> {
    builtin().iter().filter(|tool| tool.held == Held::ByDefault).map(|tool| tool.name)
}

/// Returns the tools that people may enable for an agent.
pub fn handled() -> impl Iterator<Item = &'static Tool> {
    builtin().iter().filter(|tool| !matches!(tool.held, Held::Automatic(_)))
}

/// Returns the tools that a model with these enabled tools sees.
pub fn offered(enabled: &[String]) -> impl Iterator<Item = &'static Tool> {
    handled().filter(move |tool| enabled.iter().any(|name| name == tool.name))
}

/// Returns the arguments of a tool with their rules.
pub fn fields(manifest: &Manifest) -> BTreeMap<String, ToolArgument> {
    let field = |name: &str, argument: &Argument| {
        let by_reference = manifest.floors.needs_of(name);
        let needs = by_reference.or_else(|| manifest.needs(name)).unwrap_or_default().list();
        let (rule, outward, kind) = (argument.rule, argument.outward, manifest.input(name));
        let kind = kind.or(by_reference.map(|_| InputType::Any));
        ToolArgument { rule, kind, needs, by_reference: by_reference.is_some(), outward }
    };
    manifest.arguments.iter().map(|(name, argument)| (name.clone(), field(name, argument))).collect()
}

/// The end of an entry among the tools of an agent by which people are asked about each call of that built-in tool: `write_file:ask`.
/// Such an entry gives no tool.
const ASKS: &str = ":ask";

/// Returns the built-in tools about whose calls people are always asked, by the entries of an agent.
pub fn asked_tools(entries: &[String]) -> impl Iterator<Item = &str> {
    entries.iter().filter_map(|entry| entry.strip_suffix(ASKS))
}

/// Returns whether an entry of an agent gives it a tool, and does not tighten one.
pub fn gives_tool(entry: &str) -> bool {
    !entry.ends_with(ASKS)
}

/// Refuses names of tools that no agent can have.
///
/// # Errors
/// `tool_unknown` and `tool_unhandled` name the first such tool; the hint lists the valid ones.
pub fn check(names: &[String]) -> Result<(), Refusal> {
    for name in names {
        if name.strip_suffix(ASKS).is_some_and(|asked| find(asked).is_some()) {
            continue;
        }
        let (code, message) = match find(name).map(|tool| tool.held) {
            Some(Held::Automatic(with)) => {
                (DenialCode::ToolUnhandled, format!("{name} cannot be enabled: an agent with {with} has it"))
            }
            Some(Held::ByDefault | Held::Enabled | Held::EnabledUnnamed) => continue,
            None => (DenialCode::ToolUnknown, format!("there is no tool {}", quoted(name))),
        };
        let may: Vec<&str> = handled().map(|tool| tool.name).collect();
        return Err(Refusal::new(code, message).hint(format!("tools that can be enabled: {}", may.join(", "))));
    }
    Ok(())
}

/// Returns every built-in tool, in the order in which a model reads them.
pub fn builtin() -> &'static [Tool] {
    static BUILTIN: LazyLock<Vec<Tool>> = LazyLock::new(builtin::all);
    &BUILTIN
}

/// Returns the built-in tool of exactly this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    builtin().iter().find(|tool| tool.name == name)
}

/// Returns the built-in tool of exactly this name among those with an effect outside of the session.
pub fn outside(name: &str) -> Option<OutsideTool> {
    find(name).and_then(Tool::outside)
}

/// Returns whether a model makes an approved call of this tool again: it runs where its output is judged, and never later in the host.
pub fn is_made_again(name: &str) -> bool {
    find(name).is_some_and(|tool| tool.runs() != Runs::Await)
}

/// Returns the manifest of the built-in tool of exactly this name.
pub fn manifest(name: &str) -> Option<&'static Manifest> {
    find(name).map(|tool| &tool.manifest)
}

#[cfg(test)]
mod tests;
