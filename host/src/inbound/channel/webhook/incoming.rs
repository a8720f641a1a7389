//! Reads a signed body strictly: sender, thread, text and files.
//!
//! Never guesses: an unknown field, a duplicate key, or a sender without an id is refused. See [`crate::inbound::identity`].

use crate::inbound::channel::Received;
use crate::refusal::Refusal;
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::message::Kind;
use serde::Deserialize;

/// Bytes of a request: the largest message with its files, in JSON that escapes every character of it.
pub const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Values in a request: eight files and what is around them.
const VALUES_MAX: usize = 64;

/// Bytes of a sender's id; as many as an identity may have.
const SENDER_BYTES_MAX: usize = 256;

/// Bytes of the id of a thread.
const THREAD_BYTES_MAX: usize = 256;

/// Files of one message.
const FILES_MAX: usize = 8;

/// Bytes of a file's name.
const FILE_NAME_BYTES_MAX: usize = 255;

/// The body of a webhook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    /// The sender's id on the channel.
    sender: String,
    /// The conversation; each has its own, and the one without a name is one too.
    #[serde(default)]
    thread: String,
    /// Text that was typed.
    text: String,
    /// Files that came along.
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    text: String,
}

/// Reads what a channel received with the event of this id, for the agent that hears it.
///
/// # Errors
/// Refuses a body that is not of this shape.
pub fn read(channel: &str, agent: String, event_id: &str, body: &[u8]) -> Result<Received, Refusal> {
    let refuse = |code, text: String| Err(Refusal::new(code, text));
    let said: Said = match canonical::from_slice(body, Limits::bytes(REQUEST_BYTES_MAX).values(VALUES_MAX)) {
        Ok(said) => said,
        Err(error) => {
            let refusal = Refusal::new(DenialCode::RequestMalformed, error.to_string());
            return Err(
                refusal.hint("send {\"sender\": ID, \"text\": TEXT}, and with it \"thread\" and \"files\" if you like")
            );
        }
    };
    let clean = |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
    if said.sender.is_empty() || !clean(&said.sender, SENDER_BYTES_MAX) {
        return refuse(
            DenialCode::SenderMalformed,
            format!("a sender's id has 1 to {SENDER_BYTES_MAX} bytes, none of them a control character"),
        );
    }
    if !clean(&said.thread, THREAD_BYTES_MAX) {
        return refuse(
            DenialCode::ThreadMalformed,
            format!("a thread's id has at most {THREAD_BYTES_MAX} bytes, none of them a control character"),
        );
    }
    if said.files.len() > FILES_MAX {
        return refuse(DenialCode::TooManyFiles, format!("a message takes at most {FILES_MAX} files"));
    }
    let named = |file: &File| {
        !file.name.is_empty() && file.name.len() <= FILE_NAME_BYTES_MAX && !file.name.contains(['/', '\0'])
    };
    if !said.files.iter().all(named) {
        return refuse(DenialCode::FileName, format!("a file's name has 1 to {FILE_NAME_BYTES_MAX} bytes and no /"));
    }
    Ok(Received {
        channel: channel.to_owned(),
        kind: Kind::Webhook,
        platform_id: said.sender.clone(),
        thread_id: said.thread,
        sender: said.sender,
        speaker: None,
        event_id: Some(event_id.to_owned()),
        event_digest: Some(Digest::of(body)),
        agent,
        text: said.text,
        files: said.files.into_iter().map(|file| (file.name, file.text)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_another_shape_is_refused_and_none_is_completed() {
        let read = |body: &str| read("shop", "a".to_owned(), "e", body.as_bytes()).map_err(|refusal| refusal.code);
        let received =
            read(r#"{"sender":"@ann:b.example","text":"hi","thread":"T 1","files":[{"name":"x","text":"y"}]}"#);
        let received = received.expect("of this shape");
        assert_eq!((received.sender.as_str(), received.thread_id.as_str()), ("@ann:b.example", "T 1"));
        assert_eq!(received.files, [("x".to_owned(), "y".to_owned())]);
        for (body, code) in [
            ("", DenialCode::RequestMalformed),
            ("[]", DenialCode::RequestMalformed),
            (r#"{"text":"hi"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","sender":"b","text":"hi"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","text":"hi","role":"owner"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","text":"hi"} {}"#, DenialCode::RequestMalformed),
            // The host's own message, sent back to it.
            (r#"{"type":"reply","delivery":"dlv_1","sender":"a","text":"hi"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"","text":"hi"}"#, DenialCode::SenderMalformed),
            (r#"{"sender":"a\nb","text":"hi"}"#, DenialCode::SenderMalformed),
            (r#"{"sender":"a","text":"hi","thread":"\u0000"}"#, DenialCode::ThreadMalformed),
            (r#"{"sender":"a","text":"hi","files":[{"name":"../x","text":""}]}"#, DenialCode::FileName),
        ] {
            assert_eq!(read(body).expect_err(body), code, "{body}");
        }
        let many = format!(r#"{{"sender":"a","text":"hi","files":[{}0]}}"#, r#"{"a":0},"#.repeat(1000));
        assert_eq!(read(&many).expect_err("many"), DenialCode::RequestMalformed);
        let long = format!(r#"{{"sender":"{}","text":"hi"}}"#, "x".repeat(SENDER_BYTES_MAX + 1));
        assert_eq!(read(&long).expect_err("long"), DenialCode::SenderMalformed);
    }
}
