//! The sentences about a skill: who signed it, what it brings, and the differences to the version before.

use super::super::kind::Page;
use super::super::kind_of;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::{Change, Skill};
use serde_json::Value;
use std::collections::BTreeMap;

/// The directory of scripts in a package.
const SCRIPTS: &str = "scripts/";

impl Page for Skill {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let name = page.show(&self.name);
        let before = page.before["version"].as_str().map(|version| page.show(version));
        match (self.removes(), &self.version, &before) {
            (true, ..) => page.add(format!("Remove the skill {name} from {agent}.")),
            (false, Some(version), None) => {
                let version = page.show(version);
                page.add(format!("Install the skill {name}, version {version}, for {agent}."));
            }
            (false, version, Some(before)) => {
                let version = page.show(version.as_deref().unwrap_or_default());
                page.add(format!("Change the skill {name} of {agent} from version {before} to version {version}."));
            }
            (false, None, None) => page.add(format!("Install the skill {name} for {agent}.")),
        }
        if !self.removes() {
            content(self, agent, page);
        }
        let lost = Effects::texts(&page.before["always_ask"]);
        if !lost.is_empty() {
            page.warn(format!("Calls of these tools NO LONGER all wait for a person: {}.", page.list(lost)));
        }
        parts(self, agent, page);
    }
}

/// Adds the signer, the author's words and the files.
fn content(skill: &Skill, agent: &str, page: &mut Effects<'_>) {
    let key = page.show(page.facts["key"].as_str().unwrap_or("(not trusted)"));
    let signer = page.show(skill.signer.as_deref().unwrap_or_default());
    let source = page.show(page.facts["source"].as_str().unwrap_or_default());
    page.add(format!("It is signed with the key {key}, id {signer}, and comes from the source {source}."));
    if let Some(earlier) = page.before["signer"].as_str().filter(|earlier| Some(*earlier) != skill.signer.as_deref()) {
        page.warn(format!("ANOTHER KEY signed the present version: {}.", page.show(earlier)));
    }
    let description = page.show(page.facts["description"].as_str().unwrap_or_default());
    page.add(format!("Its author describes it in these words: {description}."));
    page.warn("Its TEXT becomes instructions to the agent. The host does not check what it says.".to_owned());
    if skill.persona.is_some() {
        page.add(format!(
            "While it is installed, the prompt of {agent} always has its text \"persona\", which is below."
        ));
    }
    let scripts = scripts(&page.facts["files"]);
    match scripts.is_empty() {
        true => page.add("It has no scripts.".to_owned()),
        false => {
            let names = page.list(scripts.keys().copied());
            page.add(format!("It has these scripts: {names}."));
            page.warn("An agent that may run commands can RUN these scripts in its jail.".to_owned());
        }
    }
    let needs = Effects::texts(&page.facts["needs"]);
    if !needs.is_empty() {
        page.add(format!("It needs these programs of the machine: {}.", page.list(needs)));
    }
    let asked = Effects::texts(&page.facts["always_ask"]);
    if !asked.is_empty() {
        page.add(format!("While it is installed, every call of these tools waits for a person: {}.", page.list(asked)));
    }
}

/// Adds the changes that the skill contains, each in the words of its own kind.
fn parts(skill: &Skill, agent: &str, page: &mut Effects<'_>) {
    match (skill.parts.is_empty(), skill.removes()) {
        (true, false) => page.add(format!("It changes nothing else that {agent} may do.")),
        (true, true) => page.add(format!("Everything else that {agent} may do stays.")),
        (false, false) => page.add(format!("It changes what {agent} may do in these ways:")),
        (false, true) => page.add(format!("These grants came with it, and {agent} loses them:")),
    }
    let (before, facts) = (page.before, page.facts);
    for (at, part) in skill.parts.iter().enumerate() {
        page.part(&before["parts"][at]["payload"], &facts["parts"][at], |page| {
            kind_of(part.change()).effects(agent, page);
        });
    }
    if skill.parts.iter().any(|part| matches!(part.change(), Change::Schedule(_))) {
        page.warn("The AUTHOR of the skill wrote the prompts of its schedules.".to_owned());
    }
    for ended in facts["ends"].as_array().into_iter().flatten() {
        let prompt = page.show(ended["prompt"].as_str().unwrap_or_default());
        page.add(format!("End the schedule {}, whose prompt is {prompt}.", ended["id"].as_str().unwrap_or_default()));
    }
}

/// Returns the scripts of a package with their digests.
fn scripts(files: &Value) -> BTreeMap<&str, &str> {
    let files = files.as_object().into_iter().flatten();
    files
        .filter(|(path, _)| path.starts_with(SCRIPTS))
        .map(|(path, digest)| (path.as_str(), digest.as_str().unwrap_or_default()))
        .collect()
}
