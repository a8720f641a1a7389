//! The answer to a message once it is complete, or the reason for its absence.
//!
//! Never shows a part of an answer. See [`super::live_answer`] for the words while the model writes them.

use crate::client::{Client, POLL_MAX};
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{CallState, MessageStatus, MessageView, Recorded, routes};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pause between two polls of a host that answers a long poll early.
const POLL_PAUSE: Duration = Duration::from_millis(200);

/// Time of the first poll. Its answer may have the reason for the wait, which a person sees then.
const POLL_FIRST: Duration = Duration::from_secs(2);

/// Waits for the answer to a recorded message; no answer within `wait` is a failure with the reason.
pub async fn answer(out: Output, client: &Client, recorded: &Recorded, wait: Duration) -> Result<MessageView, Error> {
    let id = recorded.message_id;
    let deadline = Instant::now() + wait;
    let (mut poll, mut printed) = (POLL_FIRST, None);
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).min(poll);
        let sent = Instant::now();
        let view = client.poll(routes::MESSAGE, &id, left).await?;
        let early = sent.elapsed() < left;
        if view.reply.is_some() {
            return Ok(view);
        }
        // The host answers early only if no answer will come without help.
        if (early && is_settled(&view)) || Instant::now() >= deadline {
            return Err(no_answer(client, &view, wait).await);
        }
        if view.reason != printed {
            printed.clone_from(&view.reason);
            print_wait_reason(out, &view)?;
        }
        poll = POLL_MAX;
        if early {
            sleep(POLL_PAUSE).await;
        }
    }
}

/// Prints the reason for the wait of a message, if known.
pub fn print_wait_reason(out: Output, view: &MessageView) -> Result<(), Error> {
    match &view.reason {
        Some(reason) => out.remark(format!("{} waits: {reason}", view.message_id)),
        None => Ok(()),
    }
}

/// Returns the failure of a message without an answer. A wait that was too short names what the message waits for.
pub async fn no_answer(client: &Client, view: &MessageView, wait: Duration) -> Error {
    let id = &view.message_id;
    let (code, message) = match &view.reason {
        Some(reason) => ("no_answer", format!("{id} has no answer: {reason}")),
        None if is_settled(view) => {
            ("no_answer", format!("{id} is {} without an answer ({})", view.status, view.receipt))
        }
        None => {
            let (waited, awaited) = (wait.as_secs_f32(), awaited(client, view).await);
            let message = format!(
                "{id} is {} and has no answer after {waited} s{awaited}; the answer still comes, and --wait 10m waits longer for it",
                view.status
            );
            ("no_answer_yet", message)
        }
    };
    Error::failed(code, message).hinting(format!("ironctl why {id}"))
}

/// Returns what a message waits for: a decision on its calls, or what the host says; nothing if it does not answer.
async fn awaited(client: &Client, view: &MessageView) -> String {
    if let Some(asked) = asked(view) {
        return format!(": a person has to decide on {asked}: ironctl inbox");
    }
    let why = client.call(routes::WHY_MESSAGE, [&view.message_id]).await;
    why.map_or_else(|_| String::new(), |why| format!(": {}", why.summary.trim_end_matches('.')))
}

/// Returns the calls of a message that wait for people, each with its tool; `None` without one.
pub fn asked(view: &MessageView) -> Option<String> {
    let asked = view.calls.iter().filter(|call| call.status == CallState::Asked);
    let asked = asked.map(|call| match call.request {
        Some(request) => format!("{request} ({})", call.tool),
        None => format!("{} ({})", call.id, call.tool),
    });
    Some(asked.collect::<Vec<_>>().join(", ")).filter(|asked| !asked.is_empty())
}

/// Prints the reply for a person; a notice of the host goes to stderr.
pub fn print_reply(out: Output, view: &MessageView) -> Result<(), Error> {
    let reply = shown(view);
    if view.notice {
        return out.remark(format!("the host says:\n{reply}"));
    }
    out.line(reply)?;
    print_remarks(out, view)
}

/// Returns the reply for a terminal.
pub fn shown(view: &MessageView) -> &str {
    view.shown.shown_as.as_deref().or(view.reply.as_deref()).unwrap_or_default()
}

/// Prints the lines of the host about the marks in a reply.
pub fn print_remarks(out: Output, view: &MessageView) -> Result<(), Error> {
    view.shown.remarks.iter().try_for_each(|remark| out.remark(remark))
}

/// Returns the JSON of an answered message.
pub fn answer_json(view: &MessageView) -> Value {
    let mut document = json!({
        "message_id": view.message_id,
        "session_id": view.session_id,
        "turn_id": view.turn_id,
        "reply": view.reply,
        "notice": view.notice,
        "status": view.status,
        "calls": view.calls,
    });
    // Only what differs: most replies have no mark and no unknown URL.
    if let (Value::Object(all), Ok(Value::Object(shown))) = (&mut document, serde_json::to_value(&view.shown)) {
        all.extend(shown);
    }
    document
}

fn is_settled(view: &MessageView) -> bool {
    view.reason.is_some() || view.status == MessageStatus::Delivered || view.receipt.is_lost()
}
