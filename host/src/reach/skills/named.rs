//! The wanted version of a skill, and the change that names a verified package. The gateway fills in the rest.

use crate::registry::{Agent, skills};
use ironclaw_contract::seam::change::Skill;
use ironclaw_operator::DenialCode;
use ironclaw_skill::Version;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};

/// The wanted version of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The newest one that is no pre-release.
    Newest,
    Exactly(Version),
}

impl Wanted {
    /// Reads a version; `latest` or none is the newest.
    ///
    /// # Errors
    /// Refuses a text that is no version.
    pub fn parse(text: Option<&str>) -> Result<Self, Refusal> {
        match text {
            None | Some("latest") => Ok(Self::Newest),
            Some(text) => skills::version(text).map(Self::Exactly),
        }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newest => f.write_str("latest"),
            Self::Exactly(version) => version.fmt(f),
        }
    }
}

/// Returns the change that names a resolved package.
///
/// # Errors
/// Refuses an older version than the agent has, unless the request says that it goes back.
pub fn named(tx: &ReadTx<'_>, agent: &Agent, package: skills::Package, back: bool) -> Result<Skill, Denied> {
    let skills::Package { name, version, digest, .. } = package;
    if let Some(held) = skills::find(tx, agent.id, &name)?.filter(|_| !back)
        && skills::version(&held.package.version)? > skills::version(&version)?
    {
        let message =
            format!("agent {} has skill {name} {}, which is newer than {version}", agent.name, held.package.version);
        let hint = format!("a person goes back: `ironctl skill upgrade {name} --agent {} --to {version}`", agent.name);
        return Err(Refusal::new(DenialCode::SkillDowngrade, message).hint(hint).into());
    }
    Ok(Skill { name, version: Some(version), digest: Some(digest), ..Skill::default() })
}

/// Returns the change for a skill that an agent names. The host resolved it before, and wrote its exact version into the call.
///
/// # Errors
/// Refuses a malformed name or version, a skill that was not resolved, and an older version than the agent has.
pub fn resolved(tx: &ReadTx<'_>, agent: &Agent, name: &str, version: &str) -> Result<Skill, Denied> {
    let (name, version) = (skills::named(name)?, skills::version(version)?);
    let package = skills::package_of(tx, name.as_ref(), &version.to_string())?;
    let package =
        package.ok_or_else(|| Refusal::new(DenialCode::SkillUnknown, format!("skill {name} was not resolved")))?;
    named(tx, agent, package, false)
}
