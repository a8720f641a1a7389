//! Skills of agents: `/v1/skills`, `/v1/skill-sources`, `/v1/skill-keys`.
//!
//! Never the content of a skill in a request: a request names a skill, and the host resolves it.

use ironclaw_contract::canonical::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

ironclaw_contract::words! {
    /// The trust in an installed skill. Only a trusted one is in the jail and in the prompt.
    pub enum SkillTrust {
        Trusted = "trusted",
        /// Its key is revoked or no longer there.
        KeyRevoked = "key_revoked",
        /// Its version is revoked.
        Revoked = "revoked",
    }
}

/// A skill of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InstalledSkill {
    /// The name of the agent that has it.
    #[serde(default)]
    pub agent: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The id of the key that signed it.
    pub signer: String,
    /// The digest of its package.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub digest: Digest,
    /// True if it stays at its version.
    pub pinned: bool,
    /// Only a `trusted` skill is in the jail and in the prompt.
    pub state: SkillTrust,
    /// The description, in the words of its author.
    pub description: String,
    /// The newest version at the sources, if it is newer; only if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
}

/// A verified package: `GET /v1/skills/{skill}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SkillPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The id of the key that signed it.
    pub signer: String,
    /// The digest of the package.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub digest: Digest,
    /// The source that it came from.
    pub source: String,
    /// The description, in the words of its author.
    pub description: String,
    /// The digest of each file, by path.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub files: Value,
    /// The grants that it asks for.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub grants: Value,
    /// The versions that the sources have, newest first.
    pub versions: Vec<String>,
    /// The text of one file, if the request names one that is a text of at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `POST /v1/skills/install`: a change that installs a skill, or changes its version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InstallSkill {
    /// Name or id of the agent.
    pub agent: String,
    /// Name of the skill.
    pub skill: String,
    /// The version; absent or `latest`: the newest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True for an older version than the present one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
    /// The reason.
    #[serde(default)]
    pub reason: String,
}

/// `POST /v1/skills/remove`: a change that removes a skill of an agent with the grants that came with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RemoveSkill {
    /// Name or id of the agent.
    pub agent: String,
    /// Name of the skill.
    pub skill: String,
    /// The reason.
    #[serde(default)]
    pub reason: String,
}

/// `POST /v1/skills/pin`: whether a skill of an agent stays at its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PinSkill {
    /// Name or id of the agent.
    pub agent: String,
    /// Name of the skill.
    pub skill: String,
    /// True if it stays.
    pub pinned: bool,
}

/// A source of skills; `POST /v1/skill-sources` adds one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SkillSource {
    /// Its name: 1 to 32 of `a-z`, `0-9` and `-`.
    pub name: String,
    /// An absolute directory, or an https URL of a directory with `index.json`.
    pub location: String,
}

/// A key whose signatures of skills count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SkillKey {
    /// Its id, as minisign shows it: 16 hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its text, as in the second line of `minisign.pub`.
    pub key: String,
    /// The skills that it may sign; empty for all.
    pub skills: Vec<String>,
    /// True if it is revoked. A revoked key stays so.
    pub revoked: bool,
}

/// `POST /v1/skill-keys`: a new key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewSkillKey {
    /// Its name: 1 to 32 of `a-z`, `0-9` and `-`.
    pub name: String,
    /// The text of the public key.
    pub key: String,
    /// The skills that it may sign; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

/// `POST /v1/skill-revocations`: a version that is not used from now on, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SkillVersion {
    /// Name of the skill.
    pub skill: String,
    /// The version.
    pub version: String,
}

/// A skill of agents whose files on this host are not those of its package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DamagedSkill {
    /// Name of the skill.
    pub name: String,
    /// The version.
    pub version: String,
    /// Names of the agents that have it; none of their sessions starts.
    pub agents: Vec<String>,
}
