//! `ironctl token`: adds, lists, rotates and removes the tokens of people.
//!
//! Shows the text of a token only once, when it is new. [`crate::commands::key`] rotates the token in use,
//! [`crate::commands::person`] shows the person of a token.

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::new_file::NewFile;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_operator::{IssuedToken, NewToken, Token, routes};
use std::path::{Path, PathBuf};

/// The verbs of `ironctl token`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a token for a person, and print it once
    #[command(
        alias = "create",
        after_help = "Example:\n  ironctl token add --person Bob --expires 30d --out bob.token\n  ironctl token add --person Bob --expires 2027-01-31T12:00:00Z"
    )]
    Add {
        /// Name or id of the person
        #[arg(long)]
        person: String,
        /// Expiry: a duration such as 30d, or RFC 3339 [default: never]
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
        /// Name of the token, e.g. its purpose
        #[arg(long, default_value = "", hide_default_value = true)]
        name: String,
        /// New file for the token, readable only by you [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List tokens
    #[command(after_help = "Example:\n  ironctl token list")]
    List,
    /// Remove a token: it never becomes valid again
    #[command(alias = "revoke", after_help = "Example:\n  ironctl token remove tok_0123456789abcdef")]
    Remove {
        /// Id of the token, tok_…
        token: String,
    },
    /// Replace a token by a new one with the same person, name and expiry
    #[command(after_help = "Example:\n  ironctl token rotate tok_0123456789abcdef")]
    Rotate {
        /// Id of the token, tok_…
        token: String,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add { person, expires, name, out } => {
            // Before the request, because a token that cannot be written would be valid and lost.
            let file = out.as_deref().map(|path| Ok::<_, Error>((create(path)?, path))).transpose()?;
            let issued = client.post(routes::ADD_TOKEN, [], &NewToken { person, name, expires }).await?;
            match file {
                Some((file, path)) => write_issued(at.out, file, path, issued),
                None => print_issued(at.out, &issued),
            }
        }
        Action::List => {
            let tokens = client.call(routes::TOKENS, []).await?;
            at.out.json(&tokens)?;
            table(at.out, tokens)
        }
        Action::Remove { token } => {
            let token = client.call(routes::REMOVE_TOKEN, [&token]).await?;
            at.out.result(&token, format!("removed {} of {}", token.id, token.person_name))
        }
        Action::Rotate { token } => print_issued(at.out, &client.call(routes::ROTATE_TOKEN, [&token]).await?),
    }
}

/// Makes the file for a token, without a name until the token is in it; refuses an existing file.
fn create(path: &Path) -> Result<NewFile, Error> {
    NewFile::create(path, false).map_err(|cause| not_written(path, cause).hinting("name a new file"))
}

/// Writes a new token to its file and prints the path.
fn write_issued(out: Output, mut file: NewFile, path: &Path, mut issued: IssuedToken) -> Result<(), Error> {
    let text = issued.text.take().unwrap_or_default();
    let written = file.write(format!("{text}\n").as_bytes()).and_then(|()| file.keep());
    written.map_err(|cause| {
        let remove = format!("`ironctl token remove {}` removes the new token", issued.token.id);
        not_written(path, cause).hinting(remove)
    })?;
    issued.saved_to = Some(path.display().to_string());
    out.result(&issued, format!("wrote {} of {} to {}", issued.token.id, issued.token.person_name, path.display()))
}

fn not_written(path: &Path, cause: Error) -> Error {
    Error::failed("token_not_written", format!("cannot write {}", path.display())).because(cause)
}

/// Prints a new token: only its text to stdout, the rest to stderr.
pub fn print_issued(out: Output, issued: &IssuedToken) -> Result<(), Error> {
    out.json(issued)?;
    let token = &issued.token;
    let end = token
        .expires_at
        .as_deref()
        .map_or("it does not expire".to_owned(), |at| format!("it expires at {}", clock::date_and_time(at)));
    if let Some(file) = &issued.saved_to {
        return out.line(format!("wrote the new token {} to {file}; the old token is invalid", token.id));
    }
    out.remark(format!("{} of {}; {end}; shown only once:", token.id, token.person_name))?;
    out.line(issued.text.as_deref().unwrap_or_default())
}

/// Prints a table of tokens.
pub fn table(out: Output, tokens: Vec<Token>) -> Result<(), Error> {
    let rows = tokens.into_iter().map(|token| {
        let time = |at: Option<String>| at.as_deref().map(clock::to_the_minute).unwrap_or_default();
        [
            if token.current { format!("{} (in use)", token.id) } else { token.id.to_string() },
            token.person_name,
            token.name,
            token.face.to_string(),
            token.state.to_string(),
            clock::to_the_minute(&token.created_at),
            time(token.expires_at),
            time(token.ended_at),
        ]
    });
    out.table(["TOKEN", "PERSON", "NAME", "FACE", "STATE", "ADDED", "EXPIRES", "ENDED"], rows)
}
