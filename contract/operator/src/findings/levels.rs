//! The level, the area and the object of each finding.

use super::{Finding, FindingArea, FindingLevel};
use ironclaw_contract::seam::change::Sharing;

impl Finding {
    /// Returns its level.
    pub const fn level(&self) -> FindingLevel {
        match self {
            Self::ModeLowered { .. } | Self::MembersDecide { .. } | Self::SkillUntrusted { .. } => FindingLevel::High,
            Self::StrangersHeard { sharing: Sharing::Shared | Sharing::Agent, .. } => FindingLevel::High,
            Self::StrangersHeard { sharing: Sharing::Thread, .. }
            | Self::DirectoryWritable { .. }
            | Self::DirectoryOwn { .. }
            | Self::AnswersOwn { .. }
            | Self::SenderOwn { .. }
            | Self::TunnelOpen { .. }
            | Self::PushGranted { .. }
            | Self::HostWritable { .. }
            | Self::HostWide { .. }
            | Self::LocalNetworkReached { .. }
            | Self::CeilingMissing { .. }
            | Self::ScheduleFailing { .. }
            | Self::SchedulePaused { .. }
            | Self::ScheduleUnasked { .. }
            | Self::SecretOld { .. }
            | Self::OwnerAlone { .. }
            | Self::ApprovesOwn { .. }
            | Self::DecidersWithoutPlace { .. }
            | Self::BackupMissing
            | Self::BackupOld { .. }
            | Self::HeadsNotKept { .. } => FindingLevel::Medium,
            Self::CommandsReachHost { .. }
            | Self::CommandsEnabled { .. }
            | Self::DestinationHeld { .. }
            | Self::AllowanceOpen { .. }
            | Self::ScheduleSends { .. }
            | Self::SkillOutdated { .. }
            | Self::SecretUnused { .. }
            | Self::ToolsUnused { .. }
            | Self::HostUnused { .. }
            | Self::ServerUnused { .. }
            | Self::SkillUnused { .. }
            | Self::TokenUnused { .. }
            | Self::TokenWithoutExpiry { .. }
            | Self::PersonWithoutPlace { .. }
            | Self::BackupUnverified { .. } => FindingLevel::Low,
            Self::SecretUsed { .. } | Self::DecidedBy { .. } => FindingLevel::Fine,
        }
    }

    /// Returns its area.
    pub const fn area(&self) -> FindingArea {
        match self {
            Self::ModeLowered { .. }
            | Self::StrangersHeard { .. }
            | Self::DirectoryWritable { .. }
            | Self::DirectoryOwn { .. }
            | Self::AnswersOwn { .. }
            | Self::SenderOwn { .. }
            | Self::TunnelOpen { .. }
            | Self::PushGranted { .. }
            | Self::HostWritable { .. }
            | Self::HostWide { .. }
            | Self::LocalNetworkReached { .. }
            | Self::CommandsReachHost { .. }
            | Self::CommandsEnabled { .. }
            | Self::DestinationHeld { .. } => FindingArea::Agents,
            Self::CeilingMissing { .. } => FindingArea::Ceilings,
            Self::AllowanceOpen { .. } => FindingArea::Allowances,
            Self::ScheduleFailing { .. }
            | Self::SchedulePaused { .. }
            | Self::ScheduleUnasked { .. }
            | Self::ScheduleSends { .. } => FindingArea::Schedules,
            Self::SkillUntrusted { .. } | Self::SkillOutdated { .. } => FindingArea::Skills,
            Self::SecretOld { .. } | Self::SecretUnused { .. } | Self::SecretUsed { .. } => FindingArea::Secrets,
            Self::ToolsUnused { .. }
            | Self::HostUnused { .. }
            | Self::ServerUnused { .. }
            | Self::SkillUnused { .. }
            | Self::TokenUnused { .. } => FindingArea::Unused,
            Self::TokenWithoutExpiry { .. } | Self::OwnerAlone { .. } => FindingArea::People,
            Self::MembersDecide { .. } | Self::ApprovesOwn { .. } | Self::DecidedBy { .. } => FindingArea::Policy,
            Self::DecidersWithoutPlace { .. } | Self::PersonWithoutPlace { .. } => FindingArea::Places,
            Self::BackupMissing
            | Self::BackupOld { .. }
            | Self::BackupUnverified { .. }
            | Self::HeadsNotKept { .. } => FindingArea::Backups,
        }
    }

    /// Returns the object that it is about: its kind and its name.
    pub fn object(&self) -> String {
        match self {
            Self::ModeLowered { agent, .. }
            | Self::StrangersHeard { agent, .. }
            | Self::DirectoryWritable { agent, .. }
            | Self::DirectoryOwn { agent, .. }
            | Self::TunnelOpen { agent, .. }
            | Self::PushGranted { agent, .. }
            | Self::HostWritable { agent, .. }
            | Self::HostWide { agent, .. }
            | Self::CommandsReachHost { agent, .. }
            | Self::CommandsEnabled { agent }
            | Self::DestinationHeld { agent, .. }
            | Self::CeilingMissing { agent }
            | Self::SkillUntrusted { agent, .. }
            | Self::SkillOutdated { agent, .. }
            | Self::ToolsUnused { agent, .. }
            | Self::HostUnused { agent, .. }
            | Self::ServerUnused { agent, .. }
            | Self::SkillUnused { agent, .. }
            | Self::LocalNetworkReached { agent: Some(agent), .. } => format!("agent {agent}"),
            Self::LocalNetworkReached { agent: None, host, .. } => format!("MCP server {host}"),
            Self::AnswersOwn { server, .. } => format!("MCP server {server}"),
            Self::SenderOwn { sender, .. } => format!("sender {sender}"),
            Self::AllowanceOpen { allowance, .. } => format!("allowance {allowance}"),
            Self::ScheduleFailing { name, .. }
            | Self::SchedulePaused { name, .. }
            | Self::ScheduleUnasked { name, .. }
            | Self::ScheduleSends { name, .. } => format!("schedule {name}"),
            Self::SecretOld { secret, .. } | Self::SecretUnused { secret } | Self::SecretUsed { secret, .. } => {
                format!("secret {secret}")
            }
            Self::TokenUnused { token, .. } | Self::TokenWithoutExpiry { token, .. } => format!("token {token}"),
            Self::OwnerAlone { owner: person, .. }
            | Self::DecidersWithoutPlace { person, .. }
            | Self::PersonWithoutPlace { person, .. } => format!("person {person}"),
            Self::MembersDecide { table } | Self::ApprovesOwn { table } | Self::DecidedBy { table, .. } => {
                format!("policy {table}")
            }
            Self::BackupMissing | Self::BackupOld { .. } => "backups".to_owned(),
            Self::BackupUnverified { backup } => format!("backup {backup}"),
            Self::HeadsNotKept { .. } => "ledger".to_owned(),
        }
    }
}
