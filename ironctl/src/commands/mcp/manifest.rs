//! The manifests of the tools of a server: TOML that a person edits for a confirmation, and the parts that a command line sets.
//!
//! The host writes and checks the text. See `ironctl tool schema`.

use super::wording;
use crate::failure::Error;
use ironclaw_operator::{ArgumentRule, Class, InputType, McpServer};
use ironclaw_text::shell::quoted;
use nix::unistd::getpid;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

/// The begin of the text for a person.
const HEAD: &str = "\
# The manifests of the tools of an MCP server, for `ironctl mcp confirm` with `--manifest FILE`.
# class: read, write, send, exec, trade. rule: floor (who or what the call acts on), content (what it
# transports), free (no effect beyond the session). outward: the value leaves this machine.
# `ironctl tool schema` has every field.

";

/// Returns the proposed manifests of a server with a comment for a person.
///
/// Fails if the listing has no manifests.
pub fn text(server: &McpServer) -> Result<String, Error> {
    if server.proposed.is_empty() {
        let why = server.problem.as_deref().unwrap_or("the host has no listing with tools of it");
        let message = format!("{} has no manifests: {}", server.name, wording::prose(why));
        return Err(Error::failed("mcp_unseen", message).hinting(wording::repair(server)));
    }
    Ok(format!("{HEAD}{}", server.proposed))
}

/// Lets a person edit a text with `$VISUAL` or `$EDITOR`, and returns the result.
pub fn edit(text: &str) -> Result<String, Error> {
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|set| !set.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let head = if text.starts_with('#') { "" } else { HEAD };
    let file = Edited::create(&format!("{head}{text}"))?;
    // The variable may have options, which a shell splits.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&file.0).status();
    let failed = |what: String| {
        Error::failed("editor", what).hinting("set EDITOR, or edit a file: `ironctl mcp show NAME --manifest > FILE`")
    };
    match status {
        Ok(status) if status.success() => {
            fs::read_to_string(&file.0).map_err(|cause| failed("cannot read the edited text".to_owned()).because(cause))
        }
        Ok(_) => Err(failed(format!("{editor} failed; nothing was changed"))),
        Err(cause) => Err(failed(format!("cannot start {editor}")).because(cause)),
    }
}

/// The file that a person edits. It is removed at the end.
struct Edited(PathBuf);

impl Edited {
    fn create(text: &str) -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("ironctl-{}.toml", getpid()));
        let create = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())
        };
        match create() {
            Ok(()) => Ok(Self(path)),
            Err(cause) => {
                let message = format!("cannot write {} for the editor", path.display());
                Err(Error::failed("file_unwritable", message).because(cause).hinting("set TMPDIR"))
            }
        }
    }
}

impl Drop for Edited {
    fn drop(&mut self) {
        // A file that is left holds no secret.
        let _ = fs::remove_file(&self.0);
    }
}

/// What a command line sets in the manifest of a tool.
#[derive(Debug, Default)]
pub struct Parts {
    pub class: Option<Class>,
    pub fields: Vec<Field>,
    /// The places in an answer whose text is the person's.
    pub mine: Option<Vec<String>>,
    pub always_ask: Option<bool>,
}

/// The rule of an argument, from `NAME=RULE`, `NAME=RULE:TYPE`, or with `+outward` or `-outward` behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: String,
    rule: ArgumentRule,
    kind: Option<InputType>,
    outward: Option<bool>,
}

impl std::str::FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write it as NAME=RULE, NAME=floor:TYPE, or with +outward or -outward behind it";
        let (name, rest) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or(form)?;
        let (rest, outward) = match (rest.strip_suffix("+outward"), rest.strip_suffix("-outward")) {
            (Some(rest), _) => (rest, Some(true)),
            (None, Some(rest)) => (rest, Some(false)),
            (None, None) => (rest, None),
        };
        let (rule, kind) = rest.split_once(':').map_or((rest, None), |(rule, kind)| (rule, Some(kind)));
        let known = |names: Vec<&str>| format!("is unknown: one of {}", names.join(", "));
        let rule = rule.parse::<ArgumentRule>().map_err(|_| {
            format!("the rule {rule:?} {}", known(ArgumentRule::ALL.iter().map(|one| one.name()).collect()))
        })?;
        let read = |kind: &str| {
            let unknown =
                || format!("the type {kind:?} {}", known(InputType::ALL.iter().map(|one| one.name()).collect()));
            kind.parse::<InputType>().map_err(|_| unknown())
        };
        let kind = kind.map(read).transpose()?;
        if kind.is_some() && rule != ArgumentRule::Floor {
            return Err("only a floor has a type".to_owned());
        }
        Ok(Self { name: name.to_owned(), rule, kind, outward })
    }
}

/// Returns the proposed manifests of a server in which the one of this tool has these parts.
pub fn with_parts(server: &McpServer, tool: &str, parts: &Parts) -> Result<String, Error> {
    let unclear = || {
        let error = Error::failed("answer_unclear", "the manifests of the server are no TOML");
        error.hinting("ironctl and ironclaw-host may be of different versions")
    };
    let mut all: toml::Table = text(server)?.parse().map_err(|cause| unclear().because(cause))?;
    let tools = all.get_mut("tool").and_then(toml::Value::as_array_mut).ok_or_else(unclear)?;
    let found = tools.iter_mut().find(|one| one.get("name").and_then(toml::Value::as_str) == Some(tool));
    let Some(manifest) = found.and_then(toml::Value::as_table_mut) else {
        let message = format!("{} lists no tool {tool:?} that agents can get", server.name);
        let hint = format!("`ironctl mcp show {}` has its tools", quoted(&server.name));
        return Err(Error::failed("tool_unknown", message).hinting(hint));
    };
    if let Some(class) = parts.class {
        manifest.insert("class".to_owned(), class.name().into());
    }
    if let Some(always_ask) = parts.always_ask {
        manifest.insert("always_ask".to_owned(), always_ask.into());
    }
    match parts.mine.as_deref() {
        None => {}
        Some([]) => drop(manifest.remove("mine")),
        Some(paths) => drop(manifest.insert("mine".to_owned(), paths.to_vec().into())),
    }
    for field in &parts.fields {
        let arguments = manifest.get_mut("arguments").and_then(toml::Value::as_table_mut);
        let Some(argument) = arguments.and_then(|all| all.get_mut(&field.name)).and_then(toml::Value::as_table_mut)
        else {
            let message = format!("the tool {tool:?} has no argument {:?}", field.name);
            let hint = format!("`ironctl mcp show {}` has the arguments of its tools", quoted(&server.name));
            return Err(Error::failed("argument_unknown", message).hinting(hint));
        };
        field.put(argument);
    }
    toml::to_string(&all).map_err(|cause| unclear().because(cause))
}

impl Field {
    fn put(&self, argument: &mut toml::Table) {
        argument.insert("rule".to_owned(), self.rule.name().into());
        // A type and labels of the rule before would not fit.
        argument.remove("type");
        argument.remove("needs");
        if let Some(kind) = self.kind {
            argument.insert("type".to_owned(), kind.name().into());
        }
        if let Some(outward) = self.outward {
            argument.insert("outward".to_owned(), outward.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn server(proposed: &str) -> McpServer {
        serde_json::from_value(json!({
            "name": "mail", "transport": "http", "url": "https://x/", "state": "proposed", "headers": [], "agents": [],
            "made_at": "", "tools": [], "proposed": proposed
        }))
        .expect("a server")
    }

    const SEND: &str = "[[tool]]\nname = \"send\"\nclass = \"send\"\nreach = \"outside\"\neffect = \"sends\"\n\
                        arguments.to = { rule = \"floor\", type = \"name\", outward = true }\n";

    fn set(tool: &str, fields: &[&str]) -> Result<Value, Error> {
        let fields = fields.iter().map(|field| field.parse().expect("a field")).collect();
        let parts =
            Parts { class: Some(Class::Read), fields, mine: Some(vec!["/notes".to_owned()]), always_ask: Some(true) };
        let text = with_parts(&server(SEND), tool, &parts)?;
        Ok(serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("JSON")["tool"][0].clone())
    }

    #[test]
    fn unknown_tool_argument_rule_or_type_is_refused() {
        let code = |error: Error| error.report().expect("reported").error.code;
        assert_eq!(code(set("post", &[]).expect_err("refused")), "tool_unknown");
        assert_eq!(code(set("send", &["cc=free"]).expect_err("refused")), "argument_unknown");
        assert_eq!(code(text(&server("")).expect_err("refused")), "mcp_unseen");
        for field in ["to", "=free", "to=any", "to=floor:mail", "to=free:email", "to="] {
            assert!(field.parse::<Field>().is_err(), "{field}");
        }
    }

    #[test]
    fn only_the_named_parts_are_set() {
        let manifest = set("send", &["to=floor:email"]).expect("set");
        assert_eq!(manifest["arguments"]["to"], json!({"rule": "floor", "type": "email", "outward": true}));
        assert_eq!(manifest["mine"], json!(["/notes"]));
        assert_eq!(
            (&manifest["class"], &manifest["always_ask"], &manifest["effect"]),
            (&json!("read"), &json!(true), &json!("sends"))
        );
        let manifest = set("send", &["to=free-outward"]).expect("set");
        assert_eq!(manifest["arguments"]["to"], json!({"rule": "free", "outward": false}));
        assert!(text(&server(SEND)).expect("a text").ends_with(SEND));
    }
}
