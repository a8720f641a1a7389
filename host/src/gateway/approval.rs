//! Approvals: tokens for the yes of one person, who was shown one text, to one exact subject. No clock, no policy.
//!
//! An approval is never valid for a second subject, and its presence proves nothing. The caller names the subject that it is about to
//! act on, and [`verify`] compares every field. The caller keeps the row that lets an approval be used only once, and uses it in the
//! transaction that acts. See [`crate::gateway`].

use hmac::{Hmac, KeyInit, Mac};
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_contract::ids::{AgentId, PersonId, SessionId};
use ironclaw_operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::{ApprovalRoot, random};
use ironclaw_store::tables::approvals;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt::Display;

/// The first bytes of the authenticated encoding. Another encoding gets another name.
const RECIPE: &[u8] = b"ironclaw/approval/1";

/// The first bytes of the encoding of a subject with facts.
const RECIPE_WITH_FACTS: &[u8] = b"ironclaw/approval/2";

/// The bound on the bytes of a stored token.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The sort of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// A change of a capability or a setting.
    Change,
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

/// The subject of an approval, as the record has it now. Every field is compared when the approval is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The sort of the subject.
    pub domain: Domain,
    /// The id of the change or the call: `chg_…` or `call_…`.
    pub id: String,
    /// The session that made the request, `ses_…`; `None` for a request of a person.
    pub session: Option<String>,
    /// The agent that the subject concerns, `agt_…`; `None` for an agent that does not exist yet.
    pub agent: Option<String>,
    /// The kind of change, or the name of the tool.
    pub name: String,
    /// The digest of the schema of the arguments.
    pub schema: Digest,
    /// The server of the tool; `None` for the host itself.
    pub server: Option<String>,
    /// The digest of the canonical arguments, with the name of the recipe.
    pub arguments: Digest,
    /// The person on whose behalf the request was made.
    pub principal: String,
    /// The digest of the labels of the output that made the request.
    pub labels: Digest,
    /// The digest of the rule for the decision.
    pub policy: Digest,
    /// The digest of the text that a person is shown.
    pub shown: Digest,
    /// The generation of the record; a restore begins another one.
    pub generation: u64,
    /// The digest of the facts of a call; `None` for a change, whose body is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Digest>,
}

/// The names of a subject, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectNames {
    /// The id of the change or the request.
    pub id: String,
    pub session: Option<String>,
    pub agent: Option<String>,
    /// The person on whose behalf the request was made.
    pub principal: String,
}

impl SubjectNames {
    /// Returns the names of these ids.
    pub fn new(id: impl Display, session: Option<SessionId>, agent: Option<AgentId>, principal: PersonId) -> Self {
        fn name(of: impl Display) -> String {
            of.to_string()
        }
        Self { id: name(id), session: session.map(name), agent: agent.map(name), principal: name(principal) }
    }
}

/// The person who approves, with the proof of their identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// `per_…`
    pub person: String,
    /// The token that the person used, `tok_…`, or their identity.
    pub proof: String,
}

impl Approver {
    /// Names a person, with the proof of their identity.
    pub fn new(person: PersonId, proof: impl Into<String>) -> Self {
        Self { person: person.to_string(), proof: proof.into() }
    }
}

/// A stored approval. It holds no secret, and only a holder of the key can make one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    #[serde(rename = "thing")]
    subject: Subject,
    approver: Approver,
    /// Milliseconds since the epoch.
    issued: i64,
    /// Milliseconds since the epoch; the token is invalid from this time on.
    expires: i64,
    /// Random bytes, so that no two tokens are equal.
    nonce: Digest,
    mac: Digest,
}

/// The reason that an approval is not valid for a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Another host made it, or it was changed.
    #[error("the approval was forged or changed")]
    Forged,
    /// It was given for another subject; has the name of the field that differs.
    #[error("the approval was given for another {0}")]
    Other(&'static str),
    /// It has expired, or it is not valid yet.
    #[error("the approval has expired")]
    Expired,
}

impl Fault {
    /// Returns the stable code for scripts and the ledger.
    pub const fn code(self) -> DenialCode {
        match self {
            Self::Forged => DenialCode::ApprovalForged,
            Self::Other(_) => DenialCode::ApprovalForAnother,
            Self::Expired => DenialCode::ApprovalExpired,
        }
    }
}

/// The proof that an approval is valid for one subject. Only [`verify`] makes it.
#[derive(Debug)]
pub struct Verified {
    approver: Approver,
}

impl Verified {
    /// Returns the person who approved.
    pub const fn approver(&self) -> &Approver {
        &self.approver
    }
}

/// Makes the token of an approval.
///
/// # Errors
/// Fails if the system gives no random bytes.
pub fn mint(
    root: &ApprovalRoot,
    subject: Subject,
    approver: Approver,
    issued: i64,
    expires: i64,
) -> Result<Token, ironclaw_state::keys::Error> {
    let nonce = Digest::from_bytes(random()?);
    let mac = authenticate(root, &subject, &approver, issued, expires, &nonce);
    Ok(Token { subject, approver, issued, expires, nonce, mac })
}

/// Verifies that a token is valid for `subject` at `now`, in milliseconds since the epoch.
///
/// # Errors
/// Returns the first [`Fault`] that it finds.
pub fn verify(root: &ApprovalRoot, token: &Token, subject: &Subject, now: i64) -> Result<Verified, Fault> {
    let Token { subject: of, approver, issued, expires, nonce, mac } = token;
    let computed = mac_of(root, of, approver, *issued, *expires, nonce);
    // In constant time, so that the time does not show a forger the first byte that differs.
    computed.verify_slice(mac.as_bytes()).map_err(|_| Fault::Forged)?;
    let same: [(&'static str, bool); 14] = [
        ("domain", of.domain == subject.domain),
        ("id", of.id == subject.id),
        ("session", of.session == subject.session),
        ("agent", of.agent == subject.agent),
        ("kind", of.name == subject.name),
        ("schema", of.schema == subject.schema),
        ("server", of.server == subject.server),
        ("body", of.arguments == subject.arguments),
        ("principal", of.principal == subject.principal),
        ("provenance", of.labels == subject.labels),
        ("policy", of.policy == subject.policy),
        ("generation", of.generation == subject.generation),
        ("effect", of.facts == subject.facts),
        ("text", of.shown == subject.shown),
    ];
    if let Some((what, _)) = same.iter().find(|(_, same)| !same) {
        return Err(Fault::Other(what));
    }
    if *expires <= now || now < *issued {
        return Err(Fault::Expired);
    }
    Ok(Verified { approver: approver.clone() })
}

/// Returns the digest of the facts for which the token of a subject with this id was given; `None` for a change, and for a call of an
/// earlier version.
///
/// # Errors
/// Returns [`Fault::Forged`] for a token that this root key did not make, and [`Fault::Other`] for one with another id.
pub fn facts_of_token(root: &ApprovalRoot, token: &Token, id: &str) -> Result<Option<Digest>, Fault> {
    let Token { subject, approver, issued, expires, nonce, mac } = token;
    let computed = mac_of(root, subject, approver, *issued, *expires, nonce);
    computed.verify_slice(mac.as_bytes()).map_err(|_| Fault::Forged)?;
    if subject.id == id { Ok(subject.facts) } else { Err(Fault::Other("id")) }
}

impl Token {
    /// Returns the time of issue, in milliseconds since the epoch.
    pub const fn issued(&self) -> i64 {
        self.issued
    }

    /// Returns the stored form.
    pub fn to_json(&self) -> String {
        canonical::to_string(self)
    }

    /// Reads the output of [`Token::to_json`].
    ///
    /// # Errors
    /// Returns [`Fault::Forged`] for any other text: a duplicate key, a malformed number, a missing or additional field.
    pub fn from_json(text: &str) -> Result<Self, Fault> {
        let token: Self =
            canonical::from_slice(text.as_bytes(), Limits::bytes(TOKEN_BYTES_MAX)).map_err(|_| Fault::Forged)?;
        if token.to_json() == text { Ok(token) } else { Err(Fault::Forged) }
    }

    /// Authenticates the token with another root key, for a key rotation.
    ///
    /// # Errors
    /// Returns [`Fault::Forged`] for a token that the old root key did not make.
    pub fn rekey(self, from: &ApprovalRoot, to: &ApprovalRoot) -> Result<Self, Fault> {
        let Self { subject, approver, issued, expires, nonce, mac } = self;
        let computed = mac_of(from, &subject, &approver, issued, expires, &nonce);
        computed.verify_slice(mac.as_bytes()).map_err(|_| Fault::Forged)?;
        let mac = authenticate(to, &subject, &approver, issued, expires, &nonce);
        Ok(Self { subject, approver, issued, expires, nonce, mac })
    }
}

fn authenticate(
    root: &ApprovalRoot,
    subject: &Subject,
    approver: &Approver,
    issued: i64,
    expires: i64,
    nonce: &Digest,
) -> Digest {
    Digest::from_bytes(mac_of(root, subject, approver, issued, expires, nonce).finalize().into_bytes().into())
}

fn mac_of(
    root: &ApprovalRoot,
    subject: &Subject,
    approver: &Approver,
    issued: i64,
    expires: i64,
    nonce: &Digest,
) -> Hmac<Sha256> {
    let key = root.key(&subject.id, subject.generation);
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_slice()).expect("a key of any length");
    mac.update(&encode(subject, approver, issued, expires, nonce));
    mac
}

/// Encodes all fields injectively: each has its length before it, and an absent field differs from an empty one.
fn encode(subject: &Subject, approver: &Approver, issued: i64, expires: i64, nonce: &Digest) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1024);
    let mut add = |field: Option<&[u8]>| {
        let (is_present, field) = (u8::from(field.is_some()), field.unwrap_or_default());
        bytes.push(is_present);
        bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
        bytes.extend_from_slice(field);
    };
    add(Some(if subject.facts.is_some() { RECIPE_WITH_FACTS } else { RECIPE }));
    add(Some(subject.domain.name().as_bytes()));
    add(Some(subject.id.as_bytes()));
    add(subject.session.as_deref().map(str::as_bytes));
    add(subject.agent.as_deref().map(str::as_bytes));
    add(Some(subject.name.as_bytes()));
    add(Some(subject.schema.as_bytes()));
    add(subject.server.as_deref().map(str::as_bytes));
    add(Some(subject.arguments.as_bytes()));
    add(Some(subject.principal.as_bytes()));
    add(Some(subject.labels.as_bytes()));
    add(Some(subject.policy.as_bytes()));
    add(Some(subject.shown.as_bytes()));
    add(Some(&subject.generation.to_be_bytes()));
    add(Some(approver.person.as_bytes()));
    add(Some(approver.proof.as_bytes()));
    add(Some(&issued.to_be_bytes()));
    add(Some(&expires.to_be_bytes()));
    add(Some(nonce.as_bytes()));
    if let Some(facts) = &subject.facts {
        add(Some(facts.as_bytes()));
    }
    bytes
}

/// Authenticates every unused approval with the key of a new master key, and returns their number.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &ApprovalRoot, new: &ApprovalRoot) -> Result<u64, ironclaw_state::Error> {
    let mut count = 0;
    for live in approvals::list_live(tx)? {
        // A token that the old key did not make stays unchanged, and is refused when it is used.
        let Ok(rekeyed) = Token::from_json(&live.token).and_then(|token| token.rekey(old, new)) else { continue };
        approvals::set_token(tx, live.id, &rekeyed.to_json())?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
pub(crate) mod tests;
