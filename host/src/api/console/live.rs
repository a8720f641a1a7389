//! The event streams of the live parts: the inbox, what waits, and a conversation with its streamed answer.
//!
//! Each stream belongs to a session and ends with it. Sends parts of pages as the templates render them, and never data of another person.
//! A client that comes back gets every part again. See [`crate::api::chat::follow`] for the stream of programs.

use super::inbox as entries;
use super::said::Said;
use super::visit::{Visit, missing};
use super::{pages, talk, words};
use crate::api::auth::check_still_valid;
use crate::api::handler::{Answer, Api, Caller};
use crate::api::sessions;
use crate::api::streaming::PartialOutput;
use crate::gateway::waiting::decide::seen;
use crate::registry;
use axum::Json;
use axum::extract::{Path, Query};
use axum::response::sse::{Event, KeepAlive, Sse};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{DenialCode, Draft, LedgerEvent, Topic, WaitingId, WaitingStatus};
use ironclaw_store::refusal::{Denied, Refusal};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::Sender;
use tokio_stream::wrappers::ReceiverStream;

/// Changes within this time are sent in one part.
const COALESCE_TIME: Duration = Duration::from_millis(50);

/// Changes of an inbox within this time are sent in one part: its list is read for each stream.
const INBOX_COALESCE_TIME: Duration = Duration::from_millis(250);

/// The longest time without a look at the session of a stream.
const LOOK_TIME: Duration = Duration::from_secs(20);

/// A part of a page that is replaced.
#[derive(Serialize)]
struct Fragment<'a> {
    id: &'a str,
    html: &'a str,
}

/// More text of a part.
#[derive(Serialize)]
struct MoreText<'a> {
    id: &'a str,
    text: &'a str,
    /// The text begins anew.
    new: bool,
}

type Streamed = Sse<axum::response::sse::KeepAliveStream<ReceiverStream<Result<Event, Infallible>>>>;

/// Starts a stream: `work` sends its events until the client leaves, the session ends or the host stops.
fn stream<F, W>(visit: &Visit, work: F) -> Result<Streamed, Answer>
where
    F: FnOnce(Listener) -> W,
    W: Future<Output = Result<(), Answer>> + Send + 'static,
{
    let place = visit.caller.api.console.streams.enter(&visit.session.id)?;
    let (to, receiver) = tokio::sync::mpsc::channel(16);
    let work = work(Listener { caller: visit.caller.clone(), to: to.clone() });
    let shutdown = visit.caller.api.about.shutdown.clone();
    tokio::spawn(async move {
        let _place = place;
        tokio::select! {
            _ = work => {}
            () = to.closed() => {}
            () = shutdown.stopped() => {}
        }
    });
    Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::default()))
}

/// The browser at the other end of a stream.
struct Listener {
    caller: Caller,
    to: Sender<Result<Event, Infallible>>,
}

impl Listener {
    fn api(&self) -> &Api {
        &self.caller.api
    }

    /// Refuses a session that ended, and one whose person has another role by now: the browser then asks again with that role.
    async fn check(&self) -> Result<(), Answer> {
        check_still_valid(self.api(), &self.caller.current).await?;
        let (by, role) = (self.caller.person.id, self.caller.person.role);
        let now = self.api().state().read_committed(move |tx| registry::person_by_id(tx, by)).await?;
        match now.is_some_and(|person| person.role == role) {
            true => Ok(()),
            false => Err(missing()),
        }
    }

    /// Sends an event, unless the session ended.
    async fn send(&self, name: &str, data: &impl Serialize) -> Result<(), Answer> {
        let gone = || Answer::from(Refusal::new(DenialCode::ListenerGone, "the listener is gone"));
        let room = self.to.reserve().await.map_err(|_| gone())?;
        self.check().await?;
        room.send(Ok(Event::default().event(name).json_data(data).map_err(|_| gone())?));
        Ok(())
    }

    /// Sends the words about an emergency stop, if they changed.
    async fn stopped(&self, sent: &mut Sent) -> Result<(), Answer> {
        let html = pages::stopped(self.api().stops.is_on()).map_err(|error| Answer::broken(&error))?;
        self.news(sent, "stopped", &html).await
    }

    /// Sends a part that is new or another one.
    async fn news(&self, sent: &mut Sent, id: &str, html: &str) -> Result<(), Answer> {
        if sent.is_news(id, html) { self.fragment(id, html).await } else { Ok(()) }
    }

    async fn fragment(&self, id: &str, html: &str) -> Result<(), Answer> {
        self.send("fragment", &Fragment { id, html }).await
    }
}

/// The parts that have been sent, so that an equal part is not sent twice.
#[derive(Default)]
struct Sent(HashMap<String, Digest>);

impl Sent {
    /// Returns whether a part of this id was sent.
    fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Returns whether the part of this id is new or another one.
    fn is_news(&mut self, id: &str, html: &str) -> bool {
        let digest = Digest::of(html.as_bytes());
        self.0.insert(id.to_owned(), digest) != Some(digest)
    }
}

/// Query of `GET /live`.
#[derive(Debug, Deserialize)]
pub struct LiveQuery {
    /// The page of the inbox; 0 for a page without its list.
    #[serde(default)]
    page: usize,
    /// What waits on the page: the browser reads the page again once it is decided.
    of: Option<String>,
    /// Its status on the page.
    status: Option<WaitingStatus>,
}

/// `GET /live`: the number of entries of the inbox, its list, and the end of what waits on the page.
pub async fn inbox(visit: Visit, Query(query): Query<LiveQuery>) -> Result<Streamed, Answer> {
    stream(&visit, move |listener| follow_person(listener, query))
}

async fn follow_person(to: Listener, query: LiveQuery) -> Result<(), Answer> {
    let (mut events, mut changed) = (to.api().state().events(), to.api().gateway.watch());
    let of: Option<WaitingId> = query.of.and_then(|of| of.parse().ok());
    let (mut sent, mut status) = (Sent::default(), query.status);
    loop {
        changed.mark_unchanged();
        to.stopped(&mut sent).await?;
        let parts = entries::fragments(&to.caller, query.page).await?;
        to.news(&mut sent, "inbox-count", &parts.count).await?;
        if let Some(list) = parts.list {
            to.news(&mut sent, "waiting-list", &list).await?;
        }
        if let Some(of) = of {
            let (all, person) = (Arc::clone(&to.api().gateway), to.caller.person.clone());
            let look = to.api().state().read(move |tx| match seen(tx, &all, &person, of) {
                Ok((of, _)) => Ok(Some(of.status)),
                Err(Denied::Refused(_)) => Ok(None),
                Err(Denied::Failed(error)) => Err(error),
            });
            let now = look.await?;
            if status != now {
                to.send("reload", &()).await?;
            }
            status = now;
        }
        to.check().await?;
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(event) if !is_of_inbox(event.event) => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return Ok(()),
                },
                found = changed.changed() => if found.is_err() { return Ok(()) } else { break },
                () = tokio::time::sleep(LOOK_TIME) => break,
            }
        }
        tokio::time::sleep(INBOX_COALESCE_TIME).await;
    }
}

/// Returns whether an event may change an inbox. The gateway announces decisions, but not each request of a turn.
fn is_of_inbox(event: LedgerEvent) -> bool {
    event == LedgerEvent::CallAsked || matches!(event.topic(), Topic::Request | Topic::Question | Topic::Change)
}

/// `GET /conversations/{session}/live`: new and changed lines, what waits there, and the text of the answer while the model writes it.
pub async fn conversation(visit: Visit, Path(session): Path<String>) -> Result<Streamed, Answer> {
    let Json(of) = sessions::show(visit.caller.clone(), Path(session.clone())).await?;
    // Each read of another person's conversation leaves an entry in the ledger.
    if of.person != Some(visit.caller.person.id) {
        return Err(Answer::noted(crate::sessions::store::unknown(&session)));
    }
    stream(&visit, move |listener| follow_conversation(listener, session))
}

async fn follow_conversation(to: Listener, session: String) -> Result<(), Answer> {
    let id = sessions::known(to.api(), &to.caller.person, &session).await?;
    let (mut events, mut changed) = (to.api().state().events_of(id), to.api().gateway.watch());
    let (mut sent, mut partial, mut is_first): (Sent, Option<PartialOutput>, bool) = (Sent::default(), None, true);
    loop {
        changed.mark_unchanged();
        let Json(of) = sessions::show(to.caller.clone(), Path(session.clone())).await?;
        let title =
            pages::escaped(of.title.as_deref().unwrap_or(words::TALK)).map_err(|error| Answer::broken(&error))?;
        to.news(&mut sent, "title", &title).await?;
        let part = talk::part(&to.caller, &of, None).await?;
        send_lines(&to, &part.lines, &mut sent, is_first).await?;
        is_first = false;
        to.stopped(&mut sent).await?;
        let requests = talk::requests_html(&to.caller, id).await?;
        to.news(&mut sent, "requests", &requests).await?;
        let output = of.turn_id.and_then(|turn| Some((turn, to.api().sessions.words(id, turn)?)));
        match output {
            Some((turn, words)) if partial.as_ref().is_none_or(|partial| partial.turn != turn) => {
                partial = Some(PartialOutput::new(turn, words));
            }
            Some(_) => {}
            None => partial = None,
        }
        let working = if of.turn_id.is_some() { words::WORKS } else { "" };
        to.news(&mut sent, "working", working).await?;
        to.check().await?;
        loop {
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return Ok(()),
                },
                found = changed.changed() => if found.is_err() { return Ok(()) } else { break },
                draft = next_draft(&mut partial) => {
                    let new = draft.from == 0;
                    to.send("text", &MoreText { id: "partial", text: &draft.text, new }).await?;
                }
                () = tokio::time::sleep(LOOK_TIME) => break,
            }
        }
        tokio::time::sleep(COALESCE_TIME).await;
    }
}

/// Sends the lines that are new, and those that changed. The page has the lines of the first look, but perhaps an older state of a call.
async fn send_lines(to: &Listener, lines: &[Said], sent: &mut Sent, is_first: bool) -> Result<(), Answer> {
    let broken = |error: askama::Error| Answer::broken(&error);
    let mut has_new = false;
    for said in lines {
        let (id, content) = (said.id(), said.content().map_err(broken)?);
        let is_known = is_first || sent.has(&id);
        if !sent.is_news(&id, &content) || (is_first && said.calls.is_empty()) {
            continue;
        }
        if is_known {
            to.fragment(&id, &content).await?;
        } else {
            has_new = true;
            to.send("append", &Fragment { id: "talk", html: &said.element().map_err(broken)? }).await?;
        }
    }
    if has_new {
        // The streamed text is a line now.
        to.send("text", &MoreText { id: "partial", text: "", new: true }).await?;
    }
    Ok(())
}

async fn next_draft(partial: &mut Option<PartialOutput>) -> Draft {
    match partial {
        Some(partial) => partial.next().await,
        None => std::future::pending().await,
    }
}
