//! The master key, the keys that are derived from it, and the session keys that it wraps.
//!
//! Keys never print, never clone, and wipe themselves. This module never touches a database. See [`crate::keys::wrapping`] and
//! [`crate::seal`].

mod digest;
mod wrapping;

pub use ironclaw_text::secret::SecretText;

pub use digest::DigestKey;
pub use wrapping::{BackupKey, ContentKey, LedgerSecret, SessionKeys, WrappingKey};

use crate::home::{self, Home};
use hkdf::Hkdf;
use ironclaw_contract::seam::crypt::SessionKey;
use sha2::Sha256;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

const KEY_BYTES: usize = 32;

/// Name of the systemd credential that may hold the master key.
pub const CREDENTIAL: &str = "ironclaw-master-key";

ironclaw_operator::settings! {
    /// `[keys]`
    pub struct Config for keys {
        /// The file with the master key.
        master_key_file: Option<PathBuf> = None, Optional {
            rule: "the path of a file of 32 bytes that only its owner can read",
            instead: "the systemd credential `ironclaw-master-key`, or else `master.key` in the home",
            example: "\"/path/to/master.key\"",
        }, Restart;
    }
}

/// The reason that a key is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the master key {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// The record exists, and its key is missing.
    #[error("the master key {key} is missing, and {record} is encrypted under it")]
    Missing {
        /// The expected path of the key.
        key: PathBuf,
        record: PathBuf,
    },
    /// The file is not 32 bytes.
    #[error("the master key {0} must hold exactly 32 bytes")]
    Length(PathBuf),
    /// Others may read the file.
    #[error("the master key {path} has mode {mode:04o}: it must be readable by its owner alone (chmod 600)")]
    Mode { path: PathBuf, mode: u32 },
    /// The system has no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// A wrapped key or a body that does not open under this master key, session or item.
    #[error("{0} does not open: it was made under another key, or changed")]
    Sealed(&'static str),
    /// An error of the home.
    #[error(transparent)]
    Home(#[from] home::Error),
}

/// Returns fresh random bytes.
pub fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(bytes)
}

/// Words of 8 bytes of the stack that a computation with a key may have written.
const STACK_WORDS: usize = 2048;

/// The bytes of a key on the heap. Moving the key moves a pointer and leaves no copy. It wipes itself.
struct Bytes(Box<[u8; KEY_BYTES]>);

impl Bytes {
    /// Makes a key from the bytes that `write` writes in place.
    fn written<E>(write: impl FnOnce(&mut [u8; KEY_BYTES]) -> Result<(), E>) -> Result<Self, E> {
        let mut bytes = Self(Box::new([0; KEY_BYTES]));
        let written = write(&mut bytes.0);
        wipe_stack();
        written.map(|()| bytes)
    }

    fn random() -> Result<Self, Error> {
        Self::written(|bytes| getrandom::fill(bytes).map_err(Error::Random))
    }

    /// Derives a key with HKDF-SHA256.
    fn derived(salt: &[u8], from: &[u8; KEY_BYTES], info: &str) -> Self {
        let derived = Self::written(|bytes| Hkdf::<Sha256>::new(Some(salt), from).expand(info.as_bytes(), bytes));
        derived.expect("HKDF gives up to 8160 bytes")
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Overwrites the stack below this frame: computations with a key leave copies there.
#[inline(never)]
fn wipe_stack() {
    let mut stack = [0u64; STACK_WORDS];
    stack.zeroize();
    std::hint::black_box(&stack);
}

/// The master key, from which all other keys are derived; 32 bytes.
pub struct MasterKey(Bytes);

impl MasterKey {
    /// Makes a master key in the home, unless there is one or the settings name another place.
    ///
    /// # Errors
    /// [`Error::Missing`] if the home has a record: a fresh key would not open it.
    pub fn create(home: &Home, config: &Config) -> Result<(), Error> {
        let is_there = home.master_key().exists() || home.master_key_next().exists();
        if config.master_key_file.is_some() || credential().is_some() || is_there {
            return Ok(());
        }
        if home.has_record() {
            return Err(Error::Missing { key: home.master_key(), record: home.state_db() });
        }
        let bytes = Zeroizing::new(random::<KEY_BYTES>()?);
        Ok(home::write_private(&home.master_key(), bytes.as_slice())?)
    }

    /// Reads the master key from the configured file, the systemd credential, or the home.
    pub fn load(home: &Home, config: &Config) -> Result<Self, Error> {
        Self::read(Source::choose(home, config).path())
    }

    /// Reads a master key from a file that only its owner may read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        let fault = |source| Error::Read { path: path.clone(), source };
        let mut file = home::open_file(&path).map_err(fault)?;
        let metadata = file.metadata().map_err(fault)?;
        let mode = metadata.mode() & 0o7777;
        // systemd grants a credential through an access list, which appears as group permissions.
        let others = if credential().as_ref() == Some(&path) { 0o037 } else { 0o077 };
        if mode & others != 0 {
            return Err(Error::Mode { path, mode });
        }
        let read: std::io::Result<Bytes> = Bytes::written(|bytes| {
            file.read_exact(bytes)?;
            match file.read(&mut [0])? {
                0 => Ok(()),
                _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
            }
        });
        match read {
            Ok(bytes) => Ok(Self(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(Error::Length(path)),
            Err(source) => Err(fault(source)),
        }
    }

    /// Makes a new random key.
    pub fn fresh() -> Result<Self, Error> {
        Ok(Self(Bytes::random()?))
    }

    /// Writes the key to a file of mode 0600.
    pub fn write_to(&self, path: &Path) -> Result<(), Error> {
        Ok(home::write_private(path, self.0.0.as_slice())?)
    }

    /// Returns a public name of the key that reveals none of it: 16 hex characters, for people and the ledger.
    pub fn fingerprint(&self) -> String {
        spelled(self.name())
    }

    fn name(&self) -> [u8; BackupKey::NAME_BYTES] {
        let fingerprint = self.derive("fingerprint", 0);
        *fingerprint.0.first_chunk().expect("a fingerprint is shorter than a key")
    }

    /// Derives a key for one purpose and one generation of the record, so that a restore gets new keys.
    fn derive(&self, purpose: &str, generation: u64) -> Bytes {
        Bytes::derived(b"ironclaw/1", &self.0.0, &format!("{purpose}/{generation}"))
    }

    /// Returns the raw key of `state.db`.
    pub fn state_key(&self) -> SessionKey {
        SessionKey::new(*self.derive("state.db", 0).0)
    }

    pub fn approval_root(&self) -> ApprovalRoot {
        ApprovalRoot(self.derive("approval", 0))
    }

    pub fn backup_key(&self) -> BackupKey {
        BackupKey::new(self.derive("backup", 0), self.name())
    }

    /// Returns the key that wraps the keys of sessions.
    pub fn wrapping_key(&self) -> WrappingKey {
        WrappingKey(self.derive("wrap", 0))
    }
}

/// Returns a fingerprint as people see it: 16 hex characters.
pub fn spelled(fingerprint: [u8; BackupKey::NAME_BYTES]) -> String {
    fingerprint.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Location of the master key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file from the settings.
    File(PathBuf),
    /// A credential of systemd.
    Credential(PathBuf),
    /// The file in the home.
    Home(PathBuf),
}

impl Source {
    /// Returns the file of the settings, else the credential, else the file in the home.
    pub fn choose(home: &Home, config: &Config) -> Self {
        match (&config.master_key_file, credential()) {
            (Some(named), _) => Self::File(named.clone()),
            (None, Some(credential)) => Self::Credential(credential),
            (None, None) => Self::Home(home.master_key()),
        }
    }

    /// Returns the file to read.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Credential(path) | Self::Home(path) => path,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{} (from config.toml)", path.display()),
            Self::Credential(_) => write!(f, "the systemd credential {CREDENTIAL}"),
            Self::Home(path) => write!(f, "{}", path.display()),
        }
    }
}

fn credential() -> Option<PathBuf> {
    credentials_directory().map(|directory| directory.join(CREDENTIAL)).filter(|path| path.exists())
}

/// Returns the directory with the credentials of this service, if systemd provides them.
pub fn credentials_directory() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from)
}

/// The root key of approvals. Each subject of an approval has its own derived key, which is the same after a restart.
pub struct ApprovalRoot(Bytes);

impl ApprovalRoot {
    /// Returns the key of one change or call, in one generation of the record.
    pub fn key(&self, subject: &str, generation: u64) -> Zeroizing<[u8; KEY_BYTES]> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Hkdf::<Sha256>::new(Some(b"ironclaw/approval"), self.0.0.as_slice())
            .expand(format!("{generation}/{subject}").as_bytes(), key.as_mut_slice())
            .expect("HKDF gives up to 8160 bytes");
        wipe_stack();
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::{ItemId, SessionId};

    /// Counts the copies of a key in the writable memory of this process. The argument has the inverted bytes of the key.
    fn copies(turned: &[u8; KEY_BYTES]) -> usize {
        use std::os::unix::fs::FileExt;
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let memory = std::fs::File::open("/proc/self/mem").expect("memory");
        let mut count = 0;
        for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|may| may.starts_with("rw"))) {
            let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
            let address = |text| u64::from_str_radix(text, 16).expect("an address");
            let (mut at, to) = (address(from), address(to));
            let mut chunk = vec![0; 1 << 20];
            while at < to {
                let wanted = chunk.len().min((to - at) as usize);
                // A mapping may disappear or be unreadable.
                let Ok(read) = memory.read_at(&mut chunk[..wanted], at) else { break };
                if read == 0 {
                    break;
                }
                // The buffer of this function holds a copy too, which does not count.
                let own = chunk.as_ptr() as u64..chunk.as_ptr() as u64 + chunk.len() as u64;
                // A key in a structure is aligned; comparing at each byte would take seconds.
                let places = chunk[..read].chunks_exact(8).enumerate().filter(|(_, word)| word[0] == !turned[0]);
                let is_key = |at: usize| {
                    chunk[..read]
                        .get(at * 8..at * 8 + KEY_BYTES)
                        .is_some_and(|found| found.iter().zip(turned).all(|(a, b)| *a == !b))
                };
                count += places.filter(|(word, _)| is_key(*word) && !own.contains(&(at + *word as u64 * 8))).count();
                // The next piece finds a key that crosses the end of this one.
                let is_last = at + read as u64 >= to || read < wanted;
                at += read as u64 - if is_last { 0 } else { KEY_BYTES as u64 - 8 };
            }
            chunk.zeroize();
        }
        count
    }

    #[test]
    fn moved_key_is_in_memory_once_and_then_never() {
        let master = MasterKey::fresh().expect("random");
        for key in [master.wrapping_key().0, master.approval_root().0, master.derive("x", 1)] {
            let turned: [u8; KEY_BYTES] = std::array::from_fn(|at| !key.0[at]);
            // The daemon also moves keys through futures and boxes.
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let moved = runtime.block_on(async move {
                let held = Box::new((key, [0u8; 64]));
                let again = Box::pin(async move { *held }).await;
                Box::new(again)
            });
            wipe_stack();
            assert_eq!(copies(&turned), 1, "while it is held");
            drop(moved);
            assert_eq!(copies(&turned), 0, "afterwards");
        }
    }

    #[test]
    fn secret_opens_only_under_its_name_and_key_and_is_not_printed() {
        let (old, new) = (WrappingKey(Bytes(Box::new([7; 32]))), WrappingKey(Bytes(Box::new([8; 32]))));
        let text = SecretText::new("sk-zinnober".to_owned());
        assert_eq!(format!("{text:?}"), "SecretText");
        let stored = old.wrap_secret("openai", &text).expect("wrapped");
        assert!(old.secret("anthropic", &stored).is_err(), "another name");
        assert!(new.secret("openai", &stored).is_err(), "another master key");
        let passed = old.rewrap_secret(&new, "openai", &stored).expect("passed on");
        assert_eq!(new.secret("openai", &passed).expect("opens").expose(), "sk-zinnober");
        assert!(old.secret("openai", &passed).is_err());
    }

    #[test]
    fn a_key_or_body_under_another_name_does_not_open() {
        let wrapping = WrappingKey(Bytes(Box::new([7; 32])));
        let (one, other) = (SessionId::new(), SessionId::new());
        let (keys, stored) = wrapping.make(one).expect("made");
        assert_eq!(wrapping.queue_key(one, &stored[0]).expect("opens").as_bytes(), keys.queue.as_bytes());
        assert!(wrapping.queue_key(other, &stored[0]).is_err(), "another session");
        assert!(wrapping.queue_key(one, &stored[1]).is_err(), "the other key");
        assert!(WrappingKey(Bytes(Box::new([8; 32]))).queue_key(one, &stored[0]).is_err(), "another master key");
        let (item, body) = (ItemId::new(), b"words");
        let sealed = keys.content.seal(item, body).expect("sealed");
        assert_eq!(keys.content.open(item, &sealed).expect("opens"), body);
        assert!(keys.content.open(ItemId::new(), &sealed).is_err(), "another item");
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(keys.content.open(item, &changed).is_err(), "changed byte {place}");
        }
    }
}
