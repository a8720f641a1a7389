//! The confirmed manifest of a tool of an MCP server with the looser parts that the host proposes.
//!
//! Permits nothing: people confirm a manifest. See [`ironclaw_judge::manifest::proposal`].

use super::place::Place;
use super::proposed::anew;
use crate::registry::tools::catalogue::ServerTool;
use ironclaw_judge::Class;
use ironclaw_judge::manifest::{Manifest, Rule};
use ironclaw_state::ReadTx;
use ironclaw_store::tables::mcp::server;
use ironclaw_text::shell::quoted;

/// A looser manifest of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Looser {
    pub manifest: Manifest,
    /// The parts that differ, in words.
    pub parts: Vec<String>,
    /// The options of `ironctl mcp set` for them.
    options: Vec<String>,
}

impl Looser {
    /// Returns the command that proposes it for a tool of a server.
    pub fn command(&self, server: &str, tool: &str) -> String {
        format!("ironctl mcp set {} {} {}", quoted(server), quoted(tool), self.options.join(" "))
    }
}

/// Returns the manifest of a tool with the looser parts of the proposal for it; `None` if nothing would be looser. It never has the class
/// `exec` or `trade`, and a tool that always asks has none.
pub fn looser(tx: &ReadTx<'_>, tool: &ServerTool) -> Result<Option<Looser>, ironclaw_state::Error> {
    let Some(found) = server(tx, &tool.server)? else { return Ok(None) };
    let Some(listing) = found.confirmed()?.filter(|_| !tool.manifest.always_ask) else { return Ok(None) };
    let looser = anew(&found, &listing, &tool.tool).and_then(|anew| with_looser_parts(&tool.manifest, &anew));
    Ok(looser.map(|mut looser| {
        if !Place::for_description(&found.described).has_network() {
            looser.manifest.keep_inside();
        }
        looser
    }))
}

/// Returns a manifest with the parts of another one that are looser, and these in words.
fn with_looser_parts(present: &Manifest, proposed: &Manifest) -> Option<Looser> {
    if [present.class, proposed.class].iter().any(|class| matches!(class, Class::Exec | Class::Trade)) {
        return None;
    }
    let (mut manifest, mut parts, mut options) = (present.clone(), Vec::new(), Vec::new());
    if rank(proposed.class) < rank(present.class) {
        manifest.class = proposed.class;
        parts.push(format!("class {} in place of {}", proposed.class, present.class));
        options.push(format!("--class {}", proposed.class));
    }
    for (name, argument) in &mut manifest.arguments {
        let freed = proposed.arguments.get(name).filter(|freed| freed.rule != Rule::Floor);
        if let (Rule::Floor, Some(freed)) = (argument.rule, freed) {
            *argument = *freed;
            parts.push(format!("{name} {} in place of floor", freed.rule.name()));
            let outward = if freed.outward { '+' } else { '-' };
            options.push(format!("--field {}", quoted(&format!("{name}={}{outward}outward", freed.rule.name()))));
        }
    }
    (!parts.is_empty()).then_some(Looser { manifest, parts, options })
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
    use ironclaw_judge::manifest::proposal::{Surroundings, propose};
    use ironclaw_judge::manifest::server::Tools;
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
            assert_eq!(
                with_looser_parts(&present, &propose(&present, &entry, Surroundings::Public, None).manifest),
                None,
                "{name}"
            );
        }
        let (present, entry) = strict("search_notes", &json!({}));
        let exec = Manifest { class: Class::Exec, ..present.clone() };
        assert_eq!(
            with_looser_parts(&exec, &propose(&present, &entry, Surroundings::Public, None).manifest),
            None,
            "its class is exec"
        );
    }

    #[test]
    fn looser_manifest_has_the_looser_parts_alone() {
        let (present, entry) = strict("search_notes", &json!({ "readOnlyHint": true }));
        let proposed = propose(&present, &entry, Surroundings::Public, None).manifest;
        let found = with_looser_parts(&present, &proposed).expect("a looser one");
        assert_eq!(
            found.command("s", "search_notes"),
            "ironctl mcp set s search_notes --class read --field deep=free-outward --field query=free+outward"
        );
        let Looser { manifest, parts, .. } = found;
        assert_eq!(manifest, proposed);
        assert_eq!(
            parts,
            ["class read in place of send", "deep free in place of floor", "query free in place of floor"]
        );
        let mut own = present.clone();
        (own.class, own.effect) = (Class::Read, "searches".to_owned());
        let Looser { manifest, parts, .. } =
            with_looser_parts(&own, &Manifest { class: Class::Write, ..proposed }).expect("a looser one");
        assert_eq!((manifest.class, manifest.effect.as_str()), (Class::Read, "searches"));
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert_eq!(with_looser_parts(&manifest, &manifest), None, "nothing is looser");
    }
}
