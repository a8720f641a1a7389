//! The session of a browser: its cookie, its caller, and the way of every request.
//!
//! A cookie opens the console only, as a token opens the API only. Each request has a task of its own, as in [`crate::api::auth`].

use super::guard::{self, single};
use super::pages;
use super::visit::{Visit, missing};
use crate::api::answer::{Noted, Refused};
use crate::api::auth::{Caller, Current, Peer, check_valid, in_own_task};
use crate::api::callers::Freshness;
use crate::api::connections::TrackedBody;
use crate::api::handler::{Answer, Api};
use crate::registry::Face;
use crate::registry::tokens::{self, PREFIX, TEXT_CHARACTERS};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ironclaw_contract::canonical::Digest;

/// The word for the console in the ledger.
const VIA: &str = "console";

/// Returns the name of the cookie. With TLS, no page under another name of the same site can set it (`__Host-`).
const fn cookie_name(is_https: bool) -> &'static str {
    if is_https { "__Host-ironclaw_console" } else { "ironclaw_console" }
}

/// Returns the cookie of a session with this text, which ends with the session.
pub fn cookie(text: &str, is_https: bool) -> String {
    set_cookie(text, tokens::SESSION_IDLE_MS / 1000, is_https)
}

/// Returns the cookie that ends one.
pub fn no_cookie(is_https: bool) -> String {
    set_cookie("", 0, is_https)
}

fn set_cookie(text: &str, seconds: i64, is_https: bool) -> String {
    let (name, secure) = (cookie_name(is_https), if is_https { "; Secure" } else { "" });
    format!("{name}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// Leads every request through the guard, finds its session, and gives every answer its headers.
pub async fn enter(
    State(api): State<Api>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let (in_flight, is_read_only) = (peer.begin_request(), request.method().is_safe());
    let mut response = match in_own_task(is_read_only, handle(api, peer, request, next)).await {
        Ok(response) => response,
        Err(error) => pages::refused(None, &Answer::task_ended(&error).into()),
    };
    guard::protect(&mut response);
    response.map(|body| TrackedBody::hold(body, in_flight))
}

async fn handle(api: Api, peer: Peer, mut request: Request, next: Next) -> Response {
    let Some(place) = api.console.place() else { return pages::refused(None, &missing().into()) };
    if let Err(refusal) = guard::check(&request, &place.origin) {
        api.callers.refusals.note((refusal.code, VIA)).await;
        return pages::refused(None, &refusal.into());
    }
    let is_https = place.is_https();
    let (visit, cookie) = match find(&api, request.headers(), is_https).await {
        Ok(found) => (found.visit, found.cookie),
        Err(answer) => return pages::refused(None, &answer.into()),
    };
    let is_form = *request.method() == Method::POST && request.headers().contains_key(CONTENT_TYPE);
    match &visit {
        Some(visit) => {
            if let Err(refusal) = peer.admit(&visit.session) {
                return pages::refused(Some(visit), &refusal.into());
            }
            request.extensions_mut().insert(visit.caller.person.clone());
            request.extensions_mut().insert(visit.caller.current.clone());
            request.extensions_mut().insert(Face::Console);
            request.extensions_mut().insert(visit.clone());
        }
        None if is_form && request.uri().path() != guard::SIGN_IN => {
            return super::sign_in::keep_typed(request, &api).await;
        }
        None => {}
    }
    let mut response = next.run(request).await;
    if let Some(Noted(code)) = response.extensions_mut().remove() {
        api.callers.refusals.note((code, VIA)).await;
    }
    let mut response = match response.extensions_mut().remove::<Refused>() {
        Some(refused) => pages::refused(visit.as_ref(), &refused),
        None if response.status().is_client_error() && !pages::is_page(&response) => {
            pages::refused(visit.as_ref(), &pages::unreadable(response.status()))
        }
        None => response,
    };
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok())
        && !response.headers().contains_key(SET_COOKIE)
    {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// The visit of a request, if it has a session, and the cookie that the browser gets: a later end, or none for a session that is over.
#[derive(Default)]
struct Found {
    visit: Option<Visit>,
    cookie: Option<String>,
}

/// Lets a request pass that has a session. Wraps every page but those of the sign-in.
pub async fn require(request: Request, next: Next) -> Response {
    match request.extensions().get::<Visit>() {
        Some(_) => next.run(request).await,
        None => missing().into_response(),
    }
}

/// Finds the session of a request. A cookie that is wrong or over is none: its person signs in again.
async fn find(api: &Api, headers: &HeaderMap, is_https: bool) -> Result<Found, Answer> {
    let Some(text) = read_cookie(headers, cookie_name(is_https)) else { return Ok(Found::default()) };
    let digest = Digest::of(text.as_bytes());
    let found = api.callers.tokens.find(api.state(), &digest, Freshness::Cached).await?;
    let now = ironclaw_state::wall_clock();
    let found = found.filter(|token| token.face == Face::Console && check_valid(token, now).is_ok());
    let Some(session) = found else { return Ok(Found { visit: None, cookie: Some(no_cookie(is_https)) }) };
    let mut set = None;
    if let Some(until) = tokens::extended_end(&session, now) {
        let id = session.id.clone();
        let extend = move |tx: &mut ironclaw_state::WriteTx<'_>| {
            tx.defer();
            tokens::extend_session(tx, &id, until)
        };
        api.state().write(extend).await?;
        api.callers.tokens.invalidate();
        set = Some(cookie(text, is_https));
    }
    api.callers.record_use(api.state(), &session);
    let current = Current(session.id.clone());
    let caller = Caller { api: api.clone(), person: session.person.clone(), current, face: Face::Console };
    let visit = Visit { caller, session, form_token: form_token(text) };
    Ok(Found { visit: Some(visit), cookie: set })
}

/// Returns the token of a session's forms. It does not reveal the cookie, and only who has the cookie can make it.
fn form_token(cookie: &str) -> String {
    Digest::of(format!("ironclaw console form {cookie}").as_bytes()).to_string()
}

/// Returns the text of the cookie, if the request has exactly one of its form.
fn read_cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let mut found = single(headers, &COOKIE)?
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == wanted);
    let ((_, text), None) = (found.next()?, found.next()) else { return None };
    let is_formed = text.len() == TEXT_CHARACTERS && text.starts_with(PREFIX);
    is_formed.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE_NAME: &str = cookie_name(false);

    #[test]
    fn cookie_is_one_of_its_form_or_none() {
        let text = format!("{PREFIX}{}", "a".repeat(64));
        let read = |cookies: &[&str]| {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(COOKIE, HeaderValue::from_str(cookie).expect("a header"));
            }
            read_cookie(&headers, COOKIE_NAME).map(str::to_owned)
        };
        let own = format!("{COOKIE_NAME}={text}");
        assert_eq!(read(&[&own]), Some(text.clone()));
        assert_eq!(read(&[&format!("other=1; {own}")]), Some(text.clone()));
        for wrong in [format!("{own}; {own}"), format!("{COOKIE_NAME}=ict_short"), format!("x{own}"), String::new()] {
            assert_eq!(read(&[&wrong]), None, "{wrong}");
        }
        assert_eq!(read(&[&own, &own]), None, "two headers");
        assert_ne!(form_token(&text), form_token("other"));
        let secure = cookie(&text, true);
        assert!(
            secure.starts_with("__Host-") && secure.ends_with("; Secure") && !cookie(&text, false).contains("Secure")
        );
    }
}
