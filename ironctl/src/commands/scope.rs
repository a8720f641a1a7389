//! `ironctl scope`: measures the lexicon that finds the scope of a message.
//!
//! Never changes the lexicon. See [`crate::commands::tool`] for the judgement of a call.

use crate::at::At;
use crate::failure::Error;
use crate::local_file;
use crate::output::joined;
use clap::Subcommand;
use ironclaw_operator::{Class, SCOPE_CASES_BYTES_MAX, ScopeMeasure, TestScope, WrongScope, routes};
use std::path::{Path, PathBuf};

/// The verbs of `ironctl scope`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show precision and recall by language and class, over labelled requests
    #[command(after_help = "Example:\n  ironctl scope test\n  ironctl scope test --file my_cases.toml --json")]
    Test {
        /// TOML file of requests: `[[case]]` with lang, text and wants [default: those of the host]
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Test { file } => test(at, file.as_deref()).await,
    }
}

async fn test(at: &At, file: Option<&Path>) -> Result<(), Error> {
    let cases = file.map(read).transpose()?;
    let tested = at.client()?.post(routes::TEST_SCOPE, [], &TestScope { cases }).await?;
    at.out.json(&tested)?;
    at.out.table(
        ["LANGUAGE", "CLASS", "PRECISION", "RECALL", "RIGHT", "CLAIMED", "MISSED"],
        tested.measures.iter().map(row),
    )?;
    for wrong in &tested.wrong {
        at.out.line(told(wrong))?;
    }
    at.out.line(format!("{} requests, {} with other classes than their label", tested.cases, tested.wrong.len()))
}

fn read(path: &Path) -> Result<String, Error> {
    let refused = |why: String| Error::failed("file_refused", format!("cannot send {}", path.display())).because(why);
    let bytes = local_file::read(path, SCOPE_CASES_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| refused(format!("byte {} is no UTF-8", error.utf8_error().valid_up_to())))
}

fn row(measure: &ScopeMeasure) -> [String; 7] {
    [
        measure.lang.clone(),
        measure.class.to_string(),
        format!("{:.3}", measure.precision),
        format!("{:.3}", measure.recall),
        measure.right.to_string(),
        measure.claimed.to_string(),
        measure.missed.to_string(),
    ]
}

/// Returns one line about a request with other classes than its label has.
fn told(wrong: &WrongScope) -> String {
    let list = |words: &[Class]| if words.is_empty() { "nothing".to_owned() } else { joined(words, " ") };
    format!(
        "{}: wants {}, gets {}: {}",
        wrong.lang,
        list(&wrong.wants),
        list(&wrong.got),
        wrong.text.replace('\n', " ")
    )
}
