//! The operator's secrets: stored under the master key, or given by systemd; settings refer to them as `secret:NAME`.
//!
//! Gives a value only to the code that uses it, and writes neither a value nor its digest into the ledger. See `api::secrets`,
//! `calls::model_socket::endpoints`.

use ironclaw_contract::ids::PersonId;
use ironclaw_judge::egress::SECRET_CHARACTERS_MAX;
pub use ironclaw_judge::egress::{SECRET_PREFIX as PREFIX, SecretName};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent, SecretSource as Source};
use ironclaw_state::keys::{self, SecretText, WrappingKey};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::models::{self as table, SecretTimes, WrappedSecret};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The prefix of a secret's name in the name of a systemd credential.
const CREDENTIAL_PREFIX: &str = "ironclaw-secret-";

/// Bytes of a secret. An API key has some hundred bytes; a signing key in PEM is no secret here, because of its line breaks.
const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Stored secrets of one host.
const SECRETS_MAX: i64 = 256;

/// Parses the name of a secret, with or without `secret:`.
///
/// # Errors
/// Refuses any other text, without quoting it: a caller may confuse name and value.
pub fn named(text: &str) -> Result<SecretName, Refusal> {
    text.parse().map_err(|_| {
        let refusal = Refusal::new(DenialCode::SecretName, "invalid name of a secret");
        refusal.hint(format!(
            "use 1 to {SECRET_CHARACTERS_MAX} characters of a-z, 0-9, - and _, starting with a letter or a digit; a value is never part of \
             a command"
        ))
    })
}

/// Returns true if a text can be the name of a secret, or of its user.
pub fn is_name(text: &str) -> bool {
    !text.starts_with(PREFIX) && text.parse::<SecretName>().is_ok()
}

/// Returns a text that can be the value of a secret.
///
/// # Errors
/// Refuses an empty or long text, or one with a control character. The refusal has no part of it.
pub fn value(text: String) -> Result<SecretText, Refusal> {
    let text = SecretText::new(text);
    let refuse = |why: String| Err(Refusal::new(DenialCode::SecretValue, format!("invalid value of a secret: {why}")));
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

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub name: SecretName,
    /// The source of its value.
    pub source: Source,
    /// The times at which it was first and last stored, in milliseconds since the epoch; `None` if it only comes from systemd.
    pub stored: Option<(i64, i64)>,
}

/// The version of the value of a secret: it differs after each change of the value, and reveals nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// There is no value.
    Missing,
    /// The value in the record.
    Stored {
        /// The time at which it was stored, milliseconds since the epoch.
        changed_at: i64,
    },
    /// The value in a credential of systemd.
    Credential {
        /// The time at which its file changed, seconds since the epoch.
        modified_at: i64,
        /// The rest of that time.
        nanoseconds: i64,
    },
}

/// A secret by name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Versioned {
    pub name: SecretName,
    /// The version of its value.
    pub version: Version,
}

/// Returns a secret by the version that its value has now.
pub fn versioned(tx: &ReadTx<'_>, name: SecretName) -> Result<Versioned, ironclaw_state::Error> {
    let version = match credential(&name) {
        // A file that went away since has no value.
        Some(path) => path.metadata().map_or(Version::Missing, |file| Version::Credential {
            modified_at: file.mtime(),
            nanoseconds: file.mtime_nsec(),
        }),
        None => table::secret_changed_at(tx, name.as_str())?
            .map_or(Version::Missing, |changed_at| Version::Stored { changed_at }),
    };
    Ok(Versioned { name, version })
}

/// The reason that a secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// It cannot be opened or sealed.
    #[error("{name}: {source}")]
    Key { name: SecretName, source: keys::Error },
    /// A credential that cannot be used.
    #[error("cannot use the systemd credential {path}: {why}")]
    Credential { path: PathBuf, why: String },
}

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns the value of a secret, for immediate use; `None` if there is no such secret.
pub fn get(tx: &ReadTx<'_>, wrapping: &WrappingKey, name: &SecretName) -> Result<Option<SecretText>, Error> {
    if let Some(path) = credential(name) {
        return read_credential(&path).map(Some).map_err(|why| Error::Credential { path, why });
    }
    let Some(wrapped) = table::wrapped_secret(tx, name.as_str())? else { return Ok(None) };
    let opened = wrapping.secret(name.as_str(), &wrapped);
    opened.map(Some).map_err(|source| Error::Key { name: name.clone(), source })
}

/// Returns every secret by name, without values.
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

/// Parses a stored name; another version may have written one that is invalid here.
fn stored_name(name: &str) -> Result<SecretName, ironclaw_state::Error> {
    let wrong = |_| ironclaw_state::Error::Stored("SecretName cannot hold what another version wrote".to_owned());
    name.parse().map_err(wrong)
}

/// Returns the secret of this name, without its value.
pub fn find(tx: &ReadTx<'_>, name: &SecretName) -> Result<Option<Secret>, ironclaw_state::Error> {
    Ok(list(tx)?.into_iter().find(|secret| secret.name == *name))
}

/// Stores a new secret.
///
/// # Errors
/// Refuses a taken name, and a secret beyond the maximum.
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
    let held = table::count_secrets(tx)?;
    if held >= SECRETS_MAX {
        let remedy = "remove some: `ironctl secret list`, `ironctl secret remove`";
        let bound = Bound::new("secrets of this host", SECRETS_MAX, held, remedy);
        return Err(Refusal::over(DenialCode::SecretsTooMany, bound).into());
    }
    let (wrapped, now) = (wrap(wrapping, name, value)?, tx.now());
    table::insert_secret(tx, name.as_str(), &wrapped, now)?;
    note(tx, LedgerEvent::SecretSet, name, by)?;
    Ok(())
}

/// Replaces the value of a stored secret.
///
/// # Errors
/// Refuses an unknown secret, and one whose value comes from systemd.
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

/// Removes a stored secret; `used_by` lists its users.
///
/// # Errors
/// Refuses a secret in use, an unknown one, and one that only comes from systemd.
pub fn remove(tx: &mut WriteTx<'_>, name: &SecretName, used_by: &[String], by: PersonId) -> Result<(), Denied> {
    let Some(found) = find(tx, name)? else { return Err(unknown(name).into()) };
    if found.stored.is_none() {
        return Err(elsewhere(name).into());
    }
    // A stored secret behind a credential of the same name has no user.
    if !used_by.is_empty() && found.source == Source::Stored {
        let refusal = Refusal::new(DenialCode::SecretInUse, format!("{name} is in use by {}", used_by.join(", ")));
        return Err(refusal.hint("remove these first, or give it another value with `ironctl secret rotate`").into());
    }
    table::delete_secret(tx, name.as_str())?;
    note(tx, LedgerEvent::SecretRemoved, name, by)?;
    Ok(())
}

/// Encrypts every stored secret under another wrapping key.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<(), Error> {
    for WrappedSecret { name: named, wrapped } in table::wrapped_secrets(tx)? {
        let name = stored_name(&named)?;
        let passed = old.rewrap_secret(new, name.as_str(), &wrapped);
        let wrapped = passed.map_err(|source| Error::Key { name, source })?;
        table::rewrap_secret(tx, &WrappedSecret { name: named, wrapped })?;
    }
    Ok(())
}

/// Returns the refusal of a taken name.
pub fn exists(name: &SecretName) -> Refusal {
    let refusal = Refusal::new(DenialCode::SecretExists, format!("{name} exists already"));
    refusal.hint(format!("replace its value with `ironctl secret rotate {}`", name.as_str()))
}

/// Returns the refusal of an unknown name.
pub fn unknown(name: &SecretName) -> Refusal {
    let refusal = Refusal::new(DenialCode::SecretUnknown, format!("there is no {name}"));
    refusal.hint(format!("store it with `ironctl secret set {}`", name.as_str()))
}

fn elsewhere(name: &SecretName) -> Refusal {
    let credential = format!("{CREDENTIAL_PREFIX}{}", name.as_str());
    let refusal =
        Refusal::new(DenialCode::SecretElsewhere, format!("{name} comes from the systemd credential {credential}"));
    refusal.hint("only you can change that, in the systemd unit of the host")
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

/// Returns the file of the credential for this secret, if systemd gives one.
fn credential(name: &SecretName) -> Option<PathBuf> {
    let file = keys::credentials_directory()?.join(format!("{CREDENTIAL_PREFIX}{}", name.as_str()));
    Some(file).filter(|file| file.exists())
}

/// Returns every secret with a credential of systemd.
fn credentials() -> Vec<SecretName> {
    let entries = keys::credentials_directory().and_then(|directory| directory.read_dir().ok());
    let names = entries.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix(CREDENTIAL_PREFIX)?.parse().ok()).collect()
}

fn read_credential(path: &PathBuf) -> Result<SecretText, String> {
    let said = |error: io::Error| error.to_string();
    let file = File::open(path).map_err(said)?;
    let mode = file.metadata().map_err(said)?.mode() & 0o7777;
    // systemd gives its service access by an ACL, which shows as rights of the group.
    if mode & 0o037 != 0 {
        return Err(format!("it has mode {mode:04o}, so others may read it"));
    }
    let mut text = String::new();
    // The bytes of a value, a line break, and one more.
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
            let refusal = named(none).expect_err(none);
            assert!(none.is_empty() || none == "secret:" || !refusal.message.contains(none), "{refusal}");
        }
    }

    #[test]
    fn invalid_value_is_refused_and_never_quoted() {
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
