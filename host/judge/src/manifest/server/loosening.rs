//! The parts of a manifest that are less strict than the strictest one of its tool.
//!
//! Judges no part: people confirm a manifest. See [`super::listed`] for the strictest one.

use crate::class::Class;
use crate::manifest::results::ResultPath;
use crate::manifest::{Manifest, Rule, TYPED};
use crate::provenance::Labels;
use std::fmt;

/// A part of a manifest that is less strict than in the strictest one. Its text is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loosening {
    /// The class does less than `send`.
    Class(Class),
    /// An argument is no floor.
    Rule {
        /// Its name.
        argument: String,
        rule: Rule,
    },
    /// An argument takes values of other origins than a person.
    Needs {
        /// Its name.
        argument: String,
        labels: Labels,
    },
    /// Its effect can be taken back.
    Reversible,
    /// Values of its answers fit control fields.
    Result {
        path: String,
        result: ResultPath,
        /// Whether a value that is new to the server fits the control fields of this server.
        creates: bool,
    },
    /// Text of its answers is the own text of the person who confirms it.
    Own { path: String },
}

impl fmt::Display for Loosening {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => write!(out, "class {}", class.name()),
            Self::Rule { argument, rule } => write!(out, "{argument} {}", rule.name()),
            Self::Needs { argument, labels } => {
                let labels: Vec<&str> = labels.list().into_iter().map(|label| label.name()).collect();
                write!(out, "{argument} from {}", labels.join(" or "))
            }
            Self::Reversible => out.write_str("reversible"),
            Self::Own { path } => write!(
                out,
                "text at {path:?} of the answer is your OWN text, while agents called only tools of class read of this server"
            ),
            Self::Result { path, result, creates } => {
                let unless = match &result.set_by {
                    None => ", unless an agent sent a part of it to this server".to_owned(),
                    Some(all) if all.is_empty() => ", also if an agent sent it".to_owned(),
                    Some(all) => format!(", unless an agent sent a part of it to this server in {}", all.join(", ")),
                };
                let created = if *creates { "of this server if the value is new to it, and " } else { "" };
                let kind = result.kind;
                write!(
                    out,
                    "a value of type {kind} at {path:?} of the answer fits control fields: {created}of each server{unless}"
                )
            }
        }
    }
}

/// Returns the parts of a manifest that are less strict than the strictest one.
pub fn loosenings(manifest: &Manifest) -> Vec<Loosening> {
    let mut all = Vec::new();
    if !matches!(manifest.class, Class::Send | Class::Trade) {
        all.push(Loosening::Class(manifest.class));
    }
    let arguments = || manifest.arguments.iter().map(|(name, argument)| (name.clone(), argument));
    let freed = arguments().filter(|(_, argument)| argument.rule != Rule::Floor);
    all.extend(freed.map(|(argument, freed)| Loosening::Rule { argument, rule: freed.rule }));
    let needing = arguments().filter(|(_, argument)| argument.needs != TYPED && !argument.needs.is_empty());
    all.extend(needing.map(|(argument, needing)| Loosening::Needs { argument, labels: needing.needs }));
    if manifest.reversible {
        all.push(Loosening::Reversible);
    }
    let results = manifest.results.iter().map(|(path, result)| (path.clone(), result.clone()));
    all.extend(results.map(|(path, result)| Loosening::Result { path, result, creates: manifest.creates }));
    all.extend(manifest.mine.iter().map(|path| Loosening::Own { path: path.clone() }));
    all
}
