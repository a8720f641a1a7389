//! `ironctl token`: makes, lists and ends the tokens by which people speak to a host.
//! Never shows the text of a token but in the moment in which it is made.
//! Next: `commands::key` replaces one, `commands::person` says whose they are.

use super::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{IssuedToken, NewToken, Token};

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a token for a person, and print it this once
    #[command(
        after_help = "Example:\n  ironctl token create --person Bob --expires 30d --name laptop\n  ironctl token create --person Bob --expires 2027-01-31T12:00:00Z"
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
    },
    /// List the tokens
    #[command(after_help = "Example:\n  ironctl token list")]
    List,
    /// End a token for good
    #[command(after_help = "Example:\n  ironctl token revoke tok_0123456789abcdef")]
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
        Action::Create { person, expires, name } => {
            let issued = client.create_token(&NewToken { person, name, expires }).await?;
            tell(at.out, &issued)
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

/// A table of tokens.
pub fn table(out: Output, tokens: Vec<Token>) -> Result<(), Error> {
    let rows = tokens.into_iter().map(|token| {
        let time = |at: Option<String>| at.as_deref().map(clock::date_and_time).unwrap_or_default();
        [
            if token.current { format!("{} (in use)", token.id) } else { token.id },
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
