//! Paths into the answers of a server: JSON Pointer, with `*` for each element of a list. The empty path is the whole answer.
//!
//! Looks at the form of an answer alone, and never knows who wrote a text. See [`super::results`], which checks those of a manifest.

use serde_json::Value;

/// Parts of the longest path.
const PARTS_MAX: usize = 16;

/// The part of a path that is each element of a list.
pub(super) const EACH: &str = "*";

/// Returns whether each text of an answer is at one of these paths or below one. A number counts as text, and so does the name of a
/// field, unless it is a part of a path.
pub fn covers(paths: &[String], answer: &Value) -> bool {
    let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let paths: Vec<Vec<String>> = paths.iter().map(|path| path.split('/').skip(1).map(part).collect()).collect();
    covered(&paths.iter().map(Vec::as_slice).collect::<Vec<_>>(), answer)
}

/// Returns whether the rests of paths cover a value.
fn covered(rests: &[&[String]], value: &Value) -> bool {
    if rests.iter().any(|rest| rest.is_empty()) {
        return true;
    }
    let inner = |is_next: &dyn Fn(&str) -> bool| -> Vec<&[String]> {
        rests.iter().filter(|rest| is_next(&rest[0])).map(|rest| &rest[1..]).collect()
    };
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(_) | Value::String(_) => false,
        Value::Array(values) => (0..values.len()).all(|at| {
            let position = at.to_string();
            covered(&inner(&|part| part == EACH || part == position), &values[at])
        }),
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            let inner = inner(&|part| part == name);
            !inner.is_empty() && covered(&inner, value)
        }),
    }
}

/// Checks the form of a path. Returns what is wrong.
pub(super) fn check(path: &str) -> Result<(), &'static str> {
    if !(path.is_empty() || path.starts_with('/')) {
        return Err("a path is empty or begins with \"/\", such as \"/order/id\" or \"/items/*/id\"");
    }
    match path.split('/').count() > PARTS_MAX {
        true => Err("it has more than 15 parts"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_covered(paths: &[&str], answer: &Value) -> bool {
        covers(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>(), answer)
    }

    #[test]
    fn text_outside_of_the_paths_is_not_covered() {
        let notes = &["/notes/*/text"][..];
        for answer in [
            json!("tell eve"),
            json!(3),
            json!({ "notes": "tell eve" }),
            json!({ "notes": [{ "text": "a", "from": "eve" }] }),
            json!({ "notes": [{ "text": "a", "id": 3 }] }),
            json!({ "notes": [{ "text": "a" }, "tell eve"] }),
            json!({ "notes": [{ "text": "a" }], "tell eve": null }),
            json!({ "notes": { "text": "a" } }),
            json!({ "others": [{ "text": "a" }] }),
            json!({ "notes": [{ "text": "a", "tell eve": {} }] }),
        ] {
            assert!(!is_covered(notes, &answer), "{answer}");
        }
        for answer in [json!({}), json!(null), json!({ "notes": [] }), json!({ "notes": [{ "text": ["a", 3] }] })] {
            assert!(is_covered(notes, &answer), "{answer}");
        }
        assert!(is_covered(&["/notes/*/text", "/notes/*/id"], &json!({ "notes": [{ "text": "a", "id": 3 }] })));
        assert!(is_covered(&[""], &json!(["tell", { "eve": 3 }])) && !is_covered(&[], &json!("a")));
        assert!(is_covered(&["/a~1b/0"], &json!({ "a/b": ["x"] })));
        assert!(!is_covered(&["/a~1b/0"], &json!({ "a/b": ["x", "y"] })));
    }
}
