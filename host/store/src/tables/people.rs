//! People, their identities on channels, and tokens. Tables: `people`, `identities`, `tokens`.
//!
//! Also the stored form of givers, which `agent_roles` shares. See `registry::people` and `registry::tokens`.

use crate::refusal::Refusal;
use crate::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::{DenialCode, TokenId};
use ironclaw_state::{Error, ReadTx, WriteTx, bad};
use ironclaw_text::excerpt::quoted;
use rusqlite::{Row, params};
use std::fmt;
use std::str::FromStr;

pub use ironclaw_operator::{Face, Role, TokenState};

/// The channel that connects people with their own host.
pub const LOOPBACK: &str = "loopback";

/// Bytes of the name of a channel.
const CHANNEL_BYTES_MAX: usize = 32;

/// Bytes of a sender's id on a channel.
pub const SENDER_BYTES_MAX: usize = 256;

rows! {
    #[derive(Debug, Clone)]
    pub struct Person in people {
        pub id: PersonId,
        pub name: String,
        pub role: Role,
        /// Milliseconds since the epoch.
        pub created_at: i64,
    }

    /// An account on a channel; both parts are whole and opaque.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct Identity {
        /// Name of the channel.
        pub channel: String,
        /// The sender's id there.
        pub sender: String,
    }
}

impl Identity {
    /// Returns the identity of a person on their own host; it is removed with the person.
    pub fn own(person: PersonId) -> Self {
        Self { channel: LOOPBACK.to_owned(), sender: person.to_string() }
    }

    /// Returns the digest, which names the identity in the ledger without revealing it.
    pub fn digest(&self) -> String {
        Digest::of(self.to_string().as_bytes()).to_string()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.channel, self.sender)
    }
}

impl FromStr for Identity {
    type Err = Refusal;
    /// Splits at the first colon; the rest is the sender's id, with its own colons and spaces.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let refuse = |why: String| {
            let refusal =
                Refusal::new(DenialCode::IdentityMalformed, format!("{} is not a valid identity: {why}", quoted(text)));
            Err(refusal.hint("write it as channel:id, e.g. telegram:4711; everything after the first colon is the id"))
        };
        let Some((channel, sender)) = text.split_once(':') else { return refuse("it has no colon".to_owned()) };
        let clean = (1..=CHANNEL_BYTES_MAX).contains(&channel.len())
            && channel.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'));
        if !clean {
            return refuse(format!("a channel has 1 to {CHANNEL_BYTES_MAX} characters of a-z, 0-9, - and _"));
        }
        if !(1..=SENDER_BYTES_MAX).contains(&sender.len()) {
            return refuse(format!("the id has 1 to {SENDER_BYTES_MAX} bytes"));
        }
        if sender.chars().any(char::is_control) {
            return refuse("it has a control character".to_owned());
        }
        Ok(Self { channel: channel.to_owned(), sender: sender.to_owned() })
    }
}

rows! {
    #[derive(Debug, Clone)]
    pub struct Token {
        pub id: TokenId = "token_id",
        /// SHA-256 of its text.
        pub digest: Digest,
        /// Its person, with the current role.
        pub person: Person as row,
        /// Its name, which states its purpose.
        pub name: String = "token_name",
        pub face: Face,
        pub state: TokenState,
        /// Milliseconds since the epoch.
        pub created_at: i64 = "token_created_at",
        /// The time of its expiry, milliseconds since the epoch.
        pub expires_at: Option<i64>,
        /// The time of its end, milliseconds since the epoch.
        pub ended_at: Option<i64>,
        /// The day of its newest use, as a time in it, milliseconds since the epoch.
        pub used_at: Option<i64>,
        /// The last time at which a code confirmed the person of a session of the console, milliseconds since the epoch.
        pub confirmed_at: Option<i64>,
    }
}

/// A live token to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'a> {
    pub id: &'a TokenId,
    /// SHA-256 of its text.
    pub digest: Digest,
    pub person: PersonId,
    /// Its name, which states its purpose.
    pub name: &'a str,
    pub face: Face,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// The time of its expiry, milliseconds since the epoch.
    pub expires_at: Option<i64>,
}

/// A person who gave a role or a token, and the token of their request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Giver {
    pub person: PersonId,
    /// Their token; `None` if it is unknown.
    pub token: Option<TokenId>,
}

impl From<PersonId> for Giver {
    fn from(person: PersonId) -> Self {
        Self { person, token: None }
    }
}

/// The givers of a role or a token, and the number of its ledger entry. The number orders grants, and a clock never does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Number of its ledger entry; 0 for a row that is older than this column.
    pub seq: u64,
    /// The people who gave it; empty if the host gave it, or if they are unknown.
    pub by: Vec<Giver>,
}

/// Returns the stored form of givers: a canonical list of pairs, each of a person and a token or null.
pub(super) fn as_pairs<'a>(by: impl IntoIterator<Item = &'a Giver>) -> String {
    let pairs: Vec<(PersonId, Option<String>)> =
        by.into_iter().map(|giver| (giver.person, giver.token.as_ref().map(ToString::to_string))).collect();
    canonical::to_string(&pairs)
}

/// Reads the number of a ledger entry and the givers from the first two columns of a row.
pub(super) fn given(row: &Row<'_>) -> rusqlite::Result<Provenance> {
    let text: Option<String> = row.get(1)?;
    let pairs: Vec<(PersonId, Option<String>)> = match text {
        None => Vec::new(),
        Some(text) => serde_json::from_str(&text).map_err(|_| bad("given by"))?,
    };
    let giver = |(person, token): (PersonId, Option<String>)| {
        let token = token.map(|token| token.parse()).transpose().map_err(|_| bad("given by"))?;
        Ok(Giver { person, token })
    };
    Ok(Provenance { seq: row.get(0)?, by: pairs.into_iter().map(giver).collect::<rusqlite::Result<_>>()? })
}

/// Returns every person, oldest first.
pub fn people(tx: &ReadTx<'_>) -> Result<Vec<Person>, Error> {
    tx.list("SELECT * FROM people ORDER BY created_at, id", [], Person::read)
}

/// Returns the person of this name or id.
pub fn find_person(tx: &ReadTx<'_>, name_or_id: &str) -> Result<Option<Person>, Error> {
    tx.find("SELECT * FROM people WHERE name = ?1 OR id = ?1", [name_or_id], Person::read)
}

/// Returns the person of this id.
pub fn person_by_id(tx: &ReadTx<'_>, id: PersonId) -> Result<Option<Person>, Error> {
    tx.find("SELECT * FROM people WHERE id = ?1", [id], Person::read)
}

/// Returns the first owner, if the home has one.
pub fn owner(tx: &ReadTx<'_>) -> Result<Option<PersonId>, Error> {
    let sql = "SELECT * FROM people WHERE role = 'owner' ORDER BY created_at LIMIT 1";
    Ok(tx.find(sql, [], Person::read)?.map(|person| person.id))
}

/// Returns the number of owners.
pub fn count_owners(tx: &ReadTx<'_>) -> Result<i64, Error> {
    tx.get("SELECT count(*) FROM people WHERE role = 'owner'", [], |row| row.get(0))
}

/// Returns the person of this full identity.
pub fn person_of(tx: &ReadTx<'_>, channel: &str, sender: &str) -> Result<Option<Person>, Error> {
    let sql = "SELECT people.* FROM people JOIN identities ON person_id = id WHERE channel = ?1 AND sender = ?2";
    tx.find(sql, [channel, sender], Person::read)
}

pub fn insert_person(tx: &mut WriteTx<'_>, person: &Person) -> Result<(), Error> {
    person.insert(tx)
}

/// Deletes a person with all identities and tokens. The person has no role of an agent.
pub fn delete_person(tx: &mut WriteTx<'_>, person: PersonId) -> Result<(), Error> {
    tx.execute("DELETE FROM tokens WHERE person_id = ?1", [person])?;
    tx.execute("DELETE FROM identities WHERE person_id = ?1", [person])?;
    tx.execute("DELETE FROM people WHERE id = ?1", [person]).map(drop)
}

pub fn set_role(tx: &mut WriteTx<'_>, person: PersonId, role: Role) -> Result<(), Error> {
    tx.execute("UPDATE people SET role = ?2 WHERE id = ?1", params![person, role.name()]).map(drop)
}

/// Returns the givers of a person's role on this host.
pub fn role_given(tx: &ReadTx<'_>, person: PersonId) -> Result<Option<Provenance>, Error> {
    tx.find("SELECT role_seq, role_by FROM people WHERE id = ?1", [person], given)
}

/// Records the giver of a person's role on this host.
pub fn record_role_giver(tx: &mut WriteTx<'_>, person: PersonId, seq: u64, by: Option<&Giver>) -> Result<(), Error> {
    let sql = "UPDATE people SET role_seq = ?2, role_by = ?3 WHERE id = ?1";
    tx.execute(sql, params![person, seq as i64, as_pairs(by)]).map(drop)
}

pub fn identities(tx: &ReadTx<'_>) -> Result<Vec<(Identity, PersonId)>, Error> {
    tx.list("SELECT * FROM identities ORDER BY channel, sender", [], |row| {
        Ok((Identity::read(row)?, row.get("person_id")?))
    })
}

pub fn identities_of(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<Identity>, Error> {
    tx.list("SELECT * FROM identities WHERE person_id = ?1 ORDER BY channel, sender", [person], Identity::read)
}

/// Returns the number of a person's identities.
pub fn count_identities(tx: &ReadTx<'_>, person: PersonId) -> Result<i64, Error> {
    tx.get("SELECT count(*) FROM identities WHERE person_id = ?1", [person], |row| row.get(0))
}

pub fn insert_identity(tx: &mut WriteTx<'_>, person: PersonId, identity: &Identity) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO identities (channel, sender, person_id) VALUES (?1,?2,?3)",
        params![identity.channel, identity.sender, person],
    )?;
    Ok(())
}

pub fn delete_identity(tx: &mut WriteTx<'_>, person: PersonId, identity: &Identity) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM identities WHERE channel = ?1 AND sender = ?2 AND person_id = ?3",
        params![identity.channel, identity.sender, person],
    )?;
    Ok(())
}

const SELECT_TOKENS: &str = "SELECT people.*, tokens.id AS token_id, tokens.name AS token_name, digest, face, state, \
                             tokens.created_at AS token_created_at, expires_at, ended_at, used_at, confirmed_at \
                             FROM tokens JOIN people ON tokens.person_id = people.id";

/// Returns every token, including ended ones, oldest first.
pub fn tokens(tx: &ReadTx<'_>) -> Result<Vec<Token>, Error> {
    tx.list(&format!("{SELECT_TOKENS} ORDER BY tokens.created_at, tokens.id"), [], Token::read)
}

pub fn find_token(tx: &ReadTx<'_>, id: &TokenId) -> Result<Option<Token>, Error> {
    tx.find(&format!("{SELECT_TOKENS} WHERE tokens.id = ?1"), [id], Token::read)
}

/// Returns the live tokens of a person with this name.
pub fn live_tokens_named(tx: &ReadTx<'_>, person: PersonId, name: &str) -> Result<Vec<Token>, Error> {
    let sql = format!("{SELECT_TOKENS} WHERE state = 'live' AND tokens.name = ?1 AND person_id = ?2");
    tx.list(&sql, params![name, person], Token::read)
}

/// Returns the live tokens of a person, oldest first.
pub fn live_tokens_of(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<Token>, Error> {
    let sql = format!("{SELECT_TOKENS} WHERE state = 'live' AND person_id = ?1 ORDER BY tokens.created_at, tokens.id");
    tx.list(&sql, [person], Token::read)
}

/// Returns the live tokens that expire at `until` or before.
pub fn live_tokens_due(tx: &ReadTx<'_>, until: i64) -> Result<Vec<Token>, Error> {
    tx.list(&format!("{SELECT_TOKENS} WHERE state = 'live' AND expires_at <= ?1"), [until], Token::read)
}

/// Returns whether the token of this digest is live.
pub fn is_live(tx: &ReadTx<'_>, digest: &Digest) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM tokens WHERE digest = ?1 AND state = 'live'";
    Ok(tx.get(sql, [digest], |row| row.get::<_, i64>(0))? > 0)
}

/// Returns the number of live tokens.
pub fn count_live_tokens(tx: &ReadTx<'_>) -> Result<i64, Error> {
    tx.get("SELECT count(*) FROM tokens WHERE state = 'live'", [], |row| row.get(0))
}

/// Returns the earliest expiry of a live token, milliseconds since the epoch.
pub fn next_expiry(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT min(expires_at) FROM tokens WHERE state = 'live'", [], |row| row.get(0))
}

/// Deletes the ended tokens, except for the `kept` that ended last.
pub fn delete_ended_tokens(tx: &mut WriteTx<'_>, kept: i64) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM tokens WHERE state <> 'live' AND id NOT IN \
         (SELECT id FROM tokens WHERE state <> 'live' ORDER BY ended_at DESC, id LIMIT ?1)",
        [kept],
    )?;
    Ok(())
}

/// Inserts a live token.
pub fn insert_token(tx: &mut WriteTx<'_>, new: &NewToken<'_>) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO tokens (id, digest, person_id, name, face, state, created_at, expires_at) VALUES (?1,?2,?3,?4,?5,'live',?6,?7)",
        params![new.id, new.digest, new.person, new.name, new.face, new.created_at, new.expires_at],
    )?;
    Ok(())
}

/// Notes a use of a token at a time.
pub fn record_token_use(tx: &mut WriteTx<'_>, id: &TokenId, at: i64) -> Result<(), Error> {
    tx.execute("UPDATE tokens SET used_at = ?2 WHERE id = ?1", params![id, at]).map(drop)
}

/// Sets the expiry of a live token.
pub fn extend_token(tx: &mut WriteTx<'_>, id: &TokenId, expires_at: i64) -> Result<(), Error> {
    let sql = "UPDATE tokens SET expires_at = ?2 WHERE id = ?1 AND state = 'live'";
    tx.execute(sql, params![id, expires_at]).map(drop)
}

/// Records that a code confirmed the person of a token at a time.
pub fn confirm_token(tx: &mut WriteTx<'_>, id: &TokenId, at: i64) -> Result<(), Error> {
    tx.execute("UPDATE tokens SET confirmed_at = ?2 WHERE id = ?1", params![id, at]).map(drop)
}

/// Marks a live token as ended at `at`; does not change an ended one.
pub fn end_token(tx: &mut WriteTx<'_>, id: &TokenId, state: TokenState, at: i64) -> Result<(), Error> {
    let sql = "UPDATE tokens SET state = ?2, ended_at = ?3 WHERE id = ?1 AND state = 'live'";
    tx.execute(sql, params![id, state.name(), at]).map(drop)
}

/// Returns the givers of a token; `None` if the token is no longer in the record.
pub fn token_given(tx: &ReadTx<'_>, token: &TokenId) -> Result<Option<Provenance>, Error> {
    tx.find("SELECT issued_seq, issued_by FROM tokens WHERE id = ?1", [token], given)
}

/// Records the giver of a token.
pub fn record_token_giver(tx: &mut WriteTx<'_>, token: &TokenId, seq: u64, by: Option<&Giver>) -> Result<(), Error> {
    let sql = "UPDATE tokens SET issued_seq = ?2, issued_by = ?3 WHERE id = ?1";
    tx.execute(sql, params![token, seq as i64, as_pairs(by)]).map(drop)
}
