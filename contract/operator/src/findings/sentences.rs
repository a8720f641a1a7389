//! The sentence of each finding, in lower case and without a full stop.

use super::{Finding, UNUSED_DAYS};
use crate::skills::SkillTrust;
use ironclaw_contract::seam::change::Sharing;

impl Finding {
    /// Returns one sentence about the object. A test has a sample of each finding, so that none is without one.
    pub fn sentence(&self) -> String {
        self.about_reach()
            .or_else(|| self.about_schedule())
            .or_else(|| self.about_rights())
            .or_else(|| self.about_home())
            .unwrap_or_default()
    }

    /// Returns the sentence of a finding about what an agent reaches.
    fn about_reach(&self) -> Option<String> {
        Some(match self {
            Self::ModeLowered { mode, .. } => {
                format!("its mode {mode} lets calls run that would need a person")
            }
            Self::StrangersHeard { channel, sharing, .. } => match sharing {
                Sharing::Thread => format!("strangers on {channel} get its answers"),
                Sharing::Shared | Sharing::Agent => {
                    format!("strangers on {channel} get its answers, in sessions that people share")
                }
            },
            Self::DirectoryWritable { directory, .. } => format!("it can change the files in {directory}"),
            Self::DirectoryOwn { directory, .. } => format!("it takes text in {directory} for the person's own"),
            Self::AnswersOwn { tools, .. } => format!("it answers with the person's own text: {}", tools.join(", ")),
            Self::SenderOwn { person, .. } => format!("its messages in a group count as own text of {person}"),
            Self::TunnelOpen { host, .. } => {
                format!("its commands send data to {host} that the host cannot read")
            }
            Self::PushGranted { host, .. } => format!("it can push commits to {host}, after an approval"),
            Self::HostWritable { host, methods, .. } => {
                format!("its requests can change data at {host}, with {}", methods.join(", "))
            }
            Self::HostWide { host, path, .. } => format!("most parts of the path {path} at {host} are slots"),
            Self::CommandsReachHost { host, purpose, .. } => format!("its commands reach {host}, for {purpose}"),
            Self::LocalNetworkReached { agent: Some(_), host, addresses } => {
                format!("it reaches {host} in the local network, at {}", addresses.join(", "))
            }
            Self::LocalNetworkReached { agent: None, addresses, .. } => {
                format!("it is in the local network, at {}", addresses.join(", "))
            }
            Self::CommandsEnabled { .. } => "it runs commands in its jail without a question".to_owned(),
            Self::DestinationHeld { name, to, .. } => format!("it sends messages to {name} ({to})"),
            Self::CeilingMissing { .. } => "no ceiling bounds its tokens or its cost in a day".to_owned(),
            Self::SkillUntrusted { skill, state, .. } => match state {
                SkillTrust::Revoked => format!("its version of the skill {skill} is revoked"),
                SkillTrust::KeyRevoked | SkillTrust::Trusted => {
                    format!("the key that signed its skill {skill} no longer counts")
                }
            },
            Self::SkillOutdated { skill, version, newest, .. } => {
                format!("its skill {skill} has version {version}, and the sources have {newest}")
            }
            _ => return None,
        })
    }

    /// Returns the sentence of a finding about a schedule.
    fn about_schedule(&self) -> Option<String> {
        Some(match self {
            Self::ScheduleFailing { agent, since, .. } => {
                let day = since.get(..10).unwrap_or(since);
                format!("its runs with agent {agent} fail since {day}")
            }
            Self::SchedulePaused { agent, reason, remedy, .. } => {
                format!("the host paused it for agent {agent} ({reason}): {remedy}")
            }
            Self::ScheduleUnasked { agent, may, .. } => {
                format!("a run of agent {agent} uses without a question: {}", may.join(", "))
            }
            Self::ScheduleSends { agent, to, recipient, from, .. } => {
                let text = if from.is_empty() { "no directory".to_owned() } else { from.join(", ") };
                format!("a run of agent {agent} sends to {to} ({recipient}) without a question, with text of {text}")
            }
            _ => return None,
        })
    }

    /// Returns the sentence of a finding about a right or a secret.
    fn about_rights(&self) -> Option<String> {
        Some(match self {
            Self::AllowanceOpen { agent, person, tool, uses_left, .. } => {
                format!("agent {agent} repeats {tool} for {person} without a question; uses left: {uses_left}")
            }
            Self::SecretOld { days, used_by, .. } => {
                let used = if used_by.is_empty() { "nothing".to_owned() } else { used_by.join(", ") };
                format!("its value is {days} days old; it is used by {used}")
            }
            Self::SecretUnused { .. } => "no setting uses it".to_owned(),
            Self::SecretUsed { used_by, .. } => format!("it is used by {}", used_by.join(", ")),
            Self::ToolsUnused { tools, .. } => {
                format!("it did not use these tools for {UNUSED_DAYS} days: {}", tools.join(", "))
            }
            Self::HostUnused { host, .. } => format!("it sent nothing to {host} for {UNUSED_DAYS} days"),
            Self::ServerUnused { server, .. } => {
                format!("it called no tool of the MCP server {server} for {UNUSED_DAYS} days")
            }
            Self::SkillUnused { skill, .. } => {
                format!("it did not ask for the skill {skill} with read_skill for {UNUSED_DAYS} days")
            }
            Self::TokenUnused { person, .. } => {
                format!("no request of {person} carried it for {UNUSED_DAYS} days")
            }
            Self::TokenWithoutExpiry { person, .. } => format!("this token of {person} never expires"),
            _ => return None,
        })
    }

    /// Returns the sentence of a finding about people, the policy or the record.
    fn about_home(&self) -> Option<String> {
        Some(match self {
            Self::OwnerAlone { .. } => "there is no second owner if this one loses access".to_owned(),
            Self::MembersDecide { .. } => "members decide about calls that run programs or spend money".to_owned(),
            Self::ApprovesOwn { .. } => {
                "a person who asks can approve it alone, although there is a second one".to_owned()
            }
            Self::DecidedBy { roles, approvals, .. } => {
                let roles: Vec<&str> = roles.iter().map(|role| role.name()).collect();
                format!("{approvals} of {} must approve", roles.join(" or "))
            }
            Self::DecidersWithoutPlace { .. } => {
                "no owner and no admin is notified of requests while away from this host".to_owned()
            }
            Self::PersonWithoutPlace { .. } => {
                "this person has no place where the host notifies them of requests".to_owned()
            }
            Self::BackupMissing => "this home has no backup".to_owned(),
            Self::BackupOld { days } => format!("the newest backup is {days} days old"),
            Self::BackupUnverified { .. } => "the newest backup was not checked".to_owned(),
            Self::HeadsNotKept { reason } => format!("no head is kept outside of the home: {reason}"),
            _ => return None,
        })
    }
}
