//! `ironctl chat`: sends a message to an agent and prints its answer.
//!
//! Never prints terminal control characters of an answer, and never ends without an answer or a reason. See
//! [`crate::commands::chat::conversation`] for the prompt, [`crate::commands::why`] for a message without an answer.

mod attach;
pub mod conversation;
mod failing;
pub mod final_answer;
mod follow;
mod live_answer;
mod numbers;
mod patience;
mod progress;
mod prompt;
mod slash;
mod typed_ahead;
mod unread;

use super::waiting::words::count_yours;
use super::{inbox, review};
use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use attach::TEXT_BYTES_MAX;
use conversation::{new_thread, remark_thread};
use final_answer::{answer, answer_json, asked, print_reply};
use ironclaw_operator::{CallState, Class, DenialCode, MessageCall, MessageView, NewMessage, Recorded, routes};
use ironclaw_text::visible;
use jiff::SignedDuration;
use progress::LiveTurn;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::time::Duration;

/// The classes of calls that a message from a pipe asks for.
const PIPED: [&str; 2] = ["+read", "+write"];

/// The code of a message with a call that waits for a person, where no person is present.
const NEEDS_PERSON: &str = "needs_person";

/// Options of `ironctl chat`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl chat assistant\n  ironctl chat assistant hello --wait 2m\n  ironctl chat assistant --file photo.png < question.txt\n  ironctl chat assistant --new\n  ironctl chat assistant --continue\n  ironctl chat assistant --as loopback:alice-work hello"
)]
pub struct Args {
    /// Name or id of the agent
    agent: String,
    /// Text of the message [default: stdin, or a prompt on a terminal]
    message: Option<String>,
    /// File to send with the message; if it is no text or too long, it is put into the workspace; repeatable
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name of the conversation; each name has its own session [default: the conversation without a name]
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Begin a new conversation, with a generated name
    #[arg(long, conflicts_with_all = ["thread", "continues"])]
    new: bool,
    /// Continue your conversation with the agent that was used last
    #[arg(long = "continue", conflicts_with = "thread")]
    continues: bool,
    /// Your identity to speak as: channel:id, or your name or id [default: you]
    #[arg(long = "as", value_name = "IDENTITY")]
    speak_as: Option<String>,
    /// Class of calls that you ask for: read, write, send, exec or trade; +CLASS adds it to what your words ask for; repeatable [default: as your words say]
    #[arg(long, value_name = "CLASS")]
    allow: Vec<String>,
    /// Time to wait for the answer, e.g. 90s or 2m
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    wait: Duration,
}

/// Sends one message and shows its answer, or runs a conversation.
pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let mut files = attach::read_all(&args.files)?;
    let mut allow = args.allow.clone();
    let mut untyped = false;
    let text = match args.message.clone() {
        Some(text) => text,
        None if io::stdin().is_terminal() && !at.out.is_json() => {
            let client = at.client()?;
            let thread = thread(at.out, &client, &args).await?;
            let Args { agent, speak_as, allow, wait, .. } = args;
            let options = conversation::Options { agent, thread, files, speak_as, allow, wait };
            return conversation::run(at, &client, options).await;
        }
        None => {
            let text = from_stdin()?;
            // The person may not have typed what a pipe carries, so it asks for no more than a plain message, and types no value.
            untyped = true;
            if allow.is_empty() {
                refuse_declaration(&text)?;
                allow.extend(PIPED.map(str::to_owned));
            }
            text
        }
    };
    if text.trim().is_empty() {
        return Err(Error::usage("the message is empty", "ironctl chat AGENT \"hello\""));
    }
    let client = at.client()?;
    let thread = thread(at.out, &client, &args).await?;
    let (speak_as, of_thread) = (args.speak_as, thread.clone());
    let message = NewMessage { text, speak_as, thread: of_thread, allow, untyped, ..NewMessage::default() };
    let recorded = attach::send(at.out, &client, &args.agent, message, &mut files).await?;
    let shown = show_answer(at.out, &client, &recorded, args.wait, thread.as_deref()).await;
    let names_the_inbox = matches!(shown, Err(Error::Failed { code: NEEDS_PERSON, .. }));
    if !names_the_inbox && !matches!(shown, Err(Error::Lost { .. } | Error::Unreachable { .. })) {
        remind(at.out, &client, &args.agent).await?;
    }
    shown
}

/// Returns the name of the conversation: as named, generated, or that of the last used one.
async fn thread(out: Output, client: &Client, args: &Args) -> Result<Option<String>, Error> {
    let Args { agent, thread, new, continues, speak_as, .. } = args;
    if *new {
        let name = new_thread();
        remark_thread(out, agent, &name)?;
        return Ok(Some(name));
    }
    if !continues {
        return Ok(thread.clone());
    }
    let threads = client.query(routes::THREADS, [agent], json!({ "as": speak_as })).await?;
    let Some(last) = threads.threads.into_iter().next() else {
        let failure = Error::failed("no_conversation", format!("you have no conversation with {agent} yet"));
        return Err(failure.hinting(format!("ironctl chat {agent} begins one")));
    };
    let name = last.thread.as_deref().unwrap_or("without a name");
    let title = last.title.map(|title| format!(" \"{title}\"")).unwrap_or_default();
    out.remark(format!("conversation {name}{title}, last used {}", clock::date_and_time(&last.last_active_at)))?;
    Ok(last.thread)
}

/// Prints the unread replies and the failing schedules of the agent, and a reminder if something waits for this person. Ignores a failed request, because the answer did arrive.
async fn remind(out: Output, client: &Client, agent: &str) -> Result<(), Error> {
    if out.is_json() {
        return Ok(());
    }
    unread::print(out, client, agent, &[]).await?;
    failing::print(out, client, agent).await?;
    let Ok(waiting) = inbox::list_for_agent(client, agent).await else { return Ok(()) };
    match count_yours(&waiting) {
        Some(count) => out.remark(format!("{count}: ironctl inbox")),
        None => Ok(()),
    }
}

/// Waits for the answer to a recorded message and shows it; a terminal shows the progress, and the words while the model writes them.
/// A script gets the name of the conversation, if it has one, and a failure if a call of the turn waits for a person.
///
/// A notice of the host in place of an answer is a failure for a person. A script reads `notice` instead.
pub async fn show_answer(
    out: Output,
    client: &Client,
    recorded: &Recorded,
    wait: Duration,
    thread: Option<&str>,
) -> Result<(), Error> {
    let shown = wait_and_show(out, client, recorded, wait, thread).await;
    shown.map_err(|error| error.while_waiting_for(&recorded.message_id.to_string()))
}

async fn wait_and_show(
    out: Output,
    client: &Client,
    recorded: &Recorded,
    wait: Duration,
    thread: Option<&str>,
) -> Result<(), Error> {
    let mut turn = LiveTurn::new(out, "");
    if !turn.is_live() {
        let view = answer(out, client, recorded, wait).await?;
        let mut document = answer_json(&view);
        if let Some(thread) = thread {
            document["thread"] = thread.into();
        }
        if out.is_json()
            && let Ok(reasoning) = client.call(routes::REASONING, [&recorded.message_id]).await
            && !reasoning.thoughts.is_empty()
        {
            document["reasoning"] = reasoning.thoughts.into();
        }
        out.json(&document)?;
        match &view.reply {
            Some(notice) if view.notice && !out.is_json() => return Err(noticed(&view, notice)),
            _ => print_reply(out, &view)?,
        }
        notify_files(out, &view)?;
        notify_refusals(out, &view, |_| true)?;
        return check_calls(&view);
    }
    let view = follow::follow(client, recorded, wait, &mut turn, false).await?;
    match &view.reply {
        Some(notice) if view.notice => {
            turn.interrupt("no more of this answer came")?;
            Err(noticed(&view, notice))
        }
        Some(_) | None => turn.finish(client, &view, wait).await,
    }?;
    notify_files(out, &view)?;
    // The codes of the others are lines of the turn already.
    notify_refusals(out, &view, |call| call.bound.is_some())?;
    if review::is_possible(out) { Ok(()) } else { check_calls(&view) }
}

/// Names the files that the agent sent in the turn.
fn notify_files(out: Output, view: &MessageView) -> Result<(), Error> {
    for call in view.calls.iter().filter(|call| matches!(call.status, CallState::Done | CallState::Queued)) {
        let Some(file) = &call.file else { continue };
        let name = visible::name(&file.name);
        let (kind, bytes, id) = (&file.media_type, file.bytes, call.id);
        out.remark(format!("the agent sent {name} ({bytes} bytes, {kind}); get it: ironctl file sent {id} -o FILE"))?;
    }
    Ok(())
}

/// Says which calls of the turn the host refused, and why: each reason once for a tool.
fn notify_refusals(out: Output, view: &MessageView, is_told: impl Fn(&MessageCall) -> bool) -> Result<(), Error> {
    let mut told = BTreeSet::new();
    for call in view.calls.iter().filter(|call| call.status == CallState::Refused && is_told(call)) {
        let code = call.code.map_or("", DenialCode::name);
        if !told.insert((&call.tool, code)) {
            continue;
        }
        let tool = visible::name(&call.tool);
        let why = match &call.bound {
            Some(bound) => format!("{bound} ({code}); {}", bound.advice()),
            None => format!("{}; ironctl why {}", progress::refusal(code), call.id),
        };
        out.remark(format!("a call of {tool} was refused: {why}"))?;
    }
    Ok(())
}

/// Fails if a call of the message waits for a person, because a script cannot decide, or if a call may have had an effect.
fn check_calls(view: &MessageView) -> Result<(), Error> {
    if let Some(lost) =
        view.calls.iter().find(|call| call.status == CallState::Unknown && call.class != Some(Class::Read))
    {
        let message = format!("it is unknown if the call {} ({}) had its effect", lost.id, lost.tool);
        return Err(Error::failed("call_unknown", message).hinting(format!("ironctl why {}", lost.id)));
    }
    let Some(waiting) = asked(view) else { return Ok(()) };
    let message = format!("a call of {} waits for a person: {waiting}", view.message_id);
    Err(Error::failed(NEEDS_PERSON, message).hinting("a person decides with: ironctl inbox"))
}

/// Converts a notice of the host in place of an answer into a failure.
fn noticed(view: &MessageView, notice: &str) -> Error {
    Error::failed("no_answer", format!("no answer; the host says: {notice}"))
        .hinting(format!("ironctl why {}", view.message_id))
}

/// Parses a duration such as `90s`, `2m` or `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|_| format!("{text} is not a duration such as 90s or 2m"))?;
    Duration::try_from(parsed).map_err(|_| format!("{text} is negative"))
}

/// Refuses a text from a pipe that declares classes of calls: it may be an old text, or that of another person.
fn refuse_declaration(text: &str) -> Result<(), Error> {
    match text.trim_start().strip_prefix("/allow") {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => {
            let message = "a text from a pipe cannot declare classes with /allow; nothing was sent";
            Err(Error::failed("scope_malformed", message)
                .hinting("name the classes with --allow, and leave out /allow"))
        }
        Some(_) | None => Ok(()),
    }
}

fn from_stdin() -> Result<String, Error> {
    let unreadable = || Error::failed("stdin_unreadable", "cannot read the message from stdin");
    let text = read_text(io::stdin().lock()).map_err(|cause| unreadable().because(cause))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Reads UTF-8 text; refuses a text over the bound.
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
    fn durations_are_parsed() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(duration("-1s").is_err());
        assert!(duration("soon").is_err());
    }

    #[test]
    fn file_over_the_bound_is_refused_not_cut() {
        let just = vec![b'x'; TEXT_BYTES_MAX as usize];
        assert_eq!(read_text(just.as_slice()).expect("fits").len(), just.len());
        let over = vec![b'x'; TEXT_BYTES_MAX as usize + 1];
        assert!(read_text(over.as_slice()).is_err());
        assert!(read_text([0xff_u8].as_slice()).is_err());
    }
}
