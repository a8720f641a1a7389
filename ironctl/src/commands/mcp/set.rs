//! `ironctl mcp set`: sets parts of the manifest of one tool, and proposes the confirmation.
//!
//! Every other tool keeps its rules. See [`super::confirm`].

use super::confirm;
use super::manifest::{self, Field, Parts};
use crate::at::At;
use crate::failure::Error;
use ironclaw_operator::{Class, routes};
use ironclaw_text::shell::quoted;

/// Options of `ironctl mcp set`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl mcp set calendar list_events --class read --field calendar=free\n  ironctl mcp set mail send_mail --field to=floor:email --field body=content+outward"
)]
pub struct Args {
    /// Name of the server
    server: String,
    /// Name of the tool on the server
    tool: String,
    /// Class of its calls: read, write, send, exec or trade
    #[arg(long, value_name = "CLASS")]
    class: Option<Class>,
    /// Rule of an argument, as NAME=RULE or NAME=floor:TYPE, with +outward or -outward behind it; repeatable
    #[arg(long, value_name = "FIELD")]
    field: Vec<Field>,
    /// Place in the answers whose text is yours, as a JSON pointer with * for each element of a list; "" is the whole answer; repeatable
    #[arg(long, value_name = "PATH")]
    mine: Vec<String>,
    /// No text of the answers is yours
    #[arg(long, conflicts_with = "mine")]
    not_mine: bool,
    /// Whether each call asks a person
    #[arg(long, value_name = "YES|NO", value_parser = clap::builder::BoolishValueParser::new())]
    always_ask: Option<bool>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let Args { server, tool, class, field, mine, not_mine, always_ask, yes } = args;
    let mine = Some(mine).filter(|paths| not_mine || !paths.is_empty());
    if class.is_none() && field.is_empty() && mine.is_none() && always_ask.is_none() {
        return Err(Error::usage(
            "there is nothing to set",
            "name --class, --field, --mine, --not-mine or --always-ask",
        ));
    }
    let found = at.client()?.call(routes::MCP_SERVER, [&server]).await?;
    let text = manifest::with_parts(&found, &tool, &Parts { class, fields: field, mine, always_ask })?;
    let Some(digest) = found.digest else {
        let error = Error::failed("mcp_unseen", format!("the host has no listing of {server}"));
        return Err(error.hinting(format!("ironctl mcp test {}", quoted(&server))));
    };
    at.out.json(&confirm::propose(at, &found.name, digest, Some(text), yes).await?)
}
