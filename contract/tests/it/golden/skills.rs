//! One sample of every answer about skills, and of every body that they accept.

use super::seam::digest;
use super::{Shape, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::change::{Change, EnabledTools, Part, Skill};
use ironclaw_operator::{
    DamagedSkill, InstallSkill, InstalledSkill, NewSkillKey, PinSkill, RemoveSkill, SkillKey, SkillPackage,
    SkillSource, SkillTrust, SkillVersion,
};
use serde_json::json;

pub(super) fn all() -> Vec<Shape> {
    let (agent, skill) = ("clerk".to_owned(), "weather".to_owned());
    let (version, signer) = ("1.2.0".to_owned(), "0123456789ABCDEF".to_owned());
    let installed = InstalledSkill {
        agent: "clerk".to_owned(),
        name: skill.clone(),
        version: version.clone(),
        signer: signer.clone(),
        digest: digest(1),
        pinned: false,
        state: SkillTrust::Trusted,
        description: "Reads the weather.".to_owned(),
        newest: None,
    };
    let package = SkillPackage {
        name: skill.clone(),
        version: version.clone(),
        signer: signer.clone(),
        digest: digest(1),
        source: "team".to_owned(),
        description: "Reads the weather.".to_owned(),
        files: json!({ "SKILL.md": digest(2) }),
        grants: json!({ "tools": ["run_command"] }),
        versions: vec![version.clone(), "1.0.0".to_owned()],
        text: None,
    };
    let install = InstallSkill {
        agent: agent.clone(),
        skill: skill.clone(),
        version: Some(version.clone()),
        back: true,
        reason: "people ask for it".to_owned(),
    };
    let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3".to_owned();
    let own_names = vec![skill.clone()];
    vec![
        shape(
            "operator.installed_skill.newest",
            InstalledSkill { newest: Some("1.3.0".to_owned()), ..installed.clone() },
        ),
        shape("operator.installed_skill", installed),
        shape("operator.skill_package", SkillPackage { text: Some("# Weather\n".to_owned()), ..package.clone() }),
        shape("operator.skill_package.bare", package),
        shape("operator.install_skill", install),
        shape(
            "operator.install_skill.bare",
            InstallSkill { agent: agent.clone(), skill: skill.clone(), ..InstallSkill::default() },
        ),
        shape(
            "operator.remove_skill",
            RemoveSkill { agent: agent.clone(), skill: skill.clone(), reason: "unused".to_owned() },
        ),
        shape("operator.pin_skill", PinSkill { agent, skill: skill.clone(), pinned: true }),
        shape(
            "operator.skill_source",
            SkillSource { name: "team".to_owned(), location: "https://skills.example/".to_owned() },
        ),
        shape(
            "operator.skill_key",
            SkillKey {
                id: signer,
                name: "ana".to_owned(),
                key: key.clone(),
                skills: own_names.clone(),
                revoked: false,
            },
        ),
        shape("operator.new_skill_key", NewSkillKey { name: "ana".to_owned(), key: key.clone(), skills: own_names }),
        shape("operator.new_skill_key.bare", NewSkillKey { name: "ana".to_owned(), key, skills: Vec::new() }),
        shape(
            "operator.damaged_skill",
            DamagedSkill { name: skill.clone(), version: version.clone(), agents: vec!["clerk".to_owned()] },
        ),
        shape("operator.skill_version", SkillVersion { skill, version }),
    ]
}

/// Returns the payloads of the change `skills`.
pub(super) fn changes() -> Vec<Shape> {
    let removal = Skill { name: "weather".to_owned(), remove: Some(true), ..Skill::default() };
    vec![shape("skills", change()), shape("skills.remove", removal)]
}

/// Returns a skill with a part.
fn change() -> Skill {
    let tools = EnabledTools::All(vec!["read_file".to_owned(), "run_command".to_owned()]);
    Skill {
        name: "weather".to_owned(),
        version: Some("1.2.0".to_owned()),
        digest: Some(Digest::of(b"package")),
        signer: Some("0123456789ABCDEF".to_owned()),
        persona: Some("Give temperatures in degrees Celsius.".to_owned()),
        parts: Part::new(Change::EnabledTools(tools)).into_iter().collect(),
        ..Skill::default()
    }
}
