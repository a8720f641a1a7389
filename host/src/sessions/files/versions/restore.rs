//! The restore of a kept version: what is at its place becomes a version first.
//!
//! Never replaces a file that it could not copy. See [`crate::sessions::files::Draft`], which moves the content to its place.

use super::index::{Index, Version, Why};
use super::limits::Reason;
use super::store::Store;
use super::take::{Copier, Run};
use super::walk;
use crate::sessions::files::{Draft, Error, FilePath, Files, no_file_at};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_state::home::SessionDirectories;
use ironclaw_store::refusal::{Denied, Refusal};
use std::io;

#[derive(Debug, Clone)]
pub struct Wanted {
    /// The path of the version.
    pub path: FilePath,
    /// Its number; by default the newest that the workspace does not have at this path.
    pub version: Option<u64>,
    /// The path of the restored file; by default the same.
    pub to: Option<FilePath>,
}

/// A version that is about to be restored.
#[derive(Debug)]
pub struct Restoring {
    /// The content, outside of the workspace.
    draft: Draft,
    /// The number of the version.
    pub version: u64,
    pub bytes: u64,
    /// The digest of its content.
    pub digest: Digest,
    pub to: FilePath,
    /// The number of the version that has the content of the replaced file.
    pub replaced: Option<u64>,
}

impl Restoring {
    /// Moves the content to its place, and notes that it is the newest version there.
    ///
    /// # Errors
    /// Refuses a place that was taken by something else meanwhile.
    pub fn place(self, place: &SessionDirectories, run: &Run) -> Result<(), Error> {
        self.draft.place()?;
        let noted = || -> io::Result<()> {
            let Some(files) = Files::open(place, None)? else { return Ok(()) };
            let mut store = Store::open(place)?;
            let by = store.report()?.turn;
            let mut copier = Copier::new(files, &mut store, run, by)?;
            keep_present(&mut copier, &self.to.text())?;
            copier.save()
        };
        if let Err(error) = noted() {
            // The next run notes it.
            tracing::warn!(%error, "cannot note a restored file");
        }
        Ok(())
    }
}

/// Prepares a restore: keeps what is at its place, and writes the content of the version to a draft.
///
/// # Errors
/// Refuses an unknown or damaged version, a place that is taken by something that cannot be kept, and a file without room.
pub fn restoring(
    place: &SessionDirectories,
    owner: Option<u32>,
    run: &Run,
    wanted: Wanted,
) -> Result<Restoring, Error> {
    let open = || Files::open(place, owner).map_err(Denied::Failed);
    let (Some(files), Some(own)) = (open()?, open()?) else { return Err(no_version(&wanted)) };
    let mut store = Store::open(place).map_err(Denied::Failed)?;
    let by = store.report().map_err(Denied::Failed)?.turn;
    let mut copier = Copier::new(own, &mut store, run, by).map_err(Denied::Failed)?;
    let source = wanted.path.text();
    let to = wanted.to.clone().unwrap_or_else(|| wanted.path.clone());
    let named = wanted.version.map(|id| named(&copier.index, &source, id).ok_or_else(|| no_version(&wanted)));
    let named = named.transpose()?;
    if to != wanted.path {
        keep_present(&mut copier, &source).map_err(Denied::Failed)?;
    }
    if let Some(why) = keep_present(&mut copier, &to.text()).map_err(Denied::Failed)? {
        return Err(not_kept(&to, why));
    }
    let replaced = copier.index.current(&to.text()).map(|version| version.id);
    let newest = || copier.index.past().find(|past| past.path == source).map(|past| past.version);
    let version = named.or_else(newest).ok_or_else(|| no_version(&wanted))?;
    let content = copier.store.read(&version).map_err(Denied::Failed)?.ok_or_else(|| lost(&wanted, version.id))?;
    copier.save().map_err(Denied::Failed)?;
    let (bytes, digest) = (content.len() as u64, version.digest);
    let draft = files.draft(place, &run.quota, to.clone(), &content, true)?;
    Ok(Restoring { draft, version: version.id, bytes, digest, to, replaced })
}

/// Copies the present file of a path if it differs from its newest version. Returns the reason if it cannot.
fn keep_present(copier: &mut Copier<'_>, path: &str) -> io::Result<Option<Reason>> {
    let Some(stamp) = walk::stamp_at(&copier.files, path) else {
        if no_file_at(&copier.files, path) {
            copier.index.end(path, Why::Deleted, copier.by);
            return Ok(None);
        }
        return Ok(Some(Reason::Unreadable));
    };
    if copier.index.current(path).is_some_and(|version| version.stamp == stamp) {
        return Ok(None);
    }
    copier.copy(path, stamp.bytes)
}

/// Finds a version of a path by its number.
fn named(index: &Index, path: &str, id: u64) -> Option<Version> {
    let current = index.current(path).filter(|version| version.id == id);
    let past = || index.past().find(|past| past.path == path && past.version.id == id).map(|past| &past.version);
    current.or_else(past).copied()
}

fn no_version(wanted: &Wanted) -> Error {
    let path = wanted.path.shown();
    let words = match wanted.version {
        Some(id) => format!("there is no version {id} of {path}"),
        None => format!("there is no kept version of {path} that the workspace lacks"),
    };
    Refusal::new(DenialCode::FileVersionUnknown, words).hint("list the versions: `ironctl file history`").into()
}

fn lost(wanted: &Wanted, id: u64) -> Error {
    let words = format!("the copy of version {id} of {} is missing or damaged", wanted.path.shown());
    Refusal::new(DenialCode::FileVersionLost, words).hint("restore another version, or a backup").into()
}

fn not_kept(to: &FilePath, why: Reason) -> Error {
    let words = format!("refused to replace {}: the host cannot keep a copy of it ({})", to.shown(), why.name());
    Refusal::new(DenialCode::FileNotKept, words).hint("restore to another path with --to").into()
}
