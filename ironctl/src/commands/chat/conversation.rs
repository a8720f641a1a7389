//! The prompt of `ironctl chat`: the last lines, then what is typed and what is answered.
//! Never keeps a history file: the host remembers the conversation.
//! Next: `client::Client::follow` for the progress line.

use super::words::Words;
use super::{no_answer, remind, say_what_it_waits_for};
use crate::client::{Client, Heard};
use crate::commands::why;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::{MessageFile, MessageView, NewMessage, Recorded, Stage};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::time::Duration;
use tokio::time::Instant;

/// How much of the conversation is shown again.
const HISTORY_LINES: usize = 20;

/// Talks until the person leaves; `files` go with the first message.
pub async fn hold(
    out: Output,
    client: &Client,
    agent: &str,
    thread: Option<String>,
    mut files: Vec<MessageFile>,
    speak_as: Option<String>,
    wait: Duration,
) -> Result<(), Error> {
    let agent = client.agent(agent).await?;
    recall(out, client, &agent.id, &agent.name, thread.as_deref(), speak_as.as_deref()).await?;
    out.remark(format!(
        "talking to {}; /why explains, Ctrl-C cancels what is being answered, and at the prompt leaves as /quit does",
        agent.name
    ))?;
    let mut editor = DefaultEditor::new().map_err(no_prompt)?;
    let mut last = None;
    loop {
        let text = match editor.readline("you> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(()),
            Err(cause) => return Err(no_prompt(cause)),
        };
        match text.trim() {
            "" => continue,
            "/quit" => return Ok(()),
            "/why" => {
                let asked = client.why(last.as_deref().unwrap_or(why::LAST)).await;
                carry_on(out, asked.and_then(|why| why::print(out, why)))?;
                continue;
            }
            _ => {}
        }
        // The editor keeps lines in memory only, for the arrow keys.
        let _ = editor.add_history_entry(text.as_str());
        let message = NewMessage {
            text,
            files: files.clone(),
            event_id: None,
            speak_as: speak_as.clone(),
            thread: thread.clone(),
        };
        let recorded = match client.send(&agent.id, &message).await {
            Ok(recorded) => recorded,
            Err(error) => {
                carry_on(out, Err(error))?;
                continue;
            }
        };
        files.clear();
        let mut words = Words::new(out, format!("{}> ", agent.name));
        let answered = follow(out, client, &recorded, wait, &mut words).await;
        last = Some(recorded.message_id);
        carry_on(out, answered.and_then(|view| tell(words, &view, wait)))?;
        remind(out, client, &agent.id).await?;
    }
}

/// The last lines of the conversation, as the host has them.
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
/// returns where the message stands.
///
/// Ctrl-C cancels its turn, and the notice of that is waited for; a second one waits no longer.
async fn follow(
    out: Output,
    client: &Client,
    recorded: &Recorded,
    wait: Duration,
    words: &mut Words,
) -> Result<MessageView, Error> {
    let (message, deadline) = (&recorded.message_id, Instant::now() + wait);
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
                carry_on(out, client.cancel_turn(&recorded.session_id).await.map(drop))?;
            }
        }
    };
    // What it borrows is free again.
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

/// What went wrong with one message is told and does not end the conversation; a lost host does.
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
