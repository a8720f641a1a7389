//! Backups over the API: the file is the body of the answer, and its description is the trailer.
//!
//! An answer without the trailer is incomplete. See [`crate::upkeep::backup`].

use super::handler::{Answer, Caller};
use crate::upkeep::backup::{Error, Prepared};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, TRAILER};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use ironclaw_operator::{BACKUP_TRAILER, DenialCode};
use ironclaw_store::refusal::Refusal;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Parts of a backup that wait for a slow client.
const PARTS_MAX: usize = 4;

type Part = Result<Frame<Bytes>, io::Error>;

/// The file of a backup while it is made.
pub struct BackupFile(Receiver<Part>);

/// `POST /v1/backup`
pub async fn create(Caller { api, person, .. }: Caller) -> Result<BackupFile, Answer> {
    let quota = api.gateway.now().quota.clone();
    // A backup shows no reply as unread that its person got.
    api.read_replies.record().await?;
    api.record.state.commit_deferred().await?;
    let prepared = api.about.backups.begin(&api.record.state, &quota, Some(person.id)).await.map_err(answer)?;
    let (parts, receiver) = mpsc::channel(PARTS_MAX);
    tokio::task::spawn_blocking(move || send(prepared, &parts));
    Ok(BackupFile(receiver))
}

/// Writes the backup to the client, and then its description. A client that leaves ends it.
fn send(prepared: Prepared, parts: &Sender<Part>) {
    let end = match prepared.write(Parts(parts)) {
        Ok(backup) => {
            let text = serde_json::to_string(&backup).expect("plain fields");
            let value = HeaderValue::try_from(text).expect("numbers, hex and times are ASCII");
            Ok(Frame::trailers(HeaderMap::from_iter([(BACKUP_TRAILER.parse().expect("a name"), value)])))
        }
        Err(error) => {
            tracing::error!(%error, "a backup was not completed");
            Err(io::Error::other(error))
        }
    };
    // An error means that the client has left.
    let _ = parts.blocking_send(end);
}

fn answer(error: Error) -> Answer {
    let code = match &error {
        Error::Running => DenialCode::BackupRunning,
        error if error.is_disk_full() => DenialCode::DiskFull,
        _ => DenialCode::BackupFailed,
    };
    tracing::warn!(%error, "no backup was made");
    Answer::noted(Refusal::new(code, error.to_string()).hint(error.hint()))
}

/// Sends written bytes as parts of the answer.
struct Parts<'a>(&'a Sender<Part>);

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = Frame::data(Bytes::copy_from_slice(bytes));
        match self.0.blocking_send(Ok(part)) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl HttpBody for BackupFile {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Part>> {
        self.get_mut().0.poll_recv(context)
    }
}

impl IntoResponse for BackupFile {
    fn into_response(self) -> Response {
        let headers = [(CONTENT_TYPE, "application/octet-stream"), (TRAILER, BACKUP_TRAILER)];
        (headers, Body::new(self)).into_response()
    }
}
