//! The prompt of `ironctl chat`: the last lines of the conversation, then messages and answers.
//!
//! Never writes a history file: the host has the conversation. See `client::Client::follow` for the progress line.

use super::attach::{self, Attachment};
use super::live_answer::LiveAnswer;
use super::slash::{self, Line};
use super::{no_answer, print_wait_reason, remind};
use crate::client::{Client, MessageEvent};
use crate::commands::{At, inbox, why};
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::operator::{MessageView, NewMessage, Recorded, Stage};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::time::Duration;
use tokio::time::Instant;

/// Lines of the conversation that are shown at the start.
const HISTORY_LINES: usize = 20;

/// The options of a conversation.
pub struct Options {
    /// Name or id of the agent.
    pub agent: String,
    /// Name of the conversation.
    pub thread: Option<String>,
    /// Files to send with the first message.
    pub files: Vec<Attachment>,
    /// The identity that speaks.
    pub speak_as: Option<String>,
    /// Time to wait for an answer.
    pub wait: Duration,
}

/// Runs the conversation until the person leaves.
pub async fn run(at: &At, client: &Client, options: Options) -> Result<(), Error> {
    let Options { agent, mut thread, mut files, speak_as, wait } = options;
    let out = at.out;
    let agent = client.agent(&agent).await?;
    print_history(out, client, &agent.id.to_string(), &agent.name, thread.as_deref(), speak_as.as_deref()).await?;
    out.remark(format!(
        "talking to {}; /help lists the commands; Ctrl-C cancels an answer, and at the prompt it leaves, as /quit does",
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
                    "new conversation; return to it with `ironctl chat {} --thread {name}`",
                    agent.name
                ))?;
                (thread, last) = (Some(name), None);
                continue;
            }
            other => {
                report_and_continue(out, command(at, client, other, last).await)?;
                continue;
            }
        };
        // Only in memory, for the arrow keys.
        let _ = editor.add_history_entry(line.as_str());
        let message =
            NewMessage { text, files: Vec::new(), event_id: None, speak_as: speak_as.clone(), thread: thread.clone() };
        let recorded = match attach::send(out, client, &agent.id.to_string(), message, &mut files).await {
            Ok(recorded) => recorded,
            Err(error) => {
                report_and_continue(out, Err(error))?;
                continue;
            }
        };
        files.clear();
        let mut live = LiveAnswer::new(out, format!("{}> ", agent.name));
        let settled = follow(out, client, &recorded, wait, &mut live).await;
        let shown = settled.and_then(|view| finish(live, &view, wait));
        report_and_continue(out, shown.map_err(|error| error.while_waiting_for(&recorded.message_id.to_string())))?;
        last = Some(recorded.message_id);
        remind(out, client, &agent.id.to_string()).await?;
    }
}

/// Runs a command that does not change the conversation.
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

/// Creates the name of a new conversation from the time.
fn new_thread() -> String {
    jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// Prints the last lines of the conversation from the record of the host.
async fn print_history(
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

/// Shows each stage on a progress line, then the words of the answer instead; returns the state of the message.
///
/// Ctrl-C cancels the turn and waits for its notice. A second Ctrl-C ends the wait.
async fn follow(
    out: Output,
    client: &Client,
    recorded: &Recorded,
    wait: Duration,
    live: &mut LiveAnswer,
) -> Result<MessageView, Error> {
    let (message, deadline) = (recorded.message_id, Instant::now() + wait);
    let on_event = |event| match event {
        // The progress line would overwrite the words of the answer.
        MessageEvent::Stage(_) if live.has_begun() => Ok(()),
        MessageEvent::Stage(stage) => out.progress(&progress(&stage)),
        MessageEvent::Draft(draft) => live.add(&draft),
        MessageEvent::Waiting(view) => print_wait_reason(out, &view),
    };
    let mut following = Box::pin(client.follow(message, deadline, on_event));
    let mut is_cancelled = false;
    let settled = loop {
        tokio::select! {
            settled = &mut following => break settled?,
            interrupt = tokio::signal::ctrl_c() => {
                interrupt?;
                if std::mem::replace(&mut is_cancelled, true) {
                    break None;
                }
                // The host refuses if it has just answered; then the answer still arrives.
                report_and_continue(out, client.cancel_turn(&recorded.session_id.to_string()).await.map(drop))?;
            }
        }
    };
    // Ends the borrow of `live`.
    drop(following);
    if !live.has_begun() {
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

fn finish(mut live: LiveAnswer, view: &MessageView, wait: Duration) -> Result<(), Error> {
    match &view.reply {
        Some(_) => live.finish(view),
        None => {
            live.end_line()?;
            Err(no_answer(view, wait))
        }
    }
}

/// Prints the failure of one message and continues the conversation; a lost host ends it.
fn report_and_continue(out: Output, result: Result<(), Error>) -> Result<(), Error> {
    match result {
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
