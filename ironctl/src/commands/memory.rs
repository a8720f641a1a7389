//! `ironctl memory`: lists, searches, adds and removes the notes of an agent.
//!
//! Never says that a note is true: it shows the author and the labels. See [`crate::commands::agent`].

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_operator::{NewNote, Notes, routes};
use serde_json::json;

/// The verbs of `ironctl memory`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the newest notes of an agent
    #[command(after_help = "Example:\n  ironctl memory list assistant")]
    List {
        /// Name or id of the agent
        agent: String,
    },
    /// Search the notes of an agent by their words
    #[command(after_help = "Example:\n  ironctl memory search assistant \"train berlin\"")]
    Search {
        /// Name or id of the agent
        agent: String,
        /// Words to search for
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Add a note as yourself
    #[command(after_help = "Example:\n  ironctl memory add assistant The office closes at six")]
    Add {
        /// Name or id of the agent
        agent: String,
        /// Text of the note
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Remove a note
    #[command(
        alias = "forget",
        after_help = "Example:\n  ironctl memory remove assistant mem_01J9ZQ4W0V2M6N8P0R2T4V6X8Z"
    )]
    Remove {
        /// Name or id of the agent
        agent: String,
        /// Id of the note
        note: String,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List { agent } => show(at.out, &client.call(routes::NOTES, [&agent]).await?, "no notes"),
        Action::Search { agent, words } => {
            let query = json!({ "query": words.join(" ") });
            show(at.out, &client.query(routes::NOTES, [&agent], query).await?, "no notes with these words")
        }
        Action::Add { agent, text } => {
            let note = client.post(routes::ADD_NOTE, [&agent], &NewNote { text: text.join(" ") }).await?;
            at.out.result(&note, format!("added note {}", note.id))
        }
        Action::Remove { agent, note } => {
            client.send(routes::REMOVE_NOTE, [&agent, &note]).await?;
            at.out.result(&json!({ "forgotten": note }), format!("removed note {note}"))
        }
    }
}

fn show(out: Output, found: &Notes, none: &str) -> Result<(), Error> {
    let notes = &found.notes;
    out.json(notes)?;
    if notes.is_empty() {
        return out.line(none);
    }
    for note in notes {
        let labels = note.labels.iter().map(|label| label.name()).collect::<Vec<_>>().join(" ");
        out.line(format!("{}  {}  by {} [{labels}]", note.id, clock::date_and_time(&note.at), note.author))?;
        for line in note.text.lines() {
            out.line(format!("    {line}"))?;
        }
    }
    if found.more {
        let shown = notes.len();
        out.remark(format!(
            "there are more than these {shown} notes: `ironctl memory search AGENT WORDS` finds the others"
        ))?;
    }
    Ok(())
}
