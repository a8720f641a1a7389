//! The result paths of a tool: the places in an answer of its server whose values later calls take by reference.
//!
//! Never trusts a server to name them: an operator lists each path in a manifest. See [`crate::inputs::returned`].

use super::answer_path::{self, EACH};
use super::{Error, InputType, Manifest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A place in the answers of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultPath {
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// The arguments that can set its value, as `TOOL.ARGUMENT`, with the names of the server; `None` is each argument of each tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_by: Option<Vec<String>>,
}

impl ResultPath {
    /// Returns whether an argument of a tool of its server can set its value.
    pub fn is_set_by(&self, argument: &str) -> bool {
        self.set_by.as_ref().is_none_or(|all| all.iter().any(|one| one == argument))
    }
}

/// Returns the name of an argument among those of its server.
pub fn argument_name(tool: &str, argument: &str) -> String {
    format!("{tool}.{argument}")
}

/// Returns the values at a path: JSON Pointer, with `*` for each element of a list. The empty path is the whole answer.
pub fn at<'a>(path: &str, answer: &'a Value) -> Vec<&'a Value> {
    path.split('/').skip(1).fold(vec![answer], |values, part| {
        let inner = |value: &'a Value| -> Vec<&'a Value> {
            match (part, value) {
                (EACH, Value::Array(values)) => values.iter().collect(),
                _ => value.pointer(&format!("/{part}")).into_iter().collect(),
            }
        };
        values.into_iter().flat_map(inner).collect()
    })
}

/// Checks the result paths of a manifest.
pub(super) fn check(manifest: &Manifest) -> Result<(), Error> {
    let wrong = |path: &str, why: &str| Error::ResultPath {
        tool: manifest.name.clone(),
        path: path.to_owned(),
        why: why.to_owned(),
    };
    if manifest.creates && manifest.results.is_empty() {
        return Err(wrong("", "`creates` is true, and no path says where the name of what it made is"));
    }
    for (path, ResultPath { kind, .. }) in &manifest.results {
        answer_path::check(path).map_err(|why| wrong(path, why))?;
        if *kind == InputType::Any {
            return Err(wrong(path, "name one type of value in place of `any`"));
        }
    }
    Ok(())
}

/// Checks the paths of texts that a person calls theirs.
pub(super) fn check_mine(manifest: &Manifest) -> Result<(), Error> {
    let reads = manifest.only_reads();
    for path in &manifest.mine {
        let form = if reads { answer_path::check(path) } else { Err("only a tool of class read has text of a person") };
        form.map_err(|why| Error::Own { tool: manifest.name.clone(), path: path.clone(), why: why.to_owned() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;
    use serde_json::json;

    #[test]
    fn wrong_path_is_refused_by_name() {
        let text = |more: &str| {
            format!("[[tool]]\nname = 't'\nclass = 'write'\nreach = 'outside'\neffect = 'makes'\n{more}\n")
        };
        for more in [
            "creates = true",
            "results.\"order\" = { type = 'name' }",
            "results.\"/order\" = { type = 'any' }",
            &format!("results.\"{}\" = {{ type = 'name' }}", "/a".repeat(16)),
        ] {
            assert!(matches!(parse(&text(more)), Err(Error::ResultPath { .. })), "{more}");
        }
        for more in ["results.\"/order\" = { }", "results.\"/order\" = { type = 'name', from = 'x' }"] {
            assert!(matches!(parse(&text(more)), Err(Error::Malformed(_))), "{more}");
        }
        assert!(parse(&text("creates = true\nresults.\"\" = { type = 'name' }")).is_ok());
    }

    #[test]
    fn path_names_fields_and_each_element_of_a_list() {
        let answer = json!({ "items": [{ "id": 1 }, { "id": 2 }, {}], "*": "x", "a/b": "y" });
        assert_eq!(at("/items/*/id", &answer), [&json!(1), &json!(2)]);
        assert_eq!(at("/items/1/id", &answer), [&json!(2)]);
        assert_eq!((at("/*", &answer), at("/a~1b", &answer)), (vec![&json!("x")], vec![&json!("y")]));
        assert_eq!((at("", &answer), at("/none/x", &answer)), (vec![&answer], Vec::new()));
    }

    #[test]
    fn tool_that_does_more_than_read_has_no_own_text() {
        let text = |class: &str, more: &str| {
            format!("[[tool]]\nname = 't'\nclass = '{class}'\nreach = 'outside'\neffect = 'reads'\n{more}\n")
        };
        for (class, more) in [
            ("send", "mine = ['']"),
            ("write", "mine = ['/a']"),
            ("read", "also = ['write']\nmine = ['/a']"),
            ("read", "mine = ['a']"),
        ] {
            assert!(matches!(parse(&text(class, more)), Err(Error::Own { .. })), "{class} {more}");
        }
        let manifests = parse(&text("read", "mine = ['/a', '']")).expect("valid");
        assert_eq!(manifests["t"].mine, ["/a", ""]);
    }
}
