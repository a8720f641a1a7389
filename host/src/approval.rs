//! An approval: that one person, shown one text, said yes to one exact thing. Pure: no clock, no database, no policy.
//!
//! Never good for a second thing and never believed because it is there: whoever is about to act says what it must be good for,
//! and [`verify`] compares every field. That it is used once is a row of the caller's, in the transaction that acts. Next: `gateway`.

use hmac::{Hmac, KeyInit, Mac};
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::keys::{ApprovalRoot, random};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// First bytes of what is authenticated: another encoding has another name.
const RECIPE: &[u8] = b"ironclaw/approval/1";

/// Bytes of a stored token.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// What sort of thing is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// A change of what an agent is or may do.
    Change,
    /// One tool call.
    Call,
}

impl Domain {
    const fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Call => "call",
        }
    }
}

/// What is approved, as it stands in the record now. Every field is compared when the approval is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thing {
    /// What sort of thing.
    pub domain: Domain,
    /// Its id: `chg_…` or `call_…`.
    pub id: String,
    /// The session that asked, `ses_…`, if one did.
    pub session: Option<String>,
    /// The agent that it concerns, `agt_…`, if there is one yet.
    pub agent: Option<String>,
    /// The kind of change, or the tool.
    pub name: String,
    /// Of the shape of its arguments.
    pub schema: Digest,
    /// Who serves it, where that is not the host itself.
    pub server: Option<String>,
    /// Of its canonical arguments, with the name of the recipe.
    pub arguments: Digest,
    /// On whose behalf it was asked for.
    pub principal: String,
    /// Of the labels of what it was made from.
    pub labels: Digest,
    /// Of the rules by which it is decided.
    pub policy: Digest,
    /// Of the bytes that a person is shown.
    pub shown: Digest,
    /// Of the record: a restore begins another one.
    pub generation: u64,
}

/// Who says yes, and how they proved who they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// `per_…`
    pub person: String,
    /// The token that they came with, `tok_…`, or the identity by which they are known.
    pub proof: String,
}

/// An approval as it is stored. Holds no secret; without the key nobody can make one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    thing: Thing,
    approver: Approver,
    /// Milliseconds since the epoch.
    issued: i64,
    /// Milliseconds since the epoch; not good at this time any more.
    expires: i64,
    /// Chance, so that no two are equal.
    nonce: Digest,
    mac: Digest,
}

/// Why an approval is not good for what is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It was not made here, or was changed since.
    #[error("the approval was forged or changed")]
    Forged,
    /// It was given for something else; names what differs.
    #[error("the approval was given for another {0}")]
    Other(&'static str),
    /// Its time is over.
    #[error("the approval has expired")]
    Expired,
}

impl Fault {
    /// Stable word for scripts and the ledger.
    pub const fn code(self) -> DenialCode {
        match self {
            Self::Forged => DenialCode::ApprovalForged,
            Self::Other(_) => DenialCode::ApprovalForAnother,
            Self::Expired => DenialCode::ApprovalExpired,
        }
    }
}

/// An approval that was found good for one thing. Made by [`verify`] alone.
#[derive(Debug)]
pub struct Verified {
    approver: Approver,
}

impl Verified {
    /// Who said yes.
    pub const fn approver(&self) -> &Approver {
        &self.approver
    }
}

/// Approves a thing: mints its token.
///
/// # Errors
/// When the system has no random bytes to give.
pub fn mint(
    root: &ApprovalRoot,
    thing: Thing,
    approver: Approver,
    issued: i64,
    expires: i64,
) -> Result<Token, ironclaw_state::keys::Error> {
    let nonce = Digest::from_bytes(random()?);
    let mac = authenticate(root, &thing, &approver, issued, expires, &nonce);
    Ok(Token { thing, approver, issued, expires, nonce, mac })
}

/// Finds out whether a token is good for `thing` at `now`, milliseconds since the epoch.
///
/// # Errors
/// [`Fault`]: the first reason why not.
pub fn verify(root: &ApprovalRoot, token: &Token, thing: &Thing, now: i64) -> Result<Verified, Fault> {
    let Token { thing: of, approver, issued, expires, nonce, mac } = token;
    let computed = mac_of(root, of, approver, *issued, *expires, nonce);
    // In constant time; which byte differs would tell how to go on.
    computed.verify_slice(mac.as_bytes()).map_err(|_| Fault::Forged)?;
    let same: [(&'static str, bool); 13] = [
        ("domain", of.domain == thing.domain),
        ("id", of.id == thing.id),
        ("session", of.session == thing.session),
        ("agent", of.agent == thing.agent),
        ("kind", of.name == thing.name),
        ("schema", of.schema == thing.schema),
        ("server", of.server == thing.server),
        ("body", of.arguments == thing.arguments),
        ("principal", of.principal == thing.principal),
        ("provenance", of.labels == thing.labels),
        ("policy", of.policy == thing.policy),
        ("generation", of.generation == thing.generation),
        ("text", of.shown == thing.shown),
    ];
    if let Some((what, _)) = same.iter().find(|(_, same)| !same) {
        return Err(Fault::Other(what));
    }
    if *expires <= now || now < *issued {
        return Err(Fault::Expired);
    }
    Ok(Verified { approver: approver.clone() })
}

impl Token {
    /// When it was issued, milliseconds since the epoch.
    pub const fn issued(&self) -> i64 {
        self.issued
    }

    /// As it is stored.
    pub fn to_json(&self) -> String {
        canonical::to_string(self)
    }

    /// Reads what [`Token::to_json`] wrote.
    ///
    /// # Errors
    /// [`Fault::Forged`] for anything else: a duplicate key, a number that is none, a field more or less.
    pub fn from_json(text: &str) -> Result<Self, Fault> {
        let token: Self =
            canonical::from_slice(text.as_bytes(), Limits::bytes(TOKEN_BYTES_MAX)).map_err(|_| Fault::Forged)?;
        if token.to_json() == text { Ok(token) } else { Err(Fault::Forged) }
    }

    /// The same under another root key, for a fresh master key.
    ///
    /// # Errors
    /// [`Fault::Forged`] when this root did not make it.
    pub fn pass(self, from: &ApprovalRoot, to: &ApprovalRoot) -> Result<Self, Fault> {
        let Self { thing, approver, issued, expires, nonce, mac } = self;
        let computed = mac_of(from, &thing, &approver, issued, expires, &nonce);
        computed.verify_slice(mac.as_bytes()).map_err(|_| Fault::Forged)?;
        let mac = authenticate(to, &thing, &approver, issued, expires, &nonce);
        Ok(Self { thing, approver, issued, expires, nonce, mac })
    }
}

fn authenticate(
    root: &ApprovalRoot,
    thing: &Thing,
    approver: &Approver,
    issued: i64,
    expires: i64,
    nonce: &Digest,
) -> Digest {
    Digest::from_bytes(mac_of(root, thing, approver, issued, expires, nonce).finalize().into_bytes().into())
}

fn mac_of(
    root: &ApprovalRoot,
    thing: &Thing,
    approver: &Approver,
    issued: i64,
    expires: i64,
    nonce: &Digest,
) -> Hmac<Sha256> {
    let key = root.key(&thing.id, thing.generation);
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_slice()).expect("a key of any length");
    mac.update(&encode(thing, approver, issued, expires, nonce));
    mac
}

/// Injective: every field has its length before it, and one that is not there is told from an empty one.
fn encode(thing: &Thing, approver: &Approver, issued: i64, expires: i64, nonce: &Digest) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1024);
    let mut add = |field: Option<&[u8]>| {
        let (there, field) = (u8::from(field.is_some()), field.unwrap_or_default());
        bytes.push(there);
        bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
        bytes.extend_from_slice(field);
    };
    add(Some(RECIPE));
    add(Some(thing.domain.name().as_bytes()));
    add(Some(thing.id.as_bytes()));
    add(thing.session.as_deref().map(str::as_bytes));
    add(thing.agent.as_deref().map(str::as_bytes));
    add(Some(thing.name.as_bytes()));
    add(Some(thing.schema.as_bytes()));
    add(thing.server.as_deref().map(str::as_bytes));
    add(Some(thing.arguments.as_bytes()));
    add(Some(thing.principal.as_bytes()));
    add(Some(thing.labels.as_bytes()));
    add(Some(thing.policy.as_bytes()));
    add(Some(thing.shown.as_bytes()));
    add(Some(&thing.generation.to_be_bytes()));
    add(Some(approver.person.as_bytes()));
    add(Some(approver.proof.as_bytes()));
    add(Some(&issued.to_be_bytes()));
    add(Some(&expires.to_be_bytes()));
    add(Some(nonce.as_bytes()));
    bytes
}

#[cfg(test)]
pub(crate) mod tests;
