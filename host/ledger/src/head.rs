//! Signed heads: the last position of the ledger, in a form that can be kept outside the reach of this host.
//!
//! A signer signs only a position that it has read from the ledger, and no head is kept inside the home. See `maintenance` in the
//! host's crate.

use super::table::{End, Key};
use super::{Entry, table};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use ironclaw_contract::canonical;
use ironclaw_operator::{HEAD_DOMAIN, LedgerEvent, SignedHead};
use ironclaw_state::home;
use ironclaw_state::keys::{self, WrappingKey};
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::Value;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub use super::table::public_keys;

/// Longest file of a head, in bytes.
const HEAD_BYTES_MAX: u64 = 4096;

/// The reason why there is no signing key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    #[error(transparent)]
    Key(#[from] keys::Error),
    /// There is no key yet.
    #[error("the ledger has no signing key yet: start the host once")]
    NoKey,
}

/// Signer of heads of one ledger.
pub struct Signer {
    key: SigningKey,
    public: String,
}

/// A position in a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Hash of the very first entry.
    pub ledger: String,
    /// Number of the live chain's genesis.
    pub first: u64,
    /// Number of the last entry.
    pub seq: u64,
    /// Hash of the last entry.
    pub hash: String,
}

/// Wraps every stored signing key under another wrapping key.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<(), Error> {
    for Key { public, wrapped } in table::keys(tx)? {
        let wrapped = old.rewrap_ledger_key(new, &public, &wrapped)?;
        table::set_wrapped(tx, &public, &wrapped)?;
    }
    Ok(())
}

impl Signer {
    /// Loads the newest stored key.
    ///
    /// # Errors
    /// [`Error::NoKey`] in a home of an earlier version.
    pub fn load(tx: &ReadTx<'_>, wrapping: &WrappingKey) -> Result<Self, Error> {
        let Key { public, wrapped } = table::newest_key(tx)?.ok_or(Error::NoKey)?;
        let secret = wrapping.ledger_key(&public, &wrapped)?;
        Ok(Self { key: SigningKey::from_bytes(&secret), public })
    }

    /// Makes and stores a key. The caller writes its public half into the ledger.
    pub fn make(tx: &mut WriteTx<'_>, wrapping: &WrappingKey) -> Result<Self, Error> {
        let made = wrapping.make_ledger_key(|secret| hex(SigningKey::from_bytes(secret).verifying_key().as_bytes()))?;
        table::insert_key(tx, &made.name, &made.stored, tx.now())?;
        Ok(Self { key: SigningKey::from_bytes(&made.secret), public: made.name })
    }

    /// Loads the stored key. In a home of an earlier version, makes a key and names it in the ledger.
    pub fn ensure(tx: &mut WriteTx<'_>, wrapping: &WrappingKey) -> Result<Self, Error> {
        match Self::load(tx, wrapping) {
            Err(Error::NoKey) => {
                let made = Self::make(tx, wrapping)?;
                Entry::new(LedgerEvent::LedgerKeyMade).with("key", made.public.clone()).append(tx)?;
                Ok(made)
            }
            other => other,
        }
    }

    /// Makes a signer with a fixed key, for tests of this crate.
    #[cfg(test)]
    pub(super) fn for_test() -> Self {
        let key = SigningKey::from_bytes(&[7; 32]);
        let public = hex(key.verifying_key().as_bytes());
        Self { key, public }
    }

    /// Returns the public key, 64 hex characters.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Signs the position of the ledger; `now` in milliseconds since the epoch.
    pub fn sign(&self, position: Position, now: i64) -> SignedHead {
        let mut head = SignedHead {
            domain: HEAD_DOMAIN.to_owned(),
            first: position.first,
            hash: position.hash,
            key: self.public.clone(),
            ledger: position.ledger,
            seq: position.seq,
            signature: String::new(),
            time: super::rfc3339(now),
        };
        head.signature = hex(&self.key.sign(&signed_bytes(&head)).to_bytes());
        head
    }
}

impl Position {
    /// Returns the position of the ledger in this transaction or snapshot.
    pub fn read(tx: &ReadTx<'_>) -> Result<Self, ironclaw_state::Error> {
        let missing = || ironclaw_state::Error::Stored("ledger: the genesis is missing".to_owned());
        let (genesis, data) = table::genesis(tx)?.ok_or_else(missing)?;
        let End { seq, hash } = table::last(tx)?.ok_or_else(missing)?;
        let first = genesis.seq;
        let ledger = match first {
            0 => genesis.hash,
            _ => super::Genesis::read(&data).ledger.ok_or_else(missing)?,
        };
        Ok(Self { ledger, first, seq, hash })
    }
}

/// Returns whether the signature of a head is valid for its key.
pub fn is_authentic(head: &SignedHead) -> bool {
    let verified = || {
        let key = VerifyingKey::from_bytes(&unhex::<32>(&head.key)?).ok()?;
        let signature = Signature::from_bytes(&unhex::<64>(&head.signature)?);
        // Strict: excludes a second signature for the same bytes, and keys of small order.
        key.verify_strict(&signed_bytes(head), &signature).ok()
    };
    head.domain == HEAD_DOMAIN && verified().is_some()
}

/// Returns the canonical JSON of all fields except the signature.
fn signed_bytes(head: &SignedHead) -> Vec<u8> {
    let mut value = serde_json::to_value(head).expect("plain fields are JSON");
    if let Value::Object(fields) = &mut value {
        fields.remove("signature");
    }
    canonical::to_vec(&value)
}

/// Returns the name of a head's file: the ledger, the number, and the beginning of the hash. So a head of another history never
/// replaces an existing file.
pub fn file_name(head: &SignedHead) -> String {
    format!("{}{:012}-{}.json", prefix(&head.ledger), head.seq, head.hash.get(..16).unwrap_or(&head.hash))
}

fn prefix(ledger: &str) -> String {
    format!("{}-", short(ledger))
}

/// Returns the beginning of a ledger's id, which names its files and its directory.
pub fn short(ledger: &str) -> &str {
    ledger.get(..16).unwrap_or(ledger)
}

/// Returns the number of the newest head of this ledger in a directory, from the names of its files.
pub fn newest(directory: &Path, ledger: &str) -> Option<u64> {
    names(directory, ledger).ok()?.iter().filter_map(|name| named(name, ledger)).map(|(seq, _)| seq).max()
}

/// Returns the names of the heads of this ledger in a directory, in their order.
///
/// # Errors
/// Those of the directory.
pub fn names(directory: &Path, ledger: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if named(&name, ledger).is_some() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Parses the name of a head's file: its number, and the beginning of the hash.
pub fn named<'a>(name: &'a str, ledger: &str) -> Option<(u64, &'a str)> {
    let (seq, hash) = name.strip_prefix(&prefix(ledger))?.strip_suffix(".json")?.split_once('-')?;
    Some((seq.parse().ok()?, hash))
}

/// A head of another history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The name of its file.
    pub name: String,
    /// The first number at which its history differs.
    pub from: u64,
    pub signed: Signed,
}

/// An entry that a head was signed over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signed {
    /// Its number.
    pub seq: u64,
    pub hash: String,
}

impl std::fmt::Display for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl std::str::FromStr for Signed {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (seq, hash) = text.split_once(':').ok_or(())?;
        Ok(Self { seq: seq.parse().map_err(|_| ())?, hash: hash.to_owned() })
    }
}

/// Returns the authentic heads of this ledger whose history differs from the entries `first` to `end`. `hash_at` returns the hash of
/// such an entry.
///
/// # Errors
/// Those of `hash_at`.
pub fn contradictions<E>(
    kept: Vec<HeadFile>,
    ledger: &str,
    first: u64,
    end: u64,
    mut hash_at: impl FnMut(u64) -> Result<Option<String>, E>,
) -> Result<Vec<Contradiction>, E> {
    let mut found = Vec::new();
    for HeadFile { name, head } in kept {
        let Some(head) = head.filter(|head| head.ledger == ledger && head.seq >= first && is_authentic(head)) else {
            continue;
        };
        let from = match hash_at(head.seq)? {
            None => end + 1,
            Some(hash) if hash != head.hash => head.seq,
            Some(_) => continue,
        };
        found.push(Contradiction { name, from, signed: Signed { seq: head.seq, hash: head.hash } });
    }
    Ok(found)
}

/// Writes a head atomically, also across a power failure.
pub fn keep(directory: &Path, head: &SignedHead) -> io::Result<()> {
    let name = file_name(head);
    let temporary = directory.join(format!(".{name}.new"));
    home::discard(&temporary)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    // Other users may read it: it has only numbers, hashes and a signature.
    file.set_permissions(Permissions::from_mode(0o644))?;
    let mut text = String::new();
    super::line::write_head(&mut text, head);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    home::rename_durably(&temporary, &directory.join(name))
}

/// A file of a directory of heads.
#[derive(Debug)]
pub struct HeadFile {
    pub name: String,
    /// Its head; `None` if the file is no head.
    pub head: Option<SignedHead>,
}

impl HeadFile {
    /// Returns whether it names one of these keys; does not check the signature.
    pub fn is_signed_by(&self, keys: &[String]) -> bool {
        self.head.as_ref().is_some_and(|head| keys.contains(&head.key))
    }
}

/// Reads every file `*.json` in a directory, in the order of the names; an unreadable file is no head.
pub fn all(directory: &Path) -> io::Result<Vec<HeadFile>> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || !name.ends_with(".json") {
            continue;
        }
        kept.push(one(directory, name));
    }
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kept)
}

/// Reads one file of a directory of heads; an unreadable file is no head.
pub fn one(directory: &Path, name: String) -> HeadFile {
    let path = directory.join(&name);
    let small = path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= HEAD_BYTES_MAX);
    let bytes = if small { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    HeadFile { name, head: serde_json::from_slice(&bytes).ok() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..text.len()).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        Signer::for_test()
    }

    #[test]
    fn head_with_any_changed_field_is_not_authentic() {
        let position = Position { ledger: "aa".repeat(32), first: 0, seq: 9, hash: "bb".repeat(32) };
        let head = signer().sign(position, 1_700_000_000_000);
        assert!(is_authentic(&head));
        let text = serde_json::to_value(&head).expect("plain fields");
        for field in text.as_object().expect("an object").keys() {
            let mut changed = text.clone();
            changed[field] = match &text[field] {
                Value::Number(number) => Value::from(number.as_u64().expect("a count") + 1),
                other => {
                    let other = other.as_str().expect("text");
                    let last = if other.ends_with('1') { "2" } else { "1" };
                    Value::from(format!("{}{last}", &other[..other.len() - 1]))
                }
            };
            let changed: SignedHead = serde_json::from_value(changed).expect("the same shape");
            assert!(!is_authentic(&changed), "{field}");
        }
        let cut = SignedHead { signature: head.signature[..126].to_owned(), ..head };
        assert!(!is_authentic(&cut));
    }

    #[test]
    fn the_line_of_a_head_is_canonical_json() {
        let position = Position { ledger: "aa".repeat(32), first: 0, seq: 9, hash: "bb".repeat(32) };
        let head = signer().sign(position, 1_700_000_000_000);
        let mut line = String::new();
        super::super::line::write_head(&mut line, &head);
        assert_eq!(line.trim_end(), canonical::to_string(&head));
    }
}
