//! The prompt of `ironctl chat`: the last lines, then what is typed and what is answered.
//!
//! Never keeps a history file: the host remembers the conversation. See `client::Client::follow` for the progress line.

use super::slash::{self, Line};
use super::words::Words;
use super::{no_answer, remind, say_what_it_waits_for};
use crate::client::{Client, Heard};
use crate::commands::{At, inbox, why};
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::operator::{MessageFile, MessageView, NewMessage, Recorded, Stage};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::time::Duration;
use tokio::time::Instant;

/// Lines of the conversation that are shown again.
const HISTORY_LINES: usize = 20;

/// The agent of a conversation, and the speaker.
pub struct With {
    /// Name or id of the agent.
    pub agent: String,
    /// The thread with it.
    pub thread: Option<String>,
    /// Files that go with the first message.
    pub files: Vec<MessageFile>,
    /// The identity that speaks.
    pub speak_as: Option<String>,
    /// Longest wait for an answer.
    pub wait: Duration,
}

/// Talks until the person leaves.
pub async fn hold(at: &At, client: &Client, with: With) -> Result<(), Error> {
    let With { agent, mut thread, mut files, speak_as, wait } = with;
    let out = at.out;
    let agent = client.agent(&agent).await?;
    recall(out, client, &agent.id.to_string(), &agent.name, thread.as_deref(), speak_as.as_deref()).await?;
    out.remark(format!(
        "talking to {}; /help lists the commands, Ctrl-C cancels what is being answered, and at the prompt leaves as /quit does",
        agent.name
    ))?;
    let mut editor = DefaultEditor::new().map_err(no_prompt)?;
    let mut last = None;
    loop {
        let line = match editor.readline("you> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(()),
            Err(cause) => return Err(no_prompt(cause)),
        };
        let text = match slash::read(&line) {
            Ok(Line::Say(text)) => text,
            Ok(Line::Quit) => return Ok(()),
            Ok(Line::New(name)) => {
                let name = name.unwrap_or_else(new_thread);
                out.remark(format!(
                    "a new conversation; come back to it with `ironctl chat {} --thread {name}`",
                    agent.name
                ))?;
                (thread, last) = (Some(name), None);
                continue;
            }
            other => {
                carry_on(out, command(at, client, other, last).await)?;
                continue;
            }
        };
        // The editor keeps lines in memory only, for the arrow keys.
        let _ = editor.add_history_entry(line.as_str());
        let message = NewMessage {
            text,
            files: files.clone(),
            event_id: None,
            speak_as: speak_as.clone(),
            thread: thread.clone(),
        };
        let recorded = match client.send(&agent.id.to_string(), &message).await {
            Ok(recorded) => recorded,
            Err(error) => {
                carry_on(out, Err(error))?;
                continue;
            }
        };
        files.clear();
        let mut words = Words::new(out, format!("{}> ", agent.name));
        let answered = follow(out, client, &recorded, wait, &mut words).await;
        let told = answered.and_then(|view| tell(words, &view, wait));
        carry_on(out, told.map_err(|error| error.while_waiting_for(&recorded.message_id.to_string())))?;
        last = Some(recorded.message_id);
        remind(out, client, &agent.id.to_string()).await?;
    }
}

/// Runs one of the commands that only show something.
async fn command(at: &At, client: &Client, line: Result<Line, Error>, last: Option<MessageId>) -> Result<(), Error> {
    match line? {
        Line::Help => slash::COMMANDS.iter().try_for_each(|(name, does)| at.out.line(format!("{name:<12} {does}"))),
        Line::Why => {
            let message = last.map_or_else(|| why::LAST.to_owned(), |last| last.to_string());
            why::print(at.out, client.why(&message).await?)
        }
        Line::Inbox => inbox::run(at).await,
        Line::Empty | Line::Say(_) | Line::New(_) | Line::Quit => Ok(()),
    }
}

/// Makes the name of a conversation that begins now.
fn new_thread() -> String {
    jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// Shows the last lines of the conversation, as the host has them.
async fn recall(
    out: Output,
    client: &Client,
    id: &str,
    name: &str,
    thread: Option<&str>,
    speak_as: Option<&str>,
) -> Result<(), Error> {
    for line in client.history(id, thread, speak_as, HISTORY_LINES).await? {
        let author = match line.author.as_str() {
            "person" => "you",
            "agent" => name,
            other => other,
        };
        out.line(format!("{author}> {}", line.text))?;
    }
    Ok(())
}

/// Shows each stage on a line of its own that is erased in the end, and from the first word of the answer on its words instead;
/// returns the state of the message.
///
/// Ctrl-C cancels its turn, and the notice of that is waited for; a second one ends the wait.
async fn follow(
    out: Output,
    client: &Client,
    recorded: &Recorded,
    wait: Duration,
    words: &mut Words,
) -> Result<MessageView, Error> {
    let (message, deadline) = (recorded.message_id, Instant::now() + wait);
    let hear = |heard| match heard {
        // The line of progress would be written over the words.
        Heard::Stage(_) if words.has_begun() => Ok(()),
        Heard::Stage(stage) => out.progress(&progress(&stage)),
        Heard::Words(draft) => words.more(&draft),
        Heard::Waiting(view) => say_what_it_waits_for(out, &view),
    };
    let mut following = Box::pin(client.follow(message, deadline, hear));
    let mut is_cancelled = false;
    let settled = loop {
        tokio::select! {
            settled = &mut following => break settled?,
            asked = tokio::signal::ctrl_c() => {
                asked?;
                if std::mem::replace(&mut is_cancelled, true) {
                    break None;
                }
                // It may have been answered in this moment: then there is nothing to cancel, and the answer comes.
                carry_on(out, client.cancel_turn(&recorded.session_id.to_string()).await.map(drop))?;
            }
        }
    };
    // Its borrowed values are free again.
    drop(following);
    if !words.has_begun() {
        out.progress("")?;
    }
    match settled {
        Some(view) => Ok(view),
        None => client.message(message, Duration::ZERO).await,
    }
}

fn progress(stage: &Stage) -> String {
    match (stage.outcome.as_str(), stage.reason.as_str()) {
        ("done", _) => format!("… {}", stage.stage),
        (outcome, "") => format!("… {} {outcome}", stage.stage),
        (outcome, reason) => format!("… {} {outcome}: {reason}", stage.stage),
    }
}

fn tell(mut words: Words, view: &MessageView, wait: Duration) -> Result<(), Error> {
    match &view.reply {
        Some(_) => words.finish(view),
        None => {
            words.end_line()?;
            Err(no_answer(view, wait))
        }
    }
}

/// Reports what went wrong with one message and does not end the conversation; a lost host does.
fn carry_on(out: Output, done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(error @ (Error::Refused(_) | Error::Failed { .. })) => {
            out.failure(&error);
            Ok(())
        }
        other => other,
    }
}

fn no_prompt(cause: ReadlineError) -> Error {
    Error::failed("prompt", "cannot read from the terminal").because(cause)
}
