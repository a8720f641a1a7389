//! The way into the console and out of it.
//!
//! A code signs its person in once. A form of another origin (the local file of `ironctl console`) uses nothing up: it gets a page that
//! names the person and has a button to continue. So no page can put a stranger's session into a browser. See `api::console_state::codes`.

use super::decision;
use super::fields::{Fields, Posted};
use super::pages::{self, Frame, Notice, page};
use super::session;
use super::visit::{self, Visit};
use super::words;
use crate::api::answer::Refused;
use crate::api::handler::{Answer, Api};
use crate::registry::{FreshToken, tokens};
use askama::Template;
use axum::extract::{FromRequest, Request, State};
use axum::http::header::{ORIGIN, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ironclaw_operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use tokio::time::Instant;

/// Characters of the name of a session.
const NAME_CHARACTERS_MAX: usize = 40;

#[derive(Template)]
#[template(path = "continue.html")]
struct ContinuePage {
    frame: Frame,
    person: String,
    code: String,
}

#[derive(Template)]
#[template(path = "ended.html")]
struct EndedPage {
    frame: Frame,
    /// What the person typed, by the name of its field.
    typed: Vec<(&'static str, String)>,
}

/// `GET /`: the inbox, or the field for a code.
pub async fn home(visit: Option<axum::Extension<Visit>>) -> Response {
    match visit {
        Some(_) => pages::see_other("/inbox"),
        None => pages::sign_in_page(StatusCode::OK, None),
    }
}

/// `POST /sign-in`: a code becomes a session.
pub async fn sign_in(State(api): State<Api>, visit: Option<axum::Extension<Visit>>, request: Request) -> Response {
    let headers = request.headers().clone();
    match signed_in(&api, visit.map(|visit| visit.0), &headers, request).await {
        Ok(response) => response,
        Err(answer) => {
            let noted = answer.noted;
            let refused = Refused::from(answer);
            let mut response = pages::sign_in_page(refused.status, Some(Notice::from(&refused)));
            if let Some(code) = noted {
                response.extensions_mut().insert(crate::api::answer::Noted(code));
            }
            response
        }
    }
}

async fn signed_in(api: &Api, visit: Option<Visit>, headers: &HeaderMap, request: Request) -> Result<Response, Answer> {
    let is_local_form = headers.get(ORIGIN).is_some_and(|origin| origin == "null");
    let code = Fields::from_request(request, api).await?.take("code");
    let now = Instant::now();
    let Some(holder) = api.console.codes.peek(&code, now) else { return Err(wrong_code(api)) };
    if let Some(visit) = visit.as_ref().filter(|visit| visit.caller.person.id != holder.person.id) {
        let message = format!("this browser has a session of {}", visit.caller.person.name);
        let refusal = Refusal::new(DenialCode::SessionOfAnother, message);
        return Err(refusal.hint("sign out first, or use another browser or profile").into());
    }
    if is_local_form {
        let (frame, person) = (Frame::outside(words::SIGN_IN), holder.person.name);
        return Ok(page(StatusCode::OK, &ContinuePage { frame, person, code }));
    }
    let Some(holder) = api.console.codes.take(&code, now) else { return Err(wrong_code(api)) };
    let (fresh, name) = (FreshToken::new()?, name_of(headers));
    let text = fresh.text().to_owned();
    let (person, giver) = (holder.person.id, holder.giver);
    let begin = move |tx: &mut WriteTx<'_>| {
        let begun = tokens::begin_session(tx, person, &name, &fresh, &giver)?;
        // It replaces the one of this browser. A refused code ends nothing.
        if let Some(visit) = &visit {
            tokens::end_session(tx, &visit.session, Some(person))?;
        }
        Ok::<_, Denied>(begun)
    };
    api.state().decide(begin).await?;
    api.people_changed();
    let is_https = api.console.place().is_some_and(|place| place.is_https());
    Ok(with_cookie(pages::see_other("/inbox"), &session::cookie(&text, is_https)))
}

/// Returns the refusal of a code. A valid code is never delayed by wrong ones.
fn wrong_code(api: &Api) -> Answer {
    if !api.callers.failures.allow(None, Instant::now()) {
        let refusal = Refusal::new(DenialCode::TooManyFailures, "too many wrong codes came");
        return refusal.hint("wait a second, and get a new code: `ironctl console`").into();
    }
    let refusal = Refusal::new(DenialCode::CodeUnknown, "the code is wrong, used, or older than a minute");
    Answer::noted(refusal.hint("get a new code: `ironctl console --print`"))
}

/// Returns a name for the list of tokens: the words of the browser about itself, which prove nothing.
fn name_of(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let plain = agent.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(NAME_CHARACTERS_MAX);
    format!("console {}", plain.collect::<String>()).trim().to_owned()
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// `POST /sign-out`: ends the session of this browser.
pub async fn sign_out(State(api): State<Api>, Posted { visit, .. }: Posted) -> Result<Response, Answer> {
    let (session, by) = (visit.session.clone(), visit.caller.person.id);
    api.state().write(move |tx: &mut WriteTx<'_>| tokens::end_session(tx, &session, Some(by))).await?;
    api.people_changed();
    let is_https = api.console.place().is_some_and(|place| place.is_https());
    let page = pages::sign_in_page(StatusCode::OK, Some(Notice::done(words::SIGNED_OUT)));
    Ok(with_cookie(page, &session::no_cookie(is_https)))
}

/// `POST /confirm`: a fresh code of the same person confirms the session.
pub async fn confirm(State(api): State<Api>, Posted { visit, mut fields }: Posted) -> Result<Response, Answer> {
    let back = fields.take("back");
    // Only a path of the console: never an address of elsewhere.
    let is_own = |path: &str| path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_-".contains(&byte));
    let back = if back.starts_with("/waiting/") && is_own(&back) { back } else { "/inbox".to_owned() };
    if let Err(answer) = confirmed(&api, &visit, fields.get("code")).await {
        return decision::again(&visit, &back, answer).await;
    }
    Ok(pages::see_other(&back))
}

async fn confirmed(api: &Api, visit: &Visit, code: &str) -> Result<(), Answer> {
    let now = Instant::now();
    let Some(holder) = api.console.codes.peek(code, now) else { return Err(wrong_code(api)) };
    if holder.person.id != visit.caller.person.id {
        let message = format!("the code is one of {}", holder.person.name);
        return Err(Refusal::new(DenialCode::SessionOfAnother, message).hint("get one of your own").into());
    }
    if api.console.codes.take(code, now).is_none() {
        return Err(wrong_code(api));
    }
    let (session, giver) = (visit.session.clone(), holder.giver);
    let confirm = move |tx: &mut WriteTx<'_>| tokens::confirm_session(tx, &session, &giver);
    api.state().decide(confirm).await?;
    Ok(())
}

/// Answers a form of a session that has ended: what the person typed is on the page, and nothing was sent.
pub async fn keep_typed(request: Request, api: &Api) -> Response {
    let mut fields = Fields::from_request(request, api).await.unwrap_or_default();
    let named = [("text", words::TYPED_TEXT), ("reason", words::TYPED_REASON)];
    let typed = named.map(|(name, label)| (label, fields.take(name)));
    let typed = typed.into_iter().filter(|typed| !typed.1.trim().is_empty()).collect();
    let notice = Some(Notice::from(&Refused::from(visit::missing())));
    let frame = Frame::outside(words::ENDED).with(notice);
    page(StatusCode::UNAUTHORIZED, &EndedPage { frame, typed }).into_response()
}
