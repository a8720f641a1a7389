//! The entries of a configuration file with MCP servers, as editors and desktop programs write them.
//!
//! Reads JSON with comments and trailing commas. Knows no entry: see [`super::entry`].

use serde_json::{Map, Value};

/// Entries of one file.
const ENTRIES_MAX: usize = 64;

/// The places of the entries, as programs name them: `.mcp.json` and `claude_desktop_config.json`, `mcp.json` of VS Code, and settings
/// files with one of them inside.
const PLACES: [&[&str]; 6] = [
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp", "mcpServers"],
    &["context_servers"],
    &["mcp.servers"],
];

/// An entry of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    pub name: String,
    pub fields: Map<String, Value>,
}

/// Reads the entries of a file, in the order of their names.
///
/// # Errors
/// The reason why the file has none, in words. It repeats no value of the file.
pub fn read(text: &[u8]) -> Result<Vec<Named>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is no UTF-8 text".to_owned())?;
    let text = without_comments(text.strip_prefix('\u{feff}').unwrap_or(text));
    let file: Value = serde_json::from_str(&text).map_err(|error| {
        format!("it is no JSON, with or without comments (line {}, column {})", error.line(), error.column())
    })?;
    let place = |keys: &&[&str]| keys.iter().try_fold(&file, |value, key| value.get(key)).and_then(Value::as_object);
    // A file may be the list itself.
    let is_list = |file: &Map<String, Value>| {
        !file.is_empty() && file.values().all(|entry| ["command", "url"].iter().any(|field| entry.get(field).is_some()))
    };
    let found = PLACES.iter().find_map(place).or_else(|| file.as_object().filter(|file| is_list(file)));
    let found = found.ok_or("it has neither mcpServers nor servers")?;
    if found.is_empty() {
        return Err("its list of servers is empty".to_owned());
    }
    if found.len() > ENTRIES_MAX {
        return Err(format!("it has {} servers, and at most {ENTRIES_MAX} are read", found.len()));
    }
    let defaults = defaults(file.get("inputs").or(file.pointer("/mcp/inputs")));
    let entries = found.iter().map(|(name, entry)| match with_defaults(entry.clone(), &defaults) {
        Value::Object(fields) => Ok(Named { name: name.clone(), fields }),
        _ => Err(format!("the entry {name:?} is no object")),
    });
    entries.collect()
}

/// The default of a question of the file: `${input:ID}` becomes `${input:ID:-TEXT}`.
struct Answer {
    asked: String,
    answered: String,
}

/// Returns the defaults of the questions that ask for no password.
fn defaults(inputs: Option<&Value>) -> Vec<Answer> {
    let inputs = inputs.and_then(Value::as_array).into_iter().flatten();
    let inputs = inputs.filter(|input| input.get("password") != Some(&Value::Bool(true)));
    let default = |input: &Value| {
        let (id, text) = (input.get("id")?.as_str()?, input.get("default")?.as_str()?);
        Some(Answer { asked: format!("${{input:{id}}}"), answered: format!("${{input:{id}:-{text}}}") })
    };
    inputs.filter_map(default).collect()
}

/// Returns a value with the defaults in its texts.
fn with_defaults(value: Value, defaults: &[Answer]) -> Value {
    match value {
        Value::String(text) => {
            Value::String(defaults.iter().fold(text, |text, one| text.replace(&one.asked, &one.answered)))
        }
        Value::Array(list) => list.into_iter().map(|one| with_defaults(one, defaults)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, one)| (name, with_defaults(one, defaults))).collect())
        }
        other => other,
    }
}

/// Returns the text with blanks in the place of comments and of commas before a closing bracket. Lines keep their numbers.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // The place of the last comma, until something follows it.
    let mut comma = None;
    while let Some(letter) = rest.next() {
        match (letter, rest.peek()) {
            ('"', _) => {
                comma = None;
                kept.push('"');
                while let Some(letter) = rest.next() {
                    kept.push(letter);
                    match letter {
                        '\\' => kept.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while rest.next_if(|letter| *letter != '\n').is_some() {},
            ('/', Some('*')) => {
                rest.next();
                let mut last = ' ';
                for letter in rest.by_ref() {
                    if letter == '\n' {
                        kept.push('\n');
                    }
                    if (last, letter) == ('*', '/') {
                        break;
                    }
                    last = letter;
                }
                kept.push(' ');
            }
            (',', _) => {
                comma = Some(kept.len());
                kept.push(',');
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    kept.replace_range(at..=at, " ");
                }
                kept.push(letter);
            }
            (letter, _) => {
                if !letter.is_whitespace() {
                    comma = None;
                }
                kept.push(letter);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, String> {
        Ok(read(text.as_bytes())?.into_iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn entries_are_found_in_each_form_of_a_file() {
        for text in [
            r#"{"mcpServers": {"a": {"command": "x"}}}"#,
            r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "x"}}}"#,
            r#"{"editor.fontSize": 12, "mcp": {"servers": {"a": {"url": "https://x"}}}}"#,
            r#"{"context_servers": {"a": {"command": "x"}}}"#,
            r#"{"a": {"command": "x"}}"#,
            "\u{feff}{\"mcpServers\": {\"a\": {}}}",
            "// my servers\n{\"mcpServers\": { /* one */ \"a\": {\"command\": \"x\", \"args\": [\"// no comment\", \"/*\",],}, }, }",
        ] {
            assert_eq!(names(text), Ok(vec!["a".to_owned()]), "{text}");
        }
        let kept = read(br#"{"servers": {"a": {"url": "https://x/*y*/", "note": "a\"//b,]"}}}"#).expect("read");
        assert_eq!(kept[0].fields["url"], "https://x/*y*/");
        assert_eq!(kept[0].fields["note"], "a\"//b,]");
    }

    #[test]
    fn question_of_a_file_has_its_default() {
        let text = r#"{"inputs": [
            {"id": "region", "type": "pickString", "default": "eu"},
            {"id": "key", "type": "promptString", "password": true, "default": "s3cret"}
        ], "servers": {"a": {"command": "x", "args": ["--in=${input:region}", "${input:key}"]}}}"#;
        let entries = read(text.as_bytes()).expect("read");
        assert_eq!(entries[0].fields["args"], serde_json::json!(["--in=${input:region:-eu}", "${input:key}"]));
    }

    #[test]
    fn file_without_entries_is_refused_with_the_reason() {
        for (text, words) in [
            ("", "no JSON"),
            ("{", "no JSON"),
            ("[]", "neither"),
            ("{}", "neither"),
            (r#"{"theme": "dark"}"#, "neither"),
            (r#"{"mcpServers": {}}"#, "empty"),
            (r#"{"mcpServers": {"a": "s3cret"}}"#, "no object"),
        ] {
            let why = names(text).expect_err(text);
            assert!(why.contains(words) && !why.contains("s3cret"), "{text}: {why}");
        }
        assert!(read(&[0xff]).is_err());
    }
}
