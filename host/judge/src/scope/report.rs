//! The measure of a lexicon: precision and recall by language and class over labelled cases.
//!
//! Pure: the caller reads the file and prints the answer.

use super::lexicon::Lexicon;
use super::lexicon_scope;
use crate::class::{Class, Classes};
use crate::place::Mistake;
use crate::provenance::spans::Span;
use serde::{Deserialize, Serialize};

/// The labelled requests of this version.
pub const EMBEDDED_CASES: &str = include_str!("../../data/scope_cases.toml");

const MEASURED: [Class; 3] = [Class::Read, Class::Write, Class::Send];

/// A request with the classes that it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The code of its language.
    pub lang: String,
    pub text: String,
    pub wants: Classes,
    /// True if it has a word that asks for nothing.
    #[serde(default)]
    pub trap: bool,
    #[serde(default)]
    pub note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    case: Vec<Case>,
}

/// The counts of one class in one language.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    /// The code of the language.
    pub lang: String,
    pub class: Class,
    /// Cases that want the class and get it.
    pub right: usize,
    /// Cases that get the class and do not want it.
    pub claimed: usize,
    /// Cases that want the class and do not get it.
    pub missed: usize,
    /// The share of right ones among those that get the class; 1 if none gets it.
    pub precision: f64,
    /// The share of right ones among those that want the class; 1 if none wants it.
    pub recall: f64,
}

/// A case with another answer than its label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    pub case: Case,
    /// The classes that the lexicon gives.
    pub got: Classes,
    /// The words that gave them.
    pub words: Vec<(Class, String)>,
}

/// The answer for a set of cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The number of cases.
    pub cases: usize,
    /// One entry for each language and class, in the order of the cases.
    pub measures: Vec<Measure>,
    pub wrong: Vec<Wrong>,
}

/// Returns the report for cases in TOML (`[[case]]` with `lang`, `text`, `wants`, `trap`, `note`).
///
/// # Errors
/// The first mistake, with its line and its field.
pub fn report(cases: &str, lexicon: &Lexicon) -> Result<Report, Mistake> {
    let File { case: cases } = toml::from_str(cases).map_err(|error| Mistake::new(cases, &error))?;
    let mut report = Report { cases: cases.len(), measures: Vec::new(), wrong: Vec::new() };
    for case in cases {
        let scope = lexicon_scope(&[Span { text: &case.text, typed: true }], lexicon);
        for class in MEASURED {
            let measure = report.measure(&case.lang, class);
            match (case.wants.has(class), scope.classes.has(class)) {
                (true, true) => measure.right += 1,
                (false, true) => measure.claimed += 1,
                (true, false) => measure.missed += 1,
                (false, false) => {}
            }
        }
        let measured = case.wants.and(Classes::new(&MEASURED));
        if measured != scope.classes {
            let words =
                scope.evidence.iter().map(|found| (found.class, case.text[found.bytes.clone()].to_owned())).collect();
            report.wrong.push(Wrong { case, got: scope.classes, words });
        }
    }
    for measure in &mut report.measures {
        measure.precision = share(measure.right, measure.claimed);
        measure.recall = share(measure.right, measure.missed);
    }
    Ok(report)
}

fn share(right: usize, wrong: usize) -> f64 {
    if right + wrong == 0 { 1.0 } else { right as f64 / (right + wrong) as f64 }
}

impl Report {
    fn measure(&mut self, lang: &str, class: Class) -> &mut Measure {
        let at = self.measures.iter().position(|measure| measure.lang == lang && measure.class == class);
        let at = at.unwrap_or_else(|| {
            let lang = lang.to_owned();
            self.measures.push(Measure { lang, class, right: 0, claimed: 0, missed: 0, precision: 1.0, recall: 1.0 });
            self.measures.len() - 1
        });
        &mut self.measures[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_counts_right_claimed_and_missed() {
        let lexicon = "[[language]]\ncode='en'\n[[language.rule]]\nclass='send'\nwhen='^ send '\n";
        let lexicon = Lexicon::parse(lexicon).expect("a lexicon");
        let cases = r#"
            case = [
                { lang = "en", text = "send it", wants = ["send"] },
                { lang = "en", text = "send button", wants = [], trap = true },
                { lang = "en", text = "mail it", wants = ["send", "exec"], note = "exec is not measured" },
            ]"#;
        let report = report(cases, &lexicon).expect("cases");
        let send = report.measures.iter().find(|measure| measure.class == Class::Send).expect("send");
        assert_eq!((send.right, send.claimed, send.missed), (1, 1, 1));
        assert_eq!((send.precision, send.recall), (0.5, 0.5));
        assert_eq!(
            report.wrong.iter().map(|wrong| wrong.case.text.as_str()).collect::<Vec<_>>(),
            ["send button", "mail it"]
        );
        assert_eq!(report.wrong[0].words, [(Class::Send, "send".to_owned())]);
    }

    #[test]
    fn case_of_another_shape_is_refused() {
        let mistake = |text: &str| {
            let found = report(text, Lexicon::embedded()).expect_err(text);
            (found.line, found.field.unwrap_or_default())
        };
        assert_eq!(mistake("[[case]]\nlang='en'\ntext='x'\nwants=['delete']"), (4, "wants".to_owned()));
        assert_eq!(mistake("[[case]]\nlang='en'\ntext='x'").1, "wants");
        assert_eq!(mistake("[[case]]\nlang='en'\ntext='x'\nwants=[]\nwant=[]"), (5, "want".to_owned()));
        assert_eq!(report("", Lexicon::embedded()).map(|report| report.cases), Ok(0));
    }

    #[test]
    fn unseen_cases_keep_the_measured_precision_and_recall() {
        let report = report(EMBEDDED_CASES, Lexicon::embedded()).expect("cases");
        for language in Lexicon::embedded().languages() {
            for class in MEASURED {
                let found = report.measures.iter().find(|measure| measure.lang == language && measure.class == class);
                let measure = found.unwrap_or_else(|| panic!("{language} {class}"));
                assert!(measure.right > 0, "{measure:?}");
                let is_met = measure.precision >= 0.98 && measure.recall >= 0.80;
                assert!(class != Class::Send || is_met, "{measure:?}");
            }
        }
        let right = |measure: &&Measure| measure.class == Class::Send;
        let found: usize = report.measures.iter().filter(right).map(|measure| measure.right).sum();
        assert!(found >= 311, "{found} of the texts that gave `send` before whole sentences could withhold it");
    }
}
