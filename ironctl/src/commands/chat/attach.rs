//! The files of `ironctl chat`: a text goes with the message, and any other file into the workspace.
//!
//! The message names each file in the workspace in a file of its own, so no name of a file counts as the person's words. See
//! [`crate::commands::file`].

use super::TEXT_BYTES_MAX;
use crate::client::Client;
use crate::failure::Error;
use crate::local_file::{self, TEXT};
use crate::output::Output;
use ironclaw_contract::operator::{
    FILE_PUT_BYTES_MAX, MESSAGE_FILES_MAX, MessageFile, MessageImage, NewConversation, NewMessage, Recorded,
};
use std::path::{Path, PathBuf};

/// Names that are tried for one file in the workspace.
const NAMES_MAX: usize = 100;

/// Characters of a name in the workspace, without the ending.
const STEM_CHARACTERS_MAX: usize = 80;

/// Characters of the ending of a name.
const ENDING_CHARACTERS_MAX: usize = 16;

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
    let bytes = local_file::read(path, FILE_PUT_BYTES_MAX)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_else(|| "file".to_owned());
    let kind = local_file::media_type(&bytes);
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
        let session = client.open_conversation(agent, &new).await?.session_id.to_string();
        for file in &mut *files {
            put(out, client, &session, file).await?;
        }
    }
    let texts = files.iter().filter_map(|file| match &file.content {
        Content::Text(text) => {
            Some(MessageFile { name: file.name.clone(), text: text.clone(), image: file.image.clone() })
        }
        Content::Bytes(..) => None,
    });
    message.files = texts.collect();
    client.send(agent, &message).await
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
        let stored = match client.put_file(session, &safe_name(&file.name, number), false, bytes.clone()).await {
            Err(Error::Refused(failure)) if failure.error.code == "file_exists" => continue,
            stored => stored?,
        };
        let (path, bytes, digest) = (stored.path, stored.bytes, stored.digest);
        out.remark(format!("{} is in the workspace as {path} ({bytes} bytes, {kind})", file.name.escape_debug()))?;
        let where_it_is = format!("is in the workspace as {path} ({bytes} bytes, {kind}).");
        let note = if local_file::is_image(kind) {
            // The host adds the image for a model that takes images, and a remark for any other model.
            file.image = Some(MessageImage { path, digest });
            format!("This image {where_it_is}")
        } else {
            format!("This file {where_it_is} The message does not contain its content.")
        };
        file.content = Content::Text(note);
        return Ok(());
    }
    let message = format!("the workspace has {NAMES_MAX} files with the name {}", safe_name(&file.name, 1));
    Err(Error::failed("file_refused", message)
        .hinting("rename the file, or remove old ones with `ironctl file remove`"))
}

/// Returns a name of plain letters, digits, dots, dashes and underscores; from the second try on it has a number.
fn safe_name(name: &str, number: usize) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let plain = plain.trim_start_matches(['.', '-']);
    let (stem, ending) = match plain.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= ENDING_CHARACTERS_MAX => {
            (stem, format!(".{ending}"))
        }
        _ => (plain, String::new()),
    };
    let stem = &stem[..stem.len().min(STEM_CHARACTERS_MAX)];
    let stem = if stem.is_empty() { "file" } else { stem };
    if number == 1 { format!("{stem}{ending}") } else { format!("{stem}-{number}{ending}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_in_the_workspace_is_plain_and_short() {
        for (name, number, expected) in [
            ("photo.png", 1, "photo.png"),
            ("photo.png", 2, "photo-2.png"),
            ("Grüße an Bob.pdf", 1, "Gr--e-an-Bob.pdf"),
            ("../../etc/passwd", 1, "etc-passwd"),
            (".bashrc", 1, "bashrc"),
            ("-rf", 3, "rf-3"),
            ("\u{202e}gpj.exe\n", 1, "gpj.exe-"),
            ("…", 1, "file"),
        ] {
            assert_eq!(safe_name(name, number), expected, "{name:?}");
        }
        let long = safe_name(&format!("{}.{}", "n".repeat(300), "e".repeat(300)), 7);
        assert_eq!(long.len(), STEM_CHARACTERS_MAX + 2);
    }

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
