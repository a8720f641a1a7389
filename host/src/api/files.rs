//! The files in the workspace of a session, for its person and for operators.
//!
//! If an operator reads files of another person's session, the ledger has an entry. See `runtime::workspace_files`.

pub mod content;
mod sent;

pub use sent::{bytes as sent_bytes, sent};

use super::body::RawBody;
use super::handler::{Answer, Api, Body, Caller, Reply};
use super::{sessions, transcript};
use crate::registry::Person;
use crate::runtime::workspace_files::Put;
use crate::sessions::files::versions::{History, Kept, Wanted};
use crate::sessions::files::{self, Entry, FilePath, Kind};
use crate::sessions::store::{self, Session};
use axum::Json;
use axum::extract::{Path, Query};
use content::FileContent;
use ironclaw_ledger::Entry as LedgerEntry;
use ironclaw_operator::{
    FILE_LEVELS_MAX, FileEntry, FileHistory, FileLeftOut, FileList, FileRemoved, FileRestore, FileRestored, FileStored,
    FileVersion, LedgerEvent,
};
use ironclaw_state::WriteTx;
use serde::Deserialize;

/// Query of `GET /v1/sessions/{id}/files`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// The directory, below the workspace; by default the workspace itself.
    #[serde(default)]
    path: String,
    /// The levels of directories, 1 to 8; by default 1.
    levels: Option<usize>,
}

/// `GET /v1/sessions/{id}/files?path=DIRECTORY&levels=N`
pub async fn list(
    Caller { api, person, .. }: Caller,
    Path(session): Path<String>,
    Query(query): Query<ListQuery>,
) -> Reply<FileList> {
    let at = FilePath::parse(&query.path)?;
    let session = to_read(&api, person, &session).await?;
    let levels = query.levels.unwrap_or(1).clamp(1, FILE_LEVELS_MAX);
    let (entries, more) = api.sessions.list_files(&session, at, levels).await?;
    Ok(Json(FileList { files: entries.iter().map(described).collect(), more }))
}

/// Query of the requests about one file.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct FileQuery {
    /// The file, below the workspace.
    path: String,
}

/// `GET /v1/sessions/{id}/files/content?path=FILE`
pub async fn content(
    Caller { api, person, .. }: Caller,
    Path(session): Path<String>,
    Query(query): Query<FileQuery>,
) -> Result<FileContent, Answer> {
    let path = FilePath::parse(&query.path)?;
    let session = to_read(&api, person, &session).await?;
    let (file, bytes) = api.sessions.open_file(&session, path).await?;
    Ok(FileContent::new(file, bytes))
}

/// Query of `POST /v1/sessions/{id}/files`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PutQuery {
    /// The file, below the workspace; missing directories are made.
    path: String,
    /// True if the file may replace one at this path.
    #[serde(default)]
    replace: bool,
}

/// `POST /v1/sessions/{id}/files?path=FILE`
pub async fn put(
    Caller { api, person, .. }: Caller,
    Path(session): Path<String>,
    Query(query): Query<PutQuery>,
    body: RawBody,
) -> Reply<FileStored> {
    let path = FilePath::parse_new(&query.path)?;
    let session_id = visible(&api, person.clone(), &session).await?.0.id;
    let (text, bytes) = (path.text(), body.bytes.len() as u64);
    let put = Put { path, content: body.bytes.clone(), replaces: query.replace, by: person.id };
    let digest = api.sessions.put_file(session_id, put).await?;
    Ok(Json(FileStored { session_id, path: text, bytes, digest }))
}

/// `DELETE /v1/sessions/{id}/files?path=FILE`
pub async fn remove(
    Caller { api, person, .. }: Caller,
    Path(session): Path<String>,
    Query(query): Query<FileQuery>,
) -> Reply<FileRemoved> {
    let path = FilePath::parse(&query.path)?;
    let session_id = visible(&api, person.clone(), &session).await?.0.id;
    let text = path.text();
    let bytes = api.sessions.remove_file(session_id, path, person.id).await?;
    Ok(Json(FileRemoved { session_id, path: text, bytes }))
}

/// Query of `GET /v1/sessions/{id}/files/history`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct HistoryQuery {
    /// The file or directory, below the workspace; by default the workspace itself.
    #[serde(default)]
    path: String,
}

/// `GET /v1/sessions/{id}/files/history?path=PATH`
pub async fn history(
    Caller { api, person, .. }: Caller,
    Path(session): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Reply<FileHistory> {
    let at = FilePath::parse(&query.path)?;
    let session = to_read(&api, person, &session).await?;
    let History { versions, more, report } = api.sessions.file_history(&session, at).await?;
    let left_out = report.left_out.into_iter().map(|left| FileLeftOut { shown: left.shown, why: left.why });
    Ok(Json(FileHistory {
        versions: versions.iter().map(version).collect(),
        more,
        copied_at: (report.at > 0).then(|| ironclaw_ledger::rfc3339(report.at)),
        turn: report.turn,
        left_out: left_out.collect(),
        left_out_total: report.left_out_total,
        failure: report.failure,
    }))
}

/// `POST /v1/sessions/{id}/files/restore`
pub async fn restore(
    Caller { api, person, .. }: Caller,
    Path(session): Path<String>,
    Body(asked): Body<FileRestore>,
) -> Reply<FileRestored> {
    let path = FilePath::parse(&asked.path)?;
    let to = asked.to.as_deref().map(FilePath::parse_new).transpose()?;
    let session_id = visible(&api, person.clone(), &session).await?.0.id;
    let wanted = Wanted { path, version: asked.version, to };
    Ok(Json(api.sessions.restore_file(session_id, wanted, person.id).await?))
}

/// Returns a session that the person may read, and whether it is another person's.
async fn visible(api: &Api, person: Person, session: &str) -> Result<(Session, bool), Answer> {
    let id = sessions::known(api, &person, session).await?;
    let found = api.record.state.read(move |tx| transcript::readable(tx, &person, id)).await?;
    found.ok_or_else(|| Answer::noted(store::unknown(session)))
}

/// Returns a session whose files the person may read, after the ledger has the entry.
async fn to_read(api: &Api, person: Person, session: &str) -> Result<Session, Answer> {
    let by = person.id;
    let (session, others) = visible(api, person, session).await?;
    if others {
        let id = session.id;
        let note =
            move |tx: &mut WriteTx<'_>| LedgerEntry::new(LedgerEvent::FileRead).session(id).with("by", by).append(tx);
        api.record.state.write(note).await?;
    }
    Ok(session)
}

fn version(kept: &Kept) -> FileVersion {
    FileVersion {
        id: kept.version.id,
        path: kept.path.clone(),
        shown: files::shown(&kept.path),
        bytes: kept.version.stamp.bytes,
        digest: kept.version.digest,
        kept_at: ironclaw_ledger::rfc3339(kept.version.kept_at),
        turn: kept.turn,
        why: kept.why,
    }
}

fn described(entry: &Entry) -> FileEntry {
    let path = entry.path.to_str();
    FileEntry {
        path: path.map(str::to_owned),
        shown: files::shown(path.unwrap_or(&entry.path.to_string_lossy())),
        kind: entry.kind,
        bytes: (entry.kind == Kind::File).then_some(entry.bytes),
        modified_at: ironclaw_ledger::rfc3339(entry.modified_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn entry(path: &[u8]) -> Entry {
        use std::os::unix::ffi::OsStrExt;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
        Entry { path, kind: Kind::File, bytes: 1, modified_at: 0 }
    }

    #[test]
    fn names_of_an_agent_are_listed_without_unsafe_characters() {
        let line = described(&entry("a\n\u{1b}[2J\u{202e}b".as_bytes()));
        assert_eq!(line.path.as_deref(), Some("a\n\u{1b}[2J\u{202e}b"), "a script gets the exact name");
        assert!(line.shown.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{}", line.shown);
        let line = described(&entry(b"a\xffb"));
        assert_eq!((line.path, line.bytes), (None, Some(1)));
    }
}
