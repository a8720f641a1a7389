//! Checks of the data from a sender, the same for each kind of channel: the sender's id, the thread, the group, the mentions, the files.
//!
//! Never completes or shortens a value: a value that does not fit is refused. See [`crate::channels::inbound::identity`].

use crate::registry::people::SENDER_BYTES_MAX;
use crate::sessions::files::FilePath;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ironclaw_operator::{Bound, DenialCode, MESSAGE_FILE_BYTES_MAX, MESSAGE_FILES_MAX, MessageFile};
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::start;
use ironclaw_text::file as sent;
use ironclaw_text::visible;

/// Bytes of the id of a thread.
const THREAD_BYTES_MAX: usize = 256;

/// Bytes of the id of a group.
const GROUP_BYTES_MAX: usize = 256;

/// Names that one message mentions.
const MENTIONS_MAX: usize = 32;

/// Bytes of a name that a message mentions.
const MENTION_BYTES_MAX: usize = 256;

/// Characters of a refused name in a sentence.
const NAME_CHARACTERS_SHOWN: usize = 64;

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
/// Refuses too many files, a malformed name, a content that is too large or not of its declared type, and an image whose path leads out
/// of the workspace.
pub fn check_files(files: &[MessageFile]) -> Result<(), Refusal> {
    if files.len() > MESSAGE_FILES_MAX {
        let bound =
            Bound::new("files of one message", MESSAGE_FILES_MAX, files.len(), "send the others in a second message");
        return Err(Refusal::over(DenialCode::TooManyFiles, bound));
    }
    for file in files {
        if let Err(why) = sent::check_name(&file.name) {
            let shown = visible::name(start(&file.name, NAME_CHARACTERS_SHOWN));
            let words = format!("refused the file name {shown}: {why}");
            return Err(Refusal::new(DenialCode::FileName, words));
        }
        if let Some(image) = &file.image {
            FilePath::parse_new(&image.path)?;
        }
        let content = match &file.data {
            Some(data) if file.text.is_empty() && file.image.is_none() => decode(&file.name, data)?,
            Some(_) => {
                let words = format!("the file {} has `data` beside a text or an image", visible::name(&file.name));
                return Err(Refusal::new(DenialCode::RequestMalformed, words));
            }
            None => Vec::new(),
        };
        let content = if file.data.is_some() { &content } else { file.text.as_bytes() };
        if let Some(declared) = file.media_type.as_deref().filter(|declared| !sent::is_of_type(content, declared)) {
            let (name, declared) = (visible::name(&file.name), visible::name(declared));
            let found = sent::media_type(content);
            let words = format!("refused the file {name}: its content is {found}, and not {declared}");
            return Err(Refusal::new(DenialCode::FileType, words));
        }
    }
    Ok(())
}

/// Returns the bytes of a file in a message.
///
/// # Errors
/// Refuses a text that is no base64, and more bytes than a message may have in one file.
pub fn decode(name: &str, data: &str) -> Result<Vec<u8>, Refusal> {
    let name = visible::name(name);
    let content = STANDARD.decode(data).map_err(|_| {
        Refusal::new(DenialCode::RequestMalformed, format!("the `data` of the file {name} is not base64"))
    })?;
    if content.len() > MESSAGE_FILE_BYTES_MAX {
        let remedy = "put a larger file into the workspace: `ironctl file put`";
        let bound = Bound::new(format!("bytes of the file {name}"), MESSAGE_FILE_BYTES_MAX, content.len(), remedy);
        return Err(Refusal::over(DenialCode::FileTooLarge, bound));
    }
    Ok(content)
}

fn is_clean(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(char::is_control)
}
