//! The confirmed manifest of a tool of an MCP server with the looser parts that the host proposes.
//!
//! Permits nothing: people confirm a manifest. See [`ironclaw_judge::manifest::proposal`].

use super::{Place, find};
use crate::registry::tools::catalogue::ServerTool;
use ironclaw_contract::canonical::Digest;
use ironclaw_judge::Class;
use ironclaw_judge::manifest::proposal::propose;
use ironclaw_judge::manifest::server::Tools;
use ironclaw_judge::manifest::{Manifest, Rule};
use ironclaw_state::ReadTx;

/// A looser manifest of a tool.
#[derive(Debug, Clone)]
pub struct Looser {
    pub manifest: Manifest,
    /// The parts that differ, in words.
    pub parts: Vec<String>,
    /// The digest of the listing that people confirm with it.
    pub digest: Digest,
}

/// Returns the manifest of a tool with the looser parts of the proposal for it; `None` if nothing would be looser. It never has the class
/// `exec` or `trade`, and a tool that always asks has none.
pub fn looser(tx: &ReadTx<'_>, tool: &ServerTool) -> Result<Option<Looser>, ironclaw_state::Error> {
    let Some(server) = find(tx, &tool.server)? else { return Ok(None) };
    let has_network = Place::for_description(&server.described).has_network();
    let Some(listing) = server.confirmed()?.filter(|_| !tool.manifest.always_ask) else { return Ok(None) };
    let Some(entry) = listing.tool(&tool.tool) else { return Ok(None) };
    let strict = Tools::strictest(&tool.server, std::slice::from_ref(entry));
    let Some(strict) = strict.manifests.get(&tool.tool) else { return Ok(None) };
    let found = with_looser_parts(&tool.manifest, &propose(strict, entry, has_network).manifest);
    Ok(found.map(|(mut manifest, parts)| {
        if !has_network {
            manifest.keep_inside();
        }
        Looser { manifest, parts, digest: listing.digest() }
    }))
}

/// Returns a manifest with the parts of another one that are looser, and these in words.
fn with_looser_parts(present: &Manifest, proposed: &Manifest) -> Option<(Manifest, Vec<String>)> {
    if [present.class, proposed.class].iter().any(|class| matches!(class, Class::Exec | Class::Trade)) {
        return None;
    }
    let (mut manifest, mut parts) = (present.clone(), Vec::new());
    if rank(proposed.class) < rank(present.class) {
        manifest.class = proposed.class;
        parts.push(format!("class {} in place of {}", proposed.class, present.class));
    }
    for (name, argument) in &mut manifest.arguments {
        let freed = proposed.arguments.get(name).filter(|freed| freed.rule != Rule::Floor);
        if let (Rule::Floor, Some(freed)) = (argument.rule, freed) {
            *argument = *freed;
            parts.push(format!("{name} {} in place of floor", freed.rule.name()));
        }
    }
    (!parts.is_empty()).then_some((manifest, parts))
}

/// Returns the place of a class: one that does less comes first.
const fn rank(class: Class) -> u8 {
    match class {
        Class::Read | Class::Ask => 0,
        Class::Write => 1,
        Class::Send => 2,
        Class::Exec | Class::Trade => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn strict(name: &str, hints: &Value) -> (Manifest, Value) {
        let properties = json!({ "query": { "type": "string" }, "deep": { "type": "boolean" } });
        let entry = json!({
            "name": name, "annotations": hints, "inputSchema": { "type": "object", "properties": properties }
        });
        let tools = Tools::strictest("s", std::slice::from_ref(&entry));
        (tools.manifests[name].clone(), entry)
    }

    #[test]
    fn tool_that_runs_or_buys_has_no_looser_manifest() {
        for name in ["run_command", "buy_ticket"] {
            let (present, entry) = strict(name, &json!({}));
            assert_eq!(with_looser_parts(&present, &propose(&present, &entry, true).manifest), None, "{name}");
        }
        let (present, entry) = strict("search_notes", &json!({}));
        let exec = Manifest { class: Class::Exec, ..present.clone() };
        assert_eq!(with_looser_parts(&exec, &propose(&present, &entry, true).manifest), None, "its class is exec");
    }

    #[test]
    fn looser_manifest_has_the_looser_parts_alone() {
        let (present, entry) = strict("search_notes", &json!({ "readOnlyHint": true }));
        let proposed = propose(&present, &entry, true).manifest;
        let (manifest, parts) = with_looser_parts(&present, &proposed).expect("a looser one");
        assert_eq!(manifest, proposed);
        assert_eq!(
            parts,
            ["class read in place of send", "deep free in place of floor", "query free in place of floor"]
        );
        let mut own = present.clone();
        (own.class, own.effect) = (Class::Read, "searches".to_owned());
        let (manifest, parts) =
            with_looser_parts(&own, &Manifest { class: Class::Write, ..proposed }).expect("a looser one");
        assert_eq!((manifest.class, manifest.effect.as_str()), (Class::Read, "searches"));
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert_eq!(with_looser_parts(&manifest, &manifest), None, "nothing is looser");
    }
}
