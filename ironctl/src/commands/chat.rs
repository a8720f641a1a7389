//! `ironctl chat`: says something to an agent and prints its answer.
//!
//! Never shows an answer that could steer the terminal, and never ends silently without one. See
//! [`crate::commands::chat::conversation`] for the prompt, [`crate::commands::why`] when no answer comes.

pub mod conversation;
mod slash;
mod words;

use super::{At, change, inbox};
use crate::client::{Client, Heard, POLL_MAX};
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::{MessageFile, MessageView, NewMessage, Recorded};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use words::Words;

/// A message from stdin or a file is no longer; the host has bounds of its own.
const TEXT_BYTES_MAX: u64 = 256 * 1024;

/// A host that answers a long poll early and says nothing new is not asked more often.
const REPEAT_WAIT: Duration = Duration::from_millis(200);

/// A person who waits longer than this is told what their message waits for, if that is known.
const POLL_FIRST: Duration = Duration::from_secs(2);

/// Options of `ironctl chat`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl chat assistant\n  ironctl chat assistant hello --wait 2m\n  ironctl chat assistant --file notes.txt < question.txt\n  ironctl chat assistant --as loopback:alice-work hello"
)]
pub struct Args {
    /// Name or id of the agent
    agent: String,
    /// What to say [default: stdin, or a prompt on a terminal]
    message: Option<String>,
    /// A text file that goes with the message; repeat for more
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Which of your conversations with the agent; each name is a session of its own [default: the one without a name]
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Which of your own identities speaks: channel:id, or your name or id [default: you]
    #[arg(long = "as", value_name = "WHO")]
    speak_as: Option<String>,
    /// How long to wait for the answer, e.g. 90s or 2m
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    wait: Duration,
}

/// Sends one message and shows its answer, or runs a conversation.
pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let files = args.files.iter().map(|path| attach(path)).collect::<Result<Vec<_>, _>>()?;
    let text = match args.message {
        Some(text) => text,
        None if io::stdin().is_terminal() && !at.out.is_json() => {
            let client = at.client()?;
            let Args { agent, thread, speak_as, wait, .. } = args;
            return conversation::hold(at, &client, conversation::With { agent, thread, files, speak_as, wait }).await;
        }
        None => from_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(Error::usage("the message is empty", "ironctl chat AGENT \"hello\""));
    }
    let client = at.client()?;
    let message = NewMessage { text, files, event_id: None, speak_as: args.speak_as, thread: args.thread };
    let recorded = client.send(&args.agent, &message).await?;
    let answered = show_answer(at.out, &client, &recorded, args.wait).await;
    if !matches!(answered, Err(Error::Lost { .. } | Error::Unreachable { .. })) {
        remind(at.out, &client, &args.agent).await?;
    }
    answered
}

/// Says that a change waits for a person, if the agent asked for one. A failed request for it is no failure of the answer.
async fn remind(out: Output, client: &Client, agent: &str) -> Result<(), Error> {
    if out.is_json() {
        return Ok(());
    }
    match client.changes(None, Some(agent), change::LIST_MAX).await {
        Ok(found) if !found.changes.is_empty() => {
            out.remark(format!("{}: ironctl inbox", inbox::wait(found.changes.len() as u64)))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Waits for the answer to a recorded message and shows it; on a terminal its words as they come.
///
/// A notice of the host in place of an answer is a failure, but for a script that reads `notice`.
pub async fn show_answer(out: Output, client: &Client, recorded: &Recorded, wait: Duration) -> Result<(), Error> {
    let shown = wait_and_show(out, client, recorded, wait).await;
    shown.map_err(|error| error.while_waiting_for(&recorded.message_id.to_string()))
}

async fn wait_and_show(out: Output, client: &Client, recorded: &Recorded, wait: Duration) -> Result<(), Error> {
    let mut words = Words::new(out, "");
    if !words.is_live() {
        let view = answer(out, client, recorded, wait).await?;
        out.json(&answer_json(&view))?;
        return match &view.reply {
            Some(notice) if view.notice && !out.is_json() => Err(noticed(&view, notice)),
            _ => print_reply(out, &view),
        };
    }
    let hear = |heard| match heard {
        Heard::Stage(_) => Ok(()),
        Heard::Words(draft) => words.more(&draft),
        Heard::Waiting(view) => say_what_it_waits_for(out, &view),
    };
    let settled = client.follow(recorded.message_id, Instant::now() + wait, hear).await?;
    let view = match settled {
        Some(view) => view,
        None => client.message(recorded.message_id, Duration::ZERO).await?,
    };
    match &view.reply {
        Some(notice) if view.notice => {
            words.end_line()?;
            Err(noticed(&view, notice))
        }
        Some(_) => words.finish(&view),
        None => {
            words.end_line()?;
            Err(no_answer(&view, wait))
        }
    }
}

/// Makes a failure of the host's notice in place of an answer.
fn noticed(view: &MessageView, notice: &str) -> Error {
    Error::failed("no_answer", format!("no answer; the host says: {notice}"))
        .hinting(format!("ironctl why {}", view.message_id))
}

/// Waits for the answer to a recorded message; no answer within `wait` is a failure that says why.
pub async fn answer(out: Output, client: &Client, recorded: &Recorded, wait: Duration) -> Result<MessageView, Error> {
    let id = recorded.message_id;
    let deadline = Instant::now() + wait;
    let (mut poll, mut said) = (POLL_FIRST, None);
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).min(poll);
        let asked = Instant::now();
        let view = client.message(id, left).await?;
        let early = asked.elapsed() < left;
        if view.reply.is_some() {
            return Ok(view);
        }
        // The host answers early only when nothing more will come by itself.
        if (early && is_settled(&view)) || Instant::now() >= deadline {
            return Err(no_answer(&view, wait));
        }
        if view.reason != said {
            said.clone_from(&view.reason);
            say_what_it_waits_for(out, &view)?;
        }
        poll = POLL_MAX;
        if early {
            sleep(REPEAT_WAIT).await;
        }
    }
}

/// Tells a person who waits what their message waits for, if that is known.
pub fn say_what_it_waits_for(out: Output, view: &MessageView) -> Result<(), Error> {
    match &view.reason {
        Some(reason) => out.remark(format!("{} waits: {reason}", view.message_id)),
        None => Ok(()),
    }
}

/// Returns why there is no answer, as a failure.
pub fn no_answer(view: &MessageView, wait: Duration) -> Error {
    let id = &view.message_id;
    let (code, message) = match &view.reason {
        Some(reason) => ("no_answer", format!("{id} has no answer: {reason}")),
        None if is_settled(view) => {
            ("no_answer", format!("{id} is {} without an answer ({})", view.status, view.receipt))
        }
        None => {
            let waited = wait.as_secs_f32();
            ("no_answer_yet", format!("{id} is {} and has no answer after {waited} s", view.status))
        }
    };
    Error::failed(code, message).hinting(format!("ironctl why {id}"))
}

/// Prints the reply for a person; one that the host wrote is no answer and goes where failures go.
pub fn print_reply(out: Output, view: &MessageView) -> Result<(), Error> {
    let reply = view.reply.as_deref().unwrap_or_default();
    if view.notice { out.remark(format!("the host says:\n{reply}")) } else { out.line(reply) }
}

/// Returns what a script gets for an answered message.
pub fn answer_json(view: &MessageView) -> Value {
    json!({
        "message_id": view.message_id,
        "session_id": view.session_id,
        "turn_id": view.turn_id,
        "reply": view.reply,
        "notice": view.notice,
        "status": view.status,
    })
}

fn is_settled(view: &MessageView) -> bool {
    view.reason.is_some() || view.status == "delivered" || is_lost(view)
}

/// Returns whether its answer did not arrive, as far as is known.
fn is_lost(view: &MessageView) -> bool {
    matches!(view.receipt.as_str(), "unknown" | "dead" | "dropped")
}

/// Parses a duration such as `90s`, `2m` or `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|_| format!("{text} is no duration such as 90s or 2m"))?;
    Duration::try_from(parsed).map_err(|_| format!("{text} is in the past"))
}

fn from_stdin() -> Result<String, Error> {
    let unreadable = || Error::failed("stdin_unreadable", "cannot read the message from stdin");
    let text = read_text(io::stdin().lock()).map_err(|cause| unreadable().because(cause))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

fn attach(path: &Path) -> Result<MessageFile, Error> {
    let cannot = || Error::failed("file_refused", format!("cannot send {}", path.display()));
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| cannot().because("its name is not UTF-8"))?;
    let text = File::open(path).and_then(read_text).map_err(|cause| cannot().because(cause))?;
    Ok(MessageFile { name: name.to_owned(), text })
}

/// Reads UTF-8 up to the bound; more is refused, not cut.
fn read_text(from: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than {} KiB", TEXT_BYTES_MAX / 1024)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(duration("-1s").is_err());
        assert!(duration("soon").is_err());
    }

    #[test]
    fn a_file_over_the_bound_is_refused_not_cut() {
        let just = vec![b'x'; TEXT_BYTES_MAX as usize];
        assert_eq!(read_text(just.as_slice()).expect("fits").len(), just.len());
        let over = vec![b'x'; TEXT_BYTES_MAX as usize + 1];
        assert!(read_text(over.as_slice()).is_err());
        assert!(read_text([0xff_u8].as_slice()).is_err());
    }
}
