//! `ironctl file`: lists, gets, puts, removes and restores files in the workspace of a session.
//!
//! Never overwrites a file unasked, and prints names of an agent only with safe characters. See [`crate::local_file`].

use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::{clock, local_file};
use clap::Subcommand;
use ironclaw_operator::{FILE_LEVELS_MAX, FILE_PUT_BYTES_MAX, FileHistory, FileRestore, routes};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Levels of directories in a list, unless the caller names a number.
pub const LEVELS: usize = 1;

/// The list of an empty workspace.
pub const NO_FILES: &str = "no files";

/// The verbs of `ironctl file`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List a directory of the workspace
    #[command(after_help = "Example:\n  ironctl file list assistant\n  ironctl file list assistant reports --levels 3")]
    List {
        #[command(flatten)]
        of: Of,
        /// Directory below the workspace [default: the workspace]
        path: Option<String>,
        /// Levels of directories, 1 to 8
        #[arg(long, value_name = "N", default_value_t = LEVELS, value_parser = levels)]
        levels: usize,
    },
    /// Get a file from the workspace
    #[command(
        after_help = "Example:\n  ironctl file get assistant report.pdf\n  ironctl file get assistant a/b.csv -o b.csv --force"
    )]
    Get {
        #[command(flatten)]
        of: Of,
        /// File below the workspace
        path: String,
        /// File to write; - for standard output [default: the name of the file, here]
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
    },
    /// Get a file that an agent sends, as the host copied it
    #[command(after_help = "Example:\n  ironctl file sent call_01ka0000000000000000000000 -o report.pdf")]
    Sent {
        /// Id of the call, from the chat or `ironctl why`
        call: String,
        /// File to write; - for standard output
        #[arg(short, long, value_name = "FILE")]
        out: PathBuf,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
    },
    /// Put a file into the workspace
    #[command(
        after_help = "Example:\n  ironctl file put assistant report.pdf\n  ironctl file put assistant new.csv data/old.csv --replace"
    )]
    Put {
        #[command(flatten)]
        of: Of,
        /// File to read
        file: PathBuf,
        /// File below the workspace [default: the name of FILE]
        path: Option<String>,
        /// Replace the file in the workspace if it exists
        #[arg(long)]
        replace: bool,
    },
    /// Remove a file from the workspace
    #[command(after_help = "Example:\n  ironctl file remove assistant report.pdf")]
    Remove {
        #[command(flatten)]
        of: Of,
        /// File below the workspace
        path: String,
    },
    /// List the kept versions of files that the agent overwrote or deleted
    #[command(
        after_help = "Example:\n  ironctl file history assistant\n  ironctl file history assistant reports/may.csv"
    )]
    History {
        #[command(flatten)]
        of: Of,
        /// File or directory below the workspace [default: the workspace]
        path: Option<String>,
    },
    /// Restore a kept version of a file
    #[command(
        after_help = "Example:\n  ironctl file restore assistant reports/may.csv\n  ironctl file restore assistant notes.txt --version 12 --to old-notes.txt"
    )]
    Restore {
        #[command(flatten)]
        of: Of,
        /// File below the workspace
        path: String,
        /// Number of the version [default: the newest that the workspace lacks]
        #[arg(long, value_name = "ID")]
        version: Option<u64>,
        /// File below the workspace to write instead
        #[arg(long, value_name = "OTHER")]
        to: Option<String>,
    },
}

/// The session whose workspace is meant.
#[derive(Debug, clap::Args)]
pub struct Of {
    /// Name or id of the agent of your conversation, or id of a session
    #[arg(value_name = "AGENT|SESSION")]
    of: String,
    /// Name of your conversation with the agent [default: the one without a name]
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
}

impl Of {
    /// Returns the id of the session.
    async fn session(&self, client: &Client) -> Result<String, Error> {
        if self.of.starts_with("ses_") {
            return match &self.thread {
                None => Ok(self.of.clone()),
                Some(_) => Err(Error::usage("a session has no --thread", "name an agent together with --thread")),
            };
        }
        let found = client.query(routes::CONVERSATION, [&self.of], json!({ "thread": self.thread })).await?;
        Ok(found.session_id.to_string())
    }
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List { of, path, levels } => {
            let session = of.session(&client).await?;
            show(at, &client, &session, path.as_deref().unwrap_or_default(), levels).await
        }
        Action::Get { of, path, out, force } => get(at, &client, &of, &path, out, force).await,
        Action::Sent { call, out, force } => {
            let bytes = client.bytes(routes::SENT_FILE, &call, json!({})).await?;
            write(at, &out, force, &bytes, json!({ "call_id": call }))
        }
        Action::Put { of, file, path, replace } => {
            let path = match path {
                Some(path) => path,
                None => name_of(&file, "PATH")?,
            };
            let bytes = local_file::read(&file, FILE_PUT_BYTES_MAX)?;
            let session = of.session(&client).await?;
            let stored = client.put_file(&session, &path, replace, bytes).await?;
            at.out.json(&stored)?;
            at.out.line(format!(
                "put {} ({} bytes) into the workspace of {}",
                stored.path, stored.bytes, stored.session_id
            ))
        }
        Action::Remove { of, path } => {
            let session = of.session(&client).await?;
            let removed = client.query(routes::REMOVE_FILE, [&session], json!({ "path": path })).await?;
            at.out.json(&removed)?;
            at.out.line(format!(
                "removed {} ({} bytes) from the workspace of {}",
                on_one_line(&removed.path),
                removed.bytes,
                removed.session_id
            ))
        }
        Action::History { of, path } => {
            let session = of.session(&client).await?;
            let query = json!({ "path": path.unwrap_or_default() });
            history(at, &client.query(routes::FILE_HISTORY, [&session], query).await?)
        }
        Action::Restore { of, path, version, to } => {
            let session = of.session(&client).await?;
            restore(at, &client, &session, &FileRestore { path, version, to }).await
        }
    }
}

async fn restore(at: &At, client: &Client, session: &str, wanted: &FileRestore) -> Result<(), Error> {
    let restored = client.post(routes::RESTORE_FILE, [&session], wanted).await?;
    at.out.json(&restored)?;
    at.out.line(format!(
        "restored version {} of {} to {} ({} bytes) in the workspace of {}",
        restored.version,
        on_one_line(&wanted.path),
        on_one_line(&restored.path),
        restored.bytes,
        restored.session_id
    ))?;
    match restored.replaced {
        Some(replaced) => at.out.remark(format!("the replaced content is version {replaced}")),
        None => Ok(()),
    }
}

/// Prints the kept versions of files, and what the host could not copy.
fn history(at: &At, history: &FileHistory) -> Result<(), Error> {
    at.out.json(history)?;
    if history.versions.is_empty() {
        at.out.line("no versions")?;
    } else {
        let rows = history.versions.iter().map(|version| {
            [
                version.id.to_string(),
                on_one_line(&version.shown),
                version.bytes.to_string(),
                clock::date_and_time(&version.kept_at),
                version.why.to_string(),
                version.turn.map(|turn| turn.to_string()).unwrap_or_default(),
            ]
        });
        at.out.table(["VERSION", "FILE", "BYTES", "KEPT", "WHY", "TURN"], rows)?;
    }
    if history.more {
        at.out.remark(format!("there are more than these {} versions: name a file", history.versions.len()))?;
    }
    for left in &history.left_out {
        at.out.remark(format!("not kept: {} ({})", on_one_line(&left.shown), left.why))?;
    }
    let unnamed = history.left_out_total.saturating_sub(history.left_out.len() as u64);
    if unnamed > 0 {
        at.out.remark(format!("not kept: {unnamed} more files"))?;
    }
    match &history.failure {
        Some(failure) => at.out.remark(format!("the last copying of changed files failed: {failure}")),
        None => Ok(()),
    }
}

async fn get(at: &At, client: &Client, of: &Of, path: &str, out: Option<PathBuf>, force: bool) -> Result<(), Error> {
    let out = match out {
        Some(out) => out,
        None => name_of(Path::new(path), "-o")?.into(),
    };
    let session = of.session(client).await?;
    let bytes = client.bytes(routes::FILE, &session, json!({ "path": path })).await?;
    write(at, &out, force, &bytes, json!({ "session_id": session, "path": path }))
}

/// Writes bytes to a file or to standard output, and reports the file with these fields.
fn write(at: &At, out: &Path, force: bool, bytes: &[u8], mut fields: serde_json::Value) -> Result<(), Error> {
    if out.as_os_str() == "-" {
        return at.out.raw(bytes);
    }
    local_file::write(out, bytes, force)?;
    let shown = out.display().to_string();
    fields["file"] = shown.as_str().into();
    fields["bytes"] = bytes.len().into();
    at.out.result(&fields, format!("wrote {} bytes to {}", bytes.len(), on_one_line(&shown)))
}

/// Returns the last name of a path; `option` names the file in its place.
fn name_of(path: &Path, option: &str) -> Result<String, Error> {
    let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    name.ok_or_else(|| {
        Error::usage(format!("{} has no name of a file", path.display()), format!("name the file with {option}"))
    })
}

/// Prints the entries of a directory in the workspace of a session.
pub async fn show(at: &At, client: &Client, session: &str, directory: &str, levels: usize) -> Result<(), Error> {
    let query = json!({ "path": directory, "levels": levels });
    let list = client.query(routes::FILES, [&session], query).await?;
    at.out.json(&list.files)?;
    if list.files.is_empty() {
        return at.out.line(NO_FILES);
    }
    let rows = list.files.iter().map(|entry| {
        let bytes = entry.bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
        [on_one_line(&entry.shown), entry.kind.to_string(), bytes, clock::date_and_time(&entry.modified_at)]
    });
    at.out.table(["FILE", "KIND", "BYTES", "CHANGED"], rows)?;
    if list.more {
        at.out.remark(format!("there are more than these {} entries: list a directory of them", list.files.len()))?;
    }
    Ok(())
}

/// Returns a name without line ends; [`crate::output`] escapes its other unsafe characters.
fn on_one_line(name: &str) -> String {
    name.replace('\n', "\\n").replace('\t', "\\t")
}

fn levels(text: &str) -> Result<usize, String> {
    let levels = text.parse().ok().filter(|levels| (1..=FILE_LEVELS_MAX).contains(levels));
    levels.ok_or_else(|| format!("{text} is not a number from 1 to {FILE_LEVELS_MAX}"))
}
