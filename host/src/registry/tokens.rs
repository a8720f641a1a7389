//! The tokens that authenticate people to this host, stored as digests.
//!
//! Never stores the text of a token, and never revives one: expired and revoked are stored states, not a comparison with the clock. See
//! [`mod@crate::registry::people`] and `crate::api::auth`.

pub use ironclaw_store::tables::people::{
    Face, Token, TokenState, find_token, is_live, next_expiry, record_token_use as record_use, tokens,
};

use super::people::refuse;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent, TokenId};
use ironclaw_state::keys;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables;
use ironclaw_store::tables::people::{Giver, NewToken, Person};
use zeroize::Zeroizing;

/// The prefix of every token, so that a search can find a leaked token.
pub const PREFIX: &str = "ict_";

/// Characters of a token: the prefix and 256 random bits in hex.
pub const TEXT_CHARACTERS: usize = PREFIX.len() + 64;

/// Name of the token in the home's own file.
pub const FILE_TOKEN_NAME: &str = "owner.token";

/// Live tokens of a host: each request is compared with all of them.
const LIVE_MAX: i64 = 1024;

/// Ended tokens that are kept, so that a client that still uses one learns the reason of the refusal.
const ENDED_KEPT_MAX: i64 = 1024;

/// Characters of a token's name.
const NAME_CHARACTERS_MAX: usize = 64;

/// A new token that has no owner yet; its text exists here alone.
pub struct FreshToken {
    id: TokenId,
    text: Zeroizing<String>,
}

impl FreshToken {
    /// Makes a token with random text and id.
    ///
    /// # Errors
    /// Fails if the system gives no random bytes.
    pub fn new() -> Result<Self, keys::Error> {
        let secret = Digest::from_bytes(keys::random()?);
        Ok(Self { id: TokenId::from_random(keys::random()?), text: Zeroizing::new(format!("{PREFIX}{secret}")) })
    }

    /// Returns the text, which is shown once.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the digest, which is stored.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }
}

/// Issues a token to a person.
///
/// # Errors
/// Refuses an expiry in the past, a malformed name, and a token beyond the bound, and records the refusal in the ledger.
pub fn issue(
    tx: &mut WriteTx<'_>,
    person: &Person,
    name: &str,
    expires_at: Option<i64>,
    fresh: &FreshToken,
    by: impl Into<Giver>,
) -> Result<Token, Denied> {
    let giver = by.into();
    let by = giver.person;
    if name.chars().count() > NAME_CHARACTERS_MAX || name.chars().any(char::is_control) || name == FILE_TOKEN_NAME {
        let message = format!(
            "a token's name has up to {NAME_CHARACTERS_MAX} characters without control characters, and is not {FILE_TOKEN_NAME}"
        );
        return refuse(tx, LedgerEvent::TokenRefused, by, Refusal::new(DenialCode::TokenName, message));
    }
    if expires_at.is_some_and(|at| at <= tx.wall()) {
        let refusal = Refusal::new(DenialCode::ExpiryPassed, "a token cannot end before it begins");
        let refusal = refusal.hint("give a time in the future, or a duration such as 30d");
        return refuse(tx, LedgerEvent::TokenRefused, by, refusal);
    }
    check_room(tx, by)?;
    insert(tx, person.id, name, Face::Program, expires_at, fresh)?;
    let entry = Entry::new(LedgerEvent::TokenCreated).with("expires_at", expires_at);
    let seq = about(entry, &fresh.id, person.id).with("by", by).append(tx)?;
    tables::people::record_token_giver(tx, &fresh.id, seq, Some(&giver))?;
    Ok(find_new(tx, &fresh.id)?)
}

/// Sessions of one person; the oldest gives way to a new one.
const SESSIONS_MAX: usize = 16;

/// Milliseconds after the last request at which a session of the console ends.
pub const SESSION_IDLE_MS: i64 = 12 * 3_600_000;

/// Milliseconds between two records of the end of a session in use.
const EXTENDED_EVERY_MS: i64 = 60_000;

/// Begins a session of the console for a person, after a code confirmed them. `by` asked for the code.
///
/// # Errors
/// Refuses a session beyond the bound on tokens, and records the refusal in the ledger.
pub fn begin_session(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    name: &str,
    fresh: &FreshToken,
    by: &Giver,
) -> Result<Token, Denied> {
    check_giver(tx, by)?;
    let own = tables::people::live_tokens_of(tx, person)?;
    let sessions: Vec<&Token> = own.iter().filter(|token| token.face == Face::Console).collect();
    if let Some(oldest) = sessions.first().filter(|_| sessions.len() >= SESSIONS_MAX) {
        end_session(tx, oldest, None)?;
    }
    check_room(tx, by.person)?;
    let (face, now, until) = (Face::Console, tx.wall(), tx.wall() + SESSION_IDLE_MS);
    insert(tx, person, name, face, Some(until), fresh)?;
    tables::people::confirm_token(tx, &fresh.id, now)?;
    let entry = Entry::new(LedgerEvent::TokenCreated).with("face", face).with("expires_at", until);
    let seq = about(entry, &fresh.id, person).with("by", by.person).append(tx)?;
    tables::people::record_token_giver(tx, &fresh.id, seq, Some(by))?;
    Ok(find_new(tx, &fresh.id)?)
}

/// Refuses a code whose token ended after it was made.
fn check_giver(tx: &mut WriteTx<'_>, by: &Giver) -> Result<(), Denied> {
    let token = by.token.as_ref().map(|id| find_token(tx, id)).transpose()?.flatten();
    let is_live = |token: &Token| token.state == TokenState::Live && token.expires_at.is_none_or(|at| tx.wall() < at);
    if token.as_ref().is_some_and(is_live) {
        return Ok(());
    }
    let refusal = Refusal::new(DenialCode::CodeUnknown, "the token that asked for the code has ended");
    let refusal = refusal.hint("get a new code: `ironctl console --print`");
    refuse(tx, LedgerEvent::TokenRefused, by.person, refusal)
}

/// Records that a code confirmed the person of a session. `by` asked for the code.
///
/// # Errors
/// Refuses a code whose token has ended.
pub fn confirm_session(tx: &mut WriteTx<'_>, session: &Token, by: &Giver) -> Result<(), Denied> {
    check_giver(tx, by)?;
    let now = tx.wall();
    tables::people::confirm_token(tx, &session.id, now)?;
    about(Entry::new(LedgerEvent::TokenConfirmed), &session.id, session.person.id).append(tx)?;
    Ok(())
}

/// Returns the new end of a session that is in use, if it is time to record one.
pub fn extended_end(session: &Token, now: i64) -> Option<i64> {
    let until = now + SESSION_IDLE_MS;
    session.expires_at.filter(|before| until - before >= EXTENDED_EVERY_MS).map(|_| until)
}

/// Sets the end of a session that is in use.
pub fn extend_session(tx: &mut WriteTx<'_>, id: &TokenId, until: i64) -> Result<(), ironclaw_state::Error> {
    tables::people::extend_token(tx, id, until)
}

/// Ends a session; `by` is `None` if no person asked for it.
pub fn end_session(tx: &mut WriteTx<'_>, session: &Token, by: Option<PersonId>) -> Result<(), ironclaw_state::Error> {
    end(tx, session, TokenState::Revoked)?;
    about(Entry::new(LedgerEvent::TokenRevoked), &session.id, session.person.id).with("by", by).append(tx)?;
    Ok(())
}

/// Issues the token for the home's own file to a person, and revokes the previous token of the file.
pub fn issue_for_file(tx: &mut WriteTx<'_>, person: PersonId, fresh: &FreshToken) -> Result<(), ironclaw_state::Error> {
    for lost in tables::people::live_tokens_named(tx, person, FILE_TOKEN_NAME)? {
        end(tx, &lost, TokenState::Revoked)?;
        about(Entry::new(LedgerEvent::TokenRevoked), &lost.id, person).append(tx)?;
        end_given_sessions(tx, &lost)?;
    }
    insert(tx, person, FILE_TOKEN_NAME, Face::Program, None, fresh)?;
    let seq = about(Entry::new(LedgerEvent::TokenCreated), &fresh.id, person).append(tx)?;
    tables::people::record_token_giver(tx, &fresh.id, seq, None)?;
    Ok(())
}

fn insert(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    name: &str,
    face: Face,
    expires_at: Option<i64>,
    fresh: &FreshToken,
) -> Result<(), ironclaw_state::Error> {
    tables::people::delete_ended_tokens(tx, ENDED_KEPT_MAX)?;
    let created_at = tx.now();
    let new = NewToken { id: &fresh.id, digest: fresh.digest(), person, name, face, created_at, expires_at };
    tables::people::insert_token(tx, &new)
}

/// Refuses a token beyond the bound of the host.
fn check_room(tx: &mut WriteTx<'_>, by: PersonId) -> Result<(), Denied> {
    let live = tables::people::count_live_tokens(tx)?;
    if live < LIVE_MAX {
        return Ok(());
    }
    let remedy = "remove some: `ironctl token list`, `ironctl token remove`";
    let bound = Bound::new("live tokens of this host", LIVE_MAX, live, remedy);
    refuse(tx, LedgerEvent::TokenRefused, by, Refusal::over(DenialCode::TokensTooMany, bound))
}

fn find_new(tx: &ReadTx<'_>, id: &TokenId) -> Result<Token, ironclaw_state::Error> {
    find_token(tx, id)?.ok_or_else(|| ironclaw_state::Error::Stored(format!("{id} vanished while it was made")))
}

fn about(entry: Entry, id: &TokenId, person: PersonId) -> Entry {
    entry.with("token", id.clone()).with("person", person)
}

fn end(tx: &mut WriteTx<'_>, token: &Token, state: TokenState) -> Result<(), ironclaw_state::Error> {
    let now = tx.now();
    tables::people::end_token(tx, &token.id, state, now)
}

/// Ends the sessions of the console that the codes of an ended token began: a session is worth no more than the token behind it.
fn end_given_sessions(tx: &mut WriteTx<'_>, token: &Token) -> Result<(), ironclaw_state::Error> {
    for session in tables::people::live_tokens_of(tx, token.person.id)? {
        let is_given = |giver: &Giver| giver.token.as_ref() == Some(&token.id);
        let given = tables::people::token_given(tx, &session.id)?;
        if session.face == Face::Console && given.is_some_and(|given| given.by.iter().any(is_given)) {
            end_session(tx, &session, None)?;
        }
    }
    Ok(())
}

/// Ends every session of the console, and returns their number.
pub fn end_sessions(tx: &mut WriteTx<'_>, by: Option<PersonId>) -> Result<usize, ironclaw_state::Error> {
    let is_session = |token: &Token| token.face == Face::Console && token.state == TokenState::Live;
    let sessions: Vec<Token> = tokens(tx)?.into_iter().filter(is_session).collect();
    for session in &sessions {
        end_session(tx, session, by)?;
    }
    Ok(sessions.len())
}

/// Revokes a token. `current` is the token of the request.
///
/// # Errors
/// Refuses an ended token, and the one in use. Any person can send this request, so the caller records the refusal at a bounded
/// rate.
pub fn revoke(tx: &mut WriteTx<'_>, token: &Token, current: &TokenId, by: PersonId) -> Result<Token, Denied> {
    if token.state != TokenState::Live {
        return Err(ended(token).into());
    }
    if token.id == *current {
        let refusal = Refusal::new(DenialCode::TokenInUse, format!("{} is the token that asks", token.id));
        return Err(refusal.hint("replace it with `ironctl key rotate token`").into());
    }
    end(tx, token, TokenState::Revoked)?;
    about(Entry::new(LedgerEvent::TokenRevoked), &token.id, token.person.id).with("by", by).append(tx)?;
    end_given_sessions(tx, token)?;
    Ok(find_new(tx, &token.id)?)
}

/// Revokes every live token of a person who is removed, and returns the ids.
pub(super) fn revoke_all(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    by: PersonId,
) -> Result<Vec<TokenId>, ironclaw_state::Error> {
    let mut revoked = Vec::new();
    for token in tables::people::live_tokens_of(tx, person)? {
        end(tx, &token, TokenState::Revoked)?;
        about(Entry::new(LedgerEvent::TokenRevoked), &token.id, person).with("by", by).append(tx)?;
        revoked.push(token.id);
    }
    Ok(revoked)
}

/// Replaces a token with a new one of the same person, name and expiry, and revokes the old one in the same transaction.
///
/// # Errors
/// Refuses an ended token; the caller records the refusal at a bounded rate.
pub fn rotate(tx: &mut WriteTx<'_>, token: &Token, fresh: &FreshToken, by: impl Into<Giver>) -> Result<Token, Denied> {
    let giver = by.into();
    if token.state != TokenState::Live {
        return Err(ended(token).into());
    }
    if token.face == Face::Console {
        let refusal = Refusal::new(DenialCode::Forbidden, format!("{} is a session of a browser", token.id));
        return Err(refusal.hint("remove it with `ironctl token remove`, and sign in again").into());
    }
    end(tx, token, TokenState::Revoked)?;
    end_given_sessions(tx, token)?;
    insert(tx, token.person.id, &token.name, Face::Program, token.expires_at, fresh)?;
    let seq = about(Entry::new(LedgerEvent::TokenRotated), &fresh.id, token.person.id)
        .with("replaces", token.id.clone())
        .with("by", giver.person)
        .append(tx)?;
    tables::people::record_token_giver(tx, &fresh.id, seq, Some(&giver))?;
    Ok(find_new(tx, &fresh.id)?)
}

fn ended(token: &Token) -> Refusal {
    Refusal::new(DenialCode::TokenEnded, format!("{} is {} already", token.id, token.state.name()))
}

/// Records the expiry of due tokens, and returns their number. They stay expired even if the clock is set back. A clock that jumped
/// far ahead expires none for good until it has run steadily, and its host refuses them meanwhile.
pub fn expire(tx: &mut WriteTx<'_>) -> Result<usize, ironclaw_state::Error> {
    let due = tables::people::live_tokens_due(tx, tx.expiry_time())?;
    for token in &due {
        end(tx, token, TokenState::Expired)?;
        about(Entry::new(LedgerEvent::TokenExpired), &token.id, token.person.id).append(tx)?;
    }
    for token in &due {
        end_given_sessions(tx, token)?;
    }
    Ok(due.len())
}
