//! A connection over a pair of streams: one line is one message.
//!
//! Never keeps more than one line, and ends the connection at a line over the bound. See [`crate::traffic`].

use crate::Error;
use crate::message::{self, Message};
use crate::traffic::{Response, Sorted, Traffic};
use crate::wire::{Outgoing, QUEUED_MESSAGES_MAX, Wire};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Bytes of dropped messages between two requests, as a multiple of the bound of a line.
const DROPPED_LINES_MAX: usize = 4;

/// Starts the tasks of a connection.
pub(crate) fn connect(
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    line_bytes_max: usize,
) -> Wire {
    let traffic = Arc::new(Traffic::default());
    let (outgoing, to_write) = mpsc::channel(QUEUED_MESSAGES_MAX);
    let (replies, replies_to_write) = mpsc::channel(QUEUED_MESSAGES_MAX);
    let (responses, incoming) = mpsc::channel(QUEUED_MESSAGES_MAX);
    let mut tasks = JoinSet::new();
    let reader = Reader { read: BufReader::new(read), line_bytes_max, traffic: traffic.clone() };
    tasks.spawn(async move {
        let traffic = reader.traffic.clone();
        // The reason is recorded before the protocol sees the end.
        traffic.end(reader.run(&responses, replies).await);
    });
    tasks.spawn(write_all(write, to_write, replies_to_write, traffic.clone()));
    Wire { outgoing, incoming, traffic, tasks }
}

struct Reader<R> {
    read: BufReader<R>,
    line_bytes_max: usize,
    traffic: Arc<Traffic>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads until the end, and returns its reason.
    async fn run(mut self, responses: &mpsc::Sender<Response>, replies: mpsc::Sender<Value>) -> Error {
        let too_large = Error::TooLarge { bytes_max: self.line_bytes_max };
        loop {
            let line = match self.line().await {
                Ok(Some(line)) => line,
                Ok(None) => return too_large,
                Err(_) => return Error::Gone,
            };
            let bytes = line.len();
            let sorted = match message::read(line).await {
                Message::Read(message) => self.traffic.sort(message, bytes),
                Message::Unread(unread) => {
                    self.traffic.unreadable(unread, bytes).map_or(Sorted::Dropped, Sorted::Response)
                }
                // Some servers log to their output.
                Message::Other => {
                    self.traffic.drop_bytes(bytes);
                    Sorted::Dropped
                }
            };
            match sorted {
                Sorted::Response(response) => {
                    if responses.send(response).await.is_err() {
                        return Error::Gone;
                    }
                }
                // A server that does not read its replies gets fewer of them.
                Sorted::Reply(reply) => drop(replies.try_send(reply)),
                Sorted::Dropped => {}
            }
            if self.traffic.dropped_bytes() / DROPPED_LINES_MAX > self.line_bytes_max {
                return too_large;
            }
        }
    }

    /// Reads a line. Returns `None` if it is over the bound.
    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let piece = self.read.fill_buf().await?;
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(piece.len());
            if line.len() + taken > self.line_bytes_max {
                return Ok(None);
            }
            line.extend_from_slice(&piece[..taken]);
            self.read.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }
}

/// Writes messages and replies until the connection is dropped. A message is never written in part because its sender gave up.
async fn write_all(
    mut write: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Outgoing>,
    mut replies: mpsc::Receiver<Value>,
    traffic: Arc<Traffic>,
) {
    loop {
        let (json, sent) = tokio::select! {
            biased;
            outgoing = messages.recv() => match outgoing {
                Some(outgoing) => {
                    note(&outgoing, &traffic);
                    (outgoing.message, Some(outgoing.sent))
                }
                None => return,
            },
            Some(reply) = replies.recv() => (reply, None),
        };
        let mut line = json.to_string();
        line.push('\n');
        let written = match write.write_all(line.as_bytes()).await {
            Ok(()) => write.flush().await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            traffic.end(Error::Gone);
        }
        if let Some(sent) = sent {
            let _ = sent.send(written.map_err(|_| Error::Gone));
        }
    }
}

fn note(outgoing: &Outgoing, traffic: &Traffic) {
    if let (Some(id), Some(method)) = (outgoing.request_id(), outgoing.method()) {
        traffic.open(id, method, outgoing.watched());
    }
    if let Some(id) = outgoing.cancels() {
        traffic.forget(id);
    }
}
