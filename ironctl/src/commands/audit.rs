//! `ironctl audit`: reads, verifies, exports and rotates the ledger, also without a running host.
//!
//! Never opens the ledger itself, and never trusts a running host with its own verification: `ironclaw-host audit` does both. See
//! [`crate::commands::why`] for one message.

mod tail;

use crate::at::At;
use crate::failure::Error;
use crate::host_binary::{self, Offline};
use clap::Subcommand;
use ironclaw_operator::{AcceptBreak, BreakAccepted, LedgerHead, Rotated, routes};
use serde::de::DeserializeOwned;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The verbs of `ironctl audit`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show the newest entries
    #[command(after_help = "Example:\n  ironctl audit tail -n 20")]
    Tail {
        /// Number of entries
        #[arg(short, default_value_t = 20, value_name = "N")]
        n: u32,
    },
    /// Verify every chain and every signed head; names the first bad entry
    #[command(
        after_help = "Example:\n  ironctl audit verify\n  ironctl audit verify --heads /mnt/elsewhere/heads\n  ironctl audit verify --file ledger.ndjson"
    )]
    Verify {
        /// Verify this export, not the ledger of the home; `-` is standard input
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Directory of the signed heads [default: as in the settings]
        #[arg(long, value_name = "DIR")]
        heads: Option<PathBuf>,
        /// Required public key of the ledger, 64 hex characters
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
    },
    /// Print every entry, one JSON object a line, with a signed head after each chain
    #[command(after_help = "Example:\n  ironctl audit export > ledger.ndjson")]
    Export,
    /// Print a signed head of the ledger, to keep outside of the home
    #[command(after_help = "Example:\n  ironctl audit head\n  ironctl audit head --out /media/stick/head.json")]
    Head {
        /// Write the head to this new file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Close the chain into an archive and begin the next
    #[command(after_help = "Example:\n  ironctl audit rotate")]
    Rotate,
    /// Accept a break of the history, as after a restore; needs an owner
    #[command(after_help = "Example:\n  ironctl audit accept --reason restored")]
    Accept {
        /// Reason, which each later verification shows
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// Runs a verb that only reads by the host's binary, and passes on its exit code.
pub async fn run(at: &At, action: &Action) -> Result<(), Error> {
    let offline = match action {
        Action::Tail { n } => return tail::run(at, *n),
        Action::Verify { file, heads, key } => {
            let mut offline = Offline::host(&["audit", "verify"])?;
            offline = match file {
                Some(file) => offline.arg("--file").arg(file),
                None => offline.at(&at.home),
            };
            for (name, value) in
                [("--heads", heads.as_deref().map(Path::as_os_str)), ("--key", key.as_deref().map(str::as_ref))]
            {
                if let Some(value) = value {
                    offline = offline.arg(name).arg(value);
                }
            }
            offline
        }
        Action::Export => Offline::host(&["audit", "export"])?.at(&at.home),
        Action::Head { out } => return head(at, out.as_deref()).await,
        Action::Rotate => return rotate(at).await,
        Action::Accept { reason } => return accept(at, reason).await,
    };
    offline.json(at.out.is_json()).pass()
}

async fn head(at: &At, out: Option<&Path>) -> Result<(), Error> {
    let asked = match at.client() {
        Ok(client) => client.call(routes::LEDGER_HEAD, []).await,
        Err(error) => Err(error),
    };
    let LedgerHead { head, kept } = beside(at, asked, "head")?;
    if let Some(path) = out {
        write_new(path, &serde_json::to_string(&head).expect("plain fields are JSON"))?;
    }
    at.out.json(&head)?;
    let rows = [
        ["entry", &head.seq.to_string()],
        ["hash", &head.hash],
        ["chain begins at", &head.first.to_string()],
        ["ledger", &head.ledger],
        ["time", &head.time],
        ["key", &head.key],
        ["signature", &head.signature],
    ];
    at.out.table(["HEAD", ""], rows.map(|row| row.map(str::to_owned)))?;
    if let Some(path) = out {
        at.out.line(format!("written to {}", path.display()))?;
    }
    match (kept.trouble, kept.directory, kept.seq) {
        (Some(trouble), _, _) => at.out.line(format!("warning: {trouble}")),
        (None, Some(directory), Some(seq)) => {
            at.out.line(format!("heads are kept in {directory}; the newest is of entry {seq}"))
        }
        (None, Some(directory), None) => at.out.line(format!("heads will be kept in {directory}; there is none yet")),
        (None, None, _) => Ok(()),
    }
}

async fn accept(at: &At, reason: &str) -> Result<(), Error> {
    let accepted = at.client()?.post(routes::ACCEPT_BREAK, [], &AcceptBreak { reason: reason.to_owned() }).await?;
    at.out.json(&accepted)?;
    let BreakAccepted { seq, from, heads, archives } = accepted;
    at.out.line(format!(
        "entry {seq} accepts the break of the history from entry {from} on; heads of the other history: {heads}"
    ))?;
    for name in archives {
        at.out.line(format!("archive of the other history renamed to {name}"))?;
    }
    Ok(())
}

async fn rotate(at: &At) -> Result<(), Error> {
    let asked = match at.client() {
        Ok(client) => client.call(routes::ROTATE_LEDGER, []).await,
        Err(error) => Err(error),
    };
    let rotated: Rotated = beside(at, asked, "rotate")?;
    at.out.result(&rotated, format!("entries {} to {} moved to {}", rotated.first, rotated.last, rotated.archive))
}

/// Returns the answer of the host, or of its binary if no host runs.
fn beside<T: DeserializeOwned>(at: &At, asked: Result<T, Error>, word: &str) -> Result<T, Error> {
    match asked {
        Err(Error::Unreachable { .. }) => {}
        other => return other,
    }
    let output = Offline::host(&["audit", word])?.at(&at.home).json(true).capture()?;
    host_binary::pass_on(output.status)?;
    serde_json::from_slice(&output.stdout).map_err(|cause| {
        Error::failed("answer_unclear", "the output of ironclaw-host has an unexpected shape").because(cause)
    })
}

/// Writes a new file. Never overwrites one: an older head may be the only proof of a rewritten ledger.
fn write_new(path: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    write()
        .map_err(|cause| Error::failed("head_not_written", format!("cannot write {}", path.display())).because(cause))
}
