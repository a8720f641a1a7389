//! The signatures that count: of packages, and of indexes of sources.

use super::refused;
use super::source::{Candidate, Contents};
use crate::registry::skills::{Key, Source, may_sign};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_skill::index::Index;
use ironclaw_skill::signature::{self, PublicKey};
use ironclaw_skill::{Error, Name, Version};
use ironclaw_store::refusal::Refusal;
use std::path::Path;

/// Returns the trusted key that a signature names.
///
/// # Errors
/// Refuses an unreadable signature, and an unknown or revoked key.
fn key_of<'k>(keys: &'k [Key], signature: &str, what: &str) -> Result<(&'k Key, PublicKey), Refusal> {
    let id = signature::key_id(signature).map_err(|error| refused(what, error))?;
    let Some(key) = keys.iter().find(|key| key.id == id) else {
        let message = format!("{what}: it is signed with the key {id}, which this host does not trust");
        let refusal = Refusal::new(DenialCode::SkillKeyUnknown, message);
        return Err(refusal.hint("an owner adds a key that they trust: `ironctl skill key add NAME FILE`"));
    };
    if key.revoked_at.is_some() {
        let message = format!("{what}: it is signed with the key {} ({id}), which is revoked", key.name);
        return Err(Refusal::new(DenialCode::SkillKeyRevoked, message));
    }
    Ok((key, PublicKey::parse(&key.public_key).map_err(|error| refused(what, error))?))
}

/// Checks that a trusted key signed an archive as this version of a skill that it may sign, and returns the key.
///
/// # Errors
/// Refuses as [`key_of`] does, other bytes, another trusted comment, and another name.
pub(super) fn check_package<'k>(
    keys: &'k [Key],
    archive: &Path,
    signature: &str,
    what: &str,
    name: &Name,
    version: &Version,
) -> Result<&'k Key, Refusal> {
    let (key, public) = key_of(keys, signature, what)?;
    let comment = signature::verify(archive, signature, &public);
    comment
        .and_then(|comment| signature::check_comment(&comment, name, version))
        .map_err(|error| refused(what, error))?;
    if may_sign(key, name.as_ref()) {
        return Ok(key);
    }
    let message = format!("the key {} may not sign skill {name}, but only {}", key.name, key.skills.join(", "));
    Err(Refusal::new(DenialCode::SkillKeyName, message))
}

/// An index whose signature counts.
#[derive(Clone)]
pub(super) struct SignedIndex {
    pub index: Index,
    /// The digest of its text.
    pub digest: Digest,
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
            listed: Some(Contents { bytes: entry.bytes, digest: entry.digest }),
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
/// Refuses as [`key_of`] does, other bytes, a malformed index, one that is older than one that was seen, and another one with the same
/// serial.
pub(super) fn read_index(source: &Source, keys: &[Key], bytes: &[u8], signature: &str) -> Result<SignedIndex, Refusal> {
    let what = format!("the index of source {}", source.name);
    let (key, public) = key_of(keys, signature, &what)?;
    let index = Index::parse_signed(bytes, signature, &public).map_err(|error| match error {
        Error::Manifest { .. } | Error::TooLarge(_) => Refusal::new(DenialCode::SkillIndex, format!("{what}: {error}")),
        error => refused(&what, error),
    })?;
    if index.serial < source.serial {
        let message = format!("{what} has the serial {}, but this host has seen {}", index.serial, source.serial);
        return Err(Refusal::new(DenialCode::SkillIndex, message).hint("the source has to publish a newer index"));
    }
    let digest = Digest::of(bytes);
    if index.serial == source.serial && source.index_digest.is_some_and(|seen| seen != digest) {
        let message = format!("{what} has the serial {} of another index that this host has seen", index.serial);
        return Err(Refusal::new(DenialCode::SkillIndex, message).hint("the source has to publish a newer index"));
    }
    Ok(SignedIndex { index, digest, key: key.clone() })
}
