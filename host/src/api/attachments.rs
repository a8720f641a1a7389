//! The bytes in messages: the host puts them into the inbox of the workspace, and a note takes their place in the message.
//!
//! Never overwrites a file. Names and types are checked before, by [`crate::channels::inbound::channel::checks`].

use crate::channels::inbound::channel::Received;
use crate::channels::inbound::channel::checks::decode;
use crate::runtime::pipeline::{Inbound, Place};
use crate::runtime::sessions::Sessions;
use ironclaw_operator::{MessageFile, MessageImage};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_text::file::{is_image, media_type};
use ironclaw_text::lookalike;

/// Puts the bytes in a message into the workspace of its session.
///
/// # Errors
/// Refuses the message as [`Inbound::inbound`] does, and a file that has no place.
pub async fn place(inbound: &Inbound, sessions: &Sessions, mut received: Received) -> Result<Received, Denied<Error>> {
    let sizes = received.files.iter().filter_map(|file| file.data.as_ref()).map(String::len);
    let bytes: usize = sizes.sum();
    if bytes == 0 && received.files.iter().all(|file| file.data.is_none()) {
        return Ok(received);
    }
    let Place { session, person, asks } = inbound.place_of(received.clone(), bytes as u64).await?;
    for file in &mut received.files {
        let Some(data) = file.data.take() else { continue };
        let content = decode(&file.name, &data)?;
        let (kind, bytes) = (media_type(&content), content.len());
        if !asks {
            let text = format!("This message had a file ({bytes} bytes, {kind}), which the host did not keep.");
            let name = lookalike::neutralise(&file.name).into_owned();
            *file = MessageFile { name, text, image: None, data: None, media_type: None };
            continue;
        }
        let (path, digest) = sessions.receive_file(session, &file.name, content, person).await?;
        let (text, image) = match is_image(kind) {
            // The composer adds the image for a model that takes images, and a remark for any other model.
            true => (note("image", &path, bytes, kind), Some(MessageImage { path, digest })),
            false => (format!("{} The message does not contain its content.", note("file", &path, bytes, kind)), None),
        };
        let name = lookalike::neutralise(&file.name).into_owned();
        *file = MessageFile { name, text, image, data: None, media_type: None };
    }
    Ok(received)
}

fn note(what: &str, path: &str, bytes: usize, kind: &str) -> String {
    format!("This {what} is in the workspace as {path} ({bytes} bytes, {kind}).")
}
