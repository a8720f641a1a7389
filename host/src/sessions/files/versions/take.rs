//! One run over a workspace: it copies each file that changed since the last run, within the bounds.
//!
//! Never copies an unchanged file again, and keeps the former copy of a file that it cannot copy. See [`super::index`].

use super::index::{Index, Stamp, Why};
use super::limits::{COPY_TIME_MAX, Limits, Reason};
use super::store::{Report, Store};
use super::walk::{self, Walked};
use crate::registry::quota;
use crate::sessions::files::{FilePath, Files, reopen, shown};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::TurnId;
use ironclaw_operator::DenialCode;
use ironclaw_state::home::SessionDirectories;
use ironclaw_store::refusal::Denied;
use nix::errno::Errno;
use nix::sys::stat::fstat;
use std::io::{self, Read};
use std::time::Instant;

/// The facts of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The turn whose call follows.
    pub turn: Option<TurnId>,
    /// The time of the record, in milliseconds since the epoch.
    pub at: i64,
    /// The end of its time.
    pub until: Instant,
    /// The quota of the workspace.
    pub quota: quota::Config,
    /// The bounds of the copies.
    pub limits: Limits,
}

impl Run {
    /// Returns a run that begins now, with the usual bounds.
    pub fn new(turn: Option<TurnId>, at: i64, quota: quota::Config) -> Self {
        Self { turn, at, until: Instant::now() + COPY_TIME_MAX, quota, limits: Limits::default() }
    }
}

/// Copies the files that changed since the last run; returns their number. A session without a workspace has none.
///
/// # Errors
/// Fails if the host cannot read the workspace or write the copies. The copies until then are kept, and the report has the failure.
pub fn take(place: &SessionDirectories, run: &Run) -> io::Result<usize> {
    let Some(files) = Files::open(place, None)? else { return Ok(0) };
    let mut store = Store::open(place)?;
    let last = store.report()?;
    let mut report = Report { at: run.at, turn: run.turn, ..Report::default() };
    let copied = copy_changed(files, &mut store, run, last.turn, &mut report);
    report.failure = copied.as_ref().err().map(ToString::to_string);
    store.save_report(&report)?;
    copied
}

fn copy_changed(
    files: Files,
    store: &mut Store,
    run: &Run,
    by: Option<TurnId>,
    report: &mut Report,
) -> io::Result<usize> {
    let mut copier = Copier::new(files, store, run, by)?;
    let found = walk::walk(&copier.files, run.until, report)?;
    copier.limits = copier.limits.beside(&run.quota, found.bytes, found.entries);
    copier.end_missing(&found);
    let copied = copier.copy_all(&found, report);
    for path in copier.index.trim(&copier.limits) {
        report.leave_out(shown(&path), Reason::SessionBytes);
    }
    let saved = copier.save();
    copied.and_then(|copied| saved.map(|()| copied))
}

/// The copying of the files of one workspace.
pub struct Copier<'a> {
    pub files: Files,
    pub store: &'a mut Store,
    pub index: Index,
    limits: Limits,
    at: i64,
    until: Instant,
    /// The turn that may have changed files since the last run.
    pub by: Option<TurnId>,
}

impl<'a> Copier<'a> {
    /// Reads the index. `by` is the turn that may have changed files since the last run.
    pub fn new(mut files: Files, store: &'a mut Store, run: &Run, by: Option<TurnId>) -> io::Result<Self> {
        // The owner of the workspace is the user of the agent, who may own hard links.
        files.owner = Some(fstat(&files.root)?.st_uid);
        let index = store.index()?;
        Ok(Self { files, store, index, limits: run.limits, at: run.at, until: run.until, by })
    }

    fn end_missing(&mut self, found: &Walked) {
        let lost = self.index.all_current().filter(|(path, _)| found.lacks(path));
        let lost: Vec<String> = lost.map(|(path, _)| path.clone()).collect();
        for path in lost {
            self.index.end(&path, Why::Deleted, self.by);
        }
    }

    /// Copies the changed files, the smallest first, so that one large file does not use the room of many small ones.
    fn copy_all(&mut self, found: &Walked, report: &mut Report) -> io::Result<usize> {
        let is_new =
            |(path, stamp): &(&String, &Stamp)| self.index.current(path).is_none_or(|version| version.stamp != **stamp);
        let mut changed: Vec<(&String, &Stamp)> = found.files.iter().filter(is_new).collect();
        changed.sort_by_key(|(_, stamp)| stamp.bytes);
        let mut copied = 0;
        for (path, stamp) in changed {
            let before = self.index.current(path).map(|version| version.id);
            let left_out =
                if Instant::now() >= self.until { Some(Reason::Time) } else { self.copy(path, stamp.bytes)? };
            match left_out {
                Some(why) => report.leave_out(shown(path), why),
                None => copied += usize::from(self.index.current(path).map(|version| version.id) != before),
            }
        }
        Ok(copied)
    }

    /// Copies the file at a path, unless it has the content of its newest copy. Returns the reason if it has no copy now.
    ///
    /// # Errors
    /// Fails if the copy cannot be written, or the host has a shortage.
    pub fn copy(&mut self, path: &str, bytes: u64) -> io::Result<Option<Reason>> {
        if bytes > self.limits.file_bytes {
            return Ok(Some(Reason::FileBytes));
        }
        if let Some(over) = self.index.make_room(bytes, &self.limits) {
            return Ok(Some(over));
        }
        let Ok(parsed) = FilePath::parse(path) else { return Ok(Some(Reason::Name)) };
        let found = match self.files.find(&parsed) {
            Ok((found, _)) => found,
            Err(Denied::Failed(error)) => return Err(error),
            // The next run sees that it is gone.
            Err(Denied::Refused(refusal)) if refusal.code == DenialCode::FileUnknown => return Ok(None),
            Err(Denied::Refused(_)) => return Ok(Some(Reason::Unreadable)),
        };
        // The facts before the content: the next run sees a change that happens meanwhile.
        let stamp = Stamp::from_stat(&fstat(&found)?);
        let mut content = Vec::new();
        let read = reopen(&found).and_then(|file| file.take(self.limits.file_bytes + 1).read_to_end(&mut content));
        match read {
            Ok(_) if content.len() as u64 > self.limits.file_bytes => return Ok(Some(Reason::FileBytes)),
            Ok(_) => {}
            Err(error) if is_closed(&error) => return Ok(Some(Reason::Unreadable)),
            Err(error) => return Err(error),
        }
        let digest = Digest::of(&content);
        if self.index.current(path).is_some_and(|version| version.digest == digest) {
            self.index.touch(path, stamp);
            return Ok(None);
        }
        self.store.write(&digest, &content)?;
        let stamp = stamp.with_bytes(content.len() as u64);
        self.index.keep(path, digest, stamp, self.at, self.by);
        Ok(None)
    }

    pub fn save(&mut self) -> io::Result<()> {
        self.store.save(&mut self.index)
    }
}

fn is_closed(error: &io::Error) -> bool {
    let closed = [Errno::EACCES, Errno::EPERM, Errno::ENXIO].map(|errno| errno as i32);
    error.raw_os_error().is_some_and(|errno| closed.contains(&errno))
}
