//! Conversations: the list, one of them with its calls, and the messages of its person.
//!
//! Text of agents and of others is only text, and an address in it is no link. Counts a text as typed only if the script of the page says
//! which parts of it were pasted. See [`crate::api::chat`], [`super::said`].

use super::fields::{Fields, File, Posted};
use super::pages::{self, Frame, Notice, Room, page};
use super::said::{self, Said};
use super::visit::Visit;
use super::{typed, words};
use crate::api::answer::Refused;
use crate::api::chat::{conversation, messages, threads};
use crate::api::files;
use crate::api::handler::{Answer, Body, Caller};
use crate::api::transcript;
use crate::api::{agents, sessions, stops, waiting};
use crate::channels::inbound::channel::loopback;
use askama::Template;
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::SessionId;
use ironclaw_operator::{MessageFile, NewConversation, NewMessage, Session, WaitingId};
use ironclaw_state::keys;
use ironclaw_text::file::{self, media_type};
use serde::Deserialize;

/// Conversations on one page.
const CONVERSATIONS: usize = 50;

/// Lines of a conversation on one page.
const LINES: usize = 50;

/// Bytes of a text file that a message has as text; a larger one goes into the workspace.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The classes of calls that a person can allow, as the API takes them.
const ALLOWED: [Allowed; 6] = [
    Allowed { word: "+read", label: words::ALLOW_READ },
    Allowed { word: "+write", label: words::ALLOW_WRITE },
    Allowed { word: "+send", label: words::ALLOW_SEND },
    Allowed { word: "+exec", label: words::ALLOW_EXEC },
    Allowed { word: "+trade", label: words::ALLOW_TRADE },
    Allowed { word: "read", label: words::ALLOW_READ_ALONE },
];

/// A choice of what a message allows.
struct Allowed {
    word: &'static str,
    label: &'static str,
}

/// A conversation in the list.
struct Conversation {
    session: SessionId,
    agent: String,
    title: String,
    at: String,
    at_shown: String,
}

#[derive(Template)]
#[template(path = "conversations.html")]
struct ConversationsPage {
    frame: Frame,
    search: String,
    agents: Vec<String>,
    conversations: Vec<Conversation>,
    page: usize,
    more: bool,
}

/// What waits for the person in a conversation.
pub(super) struct Request {
    pub id: WaitingId,
    pub effect: String,
}

#[derive(Template)]
#[template(path = "talk.html")]
struct TalkPage {
    frame: Frame,
    session: String,
    agent: String,
    lines: Vec<Said>,
    /// The number of the first line, if there are earlier ones.
    before: Option<u64>,
    requests: Vec<Request>,
    /// True for the person of the conversation, who writes into it.
    is_own: bool,
    is_working: bool,
    allowed: &'static [Allowed],
    text: String,
    /// The id of the message that a browser without the script sends from this page.
    event: String,
}

#[derive(Template)]
#[template(path = "requests.html")]
struct Requests {
    requests: Vec<Request>,
}

/// Query of `GET /conversations`.
#[derive(Debug, Deserialize)]
pub struct Search {
    /// Words of a title.
    #[serde(default)]
    q: String,
    /// The page, from 1.
    #[serde(default)]
    page: usize,
}

/// `GET /conversations?q=WORDS`
pub async fn list(visit: Visit, Query(search): Query<Search>) -> Result<Response, Answer> {
    let caller = &visit.caller;
    let Json(agents) = agents::list(caller.clone()).await?;
    let names: Vec<String> = agents.into_iter().map(|agent| agent.name).collect();
    let wanted = search.q.trim().to_lowercase();
    let settings = caller.api.gateway.now();
    let zone = settings.host_policy.zone.zone.rules();
    let is_wanted = |one: &Conversation| format!("{} {}", one.title, one.agent).to_lowercase().contains(&wanted);
    let mut all: Vec<Conversation> = Vec::new();
    for agent in &names {
        let query = Query(threads::ThreadsQuery::own());
        let Json(found) = threads::threads(caller.clone(), Path(agent.clone()), query).await?;
        let found = found.threads.into_iter().map(|thread| Conversation {
            session: thread.session_id,
            agent: agent.clone(),
            title: thread.title.unwrap_or_else(|| words::UNTITLED.to_owned()),
            at_shown: words::time(zone, &thread.last_active_at),
            at: thread.last_active_at,
        });
        all.extend(found.filter(is_wanted));
    }
    all.sort_by(|one, other| other.at.cmp(&one.at));
    let number = search.page.max(1);
    let skipped = (number - 1).saturating_mul(CONVERSATIONS);
    let more = all.len() > skipped.saturating_add(CONVERSATIONS);
    let conversations = all.into_iter().skip(skipped).take(CONVERSATIONS).collect();
    let frame = Frame::new(&visit, Some(Room::Conversations), words::CONVERSATIONS);
    let search = search.q;
    Ok(page(StatusCode::OK, &ConversationsPage { frame, search, agents: names, conversations, page: number, more }))
}

/// `POST /conversations`: a new conversation with an agent.
pub async fn open(Posted { visit, mut fields }: Posted) -> Result<Response, Answer> {
    let new = NewConversation { thread: Some(random_name()?), speak_as: None };
    let opened = conversation::open(visit.caller, Path(fields.take("agent")), Body(new)).await?;
    Ok(pages::see_other(&format!("/conversations/{}", opened.0.session_id)))
}

/// Returns a name that no other conversation and no other message has.
fn random_name() -> Result<String, Answer> {
    let random = Digest::from_bytes(keys::random()?).to_string();
    Ok(format!("web-{}", &random[..24]))
}

/// Query of `GET /conversations/{session}`.
#[derive(Debug, Deserialize)]
pub struct Before {
    /// The number of the line after the last one; without it, the newest lines.
    before: Option<u64>,
}

/// `GET /conversations/{session}?before=N`
pub async fn show(visit: Visit, Path(session): Path<String>, Query(query): Query<Before>) -> Result<Response, Answer> {
    talk(&visit, session, query.before, None, String::new()).await
}

async fn talk(
    visit: &Visit,
    session: String,
    before: Option<u64>,
    refused: Option<Refused>,
    text: String,
) -> Result<Response, Answer> {
    let caller = &visit.caller;
    let Json(of) = sessions::show(caller.clone(), Path(session.clone())).await?;
    let is_newest = before.is_none();
    let Part { lines, before } = part(caller, &of, before).await?;
    let title = of.title.clone().unwrap_or_else(|| words::TALK.to_owned());
    let status = refused.as_ref().map_or(StatusCode::OK, |refused| refused.status);
    let is_followed = is_newest && of.person == Some(caller.person.id);
    let live = if is_followed { format!("/conversations/{session}/live") } else { String::new() };
    let notice = refused.as_ref().map(Notice::from);
    let frame = Frame::new(visit, Some(Room::Conversations), title).with(notice).live_at(live);
    Ok(page(
        status,
        &TalkPage {
            frame,
            requests: requests(caller, of.status.id).await?,
            is_own: is_own(caller, &of),
            is_working: of.turn_id.is_some(),
            agent: of.status.agent,
            session,
            lines,
            before,
            allowed: &ALLOWED,
            text,
            event: random_name()?,
        },
    ))
}

/// Returns whether the caller writes into a conversation: it is theirs, with their own host.
fn is_own(caller: &Caller, of: &Session) -> bool {
    of.channel == loopback::NAME && of.person == Some(caller.person.id)
}

/// A part of a conversation.
pub(super) struct Part {
    pub lines: Vec<Said>,
    /// The number of the first line, if there are earlier ones.
    pub before: Option<u64>,
}

/// Returns lines of a conversation: the newest ones, or those before a number.
pub(super) async fn part(caller: &Caller, of: &Session, before: Option<u64>) -> Result<Part, Answer> {
    // One more shows whether there are earlier ones.
    let query = transcript::Page::last(LINES + 1, before);
    let found = transcript::shown(caller, of.status.id, query).await?;
    let mut items = found.items;
    let earlier = items.len().saturating_sub(LINES);
    items.drain(..earlier);
    let before = items.first().map(|item| item.seq).filter(|_| earlier > 0);
    let settings = caller.api.gateway.now();
    let person = of.person_name.as_deref().or(of.asked_by.as_deref()).unwrap_or(&of.channel);
    let names = said::Names { person, agent: &found.agent };
    Ok(Part { lines: said::lines(items, &names, settings.host_policy.zone.zone.rules()), before })
}

/// Returns what waits for the person in a conversation.
pub(super) async fn requests(caller: &Caller, session: SessionId) -> Result<Vec<Request>, Answer> {
    let Json(found) = waiting::list(caller.clone(), Query(waiting::ListQuery::in_session(session))).await?;
    let here = found.entries.into_iter().filter(|entry| entry.yours);
    Ok(here.map(|entry| Request { id: entry.id, effect: words::shown(entry.question, entry.effect) }).collect())
}

/// Returns what waits in a conversation as HTML.
pub(super) async fn requests_html(caller: &Caller, session: SessionId) -> Result<String, Answer> {
    let requests = requests(caller, session).await?;
    Requests { requests }.render().map_err(|error| Answer::broken(&error))
}

/// `POST /conversations/{session}/messages`
pub async fn send(Path(session): Path<String>, Posted { visit, mut fields }: Posted) -> Result<Response, Answer> {
    let text = fields.get("text").to_owned();
    match sent_message(&visit.caller, &session, &mut fields).await {
        Ok(()) => Ok(pages::see_other(&format!("/conversations/{session}"))),
        // The page keeps the text.
        Err(answer) => talk(&visit, session, None, Some(answer.into()), text).await,
    }
}

async fn sent_message(caller: &Caller, session: &str, fields: &mut Fields) -> Result<(), Answer> {
    let Json(of) = sessions::show(caller.clone(), Path(session.to_owned())).await?;
    let typed = typed::read(fields)?;
    let allow = Some(fields.take("allow")).filter(|given| ALLOWED.iter().any(|allowed| allowed.word == given));
    let new = NewMessage {
        text: typed.text,
        quoted: typed.quoted,
        untyped: !typed.is_typed,
        files: std::mem::take(&mut fields.files).into_iter().map(attached).collect(),
        thread: Some(of.thread.clone()).filter(|name| !name.is_empty()),
        allow: allow.into_iter().collect(),
        // The script sends several messages from one page. Without it, a form that is sent twice is one message.
        event_id: fields.given("event").filter(|_| !typed.is_typed).map(str::to_owned),
        ..NewMessage::default()
    };
    if !is_own(caller, &of) {
        return Err(Answer::noted(crate::sessions::store::unknown(session)));
    }
    let sent = messages::send(caller.clone(), Path(of.status.agent), Query(messages::Wait::none()), Body(new));
    sent.await.map(drop)
}

/// Returns a file of a form as a message has it.
fn attached(File { name, bytes }: File) -> MessageFile {
    let is_text = media_type(&bytes) == file::TEXT && bytes.len() <= TEXT_BYTES_MAX;
    match String::from_utf8(bytes.into()) {
        Ok(text) if is_text => MessageFile { name, text, ..MessageFile::default() },
        Ok(text) => MessageFile { name, data: Some(STANDARD.encode(text)), ..MessageFile::default() },
        Err(other) => MessageFile { name, data: Some(STANDARD.encode(other.into_bytes())), ..MessageFile::default() },
    }
}

/// `POST /conversations/{session}/cancel`
pub async fn cancel(Path(session): Path<String>, Posted { visit, .. }: Posted) -> Result<Response, Answer> {
    let _ = stops::cancel(visit.caller, Path(session.clone())).await?;
    Ok(pages::see_other(&format!("/conversations/{session}")))
}

/// `GET /files/{call}`: a file that an agent sent. An image by its content is shown; everything else is only handed out.
pub async fn file(visit: Visit, Path(call): Path<String>) -> Result<Response, Answer> {
    let (name, bytes) = files::sent_bytes(visit.caller, &call).await?;
    let kind = media_type(&bytes);
    let (kind, disposition) =
        if file::is_image(kind) { (kind, "inline") } else { ("application/octet-stream", "attachment") };
    // Other characters have no meaning in a header, and an ending decides what a desktop opens.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let disposition = format!("{disposition}; filename=\"{name}\"");
    Ok(([(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, disposition)], bytes).into_response())
}
