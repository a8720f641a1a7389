//! Tokens: what a person shows to speak to this host, stored as digests, with an end that sticks.
//!
//! Never keeps the text of one, and never revives one: expired and revoked are states and not a look at the clock.
//! Next: `registry::people`, `api::auth`.

use super::people::{Person, person, refuse};
use super::{Giver, given};
use crate::refusal::{Denied, Refusal};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent, TokenId};
use ironclaw_ledger::Entry;
use ironclaw_state::keys;
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::{OptionalExtension, Row, params};
use std::str::FromStr;
use zeroize::Zeroizing;

/// What every token starts with, so that one that was pasted somewhere can be found.
pub const PREFIX: &str = "ict_";

/// Characters of a token: the prefix and 256 random bits in hex.
pub const TEXT_CHARACTERS: usize = PREFIX.len() + 64;

/// Name of the token that the home's own file holds.
pub const OF_THE_FILE: &str = "owner.token";

/// Live tokens of a host: each request is compared with every one.
const LIVE_MAX: i64 = 1024;

/// Ended tokens that are kept, so that whoever still uses one is told which end it came to.
const ENDED_KEPT_MAX: i64 = 1024;

/// Characters of a token's name.
const NAME_CHARACTERS_MAX: usize = 64;

/// Where a token stands. There is no way back to `Live`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It opens the API.
    Live,
    /// Its time came.
    Expired,
    /// Somebody ended it.
    Revoked,
}

impl TokenState {
    /// As stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl FromStr for TokenState {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Live, Self::Expired, Self::Revoked].into_iter().find(|state| state.name() == text).ok_or(())
    }
}

ironclaw_state::stored_by_name!(TokenState);

/// A token as it is stored.
#[derive(Debug, Clone)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// SHA-256 of its text.
    pub digest: Digest,
    /// Whose it is, as they are now.
    pub person: Person,
    /// What it is for.
    pub name: String,
    /// Where it stands.
    pub state: TokenState,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// When it ends by itself, milliseconds since the epoch.
    pub expires_at: Option<i64>,
    /// When it ended, milliseconds since the epoch.
    pub ended_at: Option<i64>,
}

/// A token that nobody has yet: its text exists here alone.
pub struct Fresh {
    id: TokenId,
    text: Zeroizing<String>,
}

impl Fresh {
    /// Random text, random id.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn new() -> Result<Self, keys::Error> {
        let secret = Digest::from_bytes(keys::random()?);
        Ok(Self { id: TokenId::of(keys::random()?), text: Zeroizing::new(format!("{PREFIX}{secret}")) })
    }

    /// Its text, to be told once.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is stored of it.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        id: row.get("token_id")?,
        digest: row.get("digest")?,
        person: person(row)?,
        name: row.get("token_name")?,
        state: row.get("state")?,
        created_at: row.get("token_created_at")?,
        expires_at: row.get("expires_at")?,
        ended_at: row.get("ended_at")?,
    })
}

const SELECT: &str = "SELECT people.*, tokens.id AS token_id, tokens.name AS token_name, digest, state, \
                      tokens.created_at AS token_created_at, expires_at, ended_at \
                      FROM tokens JOIN people ON tokens.person_id = people.id";

/// Every token, also those that ended, oldest first.
pub fn tokens(tx: &ReadTx<'_>) -> Result<Vec<Token>, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached(&format!("{SELECT} ORDER BY tokens.created_at, tokens.id"))?;
    let tokens = statement.query_map([], token)?.collect::<rusqlite::Result<_>>()?;
    Ok(tokens)
}

/// The token of this id.
pub fn find_token(tx: &ReadTx<'_>, id: &TokenId) -> Result<Option<Token>, ironclaw_state::Error> {
    let sql = format!("{SELECT} WHERE tokens.id = ?1");
    Ok(tx.db().prepare_cached(&sql)?.query_row([id], token).optional()?)
}

/// Whether the token of this digest is live.
pub fn is_live(tx: &ReadTx<'_>, digest: &Digest) -> Result<bool, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM tokens WHERE digest = ?1 AND state = 'live'";
    Ok(tx.db().prepare_cached(sql)?.query_row([digest], |row| row.get::<_, i64>(0))? > 0)
}

/// Gives a person a token.
///
/// # Errors
/// Refuses an end that has passed, a malformed name, and one token too many, and records the refusal in the ledger.
pub fn issue(
    tx: &mut WriteTx<'_>,
    person: &Person,
    name: &str,
    expires_at: Option<i64>,
    fresh: &Fresh,
    by: impl Into<Giver>,
) -> Result<Token, Denied> {
    let giver = by.into();
    let by = giver.person;
    if name.chars().count() > NAME_CHARACTERS_MAX || name.chars().any(char::is_control) || name == OF_THE_FILE {
        let message = format!("a token's name has up to {NAME_CHARACTERS_MAX} characters, and is not {OF_THE_FILE}");
        return refuse(tx, LedgerEvent::TokenRefused, by, Refusal::new(DenialCode::TokenName, message));
    }
    if expires_at.is_some_and(|at| at <= tx.wall()) {
        let refusal = Refusal::new(DenialCode::ExpiryPassed, "a token cannot end before it begins");
        return refuse(
            tx,
            LedgerEvent::TokenRefused,
            by,
            refusal.hint("give a time in the future, or a duration such as 30d"),
        );
    }
    let live: i64 = tx.db().query_row("SELECT count(*) FROM tokens WHERE state = 'live'", [], |row| row.get(0))?;
    if live >= LIVE_MAX {
        let refusal = Refusal::new(DenialCode::TokensTooMany, format!("there are {LIVE_MAX} live tokens already"));
        return refuse(
            tx,
            LedgerEvent::TokenRefused,
            by,
            refusal.hint("end some: `ironctl token list`, `ironctl token revoke`"),
        );
    }
    insert(tx, person.id, name, expires_at, fresh)?;
    let entry = Entry::new(LedgerEvent::TokenCreated).with("expires_at", expires_at);
    let seq = about(entry, &fresh.id, person.id).with("by", by).append(tx)?;
    given::note_token(tx, &fresh.id, seq, Some(&giver))?;
    Ok(made(tx, &fresh.id)?)
}

/// Gives a person the token that the home's own file holds, and ends the one that the file held before.
pub fn issue_for_file(tx: &mut WriteTx<'_>, person: PersonId, fresh: &Fresh) -> Result<(), ironclaw_state::Error> {
    let sql = format!("{SELECT} WHERE state = 'live' AND tokens.name = ?1 AND person_id = ?2");
    let lost: Vec<Token> = {
        let mut statement = tx.db().prepare_cached(&sql)?;
        let found = statement.query_map(params![OF_THE_FILE, person], token)?;
        found.collect::<rusqlite::Result<_>>()?
    };
    for lost in lost {
        end(tx, &lost, TokenState::Revoked)?;
        about(Entry::new(LedgerEvent::TokenRevoked), &lost.id, person).append(tx)?;
    }
    insert(tx, person, OF_THE_FILE, None, fresh)?;
    let seq = about(Entry::new(LedgerEvent::TokenCreated), &fresh.id, person).append(tx)?;
    given::note_token(tx, &fresh.id, seq, None)?;
    Ok(())
}

fn insert(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    name: &str,
    expires_at: Option<i64>,
    fresh: &Fresh,
) -> Result<(), ironclaw_state::Error> {
    let now = tx.now();
    let db = tx.db();
    db.execute(
        "DELETE FROM tokens WHERE state <> 'live' AND id NOT IN \
         (SELECT id FROM tokens WHERE state <> 'live' ORDER BY ended_at DESC, id LIMIT ?1)",
        [ENDED_KEPT_MAX],
    )?;
    db.execute(
        "INSERT INTO tokens (id, digest, person_id, name, state, created_at, expires_at) VALUES (?1,?2,?3,?4,'live',?5,?6)",
        params![fresh.id, fresh.digest(), person, name, now, expires_at],
    )?;
    Ok(())
}

fn made(tx: &ReadTx<'_>, id: &TokenId) -> Result<Token, ironclaw_state::Error> {
    find_token(tx, id)?.ok_or_else(|| ironclaw_state::Error::Stored(format!("{id} vanished while it was made")))
}

fn about(entry: Entry, id: &TokenId, person: PersonId) -> Entry {
    entry.with("token", id.clone()).with("person", person)
}

fn end(tx: &mut WriteTx<'_>, token: &Token, state: TokenState) -> Result<(), ironclaw_state::Error> {
    let now = tx.now();
    tx.db().execute(
        "UPDATE tokens SET state = ?2, ended_at = ?3 WHERE id = ?1 AND state = 'live'",
        params![token.id, state.name(), now],
    )?;
    Ok(())
}

/// Ends a token for good. `current` is the one that the request came with.
///
/// # Errors
/// Refuses a token that ended already, and the one in use. Anyone can ask for it, so the caller records the refusal at a bounded
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
    Ok(made(tx, &token.id)?)
}

/// Replaces a token by a fresh one of the same person, name and end; the old one is over in the same moment.
///
/// # Errors
/// Refuses a token that ended already; the caller records the refusal at a bounded rate.
pub fn rotate(tx: &mut WriteTx<'_>, token: &Token, fresh: &Fresh, by: impl Into<Giver>) -> Result<Token, Denied> {
    let giver = by.into();
    if token.state != TokenState::Live {
        return Err(ended(token).into());
    }
    end(tx, token, TokenState::Revoked)?;
    insert(tx, token.person.id, &token.name, token.expires_at, fresh)?;
    let seq = about(Entry::new(LedgerEvent::TokenRotated), &fresh.id, token.person.id)
        .with("replaces", token.id.clone())
        .with("by", giver.person)
        .append(tx)?;
    given::note_token(tx, &fresh.id, seq, Some(&giver))?;
    Ok(made(tx, &fresh.id)?)
}

fn ended(token: &Token) -> Refusal {
    Refusal::new(DenialCode::TokenEnded, format!("{} is {} already", token.id, token.state.name()))
}

/// Writes down which tokens' time has come; from then on they are over, whatever the clock says. Returns how many.
pub fn expire(tx: &mut WriteTx<'_>) -> Result<usize, ironclaw_state::Error> {
    let now = tx.wall();
    let due: Vec<Token> = {
        let mut statement = tx.db().prepare_cached(&format!("{SELECT} WHERE state = 'live' AND expires_at <= ?1"))?;
        statement.query_map([now], token)?.collect::<rusqlite::Result<_>>()?
    };
    for token in &due {
        end(tx, token, TokenState::Expired)?;
        about(Entry::new(LedgerEvent::TokenExpired), &token.id, token.person.id).append(tx)?;
    }
    Ok(due.len())
}

/// When the next live token ends by itself, milliseconds since the epoch.
pub fn next_expiry(tx: &ReadTx<'_>) -> Result<Option<i64>, ironclaw_state::Error> {
    let sql = "SELECT min(expires_at) FROM tokens WHERE state = 'live'";
    Ok(tx.db().prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}
