//! A conversation from the record of the host, for the terminal or a file.
//!
//! Never omits the author and the labels of an item. See [`ironclaw_operator::Transcript`].

use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::commands::sources;
use crate::failure::Error;
use crate::output::{Output, safe, to_json};
use clap::ValueEnum;
use ironclaw_operator::{ItemKind, Receipt, SessionReply, TranscriptItem, routes};
use ironclaw_text::urls;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The format name in the first line of an export in JSON Lines.
const RECIPE: &str = "ironclaw-transcript/1";

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON document a line: a head, then each item with all its fields
    Jsonl,
    /// Text for reading
    Markdown,
}

/// Prints the items of a page, and below each reply what it rests on.
pub fn print(out: Output, items: &[TranscriptItem], replies: &[SessionReply]) -> Result<(), Error> {
    for item in items {
        out.line(format!("{:>6}  {}  {}", item.seq, clock::date_and_time(&item.at), heading(item)))?;
        let reply = replies.iter().find(|reply| reply.item == item.id);
        for line in shown_lines(item, reply) {
            out.line(format!("        {line}"))?;
        }
        let Some(reply) = reply else { continue };
        out.line(format!("        ({})", sources::summary(&reply.sources)))?;
        for remark in &reply.shown.remarks {
            out.line(format!("        ({remark})"))?;
        }
    }
    Ok(())
}

/// Returns the lines of an item for a terminal. Nothing is known about the URLs of an output that is no reply.
fn shown_lines(item: &TranscriptItem, reply: Option<&SessionReply>) -> Vec<String> {
    let text = match (item.kind, reply) {
        (_, Some(reply)) => reply.shown.shown_as.as_ref().unwrap_or(&item.text).clone(),
        (ItemKind::Output, None) => urls::with_inert(&item.text, |_| true),
        (ItemKind::Message | ItemKind::Result | ItemKind::Summary | ItemKind::Notice, None) => return lines(item),
    };
    lines(&TranscriptItem { text, ..item.clone() })
}

/// Writes the whole conversation to a new file, or to stdout.
pub async fn export(
    at: &At,
    client: &Client,
    session: &str,
    file: Option<PathBuf>,
    format: Format,
) -> Result<(), Error> {
    let mut writer: Box<dyn Write> = match &file {
        Some(path) => Box::new(BufWriter::new(create(path)?)),
        None => Box::new(io::stdout().lock()),
    };
    let failed = |cause: io::Error| match &file {
        Some(path) => Error::failed("file_unwritable", format!("cannot write {}", path.display())).because(cause),
        None => Error::Output(cause),
    };
    let (mut after, mut count) = (0, 0);
    loop {
        let page = client.query(routes::TRANSCRIPT, [&session], json!({ "after_seq": after })).await?;
        if after == 0 {
            writer.write_all(head(&page.session_id.to_string(), &page.agent, format)?.as_bytes()).map_err(failed)?;
        }
        for item in &page.items {
            let text = match format {
                Format::Jsonl => format!("{}\n", to_json(item)?),
                Format::Markdown => markdown(item),
            };
            writer.write_all(text.as_bytes()).map_err(failed)?;
            (after, count) = (item.seq, count + 1);
        }
        // A page without items would repeat forever.
        if !page.more || page.items.is_empty() {
            break;
        }
    }
    writer.flush().map_err(failed)?;
    match file {
        Some(path) => {
            at.out.json(&json!({ "exported": session, "items": count, "file": path.display().to_string() }))?;
            at.out.line(format!("wrote {count} items to {}", path.display()))
        }
        None => Ok(()),
    }
}

fn head(session: &str, agent: &str, format: Format) -> Result<String, Error> {
    Ok(match format {
        Format::Jsonl => {
            let head = json!({ "recipe": RECIPE, "session_id": session, "agent": agent });
            format!("{}\n", to_json(&head)?)
        }
        Format::Markdown => format!("# {} with agent {}\n", safe(session), safe(agent)),
    })
}

fn create(path: &Path) -> Result<std::fs::File, Error> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|cause| {
        Error::failed("file_unwritable", format!("cannot create {}", path.display()))
            .because(cause)
            .hinting("an export never overwrites a file; choose another name")
    })
}

fn markdown(item: &TranscriptItem) -> String {
    let mut text = format!("\n**{}** · {} · item {}\n\n", safe(&heading(item)), item.at, item.seq);
    for line in lines(item) {
        // Quoted, so that no line of the conversation looks like a line of the document.
        text.push_str(&format!("> {}\n", safe(&line)));
    }
    text
}

/// Returns the author and the kind of an item.
fn heading(item: &TranscriptItem) -> String {
    let authors: Vec<&str> = item.spans.iter().map(|span| span.author.as_str()).collect();
    let labels: Vec<&str> = item.labels.iter().map(|label| label.name()).collect();
    let labels = if labels.is_empty() { String::new() } else { format!(" [{}]", labels.join(" ")) };
    let what = match item.kind {
        ItemKind::Message => authors.join(" + "),
        ItemKind::Output => match item.receipt {
            None => "agent".to_owned(),
            Some(receipt) => format!("agent, answer {receipt}"),
        },
        ItemKind::Result => {
            let outcome = if item.ok == Some(true) { "result" } else { "failure" };
            format!("{outcome} of {}", item.tool.as_deref().unwrap_or("a tool"))
        }
        ItemKind::Notice => format!("host, notice {}", item.receipt.unwrap_or(Receipt::Unsaid)),
        ItemKind::Summary => match item.covers {
            Some([from, upto]) => format!("summary by the model of items {from} to {upto}"),
            None => "summary by the model".to_owned(),
        },
    };
    format!("{what}{labels}")
}

fn lines(item: &TranscriptItem) -> Vec<String> {
    let calls = item.calls.iter().map(|call| format!("→ {} {} ({})", call.tool, call.arguments, call.state));
    item.text.lines().map(str::to_owned).chain(calls).collect()
}
