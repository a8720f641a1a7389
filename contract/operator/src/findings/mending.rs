//! The commands that mend each finding, and the lines that a file of the home needs before.

use super::Finding;
use ironclaw_contract::ids::ScheduleId;

/// The ceiling that a command proposes for an agent without one.
const TOKENS_PER_DAY_PROPOSED: &str = "1000000";

/// The expiry that a command proposes for a token.
const EXPIRY_PROPOSED: &str = "90d";

/// The words of a command of `ironctl`, without its name.
pub type CommandWords = Vec<String>;

fn words(text: &[&str]) -> Vec<CommandWords> {
    vec![text.iter().map(|&word| word.to_owned()).collect()]
}

/// Returns the commands that show why a schedule fails, and that end its series once a run is done.
fn repetition(schedule: ScheduleId) -> Vec<CommandWords> {
    let schedule = schedule.to_string();
    let history = words(&["schedule", "history", &schedule]);
    history.into_iter().chain(words(&["schedule", "run", &schedule])).collect()
}

/// Returns the commands that give a person a place, on a channel with an identity of theirs if there is one.
fn place(person: &str, channel: Option<&str>) -> Vec<CommandWords> {
    if let Some(channel) = channel {
        return words(&["person", "set", person, "--notify", channel]);
    }
    let link = words(&["person", "link", person, "CHANNEL:ID"]);
    link.into_iter().chain(words(&["person", "set", person, "--notify", "CHANNEL"])).collect()
}

/// Returns the commands that upgrade a skill.
fn upgrade(agent: &str, skill: &str, is_pinned: bool) -> Vec<CommandWords> {
    let unpin = words(&["skill", "set", skill, "--agent", agent, "--unpin"]).into_iter().filter(|_| is_pinned);
    unpin.chain(words(&["skill", "upgrade", skill, "--agent", agent])).collect()
}

/// Returns the commands that replace a token by one with an expiry.
fn replacement(token: &str, person: &str) -> Vec<CommandWords> {
    let out = format!("{token}.new");
    let add = words(&["token", "add", "--person", person, "--expires", EXPIRY_PROPOSED, "--out", &out]);
    add.into_iter().chain(words(&["token", "remove", token])).collect()
}

impl Finding {
    /// Returns the lines that a file of the home needs before the commands, with the name of the file.
    pub fn edit(&self) -> Option<(&'static str, String)> {
        match self {
            Self::MembersDecide { table } => {
                Some(("policy.toml", format!("[{table}]\nroles = [\"owner\", \"admin\"]")))
            }
            Self::ApprovesOwn { table } => Some(("policy.toml", format!("[{table}]\nrequester_may_approve = false"))),
            Self::HeadsNotKept { .. } => Some(("config.toml", "[ledger]\nheads = \"/ANOTHER/DISK\"".to_owned())),
            _ => None,
        }
    }

    /// Returns the commands that mend it. A word in capitals is for the operator to replace.
    pub fn commands(&self) -> Vec<CommandWords> {
        match self {
            Self::ModeLowered { agent, .. } => words(&["agent", "set", agent, "--mode", "enforce"]),
            Self::StrangersHeard { agent, channel, .. } => words(&["agent", "disconnect", agent, channel]),
            Self::DirectoryWritable { agent, directory } | Self::DirectoryOwn { agent, directory } => {
                words(&["agent", "grant-dir", agent, directory])
            }
            Self::AnswersOwn { server, tools } => {
                tools.iter().flat_map(|tool| words(&["mcp", "set", server, tool, "--not-mine"])).collect()
            }
            Self::SenderOwn { sender, .. } => words(&["channel", "disown", sender]),
            Self::TunnelOpen { agent, host }
            | Self::PushGranted { agent, host }
            | Self::HostWritable { agent, host, .. }
            | Self::HostWide { agent, host, .. }
            | Self::CommandsReachHost { agent, host, .. }
            | Self::LocalNetworkReached { agent: Some(agent), host, .. }
            | Self::HostUnused { agent, host } => words(&["egress", "revoke", agent, host]),
            Self::LocalNetworkReached { agent: None, host, .. } => words(&["mcp", "remove", host]),
            Self::CommandsEnabled { agent } => words(&["agent", "set", agent, "--remove-tool", "run_command"]),
            Self::DestinationHeld { agent, name, .. } => words(&["destination", "remove", agent, name]),
            Self::CeilingMissing { agent } => {
                words(&["agent", "set", agent, "--tokens-per-day", TOKENS_PER_DAY_PROPOSED])
            }
            Self::AllowanceOpen { allowance, .. } => words(&["allowance", "remove", &allowance.to_string()]),
            Self::ScheduleFailing { schedule, .. } => repetition(*schedule),
            Self::SchedulePaused { schedule, .. } => words(&["schedule", "resume", &schedule.to_string()]),
            Self::ScheduleUnasked { schedule, .. } | Self::ScheduleSends { schedule, .. } => {
                words(&["schedule", "pause", &schedule.to_string()])
            }
            Self::SkillUntrusted { agent, skill, .. } | Self::SkillUnused { agent, skill } => {
                words(&["skill", "remove", skill, "--agent", agent])
            }
            Self::SkillOutdated { agent, skill, pinned, .. } => upgrade(agent, skill, *pinned),
            Self::SecretOld { secret, .. } => words(&["secret", "rotate", secret]),
            Self::SecretUnused { secret } => words(&["secret", "remove", secret]),
            Self::ToolsUnused { agent, tools } => {
                let removed = tools.iter().flat_map(|tool| ["--remove-tool", tool]);
                words(&["agent", "set", agent].into_iter().chain(removed).collect::<Vec<_>>())
            }
            Self::ServerUnused { agent, server } => words(&["mcp", "revoke", agent, server]),
            Self::TokenUnused { token, .. } => words(&["token", "remove", &token.to_string()]),
            Self::TokenWithoutExpiry { token, person } => replacement(&token.to_string(), person),
            Self::OwnerAlone { admin: Some(admin), .. } => words(&["person", "set", admin, "--role", "owner"]),
            Self::OwnerAlone { admin: None, .. } => words(&["person", "add", "NAME", "--role", "owner"]),
            Self::DecidersWithoutPlace { person, channel } | Self::PersonWithoutPlace { person, channel } => {
                place(person, channel.as_deref())
            }
            Self::MembersDecide { .. } | Self::ApprovesOwn { .. } => words(&["config", "reload"]),
            // The directory of heads is opened at the start.
            Self::HeadsNotKept { .. } => words(&["down"]).into_iter().chain(words(&["up", "--detach"])).collect(),
            Self::BackupMissing | Self::BackupOld { .. } => words(&["backup", "create", "FILE"]),
            Self::BackupUnverified { .. } => words(&["backup", "verify", "FILE"]),
            Self::SecretUsed { .. } | Self::DecidedBy { .. } => Vec::new(),
        }
    }
}
