//! The names of the built-in tools, and the bounds of their arguments.

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
/// Asks for a skill by its name. No agent has it by default, but [`REQUEST_CHANGE`] takes its name as a kind.
pub const SKILL_INSTALL: &str = "skill_install";
/// Reads a text of a skill. The host offers it by itself to an agent with a skill.
pub const READ_SKILL: &str = "read_skill";
/// Sends a message to a destination. The host offers it by itself to an agent with a destination.
pub const SEND_MESSAGE: &str = "send_message";
/// Sends a file of the workspace to a destination, or into the conversation. No agent has it by default.
pub const SEND_FILE: &str = "send_file";
/// The tools that the host offers by itself to an agent that has what they need.
pub(super) const AUTOMATIC: [&str; 5] = [NETWORK_COMMAND, GIT_PUSH, FIND_TOOLS, SEND_MESSAGE, READ_SKILL];
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
