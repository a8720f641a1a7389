//! The requests about skills, their sources and their keys.
//!
//! Never sends the content of a skill. See `commands::skill`.

use super::{Client, REQUEST_TIMEOUT, parse, segment, to_body};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{
    InstallSkill, InstalledSkill, NewSkillKey, PinSkill, RemoveSkill, SkillKey, SkillPackage, SkillSource,
    SkillVersion, SubmittedChange,
};
use std::time::Duration;

/// The longest wait while the host reaches the sources and verifies a package.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(180);

impl Client {
    /// Returns the skills of an agent, optionally with newer versions at the sources.
    pub async fn skills(&self, agent: &str, newest: bool) -> Result<Vec<InstalledSkill>, Error> {
        let path = format!("skills?agent={}&newest={newest}", segment(agent));
        parse(&self.ask(Method::GET, &path, None, RESOLVE_TIMEOUT).await?)
    }

    /// Resolves a skill, optionally with one of its texts.
    pub async fn skill(&self, name: &str, version: Option<&str>, file: Option<&str>) -> Result<SkillPackage, Error> {
        let named = |key: &str, value: Option<&str>| {
            value.map(|value| format!("{key}={}&", segment(value))).unwrap_or_default()
        };
        let path = format!("skills/{}?{}{}", segment(name), named("version", version), named("file", file));
        parse(&self.ask(Method::GET, &path, None, RESOLVE_TIMEOUT).await?)
    }

    /// Proposes to install a skill.
    pub async fn install_skill(&self, wanted: &InstallSkill) -> Result<SubmittedChange, Error> {
        parse(&self.ask(Method::POST, "skills/install", Some(to_body(wanted)?), RESOLVE_TIMEOUT).await?)
    }

    /// Proposes to remove a skill.
    pub async fn remove_skill(&self, old: &RemoveSkill) -> Result<SubmittedChange, Error> {
        self.post("skills/remove", old).await
    }

    /// Keeps a skill at its version, or lets it change.
    pub async fn pin_skill(&self, pin: &PinSkill) -> Result<InstalledSkill, Error> {
        self.post("skills/pin", pin).await
    }

    /// Returns the sources of skills.
    pub async fn skill_sources(&self) -> Result<Vec<SkillSource>, Error> {
        self.get("skill-sources").await
    }

    /// Adds a source of skills, and returns all of them.
    pub async fn add_skill_source(&self, source: &SkillSource) -> Result<Vec<SkillSource>, Error> {
        self.post("skill-sources", source).await
    }

    /// Removes a source of skills, and returns the others.
    pub async fn remove_skill_source(&self, name: &str) -> Result<Vec<SkillSource>, Error> {
        let path = format!("skill-sources/{}", segment(name));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Returns the keys whose signatures count, with the revoked ones.
    pub async fn skill_keys(&self) -> Result<Vec<SkillKey>, Error> {
        self.get("skill-keys").await
    }

    /// Adds a key.
    pub async fn add_skill_key(&self, key: &NewSkillKey) -> Result<SkillKey, Error> {
        self.post("skill-keys", key).await
    }

    /// Removes a key.
    pub async fn remove_skill_key(&self, key: &str) -> Result<SkillKey, Error> {
        let path = format!("skill-keys/{}", segment(key));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Revokes a key.
    pub async fn revoke_skill_key(&self, key: &str) -> Result<SkillKey, Error> {
        let path = format!("skill-keys/{}/revoke", segment(key));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Revokes a version of a skill.
    pub async fn revoke_skill(&self, version: &SkillVersion) -> Result<SkillVersion, Error> {
        self.post("skill-revocations", version).await
    }
}
