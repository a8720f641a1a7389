//! The bytes of a file as an answer, in parts.
//!
//! Never holds a whole file of a workspace in memory, and never waits on a disk in an async thread. See `api::files`.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use std::fs::File;
use std::io::{self, Read};
use tokio::sync::mpsc::{self, Sender};
use tokio_stream::wrappers::ReceiverStream;

/// Bytes of one part of a file on its way to a client.
const PART_BYTES: u64 = 256 * 1024;

/// The bytes of a file. If the file becomes shorter on the way, the answer breaks off and is not taken for a whole file.
pub struct FileContent {
    source: Source,
    bytes: u64,
}

enum Source {
    File(File),
    Memory(Vec<u8>),
}

impl FileContent {
    /// Returns the next bytes of a file as an answer, this many.
    pub const fn new(file: File, bytes: u64) -> Self {
        Self { source: Source::File(file), bytes }
    }

    /// Returns these bytes as an answer.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self { source: Source::Memory(bytes), bytes: length }
    }
}

impl IntoResponse for FileContent {
    fn into_response(self) -> Response {
        let headers = [
            (CONTENT_TYPE, "application/octet-stream".to_owned()),
            (CONTENT_LENGTH, self.bytes.to_string()),
            // The content is an agent's, and no browser may take it for a page of the host.
            (CONTENT_DISPOSITION, "attachment".to_owned()),
            (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        ];
        let body = match self.source {
            Source::Memory(bytes) => Body::from(bytes),
            Source::File(file) => {
                let (sender, receiver) = mpsc::channel(1);
                tokio::spawn(send(file, self.bytes, sender));
                Body::from_stream(ReceiverStream::new(receiver))
            }
        };
        (headers, body).into_response()
    }
}

/// Sends a file in parts, so that the host never holds all of it.
async fn send(mut file: File, mut left: u64, to: Sender<io::Result<Bytes>>) {
    while left > 0 {
        let read = tokio::task::spawn_blocking(move || {
            let mut part = Vec::new();
            let read = (&file).take(left.min(PART_BYTES)).read_to_end(&mut part);
            (file, read.map(|_| part))
        });
        let part;
        (file, part) = match read.await {
            Ok(read) => read,
            Err(_) => return,
        };
        let part = part.and_then(|part| match part.len() {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(Bytes::from(part)),
        });
        left = left.saturating_sub(part.as_ref().map_or(left, |part| part.len() as u64));
        if to.send(part).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn file_that_becomes_shorter_breaks_the_answer_off() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "short").expect("written");
        for (bytes, whole) in [(5, true), (6, false)] {
            let content = FileContent::new(File::open(&path).expect("opened"), bytes);
            let body = content.into_response().into_body();
            assert_eq!(axum::body::to_bytes(body, 100).await.is_ok(), whole, "{bytes}");
        }
    }
}
