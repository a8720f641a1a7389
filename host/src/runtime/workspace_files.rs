//! The files of a workspace for people: each operation runs off the async threads, and the ledger has each change before it happens.
//!
//! Needs nothing from the sandbox, which may be awake, busy or hostile. See [`crate::sessions::files`] for the access itself.

use crate::runtime::launch;
use crate::runtime::sessions::Sessions;
use crate::sessions::files::versions::{self, History, Restoring, Run, Wanted};
use crate::sessions::files::{self, Draft, Entry, FilePath, Files, Removal};
use crate::sessions::store::{self, Session};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_jail::shortage::Shortage;
use ironclaw_ledger::Entry as LedgerEntry;
use ironclaw_operator::{DenialCode, FileRestored, INBOX, LedgerEvent};
use ironclaw_state::home::{self, SessionDirectories};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::file::plain_name;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// Names that are tried for one file of a message.
const NAMES_MAX: usize = 4;

/// Characters of the digest in the last name.
const DIGEST_CHARACTERS: usize = 12;

/// A file that a person puts into a workspace.
pub struct Put<C> {
    /// Its path below the workspace.
    pub path: FilePath,
    pub content: C,
    /// Replaces a file at this path.
    pub replaces: bool,
    pub by: PersonId,
}

impl Sessions {
    /// Returns the entries below a directory of a workspace, and whether there are more. A session without a workspace has none.
    ///
    /// # Errors
    /// Refuses a path that leads to no directory.
    pub async fn list_files(
        &self,
        session: &Session,
        at: FilePath,
        levels: usize,
    ) -> Result<(Vec<Entry>, bool), Denied<Error>> {
        let (place, owner) = (self.place(session.id), self.owner(session)?);
        off_thread(place, move |place| match open(place, owner)? {
            Some(files) => files.list(&at, levels),
            None if at.names().is_empty() => Ok((Vec::new(), false)),
            None => Err(no_file(&at)),
        })
        .await
    }

    /// Opens a file of a workspace for reading; also returns its size.
    ///
    /// # Errors
    /// Refuses a path that leads to no regular file, and a file over its bound.
    pub async fn open_file(&self, session: &Session, path: FilePath) -> Result<(File, u64), Denied<Error>> {
        let (place, owner) = (self.place(session.id), self.owner(session)?);
        off_thread(place, move |place| open(place, owner)?.ok_or_else(|| no_file(&path))?.read(&path)).await
    }

    /// Writes a file into a workspace; returns the digest of its content.
    ///
    /// # Errors
    /// Refuses an unknown session, a place that is taken, and a file that would take the workspace over its quota.
    pub async fn put_file<C>(&self, id: SessionId, put: Put<C>) -> Result<Digest, Denied<Error>>
    where
        C: AsRef<[u8]> + Send + 'static,
    {
        let Put { path, content, replaces, by } = put;
        let _writing = self.runtime.workspaces.writing.lock().await;
        let session = self.known(id).await?;
        let (place, owner) = (self.place(id), self.prepare(&session).await?);
        let quota = self.runtime.workspaces.settings.now().quota.clone();
        let drafted = off_thread(place.clone(), move |place| {
            let files = open(place, owner)?.ok_or_else(|| no_file(&path))?;
            let content = content.as_ref();
            let draft = files.draft(place, &quota, path, content, replaces)?;
            Ok((draft, content.len() as u64, Digest::of(content)))
        });
        let (draft, bytes, digest) = drafted.await?;
        self.note(LedgerEvent::FilePut, id, by, bytes, Some(digest)).await?;
        let placed = off_thread(place, move |_| Draft::place(draft)).await;
        self.retract_if_failed(LedgerEvent::FilePut, id, by, placed).await?;
        Ok(digest)
    }

    /// Puts a file of a message into the inbox of a workspace, under the first name of its kind that is not in use. A file of this
    /// content that has such a name counts as the same, so a message that comes again makes no second file. Returns path and digest.
    ///
    /// # Errors
    /// Refuses an unknown session, an inbox that is no directory, and a file that would take the workspace over its quota.
    pub async fn receive_file(
        &self,
        id: SessionId,
        name: &str,
        content: Vec<u8>,
        by: PersonId,
    ) -> Result<(String, Digest), Denied<Error>> {
        let digest = Digest::of(&content);
        let content: Arc<[u8]> = content.into();
        let mut number = 1;
        loop {
            // The last name has a part of the digest, so that files of other senders never use up the names.
            let name = match number {
                NAMES_MAX => plain_name(&format!("{}-{name}", &digest.to_string()[..DIGEST_CHARACTERS]), 1),
                _ => plain_name(name, number),
            };
            let path = FilePath::parse_new(&format!("{INBOX}/{name}"))?;
            let put = Put { path: path.clone(), content: Arc::clone(&content), replaces: false, by };
            match self.put_file(id, put).await {
                Err(Denied::Refused(refusal)) if refusal.code == DenialCode::FileExists && number <= NAMES_MAX => {
                    if self.has_content(id, path.clone(), content.len() as u64, digest).await? {
                        return Ok((path.text(), digest));
                    }
                    if number == NAMES_MAX {
                        return Err(refusal.into());
                    }
                    number += 1;
                }
                put => return put.map(|digest| (path.text(), digest)),
            }
        }
    }

    /// Returns whether a path leads to a file of this content.
    async fn has_content(
        &self,
        id: SessionId,
        path: FilePath,
        bytes: u64,
        digest: Digest,
    ) -> Result<bool, Denied<Error>> {
        let session = self.known(id).await?;
        let (place, owner) = (self.place(id), self.owner(&session)?);
        off_thread(place, move |place| {
            let Some(files) = open(place, owner)? else { return Ok(false) };
            let Ok((file, found)) = files.read(&path) else { return Ok(false) };
            let mut content = Vec::new();
            let is_same = found == bytes && file.take(bytes + 1).read_to_end(&mut content).is_ok();
            Ok(is_same && Digest::of(&content) == digest)
        })
        .await
    }

    /// Removes a file from a workspace; returns the size that it had.
    ///
    /// # Errors
    /// Refuses an unknown session, and a path that leads to no regular file.
    pub async fn remove_file(&self, id: SessionId, path: FilePath, by: PersonId) -> Result<u64, Denied<Error>> {
        let _writing = self.runtime.workspaces.writing.lock().await;
        let session = self.known(id).await?;
        let (place, owner) = (self.place(id), self.owner(&session)?);
        let found =
            off_thread(place.clone(), move |place| open(place, owner)?.ok_or_else(|| no_file(&path))?.removal(path));
        let removal = found.await?;
        let bytes = removal.bytes;
        self.note(LedgerEvent::FileRemoved, id, by, bytes, removal.digest).await?;
        let removed = off_thread(place, move |_| Removal::remove(removal)).await;
        self.retract_if_failed(LedgerEvent::FileRemoved, id, by, removed).await?;
        Ok(bytes)
    }

    /// Returns the kept versions of a file, of the files below a directory, or of all files of a workspace.
    ///
    /// # Errors
    /// Fails if the host cannot read the workspace.
    pub async fn file_history(&self, session: &Session, at: FilePath) -> Result<History, Denied<Error>> {
        let place = self.place(session.id);
        let history = off_thread(place, move |place| versions::history(place, &at).map_err(Denied::Failed));
        let mut history = history.await?;
        let failure = self.runtime.models.versions.failure(session.id);
        history.report.failure = failure.or(history.report.failure);
        Ok(history)
    }

    /// Restores a kept version of a file. What was at its place is kept as a version.
    ///
    /// # Errors
    /// Refuses an unknown session or version, a place whose file cannot be kept, and a file that would take the workspace over its quota.
    pub async fn restore_file(
        &self,
        id: SessionId,
        wanted: Wanted,
        by: PersonId,
    ) -> Result<FileRestored, Denied<Error>> {
        let _writing = self.runtime.workspaces.writing.lock().await;
        let session = self.known(id).await?;
        let (place, owner) = (self.place(id), self.owner(&session)?);
        let run = Run::new(None, self.state().now(), self.runtime.workspaces.settings.now().quota.clone());
        let placing = run.clone();
        let prepared = off_thread(place.clone(), move |place| versions::restoring(place, owner, &run, wanted));
        let restoring = prepared.await?;
        let Restoring { version, bytes, digest, replaced, .. } = restoring;
        let path = restoring.to.text();
        self.note(LedgerEvent::FileRestored, id, by, bytes, Some(digest)).await?;
        let placed = off_thread(place, move |place| restoring.place(place, &placing)).await;
        self.retract_if_failed(LedgerEvent::FileRestored, id, by, placed).await?;
        Ok(FileRestored { session_id: id, path, version, bytes, digest, replaced })
    }

    /// Records a change of a file before it happens.
    async fn note(
        &self,
        event: LedgerEvent,
        id: SessionId,
        by: PersonId,
        bytes: u64,
        digest: Option<Digest>,
    ) -> Result<(), Denied<Error>> {
        let entry = LedgerEntry::new(event).session(id).with("bytes", bytes).with("by", by);
        let entry = match digest {
            Some(digest) => entry.with("digest", digest),
            None => entry,
        };
        Ok(self.state().write(move |tx| Ok::<_, Error>(entry.append(tx).map(drop)?)).await?)
    }

    /// Records that a change that the ledger has did not happen.
    async fn retract_if_failed(
        &self,
        event: LedgerEvent,
        id: SessionId,
        by: PersonId,
        done: Result<(), Denied<Error>>,
    ) -> Result<(), Denied<Error>> {
        let Err(denied) = done else { return Ok(()) };
        let code = match &denied {
            Denied::Refused(refusal) => refusal.code,
            Denied::Failed(error) if error.is_stopping() => DenialCode::Stopping,
            Denied::Failed(_) => DenialCode::Internal,
        };
        let entry = LedgerEntry::with_kind(event, Kind::Retract).session(id).with("by", by).reason(code.name());
        self.state().write(move |tx| Ok::<_, Error>(entry.append(tx).map(drop)?)).await?;
        Err(denied)
    }

    /// Returns the row of a session that is not removed.
    async fn known(&self, id: SessionId) -> Result<Session, Denied<Error>> {
        let unknown = || Refusal::new(DenialCode::SessionUnknown, format!("there is no session {id}"));
        Ok(self.state().read(move |tx| store::find(tx, id)).await?.ok_or_else(unknown)?)
    }

    fn place(&self, id: SessionId) -> SessionDirectories {
        self.runtime.jails.home.session(id)
    }

    fn owner(&self, session: &Session) -> Result<Option<u32>, Denied<Error>> {
        self.runtime.jails.uid_of(session).map_err(not_prepared)
    }

    /// Makes the workspace of a session that never ran; returns the uid of the session, if the host was started as root.
    async fn prepare(&self, session: &Session) -> Result<Option<u32>, Denied<Error>> {
        if self.place(session.id).workspace().exists() {
            return self.owner(session);
        }
        launch::prepare_directories(&self.runtime.jails, session).await.map_err(not_prepared)
    }
}

fn open(place: &SessionDirectories, owner: Option<u32>) -> Result<Option<Files>, files::Error> {
    Files::open(place, owner).map_err(Denied::Failed)
}

fn no_file(path: &FilePath) -> files::Error {
    let words = format!("there is no file {} in the workspace", path.shown());
    Refusal::new(DenialCode::FileUnknown, words).hint("list it: `ironctl file list`").into()
}

/// Runs an operation on a blocking thread.
async fn off_thread<T, F>(place: SessionDirectories, operation: F) -> Result<T, Denied<Error>>
where
    T: Send + 'static,
    F: FnOnce(&SessionDirectories) -> Result<T, files::Error> + Send + 'static,
{
    let at = place.clone();
    let done = tokio::task::spawn_blocking(move || operation(&at)).await;
    done.unwrap_or_else(|error| Err(Denied::Failed(io::Error::other(error)))).map_err(|denied| match denied {
        Denied::Refused(refusal) => Denied::Refused(refusal),
        Denied::Failed(source) => broken(home::Error::Io { path: place.workspace(), source }),
    })
}

/// Converts a failure; a shortage of the machine is a refusal with its remedy.
fn broken(error: home::Error) -> Denied<Error> {
    match Shortage::find_in(&error) {
        Some(shortage) => Refusal::new(shortage.code(), shortage.words()).hint(shortage.remedy()).into(),
        None => Denied::Failed(Error::Home(error)),
    }
}

/// Converts the reason that a session has no directories.
fn not_prepared(error: launch::Error) -> Denied<Error> {
    match error {
        launch::Error::Home(error) => broken(error),
        launch::Error::Pipeline(error) => Denied::Failed(*error),
        launch::Error::Uids { count, .. } => store::full(count).into(),
        other => Refusal::new(DenialCode::Internal, other.to_string()).into(),
    }
}
