//! `ironctl secret`: sets, lists, rotates and removes the secrets that settings name as `secret:NAME`.
//!
//! Never takes a value from the command line, and never shows one: the host does not return values. See [`crate::secret_input`] and
//! [`crate::commands::model`].

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::table::Columns;
use crate::secret_input::{self, Typed};
use clap::Subcommand;
use ironclaw_operator::{NewSecret, NewSecretValue, Secret, routes};

/// The columns of the list.
const COLUMNS: Columns<'_, 5> =
    Columns::new(["SECRET", "SOURCE", "USED BY", "STORED", "CHANGED"]).with_least(&["STORED"]);

/// The verbs of `ironctl secret`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Store a secret, typed without an echo or read from stdin
    #[command(after_help = "Example:\n  ironctl secret set openai\n  ironctl secret set openai < key.txt")]
    Set {
        /// Name: a-z, 0-9, - and _
        name: String,
        #[arg(hide = true, num_args = 0..)]
        value: Vec<String>,
    },
    /// List secrets, without their values
    #[command(after_help = "Example:\n  ironctl secret list")]
    List,
    /// Replace the value of a secret; the next request uses the new value
    #[command(after_help = "Example:\n  ironctl secret rotate openai")]
    Rotate {
        /// Name of the secret
        name: String,
        #[arg(hide = true, num_args = 0..)]
        value: Vec<String>,
    },
    /// Remove a secret that no setting uses
    #[command(after_help = "Example:\n  ironctl secret remove openai --yes")]
    Remove {
        /// Name of the secret
        name: String,
        /// Remove it without a confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    if let Action::Set { name, value } | Action::Rotate { name, value } = &action
        && !value.is_empty()
    {
        return Err(on_the_command_line(bare(name)));
    }
    let client = at.client()?;
    match action {
        Action::Set { name, .. } => {
            let value = secret_input::read(&format!("the value of secret:{}", bare(&name)), Typed::Twice)?;
            let secret = client.post(routes::SET_SECRET, [], &NewSecret { name, value }).await?;
            at.out.result(&secret, format!("stored secret:{}", secret.name))
        }
        Action::List => {
            let secrets = client.call(routes::SECRETS, []).await?;
            let none = "no secrets; store one with `ironctl secret set NAME`";
            at.out.list(secrets, none, COLUMNS, row)
        }
        Action::Rotate { name, .. } => {
            let value = secret_input::read(&format!("the new value of secret:{}", bare(&name)), Typed::Twice)?;
            let secret = client.post(routes::ROTATE_SECRET, [&bare(&name)], &NewSecretValue { value }).await?;
            at.out.result(&secret, format!("secret:{} has a new value; the next request uses it", secret.name))
        }
        Action::Remove { name, yes } => {
            let name = bare(&name);
            at.out.confirm(&format!("remove secret:{name}"), yes)?;
            let secret = client.call(routes::REMOVE_SECRET, [&name]).await?;
            at.out.result(&secret, format!("removed secret:{}", secret.name))
        }
    }
}

/// Returns the refusal of a value that other programs and the history of the shell can read. It does not repeat the value.
fn on_the_command_line(name: &str) -> Error {
    Error::usage(
        format!("the value of secret:{name} was on the command line, where the shell keeps it; it was not stored"),
        format!(
            "type it at the prompt of `ironctl secret set {name}`, or pipe it in; replace this one at its provider"
        ),
    )
}

/// Returns the name without `secret:`.
fn bare(name: &str) -> &str {
    name.strip_prefix("secret:").unwrap_or(name)
}

fn row(secret: Secret) -> [String; 5] {
    let time = |at: Option<String>| at.as_deref().map(clock::to_the_minute).unwrap_or_default();
    [
        secret.name,
        secret.source.to_string(),
        secret.used_by.join(", "),
        time(secret.created_at),
        time(secret.changed_at),
    ]
}
