//! Access to the record of a home with its master key, by the host's own code.
//!
//! Reads only, except for `open_to_change`. See `security::erase` and `security::secrets`.

use super::host_fixture::TestHost;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use ironclaw_contract::ids::SessionId;
use ironclaw_state::home::Home;
use ironclaw_state::keys::{Config, MasterKey};
use regex::bytes::Regex;
use rusqlite::Connection;
use sha2::Sha256;
use std::path::{Path, PathBuf};

/// A named byte string for searches in files and memory.
#[derive(Debug, Clone)]
pub(crate) struct Needle {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pattern: Regex,
}

impl Needle {
    pub(crate) fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        // The crate is optimized, and tests are not: a program of the host has 140 MB.
        let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        let pattern = Regex::new(&format!("(?-u){escaped}")).expect("escaped bytes");
        Self { name: name.into(), bytes, pattern }
    }

    /// Returns a key in every encoding that a leak could have.
    pub(crate) fn key(name: &str, key: &[u8]) -> Vec<Self> {
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        vec![
            Self::new(format!("{name}, raw"), key),
            Self::new(format!("{name}, in upper-case hex"), hex.to_uppercase()),
            Self::new(format!("{name}, in hex"), hex),
            // Both alphabets, without the last group, which depends on the bytes after the key.
            Self::new(format!("{name}, in base64"), base64(key, b'+', b'/')),
            Self::new(format!("{name}, in base64 for urls"), base64(key, b'-', b'_')),
        ]
    }

    pub(crate) fn is_in(&self, haystack: &[u8]) -> bool {
        !self.bytes.is_empty() && self.pattern.is_match(haystack)
    }
}

fn base64(bytes: &[u8], plus: u8, slash: u8) -> String {
    let alphabet: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain([plus, slash]).collect();
    let whole = bytes.chunks_exact(3);
    whole
        .flat_map(|group| {
            let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
            [18, 12, 6, 0].map(|shift| alphabet[(bits >> shift & 63) as usize] as char)
        })
        .collect()
}
pub(crate) fn master(home: &Path) -> MasterKey {
    // Uses another home, because the inspected one may belong to another user.
    let own = tempfile::tempdir().expect("a temporary directory");
    let beside = Home::create(&own.path().join("h")).expect("a home");
    let config = Config { master_key_file: Some(home.join("master.key")) };
    MasterKey::load(&beside, &config).expect("a master key")
}

/// Makes a directory for a record, in memory if the machine has such a file system: for tests that open a record hundreds of times,
/// because the syncs of a disk take longer than the openings.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory")
}

/// Opens the record of a home for reading.
pub(crate) fn open(home: &Path) -> Connection {
    ironclaw_state::open_to_look(&home.join("state.db"), &master(home).state_key()).expect("the state opens")
}

/// Opens the record of a home without a running host for writing.
pub(crate) fn open_to_change(home: &Path) -> Connection {
    let db = open(home);
    db.execute_batch("PRAGMA query_only = OFF;").expect("it can be written");
    db
}

/// Gives the files of the record back to the user of the fixture after root changed them.
pub(crate) fn restore_owner(host: &TestHost) {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(&host.home).expect("a home");
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let path = host.home.join(name);
        if path.exists() {
            std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).expect("a changed owner");
        }
    }
}

/// Returns one number from the record.
#[track_caller]
pub(crate) fn count(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}
pub(crate) fn copy_home(host: &TestHost) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copied = std::process::Command::new("cp").arg("-a").arg(&host.home).arg(directory.path()).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let home = directory.path().join("h");
    (directory, home)
}

/// Returns the two raw keys of a session, unwrapped with the master key.
pub(crate) fn session_keys(home: &Path, session: SessionId) -> [Vec<u8>; 2] {
    let db = open(home);
    let master = std::fs::read(home.join("master.key")).expect("a master key");
    let mut wrapping = [0; 32];
    Hkdf::<Sha256>::new(Some(b"ironclaw/1"), &master).expand(b"wrap/0", &mut wrapping).expect("32 bytes");
    ["queue", "content"].map(|which| {
        let sql = format!("SELECT {which}_key FROM sessions WHERE id = ?1");
        let stored: Vec<u8> = db.query_row(&sql, [session.to_string()], |row| row.get(0)).expect("a wrapped key");
        let (nonce, sealed) = stored.split_first_chunk::<24>().expect("a nonce");
        let context = format!("{which} key of {session}");
        XChaCha20Poly1305::new(&wrapping.into())
            .decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: context.as_bytes() })
            .expect("the wrapped key opens")
    })
}

/// Returns every file below a directory with its relative path.
pub(crate) fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path().strip_prefix(root).expect("below it").to_owned();
                // A journal may disappear meanwhile.
                found.push((path, std::fs::read(entry.path()).unwrap_or_default()));
            }
        }
    }
    found
}
