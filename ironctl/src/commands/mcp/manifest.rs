//! The manifests of the tools of a server as TOML that a person edits for `ironctl mcp confirm --manifest`.
//!
//! Text of the server is only in quoted strings, where each unsafe character is an escape of TOML. See `ironctl tool schema`.

use crate::failure::Error;
use crate::output::is_unsafe;
use ironclaw_operator::{
    ArgumentRule, Class, InputType, MCP_EFFECT, McpListed, McpServer, McpServerTool, ToolArgument,
};
use std::fmt::Write as _;

/// Returns the manifests of the listed tools. The effect of a tool comes from its confirmed manifest, if it has one.
///
/// Fails if the listing has no manifests, or if the confirmed ones are no TOML.
pub fn to_toml(server: &McpServer) -> Result<String, Error> {
    let listed: Vec<&McpServerTool> =
        server.tools.iter().filter(|tool| tool.listed != McpListed::Gone && tool.unfit.is_none()).collect();
    if listed.is_empty() {
        let why = server.problem.as_deref().unwrap_or("the host has no listing with tools of it");
        let message = format!("{} has no manifests: {}", server.name, super::wording::prose(why));
        return Err(Error::failed("mcp_unseen", message).hinting(super::wording::repair(server)));
    }
    let confirmed = server.manifest.as_deref().map(Confirmed::read).transpose()?.unwrap_or_default();
    let mut text = String::new();
    text.push_str("# The manifests of the tools of an MCP server, for `ironctl mcp confirm` with `--manifest FILE`.\n");
    text.push_str(
        "# class: read, write, send, exec, trade. rule: floor (who or what the call acts on), content (what it\n",
    );
    text.push_str("# transports), free (no effect beyond the session). `ironctl tool schema` has every field.\n");
    for tool in listed {
        let effect = confirmed.effect(&tool.name);
        let effect = effect.unwrap_or_else(|| MCP_EFFECT.to_owned());
        let _ = write!(
            text,
            "\n[[tool]]\nname = {}\nclass = {}\nreach = \"outside\"\n",
            quoted(&tool.name),
            quoted(tool.class.map_or("", Class::name))
        );
        if confirmed.is_reversible(&tool.name) {
            text.push_str("reversible = true\n");
        }
        if tool.always_asks {
            text.push_str("always_ask = true\n");
        }
        let _ = writeln!(text, "effect = {}", quoted(&effect));
        for (argument, rule) in &tool.arguments {
            let _ = writeln!(text, "arguments.{} = {{ {} }}", key(argument), fields(rule));
        }
    }
    Ok(text)
}

/// The label that a floor needs if its manifest names none.
const TYPED: &str = "UserSurfaceInput";

/// Returns the fields of an argument in a manifest.
fn fields(argument: &ToolArgument) -> String {
    let mut fields = vec![format!("rule = {}", quoted(argument.rule.name()))];
    // A floor of the schema stays whatever the manifest says.
    let own = argument.kind.filter(|_| argument.rule == ArgumentRule::Floor && !argument.by_reference);
    if let Some(kind) = own.filter(|kind| *kind != InputType::Any) {
        fields.push(format!("type = {}", quoted(kind.name())));
    }
    let is_usual = argument.needs.iter().map(|label| label.name()).eq([TYPED]);
    if own.is_some() && !is_usual {
        let needs: Vec<String> = argument.needs.iter().map(|label| quoted(label.name())).collect();
        fields.push(format!("needs = [{}]", needs.join(", ")));
    }
    if argument.outward {
        fields.push("outward = true".to_owned());
    }
    fields.join(", ")
}

/// The manifests that people confirmed.
#[derive(Debug, Default)]
struct Confirmed(toml::Table);

impl Confirmed {
    fn read(text: &str) -> Result<Self, Error> {
        text.parse().map(Self).map_err(|cause| {
            Error::failed("answer_unclear", "the confirmed manifests of the server are no TOML")
                .because(cause)
                .hinting("ironctl and ironclaw-host may be of different versions")
        })
    }

    fn field(&self, tool: &str, field: &str) -> Option<&toml::Value> {
        let tools = self.0.get("tool")?.as_array()?;
        tools.iter().find(|found| found.get("name").and_then(toml::Value::as_str) == Some(tool))?.get(field)
    }

    fn effect(&self, tool: &str) -> Option<String> {
        self.field(tool, "effect")?.as_str().map(str::to_owned)
    }

    fn is_reversible(&self, tool: &str) -> bool {
        self.field(tool, "reversible").and_then(toml::Value::as_bool) == Some(true)
    }
}

/// Writes a basic string of TOML without a character that controls or reorders a terminal.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' | '\t' => out.push_str(if character == '\n' { "\\n" } else { "\\t" }),
            character if is_unsafe(character) => {
                let _ = write!(out, "\\U{:08X}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out.push('"');
    out
}

/// Writes a key of TOML: bare if it has plain characters only.
fn key(text: &str) -> String {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_bare { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns a server whose one tool has an argument of this name.
    fn server(argument: &str, manifest: Option<&str>) -> McpServer {
        let tool = |name: &str, listed: &str| {
            json!({
                "name": name, "description": "", "class": "send", "arguments": {argument: {
                    "rule": "floor", "type": "any", "needs": ["UserSurfaceInput"], "by_reference": false, "outward": true
                }}, "labels": [],
                "loosened": [], "always_asks": true, "listed": listed
            })
        };
        let mut server = json!({
            "name": "mail", "transport": "http", "url": "https://x/", "state": "proposed", "headers": [], "agents": [],
            "made_at": "", "tools": [tool("a", "new"), tool("b", "gone"), tool("c", "same")]
        });
        if let Some(manifest) = manifest {
            server["manifest"] = json!(manifest);
        }
        serde_json::from_value(server).expect("a server")
    }

    fn read(text: &str) -> Value {
        serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("JSON")
    }

    #[test]
    fn every_argument_name_is_read_back() {
        for argument in [
            "to",
            "a.b",
            "a \"b\" \\c",
            "",
            "é",
            "x\u{1b}[2J\u{202e}\u{e0041}\r\n\t",
            "] # [[tool]]",
            "a = {",
            "\u{7f}\0",
        ] {
            let text = to_toml(&server(argument, None)).expect("manifests");
            assert!(!text.chars().any(|character| character != '\n' && is_unsafe(character)), "{text:?}");
            let tools = read(&text);
            let tools = tools["tool"].as_array().expect("tools");
            assert_eq!(tools.len(), 2, "a tool that is gone has none: {text}");
            assert_eq!(tools[0]["arguments"], json!({argument: {"rule": "floor", "outward": true}}), "{text}");
            assert_eq!((&tools[0]["reach"], &tools[0]["always_ask"]), (&json!("outside"), &json!(true)));
            assert_eq!(tools[0]["effect"], MCP_EFFECT);
        }
    }

    #[test]
    fn effect_of_the_confirmed_manifest_is_kept() {
        let confirmed = "[[tool]]\nname = 'c'\neffect = 'sends \"{to}\"'\nreversible = true\n";
        let tools = read(&to_toml(&server("to", Some(confirmed))).expect("manifests"));
        assert_eq!(tools["tool"][1]["effect"], "sends \"{to}\"");
        assert_eq!((&tools["tool"][1]["reversible"], &tools["tool"][0]["reversible"]), (&json!(true), &Value::Null));
        assert!(to_toml(&server("to", Some("[["))).is_err());
    }

    #[test]
    fn server_without_a_listing_has_no_manifests() {
        let mut empty = server("to", None);
        empty.tools.clear();
        let report = to_toml(&empty).expect_err("refused").report().expect("reported").error;
        assert_eq!(report.code, "mcp_unseen");
        assert!(report.hint.contains("ironctl mcp test mail"), "{}", report.hint);
    }
}
