//! Rotation: the live chain is written to a closed archive file, and a new chain continues from it.
//!
//! Entries are deleted only after their archive is on disk and closed by a signed head. A chain with a fault is never archived. See
//! [`crate::check`].

use super::check::{self, Bad, Chain};
use super::head::{Position, Signer};
use super::line::{self, Parts};
use super::{Entry, chain, quick, table};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::ledger_entry::{Broken, Verifier};
use ironclaw_operator::{LedgerEvent, Rotated, SignedHead};
use ironclaw_state::failpoint;
use ironclaw_state::home::{self, Home};
use ironclaw_state::{ReadTx, WriteTx};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Size of the buffers for reading and writing, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// The reason why a chain was not rotated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The directory of the archives.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The chain is not whole; it remains in the record, for an investigation.
    #[error("the ledger is not whole, so nothing was rotated: {0}")]
    Broken(#[from] Broken),
    /// The chain has only its genesis.
    #[error("the chain that begins at {0} holds nothing but its genesis")]
    Empty(u64),
}

/// The reason why a chain is rotated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RotationReason {
    /// It has reached its bound on entries.
    Entries,
    /// It has reached its bound on age.
    Days,
    /// A person requested it, by id; `None` if it was requested beside a stopped host.
    Asked(Option<PersonId>),
}

/// Returns the file of the chain that begins at `first`.
pub fn path(home: &Home, first: u64) -> PathBuf {
    home.ledger().join(format!("chain-{first:012}.ndjson"))
}

/// Returns the first sequence numbers of the archived chains, in order, from the names of their files.
pub fn firsts(home: &Home) -> io::Result<Vec<u64>> {
    let mut firsts = Vec::new();
    let entries = match std::fs::read_dir(home.ledger()) {
        // Without the directory there is no archive; a chain that continues from one fails its check.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(firsts),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        let number = |name: &str| name.strip_prefix("chain-")?.strip_suffix(".ndjson")?.parse::<u64>().ok();
        firsts.extend(name.to_str().and_then(number));
    }
    firsts.sort_unstable();
    Ok(firsts)
}

/// Opens the archive of the chain that begins at `first`.
///
/// # Errors
/// Only a regular file is opened: a read from a FIFO could wait forever.
pub fn open(home: &Home, first: u64) -> io::Result<BufReader<File>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(nix::libc::O_NONBLOCK).open(path(home, first))?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Makes the directory of the archives if it is missing. Returns whether it was made.
///
/// # Errors
/// Those of the file system, also if another file has its name.
pub fn ensure_directory(home: &Home) -> Result<bool, home::Error> {
    let made = !home.ledger().exists();
    home::make_private(&home.ledger())?;
    Ok(made)
}

pub fn check(home: &Home, first: u64, wanted: &BTreeSet<u64>) -> Result<Chain, check::Error> {
    if let Some(chain) = quick::archive(open(home, first)?.into_inner(), first, wanted) {
        return Ok(chain);
    }
    let mut input = open(home, first)?;
    let chain = check::chain(&mut input, first, wanted)?;
    let ended = io::BufRead::fill_buf(&mut input)?.is_empty();
    match chain {
        Some(chain) if ended => Ok(chain),
        Some(chain) => Err(Bad::at(
            chain.last + 1,
            check::Class::Broken,
            format!("there is data after the closing head of {}", path(home, first).display()),
        )
        .into()),
        None => Err(Bad::at(first, check::Class::Truncated, "the archive is empty").into()),
    }
}

/// Closes the live chain and begins the next one. Must run in a transaction of its own: the archived entries must be committed
/// already. Then a crash leaves either the old chain or the new one, and in both cases the file has only committed entries.
pub fn rotate(
    tx: &mut WriteTx<'_>,
    home: &Home,
    signer: &Signer,
    why: &RotationReason,
) -> Result<(Rotated, SignedHead), Error> {
    let position = Position::read(tx)?;
    if position.first == position.seq {
        return Err(Error::Empty(position.first));
    }
    ensure_directory(home)?;
    let aside = set_aside_leftover(tx, home, &position)?;
    let path = path(home, position.first);
    let head = signer.sign(position.clone(), tx.now());
    let digest = write(tx, &path, position.first, &head)?;
    failpoint::reach("chain_archived");
    table::record_archived(tx, position.first)?;
    table::delete_chain(tx)?;
    let Position { ledger, first, seq, hash } = position;
    let entry = Entry::new(LedgerEvent::LedgerRotated)
        .with("continues_from", serde_json::json!({ "archive": digest.to_string(), "hash": hash, "seq": seq }))
        .with("ledger", ledger)
        .with("key", signer.public());
    let entry = match why {
        RotationReason::Entries => entry.with("why", "entries"),
        RotationReason::Days => entry.with("why", "days"),
        RotationReason::Asked(Some(person)) => entry.with("why", "asked").with("by", *person),
        RotationReason::Asked(None) => entry.with("why", "asked"),
    };
    entry.append_at(tx, seq + 1)?;
    if let Some(name) = aside {
        let reason = "an archive of another history had the name of the new archive";
        Entry::new(LedgerEvent::LedgerArchiveSetAside).with("file", name).reason(reason).append(tx)?;
    }
    failpoint::reach("chain_begun");
    let archive = path.display().to_string();
    Ok((Rotated { archive, first, last: seq, digest: digest.to_string() }, head))
}

/// Renames an archive that has the name of the next archive but is not the beginning of the live chain. Then the record is older than
/// the archive, which has the only copy of its entries. Returns its new name.
fn set_aside_leftover(tx: &ReadTx<'_>, home: &Home, position: &Position) -> Result<Option<String>, Error> {
    let there = path(home, position.first);
    if there.symlink_metadata().is_err() {
        return Ok(None);
    }
    if let Ok(left) = check(home, position.first, &BTreeSet::new())
        && table::hash_at(tx, left.last).is_ok_and(|hash| hash.as_ref() == Some(&left.hash))
    {
        return Ok(None);
    }
    let aside = RenamedArchive::reserve(home, position.first)?;
    aside.take().inspect_err(|_| aside.undo())?;
    Ok(Some(aside.name()))
}

/// A free name for an archive that must be renamed.
pub struct RenamedArchive {
    from: PathBuf,
    to: PathBuf,
}

impl RenamedArchive {
    /// Reserves a free name for the archive that begins at `first`.
    pub fn reserve(home: &Home, first: u64) -> Result<Self, Error> {
        let from = path(home, first);
        let fault = |source: io::Error| Error::Io { path: from.clone(), source };
        for number in 0..u32::MAX {
            let to = from.with_extension(format!("aside-{number}"));
            // Made before the rename, so that no earlier one is replaced; a file of the same kind is needed for the rename.
            let made = match from.is_dir() {
                true => std::fs::create_dir(&to),
                false => OpenOptions::new().write(true).create_new(true).open(&to).map(drop),
            };
            match made {
                Ok(()) => return Ok(Self { from, to }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fault(error)),
            }
        }
        Err(fault(io::Error::other("there is no free name for it")))
    }

    /// Returns the name of its file.
    pub fn name(&self) -> String {
        self.to.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub fn take(&self) -> Result<(), Error> {
        std::fs::rename(&self.from, &self.to).map_err(|source| Error::Io { path: self.from.clone(), source })
    }

    /// Restores the name of the archive, and frees the other name.
    pub fn undo(&self) {
        let undone = match self.from.symlink_metadata() {
            Err(_) => std::fs::rename(&self.to, &self.from),
            Ok(_) if self.to.is_dir() => std::fs::remove_dir(&self.to),
            Ok(_) => std::fs::remove_file(&self.to),
        };
        if let Err(error) = undone {
            tracing::error!(%error, "cannot restore the name of {}", self.to.display());
        }
    }
}

/// Writes the live chain and its closing head. Returns the SHA-256 of the file, which is on disk then.
fn write(tx: &ReadTx<'_>, path: &Path, first: u64, head: &SignedHead) -> Result<Digest, Error> {
    let fault = |source: io::Error| Error::Io { path: path.to_owned(), source };
    let temporary = path.with_extension("new");
    home::discard(&temporary).map_err(fault)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(fault)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let (mut verifier, mut sha) = (Verifier::starting_at(first), Sha256::new());
    let mut text = String::new();
    chain::walk(tx, first, |parts: Parts<'_>| {
        verifier.accept(parts.seq, parts.kind, parts.canonical, parts.hash)?;
        text.clear();
        line::write(&mut text, parts);
        sha.update(text.as_bytes());
        out.write_all(text.as_bytes()).map_err(fault)
    })?;
    text.clear();
    line::write_head(&mut text, head);
    sha.update(text.as_bytes());
    let finish = || -> io::Result<()> {
        out.write_all(text.as_bytes())?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        home::rename_durably(&temporary, path)
    };
    finish().map_err(fault)?;
    Ok(Digest::from_bytes(sha.finalize().into()))
}

/// Checks that an archive that a crash left behind is a beginning of the live chain; then the next rotation writes it again.
///
/// # Errors
/// [`Bad`] if it has other entries: then the record is older than its archive.
pub fn leftover(home: &Home, live: &Chain, hashes: impl FnOnce(u64) -> Option<String>) -> Result<String, check::Error> {
    let wanted = BTreeSet::new();
    let left = check(home, live.first, &wanted)?;
    let name = path(home, live.first).display().to_string();
    if left.last <= live.last && hashes(left.last).as_deref() == Some(&left.hash) {
        return Ok(format!("{name} is of a rotation that was cut short; the next rotation writes it again"));
    }
    let why = format!(
        "{name} has entries up to {}, but the record ends at {} without them: it is older than its archive",
        left.last, live.last
    );
    Err(Bad::at(live.last.min(left.last) + 1, check::Class::Truncated, why).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_was_moved_aside_gets_its_name_back() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::create(&directory.path().join("h")).expect("a home");
        let archive = path(&home, 7);
        std::fs::write(&archive, "archive").expect("written");
        let before = std::fs::read_dir(home.ledger()).expect("there").count();
        for is_moved in [false, true] {
            let aside = RenamedArchive::reserve(&home, 7).expect("a free name");
            if is_moved {
                aside.take().expect("moved");
                assert!(!archive.exists());
            }
            aside.undo();
            assert_eq!(std::fs::read_to_string(&archive).expect("there"), "archive", "{is_moved}");
            assert_eq!(std::fs::read_dir(home.ledger()).expect("there").count(), before, "{is_moved}");
        }
        let names = [RenamedArchive::reserve(&home, 7), RenamedArchive::reserve(&home, 7)]
            .map(|aside| aside.expect("a free name").name());
        assert_ne!(names[0], names[1]);
    }
}
