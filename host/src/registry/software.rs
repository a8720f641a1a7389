//! The software in an agent's jail: the requested packages with the parts of their names, and the layer made from them.
//!
//! Never makes a layer, and never checks a name. See [`crate::reach::packages`].

pub use ironclaw_store::tables::agents::{Software, software_of as for_agent};

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Packages;
use ironclaw_state::ReadTx;
use ironclaw_state::home::LayerOwner;
use ironclaw_store::tables::{agents, mcp};

/// Returns the layer of an agent, if it has one.
pub fn layer_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Option<Digest>, ironclaw_state::Error> {
    Ok(for_agent(tx, agent)?.map(|software| software.layer))
}

pub fn layers(tx: &ReadTx<'_>) -> Result<Vec<(LayerOwner, Digest)>, ironclaw_state::Error> {
    let of_agents = agents::layers(tx)?.into_iter().map(|(agent, layer)| (LayerOwner::Agent(agent), layer));
    let of_servers = mcp::layers(tx)?.into_iter().map(|(server, layer)| (LayerOwner::Server(server), layer));
    Ok(of_agents.chain(of_servers).collect())
}

/// Returns each package as `REGISTRY:NAME`, without a version and in the form under which the registry has it. A text that names no package
/// of its registry alone, such as an alias of npm, is not changed.
pub fn registry_names(packages: &Packages) -> Vec<String> {
    let apt = packages.apt.iter().map(|name| format!("apt:{name}"));
    let npm = packages.npm.iter().map(|text| match npm_parts(text) {
        (_, Some(version)) if version.contains([':', '/']) => format!("npm:{text}"),
        (name, _) => format!("npm:{name}"),
    });
    let pypi = packages.pypi.iter().map(|text| format!("pypi:{}", pypi_name(without_extras(pypi_parts(text).0))));
    apt.chain(npm).chain(pypi).collect()
}

/// Returns the name of a package of npm, and its version.
pub fn npm_parts(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('@') {
        Some((name, version)) if !name.is_empty() => (name, Some(version)),
        _ => (text, None),
    }
}

/// Returns the name of a package of pypi, and its exact version.
pub fn pypi_parts(text: &str) -> (&str, Option<&str>) {
    text.split_once("==").map_or((text, None), |(name, version)| (name, Some(version)))
}

/// Returns the form of a name of pypi under which the index has it (PEP 503).
pub fn pypi_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// Returns a name of pypi without the extras behind it (PEP 508).
fn without_extras(name: &str) -> &str {
    let extras = name.strip_suffix(']').and_then(|rest| rest.split_once('['));
    extras.map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(apt: &[&str], npm: &[&str], pypi: &[&str]) -> Vec<String> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        registry_names(&Packages { apt: own(apt), npm: own(npm), pypi: own(pypi) })
    }

    #[test]
    fn text_that_names_something_else_is_not_the_package() {
        for text in ["a@npm:b", "a@npm:@s/b", "a@https://h/b.tgz", "a@user/repo", "A", "@a", "@s/a", "a-b", "a=1"] {
            assert_ne!(names(&[], &[text], &[]), ["npm:a"], "{text}");
        }
        for text in ["a @ https://h/a.whl", "a>=1", "a[x", "a]", "[a]", "a[x]>=1", "ab", "a b"] {
            assert_ne!(names(&[], &[], &[text]), ["pypi:a"], "{text}");
        }
        assert_ne!(names(&["git=1:2.30"], &[], &[]), ["apt:git"], "a name for apt has no version");
    }

    #[test]
    fn each_form_of_a_name_is_the_package() {
        for text in ["@s/a", "@s/a@1.2.3", "@s/a@latest", "@s/a@^1.0"] {
            assert_eq!(names(&[], &[text], &[]), ["npm:@s/a"], "{text}");
        }
        for text in ["a-b", "a-b==1.2", "A_b", "a.B==1", "a__b", "a-b[x]", "A-b[x,y]==1.0"] {
            assert_eq!(names(&[], &[], &[text]), ["pypi:a-b"], "{text}");
        }
        assert_eq!(names(&["git"], &["a"], &["a"]), ["apt:git", "npm:a", "pypi:a"]);
    }
}
