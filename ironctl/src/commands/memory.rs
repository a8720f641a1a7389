//! `ironctl memory`: looks at what an agent keeps for later, adds to it, erases from it.
//!
//! Never says that a note is true: it shows whose words it is made of. See [`crate::commands::agent`].

use super::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{NewNote, Notes};
use serde_json::json;

/// What to do with a memory.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the newest notes of an agent
    #[command(after_help = "Example:\n  ironctl memory list assistant")]
    List {
        /// Name or id of the agent
        agent: String,
    },
    /// Find notes by words that stand in them
    #[command(after_help = "Example:\n  ironctl memory search assistant \"train berlin\"")]
    Search {
        /// Name or id of the agent
        agent: String,
        /// Words to look for
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Add a note of your own
    #[command(after_help = "Example:\n  ironctl memory add assistant The office closes at six")]
    Add {
        /// Name or id of the agent
        agent: String,
        /// The note
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Remove a note
    #[command(
        name = "remove",
        alias = "forget",
        after_help = "Example:\n  ironctl memory remove assistant mem_01J9ZQ4W0V2M6N8P0R2T4V6X8Z"
    )]
    Forget {
        /// Name or id of the agent
        agent: String,
        /// Id of the note
        note: String,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List { agent } => show(at.out, &client.memory(&agent, None).await?, "no notes"),
        Action::Search { agent, words } => {
            show(at.out, &client.memory(&agent, Some(&words.join(" "))).await?, "no note has any of these words")
        }
        Action::Add { agent, text } => {
            let note = client.remember(&agent, &NewNote { text: text.join(" ") }).await?;
            at.out.json(&note)?;
            at.out.line(format!("kept {}", note.id))
        }
        Action::Forget { agent, note } => {
            client.forget(&agent, &note).await?;
            at.out.json(&json!({ "forgotten": note }))?;
            at.out.line(format!("forgotten {note}"))
        }
    }
}

fn show(out: Output, found: &Notes, none: &str) -> Result<(), Error> {
    out.json(found)?;
    let notes = &found.notes;
    if notes.is_empty() {
        return out.line(none);
    }
    for note in notes {
        let labels = note.labels.join(" ");
        out.line(format!("{}  {}  by {} [{labels}]", note.id, clock::date_and_time(&note.at), note.author))?;
        for line in note.text.lines() {
            out.line(format!("    {line}"))?;
        }
    }
    if found.more {
        let shown = notes.len();
        out.remark(format!("these are {shown} of more notes: `ironctl memory search AGENT WORDS` finds the others"))?;
    }
    Ok(())
}
