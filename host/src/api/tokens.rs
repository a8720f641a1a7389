//! Tokens over the API: create, list, revoke, rotate, and their expiry.
//!
//! The text of a token is only in the answer that made it, and in the owner's own file. See `registry::tokens`.

use super::auth::Current;
use super::connections::Connections;
use super::handler::{Answer, Api, Body, Caller, Reply};
use crate::registry::people::record_refusal;
use crate::registry::tokens;
use crate::registry::{self, FreshToken, Giver, Person, Role, Token, TokenId, TokenState};
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_operator::{self as operator, IssuedToken, LedgerEvent, NewToken};
use ironclaw_state::ReadTx;
use ironclaw_state::home;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::worker::{self, Due, Wait};
use ironclaw_text::excerpt::{quoted, start};
use jiff::{Span, SpanRelativeTo, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// `GET /v1/tokens`: the caller's tokens; an owner sees all.
pub async fn list(Caller { api, person, current: Current(current), .. }: Caller) -> Reply<Vec<operator::Token>> {
    let found = api.state().read(registry::tokens).await?;
    let shown = found.iter().filter(|token| may_manage(&person, token));
    Ok(Json(shown.map(|token| view(token, &current)).collect()))
}

/// `POST /v1/tokens`
pub async fn create(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Body(new): Body<NewToken>,
) -> Reply<IssuedToken> {
    let expires_at = new.expires.as_deref().map(|text| end_of(text, ironclaw_state::wall_clock())).transpose()?;
    let fresh = FreshToken::new()?;
    let text = fresh.text().to_owned();
    let giver = Giver { person: by.id, token: Some(current.clone()) };
    let issued = api
        .state()
        .decide(move |tx| {
            let person = registry::known_person(tx, &by, &new.person).map_err(|denied| {
                denied.noted(|refusal| record_refusal(tx, LedgerEvent::TokenRefused, by.id, refusal))
            })?;
            tokens::issue(tx, &person, &new.name, expires_at, &fresh, giver)
        })
        .await?;
    api.people_changed();
    Ok(Json(IssuedToken { token: view(&issued, &current), text: Some(text), saved_to: None }))
}

/// `DELETE /v1/tokens/{id}`
pub async fn revoke(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path(id): Path<String>,
) -> Reply<operator::Token> {
    let asking = current.clone();
    let ended = api
        .state()
        .decide(move |tx| {
            let token = managed(tx, &id, &asking, &by)?;
            tokens::revoke(tx, &token, &asking, by.id)
        })
        .await
        .map_err(Answer::denied)?;
    api.people_changed();
    Ok(Json(view(&ended, &current)))
}

/// `POST /v1/tokens/{id}/rotate`: `current` for the token of the request.
///
/// A token in the owner's file is replaced in that file, which is complete at every moment. The new text is in a second file before the old
/// token ends, and a start of the host adopts it after a crash in between.
pub async fn rotate(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path(id): Path<String>,
) -> Reply<IssuedToken> {
    // Two rotations at once would both write the second file, and one would adopt the token of the other.
    let _alone = api.callers.rotating.lock().await;
    let fresh = FreshToken::new()?;
    let text = fresh.text().to_owned();
    let (wanted, asking) = (id.clone(), current.clone());
    let person = by.clone();
    let old = api.state().read(move |tx| managed(tx, &wanted, &asking, &person)).await.map_err(Answer::denied)?;
    let home = &api.about.home;
    let in_file = holds(home, &old.digest);
    if in_file {
        home::write_private(&home.owner_token_next(), text.as_bytes())?;
    }
    ironclaw_state::failpoint::reach("token_prepared");
    let asking = current.clone();
    let giver = Giver { person: by.id, token: Some(current.clone()) };
    let rotated = api.state().decide(move |tx| {
        let token = managed(tx, &id, &asking, &by)?;
        tokens::rotate(tx, &token, &fresh, giver)
    });
    let token = rotated.await.map_err(Answer::denied)?;
    api.people_changed();
    ironclaw_state::failpoint::reach("token_rotated");
    if in_file {
        home.adopt_owner_token()?;
        let saved_to = Some(home.owner_token().display().to_string());
        return Ok(Json(IssuedToken { token: view(&token, &current), text: None, saved_to }));
    }
    Ok(Json(IssuedToken { token: view(&token, &current), text: Some(text), saved_to: None }))
}

/// Returns true if the owner's file holds the token of this digest.
fn holds(home: &home::Home, digest: &Digest) -> bool {
    let held = home::read_small(&home.owner_token()).unwrap_or_default();
    bool::from(Digest::of(held.trim().as_bytes()).as_bytes().ct_eq(digest.as_bytes()))
}

fn may_manage(person: &Person, token: &Token) -> bool {
    person.role == Role::Owner || token.person.id == person.id
}

/// Returns the token of this id (or `current`), if the person may manage it.
fn managed(tx: &ReadTx<'_>, id: &str, current: &TokenId, by: &Person) -> Result<Token, Denied> {
    let wanted = if id == "current" { Some(current.clone()) } else { id.parse().ok() };
    let found = wanted.map(|wanted| tokens::find_token(tx, &wanted)).transpose()?.flatten();
    match found {
        Some(token) if may_manage(by, &token) => Ok(token),
        Some(_) => {
            let refusal =
                Refusal::new(DenialCode::TokenNotYours, format!("{} is another person's token", start(id, 64)));
            Err(refusal.hint("only an owner manages the tokens of others").into())
        }
        None => {
            let refusal = Refusal::new(DenialCode::TokenUnknown, format!("there is no token {}", quoted(id)));
            Err(refusal.hint("`ironctl token list` shows the ids").into())
        }
    }
}

/// Returns the end of a token that is made at `now`: a duration from then, or RFC 3339.
pub(super) fn end_of(text: &str, now: i64) -> Result<i64, Answer> {
    instant(text, now, Side::After).ok_or_else(|| {
        let message = format!(
            "invalid expiry {}: give a duration such as 30d, or RFC 3339 such as 2027-01-31T12:00:00Z",
            quoted(text)
        );
        Refusal::new(DenialCode::ExpiryMalformed, message).into()
    })
}

/// The side of now on which a duration ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// Returns the instant of RFC 3339, or the one at a duration from now; `None` for another text.
pub(super) fn instant(text: &str, now: i64, side: Side) -> Option<i64> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    let span: Span = text.parse().ok()?;
    // A day is 24 hours here, since the text has no time zone. Months and years have no length without one.
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    let length = i64::try_from(length.as_millis()).ok()?;
    let at = match side {
        Side::Before => now.checked_sub(length),
        Side::After => now.checked_add(length),
    };
    at.filter(|at| Timestamp::from_millisecond(*at).is_ok())
}

/// Returns a token as a list shows it.
pub fn view(token: &Token, current: &TokenId) -> operator::Token {
    operator::Token {
        id: token.id.clone(),
        person: token.person.id,
        person_name: token.person.name.clone(),
        name: token.name.clone(),
        face: token.face,
        state: token.state,
        created_at: ironclaw_ledger::rfc3339(token.created_at),
        expires_at: token.expires_at.map(ironclaw_ledger::rfc3339),
        ended_at: token.ended_at.map(ironclaw_ledger::rfc3339),
        current: token.id == *current,
    }
}

/// The ends of tokens: an expiry is recorded when it is due, and each connection whose token ended loses its admission.
///
/// A recorded expiry holds even if no request comes with the token before a clock is set back. A connection has a moment to show another
/// token.
struct TokenEnds {
    api: Api,
    sockets: Vec<Connections>,
}

impl Due for TokenEnds {
    const FAILED: &'static str = "ended tokens were not withdrawn; the host tries again";
    const RETRY_AFTER: Duration = Duration::from_secs(1);
    const PAUSE_MAX: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let Self { api, sockets } = self;
        let look = |tx: &ReadTx<'_>| Ok::<_, Error>((tokens::next_expiry(tx)?, tx.expiry_time()));
        let (next, now) = api.state().read(look).await?;
        if next.is_some_and(|next| next <= now) {
            api.state().write(tokens::expire).await?;
            api.callers.tokens.invalidate();
            return Ok(Wait::AtMost(Duration::ZERO));
        }
        let tokens = api.state().read(registry::tokens).await?;
        let is_live = |id: &TokenId| tokens.iter().any(|token| token.id == *id && token.state == TokenState::Live);
        sockets.iter().for_each(|connections| connections.withdraw_unless(is_live));
        api.console.withdraw(&tokens).await;
        Ok(next.map_or(Wait::Bell, |next| Wait::until(next, now)))
    }
}

/// Ends tokens that are due and withdraws the admission of their connections, until the host stops.
pub async fn end_due(api: Api, sockets: Vec<Connections>, shutdown: Shutdown) {
    let callers = Arc::clone(&api.callers);
    worker::run(TokenEnds { api, sockets }, &callers.token_changes, &shutdown).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_a_duration_or_a_time_and_nothing_vague() {
        let now = 1_700_000_000_000;
        let end = |text: &str| end_of(text, now).ok();
        assert_eq!(end("30d"), Some(now + 30 * 86_400_000));
        assert_eq!(end("1d12h"), Some(now + 129_600_000));
        assert_eq!(end("2s"), Some(now + 2000));
        assert_eq!(end("2w"), Some(now + 14 * 86_400_000));
        assert_eq!(end("2027-01-31T12:00:00Z"), Some(1_801_396_800_000));
        assert_eq!(end("2027-01-31T12:00:00+01:00"), Some(1_801_393_200_000));
        for vague in ["", "soon", "30", "1mo", "1y", "2027-01-31", "2027-01-31T12:00:00", "999999999999d"] {
            assert_eq!(end(vague), None, "{vague}");
        }
    }
}
