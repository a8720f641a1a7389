//! The findings of the audit of a configuration: a closed list, each with its level, its object, a sentence and the commands that mend it.
//!
//! Plain data and its words. `host/src/upkeep/configuration_audit.rs` finds them, and `ironctl doctor --audit` prints them.

mod levels;
mod mending;
mod sentences;

pub use mending::CommandWords;

use super::calls::Commands;
use super::people::Role;
use super::skills::SkillTrust;
use super::tokens::TokenId;
use ironclaw_contract::ids::ScheduleId;
use ironclaw_contract::seam::change::{GuardMode, Sharing};
use serde::{Deserialize, Serialize};

/// Days without a use after which a right is reported as unused.
pub const UNUSED_DAYS: u32 = 30;

/// Days after which the value of a secret is old.
pub const SECRET_DAYS_MAX: u32 = 180;

/// Days after which a backup is old.
pub const BACKUP_DAYS_MAX: u32 = 7;

ironclaw_contract::words! {
    /// The level of a finding, the most urgent first.
    pub enum FindingLevel {
        High = "high",
        Medium = "medium",
        Low = "low",
        /// A fact that needs no change.
        Fine = "ok",
    }

    /// The part of a configuration that a finding is about.
    pub enum FindingArea {
        /// The reach of agents.
        Agents = "agents",
        /// Ceilings on the use of models.
        Ceilings = "ceilings",
        Allowances = "allowances",
        Schedules = "schedules",
        Skills = "skills",
        Secrets = "secrets",
        /// Rights without a use.
        Unused = "unused",
        People = "people",
        /// The people who decide.
        Policy = "policy",
        /// The places where the host notifies people.
        Places = "places",
        Backups = "backups",
    }
}

/// The answer of `GET /v1/config/audit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConfigurationAudit {
    /// The findings, the most urgent first.
    pub findings: Vec<Finding>,
}

/// A finding of the audit of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// An agent is in a dangerous mode.
    ModeLowered {
        /// The name of the agent.
        agent: String,
        /// Its guard mode.
        mode: GuardMode,
    },
    /// Strangers reach an agent over a channel.
    StrangersHeard {
        /// The name of the agent.
        agent: String,
        /// The channel.
        channel: String,
        /// How people share its sessions.
        sharing: Sharing,
    },
    /// An agent can write to a directory of the machine.
    DirectoryWritable {
        /// The name of the agent.
        agent: String,
        /// The directory on the machine.
        directory: String,
    },
    /// The text of a directory counts as a person's own, so a file that another author puts there steers the agent.
    DirectoryOwn {
        /// The name of the agent.
        agent: String,
        /// The directory on the machine.
        directory: String,
    },
    /// Texts in the answers of an MCP server count as a person's own, so another author of such a text steers the agent.
    AnswersOwn {
        /// The name of the server.
        server: String,
        /// Its tools.
        tools: Vec<String>,
    },
    /// Messages of an account that is linked to no person count as a person's own, so everyone who writes from it steers the agent.
    SenderOwn {
        /// The account, `channel:id`.
        sender: String,
        /// The name of the person.
        person: String,
    },
    /// A command of an agent sends data that the host cannot read.
    TunnelOpen {
        /// The name of the agent.
        agent: String,
        /// The host of the network.
        host: String,
    },
    /// An agent can push commits.
    PushGranted {
        /// The name of the agent.
        agent: String,
        /// The host of the network.
        host: String,
    },
    /// Requests of an agent can change data at a host of the network.
    HostWritable {
        /// The name of the agent.
        agent: String,
        /// The host of the network.
        host: String,
        /// The methods that change data.
        methods: Vec<String>,
    },
    /// Most segments of a path of a grant are slots.
    HostWide {
        /// The name of the agent.
        agent: String,
        /// The host of the network.
        host: String,
        /// The path.
        path: String,
    },
    /// Commands of an agent reach a host of the network.
    CommandsReachHost {
        /// The name of the agent.
        agent: String,
        /// The host of the network.
        host: String,
        /// The use.
        purpose: Commands,
    },
    /// A grant of an agent, or an MCP server, is in the local network.
    LocalNetworkReached {
        /// The name of the agent; none for an MCP server.
        agent: Option<String>,
        /// The host of the grant, or the name of the MCP server.
        host: String,
        /// Its private addresses.
        addresses: Vec<String>,
    },
    /// An agent runs commands in its jail.
    CommandsEnabled {
        /// The name of the agent.
        agent: String,
    },
    /// An agent sends messages to an address or another agent.
    DestinationHeld {
        /// The name of the agent.
        agent: String,
        /// The agent's name for the destination.
        name: String,
        /// The address, or the other agent.
        to: String,
    },
    /// An agent has no ceiling of tokens or cost for a day.
    CeilingMissing {
        /// The name of the agent.
        agent: String,
    },
    /// A call repeats without a question.
    AllowanceOpen {
        /// The number of the allowance.
        allowance: u64,
        /// The name of the agent.
        agent: String,
        /// The name of the person.
        person: String,
        /// The tool.
        tool: String,
        /// The uses that are left.
        uses_left: u32,
    },
    /// The runs of a schedule fail.
    ScheduleFailing {
        /// The id of the schedule.
        schedule: ScheduleId,
        /// Its name.
        name: String,
        /// The name of its agent.
        agent: String,
        /// RFC 3339, of the first failure.
        since: String,
    },
    /// The host paused a schedule, because no run may start.
    SchedulePaused {
        /// The id of the schedule.
        schedule: ScheduleId,
        /// Its name.
        name: String,
        /// The name of its agent.
        agent: String,
        /// The reason, one word.
        reason: String,
        /// The remedy in one sentence with its command.
        remedy: String,
    },
    /// The runs of a schedule may send or run programs without a question.
    ScheduleUnasked {
        /// The id of the schedule.
        schedule: ScheduleId,
        /// Its name.
        name: String,
        /// The name of its agent.
        agent: String,
        /// The classes and tools of its list.
        may: Vec<String>,
    },
    /// The runs of a schedule send text to a receiver without a question.
    ScheduleSends {
        /// The id of the schedule.
        schedule: ScheduleId,
        /// Its name.
        name: String,
        /// The name of its agent.
        agent: String,
        /// The agent's name for the destination.
        to: String,
        /// The address, with a colon between channel and address.
        recipient: String,
        /// The directories in the jail whose text may go there.
        from: Vec<String>,
    },
    /// The signature of an installed skill no longer counts.
    SkillUntrusted {
        /// The name of the agent.
        agent: String,
        /// The name of the skill.
        skill: String,
        /// Its trust.
        state: SkillTrust,
    },
    /// The sources have a newer version of a skill.
    SkillOutdated {
        /// The name of the agent.
        agent: String,
        /// The name of the skill.
        skill: String,
        /// Its version.
        version: String,
        /// The newest version.
        newest: String,
        /// True if the agent keeps its version.
        pinned: bool,
    },
    /// The value of a secret is old.
    SecretOld {
        /// The name of the secret.
        secret: String,
        /// Its age in days.
        days: u32,
        /// Its users.
        used_by: Vec<String>,
    },
    /// No setting uses a secret.
    SecretUnused {
        /// The name of the secret.
        secret: String,
    },
    /// Settings use a secret.
    SecretUsed {
        /// The name of the secret.
        secret: String,
        /// Its users.
        used_by: Vec<String>,
    },
    /// An agent does not use some of its tools.
    ToolsUnused {
        /// The name of the agent.
        agent: String,
        /// The tools.
        tools: Vec<String>,
    },
    /// An agent does not use a host of the network.
    HostUnused {
        /// The name of the agent.
        agent: String,
        /// The host of the network.
        host: String,
    },
    /// An agent does not use an MCP server.
    ServerUnused {
        /// The name of the agent.
        agent: String,
        /// The name of the server.
        server: String,
    },
    /// An agent does not read a skill.
    SkillUnused {
        /// The name of the agent.
        agent: String,
        /// The name of the skill.
        skill: String,
    },
    /// No request carries a token.
    TokenUnused {
        /// The id of the token.
        token: TokenId,
        /// The name of its person.
        person: String,
    },
    /// A token does not expire.
    TokenWithoutExpiry {
        /// The id of the token.
        token: TokenId,
        /// The name of its person.
        person: String,
    },
    /// The host has one owner.
    OwnerAlone {
        /// The name of the owner.
        owner: String,
        /// An admin who can become the second owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        admin: Option<String>,
    },
    /// Members decide about calls that run programs or spend money.
    MembersDecide {
        /// The table of `policy.toml`, such as `call.exec`.
        table: String,
    },
    /// The person who asks for a call approves it alone.
    ApprovesOwn {
        /// The table of `policy.toml`, such as `call.exec`.
        table: String,
    },
    /// The people who decide about calls.
    DecidedBy {
        /// The table of `policy.toml`, such as `call.exec`.
        table: String,
        /// Their roles.
        roles: Vec<Role>,
        /// The number of different people who must approve.
        approvals: u32,
    },
    /// No person who decides has a place where the host notifies them.
    DecidersWithoutPlace {
        /// The name of an owner.
        person: String,
        /// A channel on which that owner has an identity, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<String>,
    },
    /// A person who decides has no such place, and another one has.
    PersonWithoutPlace {
        /// The name of the person.
        person: String,
        /// A channel on which the person has an identity, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<String>,
    },
    /// The host made no backup.
    BackupMissing,
    /// The newest backup is old.
    BackupOld {
        /// Its age in days.
        days: u32,
    },
    /// The newest backup was not checked.
    BackupUnverified {
        /// The id of the backup.
        backup: String,
    },
    /// The host keeps no heads of the ledger outside of the home.
    HeadsNotKept {
        /// The reason.
        reason: String,
    },
}
