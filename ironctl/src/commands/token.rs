//! `ironctl token`: makes, lists and ends the tokens by which people speak to a host.
//!
//! Never shows the text of a token but in the moment in which it is made. [`crate::commands::key`] replaces one,
//! [`crate::commands::person`] says whose they are.

use super::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{IssuedToken, NewToken, Token};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a token for a person, and print it this once
    #[command(
        name = "add",
        alias = "create",
        after_help = "Example:\n  ironctl token add --person Bob --expires 30d --out bob.token\n  ironctl token add --person Bob --expires 2027-01-31T12:00:00Z"
    )]
    Create {
        /// Name or id of who will speak with it
        #[arg(long)]
        person: String,
        /// When it ends: a duration such as 30d, or RFC 3339 [default: never]
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
        /// What it is for
        #[arg(long, default_value = "", hide_default_value = true)]
        name: String,
        /// Write it to this new file, which only you can read, and not to standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List the tokens
    #[command(after_help = "Example:\n  ironctl token list")]
    List,
    /// Remove a token: it never becomes valid again
    #[command(name = "remove", alias = "revoke", after_help = "Example:\n  ironctl token remove tok_0123456789abcdef")]
    Revoke {
        /// Its id, tok_…
        token: String,
    },
    /// Replace a token by a fresh one of the same person, name and end
    #[command(after_help = "Example:\n  ironctl token rotate tok_0123456789abcdef")]
    Rotate {
        /// Its id, tok_…
        token: String,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Create { person, expires, name, out } => {
            // Before the token is made: one that cannot be kept would be live and lost.
            let file = out.as_deref().map(NewFile::create).transpose()?;
            let issued = client.create_token(&NewToken { person, name, expires }).await?;
            match file {
                Some(file) => file.keep(at.out, issued),
                None => tell(at.out, &issued),
            }
        }
        Action::List => {
            let tokens = client.tokens().await?;
            at.out.json(&tokens)?;
            table(at.out, tokens)
        }
        Action::Revoke { token } => {
            let token = client.revoke_token(&token).await?;
            at.out.json(&token)?;
            at.out.line(format!("revoked {} of {}", token.id, token.person_name))
        }
        Action::Rotate { token } => tell(at.out, &client.rotate_token(&token).await?),
    }
}

/// A new file for a token; removed again unless the token is written to it.
struct NewFile {
    file: File,
    path: PathBuf,
    is_written: bool,
}

impl NewFile {
    /// Makes it, readable by its owner alone; one that is there is left as it is.
    fn create(path: &Path) -> Result<Self, Error> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = made.map_err(|cause| not_written(path, cause).hinting("name a file that is not there yet"))?;
        Ok(Self { file, path: path.to_owned(), is_written: false })
    }

    /// Writes the token and tells where it is.
    fn keep(mut self, out: Output, mut issued: IssuedToken) -> Result<(), Error> {
        let text = issued.text.take().unwrap_or_default();
        let written = writeln!(self.file, "{text}").and_then(|()| self.file.sync_all());
        written.map_err(|cause| {
            let revoke = format!("`ironctl token remove {}` ends the token that was made", issued.token.id);
            not_written(&self.path, cause).hinting(revoke)
        })?;
        self.is_written = true;
        issued.saved_to = Some(self.path.display().to_string());
        out.json(&issued)?;
        out.line(format!("{} holds {} of {}", self.path.display(), issued.token.id, issued.token.person_name))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_written {
            // It is ours, and without a token in it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn not_written(path: &Path, cause: io::Error) -> Error {
    Error::failed("token_not_written", format!("cannot write {}", path.display())).because(cause)
}

/// Prints a token that was made now: its text alone on stdout, the rest beside it.
pub fn tell(out: Output, issued: &IssuedToken) -> Result<(), Error> {
    out.json(issued)?;
    let token = &issued.token;
    let end = token
        .expires_at
        .as_deref()
        .map_or("it does not end by itself".to_owned(), |at| format!("it ends at {}", clock::date_and_time(at)));
    if let Some(file) = &issued.saved_to {
        return out.line(format!("{file} holds the new token {}; the old one has ended", token.id));
    }
    out.remark(format!("{} of {}; {end}; it is shown this once:", token.id, token.person_name))?;
    out.line(issued.text.as_deref().unwrap_or_default())
}

/// Prints a table of tokens.
pub fn table(out: Output, tokens: Vec<Token>) -> Result<(), Error> {
    let rows = tokens.into_iter().map(|token| {
        let time = |at: Option<String>| at.as_deref().map(clock::date_and_time).unwrap_or_default();
        [
            if token.current { format!("{} (in use)", token.id) } else { token.id.to_string() },
            token.person_name,
            token.name,
            token.state,
            clock::date_and_time(&token.created_at),
            time(token.expires_at),
            time(token.ended_at),
        ]
    });
    out.table(["TOKEN", "PERSON", "NAME", "STATE", "MADE", "EXPIRES", "ENDED"], rows)
}
