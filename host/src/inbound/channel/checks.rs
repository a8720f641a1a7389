//! Checks of the data from a sender, the same for each kind of channel: the sender's id, the thread, the group, the mentions, the files.
//!
//! Never completes or shortens a value: a value that does not fit is refused. See [`crate::inbound::identity`].

use crate::refusal::Refusal;
use crate::registry::people::SENDER_BYTES_MAX;
use crate::session::files::FilePath;
use ironclaw_contract::operator::{DenialCode, MESSAGE_FILES_MAX, MessageFile};

/// Bytes of the id of a thread.
const THREAD_BYTES_MAX: usize = 256;

/// Bytes of the id of a group.
const GROUP_BYTES_MAX: usize = 256;

/// Names that one message mentions.
const MENTIONS_MAX: usize = 32;

/// Bytes of a name that a message mentions.
const MENTION_BYTES_MAX: usize = 256;

/// Bytes of a file's name.
const FILE_NAME_BYTES_MAX: usize = 255;

/// Checks the id of a sender.
///
/// # Errors
/// Refuses an id that is empty, too long, or holds a control character.
pub fn check_sender(sender: &str) -> Result<(), Refusal> {
    if !sender.is_empty() && is_clean(sender, SENDER_BYTES_MAX) {
        return Ok(());
    }
    let words = format!("a sender's id has 1 to {SENDER_BYTES_MAX} bytes, none of them a control character");
    Err(Refusal::new(DenialCode::SenderMalformed, words))
}

/// Checks the id of a thread; the default thread has an empty id.
///
/// # Errors
/// Refuses an id that is too long or holds a control character.
pub fn check_thread(thread: &str) -> Result<(), Refusal> {
    if is_clean(thread, THREAD_BYTES_MAX) {
        return Ok(());
    }
    let words = format!("a thread's id has at most {THREAD_BYTES_MAX} bytes, none of them a control character");
    Err(Refusal::new(DenialCode::ThreadMalformed, words))
}

/// Checks the id of a group.
///
/// # Errors
/// Refuses an id that is empty, too long, or holds a control character.
pub fn check_group(group: &str) -> Result<(), Refusal> {
    if !group.is_empty() && is_clean(group, GROUP_BYTES_MAX) {
        return Ok(());
    }
    let words = format!("a group's id has 1 to {GROUP_BYTES_MAX} bytes, none of them a control character");
    Err(Refusal::new(DenialCode::GroupMalformed, words).hint("leave `group` out for a message outside of a group"))
}

/// Checks the names that a message mentions.
///
/// # Errors
/// Refuses too many names, and a name that is empty, too long, or holds a control character.
pub fn check_mentions(mentions: &[String]) -> Result<(), Refusal> {
    let is_good = |name: &String| !name.is_empty() && is_clean(name, MENTION_BYTES_MAX);
    if mentions.len() <= MENTIONS_MAX && mentions.iter().all(is_good) {
        return Ok(());
    }
    let words = format!("a message mentions at most {MENTIONS_MAX} names of 1 to {MENTION_BYTES_MAX} bytes");
    Err(Refusal::new(DenialCode::MentionsMalformed, words))
}

/// Checks the files of one message.
///
/// # Errors
/// Refuses too many files, a malformed name, and an image whose path leads out of the workspace.
pub fn check_files(files: &[MessageFile]) -> Result<(), Refusal> {
    if files.len() > MESSAGE_FILES_MAX {
        return Err(Refusal::new(DenialCode::TooManyFiles, format!("a message has at most {MESSAGE_FILES_MAX} files")));
    }
    let is_name = |name: &str| !name.is_empty() && name.len() <= FILE_NAME_BYTES_MAX && !name.contains(['/', '\0']);
    for file in files {
        if !is_name(&file.name) {
            let shown: String = file.name.chars().take(64).collect();
            let words = format!("invalid file name {shown:?}: it has 1 to {FILE_NAME_BYTES_MAX} bytes and no /");
            return Err(Refusal::new(DenialCode::FileName, words));
        }
        if let Some(image) = &file.image {
            FilePath::parse_new(&image.path)?;
        }
    }
    Ok(())
}

fn is_clean(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(char::is_control)
}
