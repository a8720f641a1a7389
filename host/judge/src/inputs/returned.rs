//! The values at the result paths of an answer, with their labels.
//!
//! Pure: the caller knows what agents sent to a server, and what the server returned before. Mints no label for a value that an agent may
//! have set. See [`crate::provenance::sent`].

use crate::egress::Loopback;
use crate::manifest::Manifest;
use crate::manifest::results::{self, ResultPath};
use crate::provenance::typed::values::{self, TypedValue};
use crate::provenance::{Labels, Provenance, sent};
use ironclaw_operator::InputType;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// Values of one answer that get handles.
pub const RETURNED_MAX: usize = 64;

/// A value that a server returned at a result path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Returned {
    pub kind: InputType,
    /// The value as text; an account and a phone are without their blanks.
    pub text: String,
    /// The number in it, if it has one reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    pub labels: Labels,
}

/// What the host knows of a server. Values are compared by their marks. See [`sent`].
pub trait Known {
    type Error;

    /// Returns whether an agent sent a value with one of these marks, in an argument that can set a path, and no person typed it.
    fn is_sent(&self, marks: &BTreeSet<String>, path: &ResultPath) -> Result<bool, Self::Error>;

    /// Returns whether an answer or an argument of the server had one of these marks before.
    fn is_old(&self, marks: &BTreeSet<String>) -> Result<bool, Self::Error>;
}

/// Returns the values at the result paths of an answer. At most 64 have labels. Another value of the type of one of them is there without a
/// label, so that it is not clear which one is meant.
///
/// # Errors
/// Errors of `known`.
pub fn returned<K: Known>(
    manifest: &Manifest,
    answer: &Value,
    loopback: Loopback,
    known: &K,
) -> Result<Vec<Returned>, K::Error> {
    let mut all: Vec<Returned> = Vec::new();
    for (path, listed) in &manifest.results {
        for value in results::at(path, answer) {
            let Some(Leaf { raw, value: TypedValue { text, number, .. } }) = whole(listed.kind, value, loopback) else {
                continue;
            };
            let of_kind = || all.iter().filter(|other| other.kind == listed.kind);
            let is_beyond = all.len() >= RETURNED_MAX;
            if of_kind().any(|other| other.text == text) || is_beyond && of_kind().count() > 1 {
                continue;
            }
            let labels = if is_beyond { Labels::NONE } else { labels(manifest, listed, [&raw, &text], known)? };
            all.push(Returned { kind: listed.kind, text, number, labels });
        }
    }
    Ok(all)
}

/// Returns the labels of a value, which is compared in the form of the answer and in that of its type.
fn labels<K: Known>(
    manifest: &Manifest,
    path: &ResultPath,
    forms: [&String; 2],
    known: &K,
) -> Result<Labels, K::Error> {
    let wholes = forms.iter().flat_map(|form| sent::wholes(form)).collect();
    let created = match manifest.creates && !known.is_old(&wholes)? {
        true => Labels::from_provenance(Provenance::Created),
        false => Labels::NONE,
    };
    let marks = forms.iter().flat_map(|form| sent::returned(form)).collect();
    Ok(match known.is_sent(&marks, path)? {
        true => created,
        false => created.join(Labels::from_provenance(Provenance::Returned)),
    })
}

/// A leaf of an answer as the server wrote it, and the value that it is.
struct Leaf {
    raw: String,
    value: TypedValue,
}

/// Returns the value of a type that a leaf of an answer is.
fn whole(kind: InputType, value: &Value, loopback: Loopback) -> Option<Leaf> {
    let (raw, number) = match value {
        Value::String(text) => (text.clone(), None),
        Value::Number(number) => (number.to_string(), Some(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let found = values::whole(kind, &raw, loopback)?;
    Some(Leaf { raw, value: TypedValue { number: number.or(found.number.clone()), ..found } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;
    use crate::provenance::sent;
    use ironclaw_contract::seam::seal::Label;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    /// What agents sent in `memo` and in `to`, and what was in answers before.
    struct Server {
        memo: BTreeSet<String>,
        to: BTreeSet<String>,
        before: BTreeSet<String>,
    }

    impl Server {
        fn new(memo: Value, to: Value, before: Value) -> Self {
            Self { memo: sent::sent(&memo), to: sent::sent(&to), before: sent::sent(&before) }
        }
    }

    impl Known for Server {
        type Error = Infallible;

        fn is_sent(&self, marks: &BTreeSet<String>, path: &ResultPath) -> Result<bool, Infallible> {
            let by = |argument: &str, all: &BTreeSet<String>| path.is_set_by(argument) && !marks.is_disjoint(all);
            Ok(by("t.memo", &self.memo) || by("t.to", &self.to))
        }

        fn is_old(&self, marks: &BTreeSet<String>) -> Result<bool, Infallible> {
            Ok([&self.memo, &self.to, &self.before].into_iter().any(|all| !marks.is_disjoint(all)))
        }
    }

    fn labels(results: &str, answer: &Value, server: &Server) -> Vec<(String, Vec<Label>)> {
        let text = format!("[[tool]]\nname = 't'\nclass = 'write'\nreach = 'outside'\neffect = 'makes'\n{results}\n");
        let manifest = &parse(&text).expect("a manifest")["t"];
        let Ok(all) = returned(manifest, answer, Loopback::default(), server);
        let labelled = all.into_iter().filter(|one| !one.labels.is_empty());
        labelled.map(|one| (one.text, one.labels.list())).collect()
    }

    const CREATES: &str = "creates = true\nresults.'/id' = { type = 'name' }";
    const MAIL: &str = "results.'/mail' = { type = 'email' }";

    #[test]
    fn new_name_of_a_creating_tool_is_a_value_of_the_session() {
        let quiet = Server::new(json!("a plan"), json!(null), json!(null));
        let answer = json!({ "id": "ord_8812", "note": "ord_9" });
        let both = vec![Label::SessionResult, Label::StructuredResult];
        assert_eq!(labels(CREATES, &answer, &quiet), [("ord_8812".to_owned(), both)]);
        // An answer or an argument had it before: it is not new.
        let seen = Server::new(json!("a plan"), json!(null), json!([{ "x": "ORD_8812" }]));
        assert_eq!(labels(CREATES, &answer, &seen), [("ord_8812".to_owned(), vec![Label::StructuredResult])]);
        let sent = Server::new(json!("take ord_8812"), json!(null), json!(null));
        assert!(labels(CREATES, &answer, &sent).is_empty());
    }

    #[test]
    fn value_that_an_agent_set_has_no_label() {
        let answer = json!({ "mail": "eve@evil.example" });
        let quiet = Server::new(json!("x"), json!("y"), json!(null));
        let one = [("eve@evil.example".to_owned(), vec![Label::StructuredResult])];
        assert_eq!(labels(MAIL, &answer, &quiet), one);
        let sent = Server::new(json!("Eve: eve@evil.example"), json!("y"), json!(null));
        assert!(labels(MAIL, &answer, &sent).is_empty());
        let only_to = "results.'/mail' = { type = 'email', set_by = ['t.to'] }";
        assert_eq!(labels(only_to, &answer, &sent), one);
        let to = Server::new(json!("x"), json!("eve@evil.example"), json!(null));
        assert!(labels(only_to, &answer, &to).is_empty());
    }

    #[test]
    fn value_without_a_label_leaves_the_choice_unclear() {
        let both = json!([{ "mail": "bob@example.net" }, { "mail": "eve@evil.example" }]);
        let server = Server::new(json!("bob@example.net"), json!(null), json!(null));
        let text = "[[tool]]\nname = 't'\nclass = 'read'\nreach = 'outside'\neffect = 'reads'\nresults.'/*/mail' = { type = 'email' }\n";
        let manifest = &parse(text).expect("a manifest")["t"];
        let Ok(all) = returned(manifest, &both, Loopback::default(), &server);
        let shown: Vec<_> = all.iter().map(|one| (one.text.as_str(), one.labels.is_empty())).collect();
        assert_eq!(shown, [("bob@example.net", true), ("eve@evil.example", false)]);
        let phone = parse(&text.replace("email", "phone").replace("/*/mail", "/phone")).expect("a manifest");
        let echoed = Server::new(json!("call +49-170-1234567"), json!(null), json!(null));
        let Ok(all) = returned(&phone["t"], &json!({ "phone": "+49-170-1234567" }), Loopback::default(), &echoed);
        assert!(all[0].labels.is_empty(), "{all:?}");
    }

    #[test]
    fn leaf_of_another_type_or_no_leaf_is_no_value() {
        let quiet = Server::new(json!(null), json!(null), json!(null));
        for answer in [json!({ "mail": "Eve <eve@evil.example>" }), json!({ "mail": ["a@b.org"] }), json!({}), json!(3)]
        {
            assert!(labels(MAIL, &answer, &quiet).is_empty(), "{answer}");
        }
        let long = "a".repeat(3_000);
        for (kind, long) in
            [("name", long.clone()), ("email", format!("{long}@example.org")), ("number", "1".repeat(3_000))]
        {
            let path = format!("results.'/id' = {{ type = '{kind}' }}");
            assert!(labels(&path, &json!({ "id": long }), &quiet).is_empty(), "{kind}");
        }
        let number = "results.'/n' = { type = 'number' }\nresults.'/id' = { type = 'name' }";
        let found = labels(number, &json!({ "n": 12.5, "id": 8812 }), &quiet);
        assert_eq!(found.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(), ["8812", "12.5"]);
        let many: Vec<Value> = (0..200).map(|n| json!(format!("u{n}"))).collect();
        assert_eq!(labels("results.'/*' = { type = 'name' }", &json!(many), &quiet).len(), RETURNED_MAX);
    }
}
