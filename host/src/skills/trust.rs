//! The signatures that count: of packages, and of indexes of sources.

use super::refused;
use super::source::Candidate;
use crate::refusal::Refusal;
use crate::registry::skills::{Key, Source, may_sign};
use ironclaw_contract::operator::DenialCode;
use ironclaw_skill::index::Index;
use ironclaw_skill::signature::{self, PublicKey};
use ironclaw_skill::{Error, Name, Version};
use std::path::Path;

/// Signed bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Signed<'a> {
    /// Those of a file.
    File(&'a Path),
    /// These.
    Bytes(&'a [u8]),
}

/// Checks that a trusted key signed bytes with this trusted comment, and returns the key.
///
/// # Errors
/// Refuses an unreadable signature, an unknown or revoked key, another comment, and other bytes.
pub(super) fn signed_by<'k>(
    keys: &'k [Key],
    signed: Signed<'_>,
    signature: &str,
    (what, comment): (&str, &str),
) -> Result<&'k Key, Refusal> {
    let id = signature::key_id(signature).map_err(|error| refused(what, error))?;
    let Some(key) = keys.iter().find(|key| key.id == id) else {
        let refusal = Refusal::new(
            DenialCode::SkillKeyUnknown,
            format!("{what}: it is signed with the key {id}, which this host does not trust"),
        );
        return Err(refusal.hint("an owner adds a key that they trust: `ironctl skill key add NAME FILE`"));
    };
    if key.revoked_at.is_some() {
        let message = format!("{what}: it is signed with the key {} ({id}), which is revoked", key.name);
        return Err(Refusal::new(DenialCode::SkillKeyRevoked, message));
    }
    let public = PublicKey::parse(&key.public_key).map_err(|error| refused(what, error))?;
    let found = match signed {
        Signed::File(file) => signature::verify(file, signature, &public),
        Signed::Bytes(bytes) => signature::verify_bytes(bytes, signature, &public),
    };
    let found = found.map_err(|error| refused(what, error))?;
    if found != comment {
        let shown: String = found.chars().take(128).collect();
        return Err(refused(what, Error::Comment { found: shown, expected: comment.to_owned() }));
    }
    Ok(key)
}

/// Refuses a key that may not sign a skill of this name.
pub(super) fn check_name(key: &Key, name: &Name) -> Result<(), Refusal> {
    if may_sign(key, name.as_ref()) {
        return Ok(());
    }
    let message = format!("the key {} may not sign skill {name}, but only {}", key.name, key.skills.join(", "));
    Err(Refusal::new(DenialCode::SkillKeyName, message))
}

/// An index whose signature counts.
pub(super) struct SignedIndex {
    pub index: Index,
    /// The key.
    pub key: Key,
}

impl SignedIndex {
    /// Returns the packages of a skill. A key counts for its own names only.
    pub(super) fn candidates(&self, name: &Name) -> Vec<Candidate> {
        let of_name =
            self.index.skills.iter().filter(|entry| entry.name == *name && may_sign(&self.key, name.as_ref()));
        let candidate = |entry: &ironclaw_skill::index::Entry| Candidate {
            version: entry.version.clone(),
            file: entry.file.clone(),
            description: entry.description.clone(),
        };
        of_name.map(candidate).collect()
    }

    /// Returns the versions that the index revokes and that its key may sign.
    pub(super) fn revoked_versions(&self) -> impl Iterator<Item = (&Name, &Version)> {
        let revoked = self.index.revoked.skills.iter().map(|revoked| (&revoked.name, &revoked.version));
        revoked.filter(|(name, _)| may_sign(&self.key, name.as_ref()))
    }

    /// Returns the ids of the keys that the index revokes: its own, and with a key for all skills each one.
    pub(super) fn revoked_keys(&self) -> impl Iterator<Item = &String> {
        let is_for_all = self.key.skills.is_empty();
        self.index.revoked.keys.iter().filter(move |id| is_for_all || **id == self.key.id)
    }
}

/// Reads an index that a trusted key signed.
///
/// # Errors
/// Refuses as [`signed_by`] does, a malformed index, and one that is older than one that was seen.
pub(super) fn read_index(
    source: &Source,
    keys: &[Key],
    (bytes, signature): (&[u8], &str),
) -> Result<SignedIndex, Refusal> {
    let what = format!("the index of source {}", source.name);
    let index =
        Index::parse(bytes).map_err(|error| Refusal::new(DenialCode::SkillIndex, format!("{what}: {error}")))?;
    let key =
        signed_by(keys, Signed::Bytes(bytes), signature, (&what, &format!("skill index {}", index.serial)))?.clone();
    if index.serial < source.serial {
        let message = format!("{what} has the serial {}, but this host has seen {}", index.serial, source.serial);
        return Err(Refusal::new(DenialCode::SkillIndex, message).hint("the source has to publish a newer index"));
    }
    Ok(SignedIndex { index, key })
}
