//! What one entry of a configuration file becomes here: a server at a URL or a command, with its secrets by name.
//!
//! Pure but for variables of the environment and the directories that arguments name. Sends nothing. See [`super::value`].

use super::document::Named;
use super::value::{self, Given};
use ironclaw_operator::SecretValue;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Characters of the name of a server.
const NAME_CHARACTERS_MAX: usize = 32;

/// Fields that need nothing here, because the host has its own: times, approvals, gaps of the editor.
const NEEDLESS: [&str; 9] =
    ["timeout", "disabled", "enabled", "type", "transport", "description", "name", "version", "trust"];

/// Fields of the approvals of another program, which no entry brings along.
const APPROVALS: [&str; 4] = ["autoApprove", "alwaysAllow", "auto_approve", "disabledTools"];

/// The fields that are read.
const READ: [&str; 10] =
    ["command", "args", "env", "url", "serverUrl", "httpUrl", "uri", "headers", "http_headers", "cwd"];

/// The place of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Url(String),
    /// Program and arguments as the file has them.
    Command(Vec<String>),
}

/// The use of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    Variable(String),
    Header { name: String, scheme: Option<String> },
}

/// A secret that an entry needs.
pub struct Needed {
    /// Its name on the host.
    pub secret: String,
    pub at: Use,
    /// The value in the file, or in a variable that the file names.
    pub value: Option<SecretValue>,
}

/// A directory for the jail of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub source: String,
    pub target: String,
}

/// What an entry becomes.
pub struct Plan {
    /// The name in the file.
    pub entry: String,
    /// The name of the server.
    pub server: String,
    pub place: Place,
    pub secrets: Vec<Needed>,
    /// Variables whose values everyone may see.
    pub texts: Vec<(String, String)>,
    pub mounts: Vec<Granted>,
    /// What changes on the way, a sentence each.
    pub remarks: Vec<String>,
}

/// Reads an entry. `taken` has the names of the servers before it.
///
/// # Errors
/// The reason why it cannot be taken over, a sentence without a value of the file.
pub fn read(named: &Named, taken: &[String]) -> Result<Plan, String> {
    let Named { name, fields } = named;
    if fields.get("disabled") == Some(&json!(true)) || fields.get("enabled") == Some(&json!(false)) {
        return Err("it is switched off in the file".to_owned());
    }
    let server = server_name(name, taken)?;
    let mut plan = Plan {
        entry: name.clone(),
        place: Place::Command(Vec::new()),
        secrets: Vec::new(),
        texts: Vec::new(),
        mounts: Vec::new(),
        remarks: Vec::new(),
        server,
    };
    if plan.server != *name {
        plan.remarks.push(format!("its name becomes {}", plan.server));
    }
    let kind = ["type", "transport"].iter().find_map(|field| fields.get(*field)?.as_str()).unwrap_or_default();
    match (url(fields), command(fields)?) {
        (Some((_, true)), _) => return Err(SSE.to_owned()),
        (Some(_), Some(_)) => return Err("it has a command and a URL".to_owned()),
        (None, None) => return Err("it has neither a command nor a URL".to_owned()),
        (Some(_), None) if kind.eq_ignore_ascii_case("sse") => return Err(SSE.to_owned()),
        (Some((url, false)), None) => plan.read_url(url, fields)?,
        (None, Some(words)) => plan.read_command(words, fields)?,
    }
    plan.add_left_out(fields);
    Ok(plan)
}

/// The reason for the transport of 2024.
const SSE: &str = "its transport sse of 2024 is not built: ask its author for the address of streamable HTTP, often with /mcp at its end, and write \
                   type http";

/// Returns the URL of an entry, and whether it is one of the transport of 2024.
fn url(fields: &Map<String, Value>) -> Option<(&str, bool)> {
    let text = |field: &str| fields.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    text("httpUrl").or(text("url")).or(text("serverUrl")).or(text("uri")).map(|url| {
        let path = url.split(['?', '#']).next().unwrap_or(url);
        (url, path.ends_with("/sse") && !fields.contains_key("httpUrl"))
    })
}

/// Returns the words of the command of an entry.
fn command(fields: &Map<String, Value>) -> Result<Option<Vec<String>>, String> {
    let words = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let mut line = match fields.get("command") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(program)) => vec![program.clone()],
        // Zed has an object, others a list.
        Some(Value::Object(inner)) => {
            let path = inner.get("path").or(inner.get("command")).and_then(Value::as_str);
            let path = path.ok_or("its command names no program")?.to_owned();
            let more = inner.get("args").map(|more| words(more).ok_or("its arguments are not texts")).transpose()?;
            std::iter::once(path).chain(more.unwrap_or_default()).collect()
        }
        Some(other) => words(other).ok_or("its command is no text")?,
    };
    let arguments = match fields.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => words(list).ok_or("its arguments are not texts")?,
    };
    // Without arguments, some programs take the whole line as the command.
    if arguments.is_empty() && line.len() == 1 && !line[0].contains(['"', '\'', '/', '\\']) {
        line = line[0].split_whitespace().map(str::to_owned).collect();
    }
    line.extend(arguments);
    // Windows starts scripts through its shell.
    if let [shell, slash, ..] = line.as_slice()
        && matches!(shell.to_lowercase().as_str(), "cmd" | "cmd.exe")
        && slash.eq_ignore_ascii_case("/c")
    {
        line.drain(..2);
    }
    if line.first().is_none_or(String::is_empty) { Err("its command is empty".to_owned()) } else { Ok(Some(line)) }
}

impl Plan {
    fn read_url(&mut self, url: &str, fields: &Map<String, Value>) -> Result<(), String> {
        if value::takes_secret(url) {
            return Err(
                "its URL takes a secret from a variable, and the host keeps secrets in headers alone".to_owned()
            );
        }
        let Given::Text(url) = value::read(url) else {
            return Err("its URL has a variable without a value: set the variable, or write the address".to_owned());
        };
        if let Some((_, query)) = url.split_once('?') {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut keys = pairs.filter(|(name, value)| value::is_secret(name, value)).map(|(name, _)| name);
            if let Some(name) = keys.next() {
                return Err(format!(
                    "its URL has a key in {name}, and the host keeps secrets in headers alone: ask its author for a header"
                ));
            }
        }
        self.place = Place::Url(url);
        let headers = ["headers", "http_headers"].iter().find_map(|field| fields.get(*field)?.as_object());
        for (name, text) in headers.into_iter().flatten() {
            let text = text.as_str().ok_or_else(|| format!("its header {name} is no text"))?;
            let (scheme, text) = match text.trim().split_once(' ') {
                Some((scheme, rest)) if is_scheme(scheme) && !rest.trim().contains(' ') => (Some(scheme), rest.trim()),
                _ => (None, text.trim()),
            };
            let at = Use::Header { name: name.clone(), scheme: scheme.map(str::to_owned) };
            self.need(name, at, value::read(text));
        }
        Ok(())
    }

    fn read_command(&mut self, words: Vec<String>, fields: &Map<String, Value>) -> Result<(), String> {
        let mut line = Vec::new();
        for (at, word) in words.into_iter().enumerate() {
            let Given::Text(text) = value::read(&word) else {
                return Err(format!(
                    "its argument {at} has a variable without a value; the host passes secrets in variables alone: --env VARIABLE=secret:NAME"
                ));
            };
            if value::takes_secret(&word) || at > 0 && has_key(&text) {
                return Err(format!(
                    "its argument {at} looks like a key; the host passes secrets in variables alone: --env VARIABLE=secret:NAME"
                ));
            }
            line.push(if at == 0 { text } else { self.directory(text) });
        }
        self.place = Place::Command(line);
        let variables = fields.get("env").and_then(Value::as_object);
        for (variable, given) in variables.into_iter().flatten() {
            let text = match given {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            let given = value::read(&text);
            match given {
                Given::Text(value) if !value::takes_secret(&text) && !value::is_secret(variable, &value) => {
                    self.texts.push((variable.clone(), value));
                }
                Given::Absent if !value::is_secret(variable, "") && !text.contains("${input:") => {
                    self.remarks.push(format!("{variable} has no value here and is left out"));
                }
                given => self.need(variable, Use::Variable(variable.clone()), given),
            }
        }
        Ok(())
    }

    /// Returns an argument; a directory of this machine becomes one of the jail.
    fn directory(&mut self, word: String) -> String {
        let path =
            word.strip_prefix("~/").map(|below| format!("{}/{below}", std::env::var("HOME").unwrap_or_default()));
        let path = path.unwrap_or_else(|| word.clone());
        if !path.starts_with('/') || !Path::new(&path).is_dir() {
            return word;
        }
        let last = Path::new(&path).file_name().and_then(|name| name.to_str()).unwrap_or("files");
        let target = |number: usize| if number == 0 { format!("/{last}") } else { format!("/{last}-{number}") };
        let target = (0..).map(target).find(|target| self.mounts.iter().all(|mount| mount.target != *target));
        let target = target.unwrap_or_default();
        self.remarks
            .push(format!("{path} is {target} in its jail, read only; `ironctl mcp add --mount DIR:rw` lets it write"));
        self.mounts.push(Granted { source: path, target: target.clone() });
        target
    }

    fn need(&mut self, of: &str, at: Use, given: Given) {
        let value = match given {
            Given::Text(text) if !text.is_empty() => Some(SecretValue::new(text)),
            Given::Text(_) | Given::Absent => None,
        };
        self.secrets.push(Needed { secret: secret_name(&self.server, of), at, value });
    }

    fn add_left_out(&mut self, fields: &Map<String, Value>) {
        if APPROVALS.iter().any(|field| fields.contains_key(*field)) {
            self.remarks.push("approvals of the file are not taken over: each tool is confirmed here".to_owned());
        }
        if fields.contains_key("cwd") {
            self.remarks.push("it has a directory of its own in its jail, in place of cwd".to_owned());
        }
        let known =
            |field: &&String| [&NEEDLESS[..], &APPROVALS, &READ].iter().any(|list| list.contains(&field.as_str()));
        for field in fields.keys().filter(|field| !known(field)) {
            self.remarks.push(format!("the field {field} is not read"));
        }
    }

    /// Returns the payload of the change, with this command and these packages in the place of its own.
    pub fn payload(&self, command: &[String], npm: &[String], pypi: &[String]) -> Value {
        let mut payload = json!({ "name": self.server });
        match &self.place {
            Place::Url(url) => payload["url"] = json!(url),
            Place::Command(_) => payload["command"] = json!(command),
        }
        for (of, names) in [("npm", npm), ("pypi", pypi)] {
            if !names.is_empty() {
                payload["packages"][of] = json!(names);
            }
        }
        let (mut headers, mut environment) = (Vec::new(), Vec::new());
        for Needed { secret, at, .. } in &self.secrets {
            match at {
                Use::Variable(variable) => environment.push(json!({ "variable": variable, "secret": secret })),
                Use::Header { name, scheme: None } => headers.push(json!({ "name": name, "secret": secret })),
                Use::Header { name, scheme } => {
                    headers.push(json!({ "name": name, "scheme": scheme, "secret": secret }));
                }
            }
        }
        environment.extend(self.texts.iter().map(|(variable, text)| json!({ "variable": variable, "text": text })));
        let mount = |one: &Granted| json!({ "source": one.source, "target": one.target, "read_only": true });
        let mounts: Vec<Value> = self.mounts.iter().map(mount).collect();
        for (field, list) in [("headers", headers), ("environment", environment), ("mounts", mounts)] {
            if !list.is_empty() {
                payload[field] = json!(list);
            }
        }
        payload
    }
}

/// Returns whether an argument, or the value behind its `=`, may be a key.
fn has_key(word: &str) -> bool {
    value::may_be_key(word.split_once('=').map_or(word, |(_, value)| value))
}

fn is_scheme(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && word.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Returns the name of a server for a name in a file.
fn server_name(name: &str, taken: &[String]) -> Result<String, String> {
    let begin = plain(name, NAME_CHARACTERS_MAX);
    if begin.is_empty() {
        return Err("its name has no letter of a-z and no digit".to_owned());
    }
    let with = |number: usize| match number {
        0 => begin.clone(),
        number => format!("{}-{}", &begin[..begin.len().min(NAME_CHARACTERS_MAX - 3)], number + 1),
    };
    let mut names = (0..99).map(with);
    names.find(|name| !taken.contains(name)).ok_or_else(|| "its name is taken".to_owned())
}

/// Returns the name of a secret of a server.
fn secret_name(server: &str, of: &str) -> String {
    let of = plain(of, NAME_CHARACTERS_MAX);
    match of.strip_prefix(server).is_some_and(|rest| rest.starts_with('-')) {
        true => of,
        false => format!("{server}-{of}"),
    }
}

/// Returns the letters and digits of a text, with one hyphen in the place of all between them.
fn plain(text: &str, characters_max: usize) -> String {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut joined = words.join("-");
    joined.truncate(characters_max);
    joined.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, fields: Value) -> Named {
        Named { name: name.to_owned(), fields: fields.as_object().expect("an object").clone() }
    }

    fn payload(name: &str, fields: Value) -> Value {
        let plan = read(&entry(name, fields.clone()), &[]).unwrap_or_else(|why| panic!("{fields}: {why}"));
        let words = match &plan.place {
            Place::Url(_) => Vec::new(),
            Place::Command(words) => words.clone(),
        };
        plan.payload(&words, &[], &[])
    }

    #[test]
    fn entry_becomes_the_payload_of_a_registration() {
        for (name, fields, wanted) in [
            ("a", json!({"command": "s", "args": ["-x"]}), json!({"name": "a", "command": ["s", "-x"]})),
            ("a", json!({"command": "npx -y b"}), json!({"name": "a", "command": ["npx", "-y", "b"]})),
            ("a", json!({"command": ["s", "-x"]}), json!({"name": "a", "command": ["s", "-x"]})),
            ("a", json!({"command": "cmd", "args": ["/c", "npx", "b"]}), json!({"name": "a", "command": ["npx", "b"]})),
            ("a", json!({"command": {"path": "s", "args": ["x"]}}), json!({"name": "a", "command": ["s", "x"]})),
            ("My Server!", json!({"url": "https://x/"}), json!({"name": "my-server", "url": "https://x/"})),
            ("a", json!({"type": "http", "serverUrl": "https://x/"}), json!({"name": "a", "url": "https://x/"})),
            ("a", json!({"httpUrl": "https://x/", "url": "https://y/sse"}), json!({"name": "a", "url": "https://x/"})),
            (
                "hub",
                json!({"command": "s", "env": {"HUB_TOKEN": "abc", "LEVEL": "debug", "PORT": 8}}),
                json!({"name": "hub", "command": ["s"], "environment": [
                    {"variable": "HUB_TOKEN", "secret": "hub-token"},
                    {"variable": "LEVEL", "text": "debug"}, {"variable": "PORT", "text": "8"},
                ]}),
            ),
            (
                "hub",
                json!({"url": "https://x/", "headers": {"Authorization": "Bearer ${input:t}", "X-Team": "abc"}}),
                json!({"name": "hub", "url": "https://x/", "headers": [
                    {"name": "Authorization", "scheme": "Bearer", "secret": "hub-authorization"},
                    {"name": "X-Team", "secret": "hub-x-team"},
                ]}),
            ),
            (
                "files",
                json!({"command": "s", "args": ["/usr/share", "/nonexistent/x"]}),
                json!({"name": "files", "command": ["s", "/share", "/nonexistent/x"], "mounts": [
                    {"source": "/usr/share", "target": "/share", "read_only": true},
                ]}),
            ),
        ] {
            assert_eq!(payload(name, fields.clone()), wanted, "{fields}");
        }
    }

    #[test]
    fn entry_that_cannot_be_taken_over_has_a_reason() {
        let key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        for (name, fields, words) in [
            ("a", json!({}), "neither"),
            ("a", json!({"command": ""}), "empty"),
            ("a", json!({"command": 7}), "no text"),
            ("a", json!({"command": "s", "args": [7]}), "not texts"),
            ("a", json!({"command": "s", "url": "https://x/"}), "a command and a URL"),
            ("a", json!({"command": "s", "disabled": true}), "switched off"),
            ("a", json!({"type": "sse", "url": "https://x/"}), "sse"),
            ("a", json!({"url": "https://x/sse"}), "sse"),
            ("a", json!({"url": "https://${HOST_NOT_SET_7}/"}), "variable"),
            ("a", json!({"url": format!("https://x/?api_key={key}")}), "api_key"),
            ("a", json!({"url": "https://x/${GITHUB_TOKEN:-t}"}), "secret"),
            ("a", json!({"command": "s", "args": ["${GITHUB_TOKEN:-t}"]}), "--env"),
            ("a", json!({"command": "s", "args": [key]}), "--env"),
            ("a", json!({"command": "s", "args": ["--token", "${input:t}"]}), "--env"),
            ("a", json!({"command": "s", "args": [format!("--token={key}")]}), "--env"),
            ("???", json!({"command": "s"}), "name"),
        ] {
            let why = read(&entry(name, fields.clone()), &[]).err().unwrap_or_else(|| panic!("{fields}"));
            assert!(why.contains(words) && !why.contains("ghp_"), "{fields}: {why}");
        }
    }

    #[test]
    fn names_are_stable_and_never_taken_twice() {
        let taken = ["a-b".to_owned(), "a-b-2".to_owned()];
        assert_eq!(server_name("A_b", &taken).as_deref(), Ok("a-b-3"));
        assert_eq!(server_name("@scope/name", &[]).as_deref(), Ok("scope-name"));
        assert_eq!(server_name(&"x".repeat(40), &[]).map(|name| name.len()), Ok(32));
        assert_eq!(secret_name("github", "GITHUB_TOKEN"), "github-token");
        assert_eq!(secret_name("hub", "API_KEY"), "hub-api-key");
    }
}
