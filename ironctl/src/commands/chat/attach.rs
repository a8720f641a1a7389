//! The files of `ironctl chat`: a text goes with the message, and any other file into the workspace.
//!
//! The message names each file in the workspace in a file of its own, so no name of a file counts as the person's words. See
//! [`crate::commands::file`].

use crate::client::Client;
use crate::failure::Error;
use crate::local_file;
use crate::output::Output;
use ironclaw_operator::{
    FILE_PUT_BYTES_MAX, INBOX, MESSAGE_FILES_MAX, MessageFile, MessageImage, NewConversation, NewMessage, Recorded,
    routes,
};
use ironclaw_text::file::{self as sent, TEXT};
use ironclaw_text::visible;
use std::path::{Path, PathBuf};

/// Bytes of a message, together with its text files; the host has its own bounds.
pub const TEXT_BYTES_MAX: u64 = 256 * 1024;

/// Names that are tried for one file in the workspace.
const NAMES_MAX: usize = 100;

/// A file of a message.
pub struct Attachment {
    name: String,
    content: Content,
    /// The image in the workspace, once it is there.
    image: Option<MessageImage>,
}

enum Content {
    /// A text, or the note about a file in the workspace.
    Text(String),
    /// Bytes for the workspace, with their media type.
    Bytes(Vec<u8>, &'static str),
}

/// Reads the files of a message; refuses too many, and one that is too large for a workspace.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Attachment>, Error> {
    if paths.len() > MESSAGE_FILES_MAX {
        return Err(Error::usage(format!("a message has at most {MESSAGE_FILES_MAX} files"), "send several messages"));
    }
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Attachment, Error> {
    let bytes = local_file::read_regular(path, FILE_PUT_BYTES_MAX)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Err(why) = sent::check_name(&name) {
        let message = format!("cannot send a file with the name {}: {why}", visible::name(&name));
        return Err(Error::failed("file_name", message).hinting("rename the file"));
    }
    let kind = sent::media_type(&bytes);
    let content = match String::from_utf8(bytes) {
        Ok(text) if kind == TEXT => Content::Text(text),
        Ok(text) => Content::Bytes(text.into_bytes(), kind),
        Err(error) => Content::Bytes(error.into_bytes(), kind),
    };
    Ok(Attachment { name, content, image: None })
}

/// Sends a message with these files. After it, each file is a text, so a second try puts no file into the workspace twice.
pub async fn send(
    out: Output,
    client: &Client,
    agent: &str,
    mut message: NewMessage,
    files: &mut [Attachment],
) -> Result<Recorded, Error> {
    keep_within(TEXT_BYTES_MAX.saturating_sub(message.text.len() as u64), files);
    if files.iter().any(|file| matches!(file.content, Content::Bytes(..))) {
        let new = NewConversation { speak_as: message.speak_as.clone(), thread: message.thread.clone() };
        let session = client.post(routes::OPEN_CONVERSATION, [&agent], &new).await?.session_id.to_string();
        for file in &mut *files {
            put(out, client, &session, file).await?;
        }
    }
    let texts = files.iter().filter_map(|file| match &file.content {
        Content::Text(text) => {
            let (name, text, image) = (file.name.clone(), text.clone(), file.image.clone());
            Some(MessageFile { name, text, image, ..Default::default() })
        }
        Content::Bytes(..) => None,
    });
    message.files = texts.collect();
    client.post(routes::SEND_MESSAGE, [&agent], &message).await
}

/// Turns each text for which a message has no room into bytes for the workspace.
fn keep_within(mut room: u64, files: &mut [Attachment]) {
    for file in files {
        let Content::Text(text) = &mut file.content else { continue };
        match room.checked_sub(text.len() as u64) {
            Some(rest) => room = rest,
            None => file.content = Content::Bytes(std::mem::take(text).into_bytes(), TEXT),
        }
    }
}

/// Puts the bytes of a file into the workspace under an unused name, and leaves a note in their place.
async fn put(out: Output, client: &Client, session: &str, file: &mut Attachment) -> Result<(), Error> {
    let Content::Bytes(bytes, kind) = &file.content else { return Ok(()) };
    for number in 1..=NAMES_MAX {
        let stored = match client.put_file(session, &in_inbox(&file.name, number), false, bytes.clone()).await {
            Err(Error::Refused(failure)) if failure.error.code == "file_exists" => continue,
            stored => stored?,
        };
        let (path, bytes, digest) = (stored.path, stored.bytes, stored.digest);
        out.remark(format!("{} is in the workspace as {path} ({bytes} bytes, {kind})", file.name.escape_debug()))?;
        let where_it_is = format!("is in the workspace as {path} ({bytes} bytes, {kind}).");
        let note = if sent::is_image(kind) {
            // The host adds the image for a model that takes images, and a remark for any other model.
            file.image = Some(MessageImage { path, digest });
            format!("This image {where_it_is}")
        } else {
            format!("This file {where_it_is} The message does not contain its content.")
        };
        file.content = Content::Text(note);
        return Ok(());
    }
    let message = format!("the workspace has {NAMES_MAX} files with the name {}", in_inbox(&file.name, 1));
    Err(Error::failed("file_refused", message)
        .hinting("rename the file, or remove old ones with `ironctl file remove`"))
}

fn in_inbox(name: &str, number: usize) -> String {
    format!("{INBOX}/{}", sent::plain_name(name, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_room_in_the_message_becomes_a_file() {
        let text =
            |length| Attachment { name: "a".to_owned(), content: Content::Text("x".repeat(length)), image: None };
        let mut files = [text(6), text(5), text(4)];
        keep_within(10, &mut files);
        let is_text = files.map(|file| matches!(file.content, Content::Text(_)));
        assert_eq!(is_text, [true, false, true]);
    }
}
