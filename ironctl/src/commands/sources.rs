//! The list of what a reply rests on.
//!
//! Every line is from the record of the host. See [`ironclaw_operator::Sources`].

use crate::failure::Error;
use crate::output::Output;
use crate::output::table::Columns;
use ironclaw_operator::{Source, SourceKind, Sources};

/// The columns of the list.
const COLUMNS: Columns<'_, 5> = Columns::new(["ITEM", "KIND", "BY", "COUNTS", "LABELS"]);

/// Prints the line about the results, and the list.
pub fn print(out: Output, sources: &Sources) -> Result<(), Error> {
    out.line(format!("the reply {}", summary(sources)))?;
    if !sources.rests_on.is_empty() {
        out.table(COLUMNS, sources.rests_on.iter().map(row))?;
    }
    match sources.left_off {
        0 => Ok(()),
        more => out.line(format!("{more} older items are not listed")),
    }
}

/// Returns the line about the results of a reply.
pub fn summary(sources: &Sources) -> String {
    match (sources.results, sources.is_whole) {
        (None, _) => format!("is older than this list: {}", sources.summary),
        (Some(_), true) => sources.summary.clone(),
        (Some(_), false) => format!("{}, and on items that the record no longer has", sources.summary),
    }
}

fn row(source: &Source) -> [String; 5] {
    let labels: Vec<&str> = source.labels.iter().map(|label| label.name()).collect();
    let counts = if source.counts { "yes" } else { "no" };
    [source.seq.to_string(), kind(source), source.by.clone(), counts.to_owned(), labels.join(" ")]
}

/// Returns the kind of a source in words.
fn kind(source: &Source) -> String {
    let path = source.path.as_deref().unwrap_or("a file");
    match source.kind {
        SourceKind::Message => "message".to_owned(),
        SourceKind::Result => "result".to_owned(),
        SourceKind::File => format!("file {path}"),
        SourceKind::OwnFile => format!("file {path}, which the agent wrote"),
        SourceKind::Note => "notes of the agent".to_owned(),
        SourceKind::Report => match &source.path {
            Some(path) => format!("file {path} of the workspace, as the sandbox reported"),
            None => "report of the sandbox".to_owned(),
        },
        SourceKind::Request => "request".to_owned(),
        SourceKind::Failure => "failed call".to_owned(),
        SourceKind::Summary => match source.covers {
            Some([from, upto]) => format!("summary by the model of items {from} to {upto}"),
            None => "summary by the model".to_owned(),
        },
    }
}
