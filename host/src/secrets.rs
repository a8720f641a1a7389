//! The operator's secrets: stored under the master key, or given by systemd; referred to as `secret:NAME` everywhere else.
//!
//! Never tells a value to anybody but the code that is about to use it, and writes neither a value nor its digest into the
//! ledger. Next: `api::secrets`, `model_socket::endpoints`.

use crate::refusal::{Denied, Refusal};
use crate::tables::models::{self as table, SecretTimes, WrappedSecret};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_ledger::Entry;
use ironclaw_state::keys::{self, SecretText, WrappingKey};
use ironclaw_state::{ReadTx, WriteTx};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::str::FromStr;

/// What stands before a secret's name wherever settings refer to it.
pub const PREFIX: &str = "secret:";

/// What stands before a secret's name in that of a systemd credential.
const CREDENTIAL_PREFIX: &str = "ironclaw-secret-";

/// Characters of a secret's name.
const NAME_CHARACTERS_MAX: usize = 64;

/// Bytes of a secret: a signing key in PEM has controls in it and is none; an API key has some hundred bytes.
const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Stored secrets of one host.
const SECRETS_MAX: i64 = 256;

/// Names a secret, and tells nothing of it. Written `secret:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName(String);

impl SecretName {
    /// The name alone.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl FromStr for SecretName {
    type Err = Refusal;
    /// Reads it with or without `secret:`.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let name = text.strip_prefix(PREFIX).unwrap_or(text);
        if is_name(name) {
            return Ok(Self(name.to_owned()));
        }
        // Whoever mixes up name and value must not find the value in an error.
        let refusal = Refusal::new(DenialCode::SecretName, "this is no secret's name");
        Err(refusal.hint(format!("use 1 to {NAME_CHARACTERS_MAX} characters of a-z, 0-9, - and _, starting with a letter or a digit; a value is never part of a command")))
    }
}

/// Whether a text can name a secret or what is named after one.
pub fn is_name(text: &str) -> bool {
    text.len() <= NAME_CHARACTERS_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}

/// A text that can be a secret's value.
///
/// # Errors
/// A refusal that holds nothing of it: empty, too long, or with a control character in it.
pub fn value(text: String) -> Result<SecretText, Refusal> {
    let text = SecretText::new(text);
    let refuse = |why: String| Err(Refusal::new(DenialCode::SecretValue, format!("the value is no secret: {why}")));
    let bytes = text.expose().len();
    if bytes == 0 {
        return refuse("it is empty".to_owned());
    }
    if bytes > VALUE_BYTES_MAX {
        return refuse(format!("its {bytes} bytes are over the limit of {VALUE_BYTES_MAX}"));
    }
    if text.expose().chars().any(char::is_control) {
        return refuse("it has a control character, such as a line break".to_owned());
    }
    Ok(text)
}

/// Where a secret's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The record.
    Stored,
    /// A credential that systemd gives; it wins over a stored one.
    Credential,
}

impl Source {
    /// As shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Credential => "systemd",
        }
    }
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name.
    pub name: SecretName,
    /// Where its value comes from.
    pub source: Source,
    /// When it was stored first and last, milliseconds since the epoch; `None` when it only comes from systemd.
    pub stored: Option<(i64, i64)>,
}

/// Why a secret that is there cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// It does not open, or cannot be sealed.
    #[error("{name}: {source}")]
    Key {
        /// Which.
        name: SecretName,
        /// Why.
        source: keys::Error,
    },
    /// A credential that cannot be used.
    #[error("cannot use the systemd credential {path}: {why}")]
    Credential {
        /// Its file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The value of this secret, for whoever is about to use it; `None` when there is no such secret.
pub fn get(tx: &ReadTx<'_>, wrapping: &WrappingKey, name: &SecretName) -> Result<Option<SecretText>, Error> {
    if let Some(path) = credential(name) {
        return read_credential(&path).map(Some).map_err(|why| Error::Credential { path, why });
    }
    let Some(wrapped) = table::wrapped_secret(tx, name.as_str())? else { return Ok(None) };
    let opened = wrapping.secret(name.as_str(), &wrapped);
    opened.map(Some).map_err(|source| Error::Key { name: name.clone(), source })
}

/// Every secret by name, without values.
pub fn list(tx: &ReadTx<'_>) -> Result<Vec<Secret>, ironclaw_state::Error> {
    let mut secrets = table::secrets(tx)?.into_iter().map(without_value).collect::<Result<Vec<_>, _>>()?;
    for name in credentials() {
        if !secrets.iter().any(|secret| secret.name == name) {
            secrets.push(Secret { name, source: Source::Credential, stored: None });
        }
    }
    secrets.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(secrets)
}

fn without_value(SecretTimes { name, created_at, changed_at }: SecretTimes) -> Result<Secret, ironclaw_state::Error> {
    let name = stored_name(&name)?;
    let source = if credential(&name).is_some() { Source::Credential } else { Source::Stored };
    Ok(Secret { name, source, stored: Some((created_at, changed_at)) })
}

/// Reads a name that is stored; another version may have written what is none here.
fn stored_name(name: &str) -> Result<SecretName, ironclaw_state::Error> {
    let wrong = |_| ironclaw_state::Error::Stored("SecretName cannot hold what another version wrote".to_owned());
    name.parse().map_err(wrong)
}

/// The secret of this name, without its value.
pub fn find(tx: &ReadTx<'_>, name: &SecretName) -> Result<Option<Secret>, ironclaw_state::Error> {
    Ok(list(tx)?.into_iter().find(|secret| secret.name == *name))
}

/// Stores a new secret.
///
/// # Errors
/// Refuses a name that is taken, and one secret too many.
pub fn set(
    tx: &mut WriteTx<'_>,
    wrapping: &WrappingKey,
    name: &SecretName,
    value: &SecretText,
    by: PersonId,
) -> Result<(), Denied<Error>> {
    match find(tx, name)? {
        Some(Secret { source: Source::Credential, .. }) => return Err(elsewhere(name).into()),
        Some(Secret { source: Source::Stored, .. }) => return Err(exists(name).into()),
        None => {}
    }
    if table::count_secrets(tx)? >= SECRETS_MAX {
        let refusal = Refusal::new(DenialCode::SecretsTooMany, format!("there are {SECRETS_MAX} secrets already"));
        return Err(refusal.hint("remove some: `ironctl secret list`, `ironctl secret remove`").into());
    }
    let (wrapped, now) = (wrap(wrapping, name, value)?, tx.now());
    table::insert_secret(tx, name.as_str(), &wrapped, now)?;
    note(tx, LedgerEvent::SecretSet, name, by)?;
    Ok(())
}

/// Gives a stored secret another value.
///
/// # Errors
/// Refuses a secret that is not there, and one whose value comes from systemd.
pub fn rotate(
    tx: &mut WriteTx<'_>,
    wrapping: &WrappingKey,
    name: &SecretName,
    value: &SecretText,
    by: PersonId,
) -> Result<(), Denied<Error>> {
    match find(tx, name)? {
        None => return Err(unknown(name).into()),
        Some(Secret { source: Source::Credential, .. }) => return Err(elsewhere(name).into()),
        Some(Secret { source: Source::Stored, .. }) => {}
    }
    let (wrapped, now) = (wrap(wrapping, name, value)?, tx.now());
    table::change_secret(tx, name.as_str(), &wrapped, now)?;
    note(tx, LedgerEvent::SecretRotated, name, by)?;
    Ok(())
}

/// Removes a stored secret; `used_by` says what refers to it.
///
/// # Errors
/// Refuses one that is in use or not there, and one that only systemd can take away.
pub fn remove(tx: &mut WriteTx<'_>, name: &SecretName, used_by: &[String], by: PersonId) -> Result<(), Denied> {
    let Some(found) = find(tx, name)? else { return Err(unknown(name).into()) };
    if found.stored.is_none() {
        return Err(elsewhere(name).into());
    }
    // Behind a credential of the same name lies one that nobody uses.
    if !used_by.is_empty() && found.source == Source::Stored {
        let refusal = Refusal::new(DenialCode::SecretInUse, format!("{name} is in use by {}", used_by.join(", ")));
        return Err(refusal.hint("remove these first, or give it another value with `ironctl secret rotate`").into());
    }
    table::delete_secret(tx, name.as_str())?;
    note(tx, LedgerEvent::SecretRemoved, name, by)?;
    Ok(())
}

/// Brings every stored secret under another wrapping key.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<(), Error> {
    for WrappedSecret { name: named, wrapped } in table::wrapped_secrets(tx)? {
        let name = stored_name(&named)?;
        let passed = old.rewrap_secret(new, name.as_str(), &wrapped);
        let wrapped = passed.map_err(|source| Error::Key { name, source })?;
        table::rewrap_secret(tx, &WrappedSecret { name: named, wrapped })?;
    }
    Ok(())
}

/// There is a secret of this name already.
pub fn exists(name: &SecretName) -> Refusal {
    let refusal = Refusal::new(DenialCode::SecretExists, format!("there is a {name} already"));
    refusal.hint(format!("replace its value with `ironctl secret rotate {}`", name.as_str()))
}

/// There is no secret of this name.
pub fn unknown(name: &SecretName) -> Refusal {
    let refusal = Refusal::new(DenialCode::SecretUnknown, format!("there is no {name}"));
    refusal.hint(format!("store it with `ironctl secret set {}`", name.as_str()))
}

fn elsewhere(name: &SecretName) -> Refusal {
    let credential = format!("{CREDENTIAL_PREFIX}{}", name.as_str());
    let refusal =
        Refusal::new(DenialCode::SecretElsewhere, format!("{name} comes from the systemd credential {credential}"));
    refusal.hint("only you can change that: it stands in the unit of the host")
}

fn wrap(wrapping: &WrappingKey, name: &SecretName, value: &SecretText) -> Result<Vec<u8>, Error> {
    wrapping.wrap_secret(name.as_str(), value).map_err(|source| Error::Key { name: name.clone(), source })
}

fn note(
    tx: &mut WriteTx<'_>,
    event: LedgerEvent,
    name: &SecretName,
    by: PersonId,
) -> Result<(), ironclaw_state::Error> {
    Entry::new(event).with("name", name.as_str()).with("by", by).append(tx)?;
    Ok(())
}

/// The file of the credential for this secret, if systemd gives one.
fn credential(name: &SecretName) -> Option<PathBuf> {
    let file = keys::credentials_directory()?.join(format!("{CREDENTIAL_PREFIX}{}", name.as_str()));
    Some(file).filter(|file| file.exists())
}

/// Every secret for which systemd gives a credential.
fn credentials() -> Vec<SecretName> {
    let entries = keys::credentials_directory().and_then(|directory| directory.read_dir().ok());
    let names = entries.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix(CREDENTIAL_PREFIX)?.parse().ok()).collect()
}

fn read_credential(path: &PathBuf) -> Result<SecretText, String> {
    let said = |error: io::Error| error.to_string();
    let file = File::open(path).map_err(said)?;
    let mode = file.metadata().map_err(said)?.mode() & 0o7777;
    // systemd gives a credential to its service by an access list, which shows as rights of the group.
    if mode & 0o037 != 0 {
        return Err(format!("it has mode {mode:04o}, so others may read it"));
    }
    let mut text = String::new();
    // One byte more than a value, and a line break.
    file.take(VALUE_BYTES_MAX as u64 + 3).read_to_string(&mut text).map_err(said)?;
    let end = text.strip_suffix('\n').map_or(text.len(), |text| text.strip_suffix('\r').unwrap_or(text).len());
    text.truncate(end);
    value(text).map_err(|refusal| refusal.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_read_with_or_without_prefix_and_never_quoted() {
        for text in ["openai", "secret:openai"] {
            let name: SecretName = text.parse().expect("a name");
            assert_eq!((name.as_str(), name.to_string().as_str()), ("openai", "secret:openai"));
        }
        let long = "a".repeat(65);
        for none in ["", "secret:", "Openai", "-a", "_a", "a b", "a/b", "a.b", "secret:secret:a", "sk-Ab12", "ä", &long]
        {
            let refusal = none.parse::<SecretName>().expect_err(none);
            assert!(none.is_empty() || none == "secret:" || !refusal.message.contains(none), "{refusal}");
        }
    }

    #[test]
    fn a_value_that_is_none_is_refused_without_being_quoted() {
        for (text, why) in [
            (String::new(), "is empty"),
            ("zinnober\nzwei".to_owned(), "control character"),
            ("zinnober\u{7f}".to_owned(), "control character"),
            ("z".repeat(8193), "over the limit of 8192"),
        ] {
            let refusal = value(text.clone()).expect_err("no value");
            assert!(refusal.message.contains(why), "{refusal}");
            assert!(text.is_empty() || !refusal.message.contains("zinnober"), "{refusal}");
        }
        assert_eq!(value("z".repeat(8192)).expect("a value").expose().len(), 8192);
    }
}
