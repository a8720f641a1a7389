//! Strict parsing of a signed body: sender, thread, text and files.
//!
//! Never guesses: an unknown field, a duplicate key, or a sender without an id is refused. See [`crate::channels::inbound::identity`].

use crate::channels::inbound::channel::Received;
use crate::channels::inbound::channel::checks::{check_files, check_group, check_mentions, check_sender, check_thread};
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_operator::{DenialCode, MessageFile};
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables::messages::Kind;
use ironclaw_text::json;
use serde::Deserialize;

/// Bytes of a request: the largest message with its files, in JSON that escapes every character.
pub const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Values in a request: eight files, the mentions and the fields around them.
const VALUES_MAX: usize = 96;

/// The body of a webhook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestBody {
    /// The sender's id on the channel.
    sender: String,
    /// The thread; each thread is a conversation, also the one with an empty id.
    #[serde(default)]
    thread: String,
    /// The group in which the sender wrote; absent for a message to the agent alone.
    group: Option<String>,
    /// The names that the message mentions, as the channel has them.
    #[serde(default)]
    mentions: Vec<String>,
    /// Text of the sender.
    text: String,
    #[serde(default)]
    files: Vec<File>,
    /// Texts of others that the sender quotes; a channel that names them, also as none, tells them from typed text.
    quoted: Option<Vec<String>>,
    /// Texts of others that the sender forwards, as for `quoted`.
    forwarded: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    text: Option<String>,
    /// Bytes in base64, in place of `text`.
    data: Option<String>,
    /// The media type of `data`.
    #[serde(rename = "type")]
    media_type: Option<String>,
}

/// Parses the body of an event of this channel, for the agent that hears the channel.
///
/// # Errors
/// Refuses a body that is not of this shape.
pub fn read(channel: &str, agent: String, event_id: &str, body: &[u8]) -> Result<Received, Refusal> {
    let parsed = canonical::parse(body, Limits::bytes(REQUEST_BYTES_MAX).values(VALUES_MAX));
    let shaped = parsed.map_err(|error| error.to_string()).and_then(|value| {
        json::from_value(value).map_err(|error| canonical::Error::Shape(canonical::said(&error)).to_string())
    });
    let said: RequestBody = match shaped {
        Ok(said) => said,
        Err(why) => {
            let refusal = Refusal::new(DenialCode::RequestMalformed, why);
            return Err(refusal.hint("send {\"sender\": ID, \"text\": TEXT}, with \"thread\", \"group\", \"mentions\", \"files\", \"quoted\" and \"forwarded\" as options"));
        }
    };
    check_sender(&said.sender)?;
    check_thread(&said.thread)?;
    said.group.as_deref().map_or(Ok(()), check_group)?;
    check_mentions(&said.mentions)?;
    let files: Vec<_> = said.files.into_iter().map(file).collect::<Result<_, _>>()?;
    check_files(&files)?;
    let telling = match said.quoted.is_some() || said.forwarded.is_some() {
        true => Telling::Typed,
        false => Telling::Nothing,
    };
    let quoted = said.quoted.into_iter().chain(said.forwarded).flatten().collect();
    Ok(Received {
        channel: channel.to_owned(),
        kind: Kind::Webhook,
        platform_id: said.sender.clone(),
        thread_id: said.thread,
        group: said.group,
        mentions: said.mentions,
        sender: said.sender,
        speaker: None,
        event_id: Some(event_id.to_owned()),
        event_digest: Some(Digest::of(body)),
        agent,
        text: said.text,
        files,
        quoted,
        allow: None,
        telling,
    })
}

/// Returns a file of the message. A file without a text and without bytes is refused.
fn file(File { name, text, data, media_type }: File) -> Result<MessageFile, Refusal> {
    if text.is_none() && data.is_none() {
        return Err(Refusal::new(DenialCode::RequestMalformed, "a file has neither `text` nor `data`"));
    }
    Ok(MessageFile { name, text: text.unwrap_or_default(), image: None, data, media_type })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::people::SENDER_BYTES_MAX;

    #[test]
    fn a_body_of_another_shape_is_refused_and_never_completed() {
        let read = |body: &str| read("shop", "a".to_owned(), "e", body.as_bytes()).map_err(|refusal| refusal.code);
        let received =
            read(r#"{"sender":"@ann:b.example","text":"hi","thread":"T 1","files":[{"name":"x","text":"y"}]}"#);
        let received = received.expect("of this shape");
        assert_eq!((received.sender.as_str(), received.thread_id.as_str()), ("@ann:b.example", "T 1"));
        assert_eq!(received.files, [MessageFile { name: "x".to_owned(), text: "y".to_owned(), ..Default::default() }]);
        for (body, code) in [
            ("", DenialCode::RequestMalformed),
            ("[]", DenialCode::RequestMalformed),
            (r#"["a","",null,[],"hi"]"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","text":"hi","files":[["x","y",null,null]]}"#, DenialCode::RequestMalformed),
            (r#"{"text":"hi"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","sender":"b","text":"hi"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","text":"hi","role":"owner"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","text":"hi"} {}"#, DenialCode::RequestMalformed),
            // The host's own message, sent back to it.
            (r#"{"type":"reply","delivery":"dlv_1","sender":"a","text":"hi"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"","text":"hi"}"#, DenialCode::SenderMalformed),
            (r#"{"sender":"a\nb","text":"hi"}"#, DenialCode::SenderMalformed),
            (r#"{"sender":"a","text":"hi","thread":"\u0000"}"#, DenialCode::ThreadMalformed),
            (r#"{"sender":"a","text":"hi","group":""}"#, DenialCode::GroupMalformed),
            (r#"{"sender":"a","text":"hi","group":"a\u0007"}"#, DenialCode::GroupMalformed),
            (r#"{"sender":"a","text":"hi","mentions":[""]}"#, DenialCode::MentionsMalformed),
            (r#"{"sender":"a","text":"hi","mentions":"clerk"}"#, DenialCode::RequestMalformed),
            (r#"{"sender":"a","text":"hi","files":[{"name":"../x","text":""}]}"#, DenialCode::FileName),
            (r#"{"sender":"a","text":"hi","files":[{"name":"\u202e\u200f","data":""}]}"#, DenialCode::FileName),
            (r#"{"sender":"a","text":"hi","files":[{"name":"x"}]}"#, DenialCode::RequestMalformed),
            (
                r#"{"sender":"a","text":"hi","files":[{"name":"x","text":"t","data":"eA=="}]}"#,
                DenialCode::RequestMalformed,
            ),
            (r#"{"sender":"a","text":"hi","files":[{"name":"x","data":"?"}]}"#, DenialCode::RequestMalformed),
            (
                r#"{"sender":"a","text":"hi","files":[{"name":"x","data":"eA==","type":"image/png"}]}"#,
                DenialCode::FileType,
            ),
        ] {
            assert_eq!(read(body).expect_err(body), code, "{body}");
        }
        let many = format!(r#"{{"sender":"a","text":"hi","files":[{}0]}}"#, r#"{"a":0},"#.repeat(1000));
        assert_eq!(read(&many).expect_err("many"), DenialCode::RequestMalformed);
        let long = format!(r#"{{"sender":"{}","text":"hi"}}"#, "x".repeat(SENDER_BYTES_MAX + 1));
        assert_eq!(read(&long).expect_err("long"), DenialCode::SenderMalformed);
    }
}
