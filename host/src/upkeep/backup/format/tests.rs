//! Tests of the container: each cut and each changed byte is refused, and so is another key.

use super::*;
use crate::upkeep::backup::entry::{self, Entry, Item, Kind, Totals};
use crate::upkeep::backup::unpack;
use ironclaw_state::backup::{oldest_schema, schema};
use ironclaw_state::keys::MasterKey;
use std::path::{Path, PathBuf};

/// Bytes of content in a chunk of these tests.
const SMALL: u32 = 32;

fn header_of(key: &BackupKey) -> Header {
    Header {
        chunk_bytes: SMALL,
        key: key.name(),
        id: [7; 16],
        created_at: 1_700_000_000_000,
        generation: 3,
        entries: 12,
        schema: 14,
    }
}

/// Returns a backup with a directory, a file and a link.
fn archive(key: &BackupKey, text: &str) -> Vec<u8> {
    let mut out = Sealer::begin(key, &header_of(key), Vec::new()).expect("memory");
    let put = |out: &mut Sealer<'_, Vec<u8>>, kind, path: &str, content: &[u8]| {
        let (mode, size) = (if kind == Kind::Link { 0 } else { 0o600 }, content.len() as u64);
        let entry = Entry { kind, path: path.into(), mode, owner: None, changed_at: 5, size };
        entry.write(out).and_then(|()| out.write_all(content)).expect("memory");
    };
    put(&mut out, Kind::File, "config.toml", text.as_bytes());
    put(&mut out, Kind::Directory, "ledger", b"");
    Totals { files: 1, bytes: text.len() as u64, changed: 0, skipped: 0 }.write(&mut out).expect("memory");
    out.finish().expect("memory")
}

/// Reads everything; returns the content of the files.
fn read(path: &Path, key: &BackupKey) -> Result<(Vec<u8>, Totals), Error> {
    let (mut from, _) = Opener::open(path, key)?;
    let mut content = Vec::new();
    loop {
        match entry::read(&mut from)? {
            Item::Entry(entry) => {
                let mut bytes = vec![0; entry.size as usize];
                from.fill(&mut bytes)?;
                content.extend(bytes);
            }
            Item::End(totals) => return Ok((content, totals)),
        }
    }
}

fn key() -> BackupKey {
    MasterKey::fresh().expect("random").backup_key()
}

/// Returns the place of a backup and its key.
fn place() -> (tempfile::TempDir, PathBuf, BackupKey) {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("b");
    (directory, path, key())
}

/// Writes a file, and returns the code with which it is refused.
#[track_caller]
fn refused(path: &Path, key: &BackupKey, bytes: &[u8]) -> &'static str {
    std::fs::write(path, bytes).expect("written");
    read(path, key).expect_err("it is no whole backup").code()
}

#[test]
fn content_of_every_length_is_read_as_written() {
    let (_directory, path, key) = place();
    for length in 0..3 * SMALL as usize {
        let text = "x".repeat(length);
        std::fs::write(&path, archive(&key, &text)).expect("written");
        let (content, totals) = read(&path, &key).expect("whole");
        assert_eq!((content, totals.bytes), (text.into_bytes(), length as u64));
    }
}

#[test]
fn every_truncation_is_refused() {
    let (_directory, path, key) = place();
    let whole = archive(&key, &"words ".repeat(30));
    assert!(whole.len() > HEADER_BYTES + 5 * (SMALL as usize + BackupKey::OVERHEAD_BYTES));
    for length in 0..whole.len() {
        let expected = if length < MAGIC.len() { "backup_foreign" } else { "backup_truncated" };
        assert_eq!(refused(&path, &key, &whole[..length]), expected, "{length} of {} bytes", whole.len());
    }
    refused(&path, &key, &[whole.as_slice(), b"x"].concat());
}

#[test]
fn every_changed_byte_is_refused() {
    let (_directory, path, key) = place();
    let whole = archive(&key, &"words ".repeat(30));
    for at in 0..whole.len() {
        for flip in [1, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            let code = refused(&path, &key, &changed);
            assert!(at < HEADER_BYTES || code == "backup_changed", "byte {at}: {code}");
        }
    }
}

#[test]
fn reordered_and_exchanged_chunks_are_refused() {
    let (_directory, path, key) = place();
    let whole = archive(&key, &"words ".repeat(30));
    let size = SMALL as usize + BackupKey::OVERHEAD_BYTES;
    let chunk = |number: usize| HEADER_BYTES + number * size..HEADER_BYTES + (number + 1) * size;
    let chunks = (whole.len() - HEADER_BYTES) / size;
    let mut swapped = whole.clone();
    swapped[chunk(1)].copy_from_slice(&whole[chunk(2)]);
    swapped[chunk(2)].copy_from_slice(&whole[chunk(1)]);
    assert_eq!(refused(&path, &key, &swapped), "backup_changed");
    // The last chunk behind an earlier cut.
    let cut = [&whole[..chunk(2).start], &whole[chunk(chunks - 1)]].concat();
    assert_eq!(refused(&path, &key, &cut), "backup_changed");
    // The end of another backup with another id, under the same key.
    let mut sealer = Sealer::begin(&key, &Header { id: [8; 16], ..header_of(&key) }, Vec::new()).expect("memory");
    sealer.write_all(&vec![0; SMALL as usize * chunks]).expect("memory");
    let other = sealer.finish().expect("memory");
    let mut mixed = whole.clone();
    mixed[chunk(chunks - 1)].copy_from_slice(&other[chunk(chunks - 1)]);
    assert_eq!(refused(&path, &key, &mixed), "backup_changed");
}

#[test]
fn other_keys_formats_and_files_have_their_own_codes() {
    let (directory, path, key) = place();
    let whole = archive(&key, "words");
    std::fs::write(&path, &whole).expect("written");
    let other = MasterKey::fresh().expect("random").backup_key();
    assert_eq!(read(&path, &other).expect_err("another key").code(), "backup_other_key");
    assert_eq!(header(&path).expect("readable without a key"), header_of(&key));
    for (at, byte, code) in [(0, b'X', "backup_foreign"), (17, 2, "backup_newer"), (17, 0, "backup_changed")] {
        let mut changed = whole.clone();
        changed[at] = byte;
        assert_eq!(refused(&path, &key, &changed), code, "byte {at}");
    }
    assert_eq!(refused(&path, &key, b"a text of someone"), "backup_foreign");
    assert_eq!(read(directory.path(), &key).expect_err("a directory").code(), "backup_failed");
}

#[test]
fn backup_of_another_schema_is_refused_before_it_is_written() {
    let (directory, key) = (tempfile::tempdir().expect("made"), key());
    let (path, to) = (directory.path().join("b"), directory.path().join("to"));
    std::fs::create_dir(&to).expect("made");
    for (schema, code) in [(oldest_schema() - 1, "backup_older"), (schema() + 1, "backup_newer")] {
        let header = Header { schema, ..header_of(&key) };
        let sealer = Sealer::begin(&key, &header, Vec::new()).expect("memory");
        std::fs::write(&path, sealer.finish().expect("memory")).expect("written");
        assert_eq!(unpack(&path, &key, &to).expect_err("another schema").code(), code);
    }
    assert_eq!(std::fs::read_dir(&to).expect("listed").count(), 0);
}

#[test]
fn content_without_an_end_is_refused() {
    let (_directory, path, key) = place();
    let sealed = |content: &[u8]| {
        let mut sealer = Sealer::begin(&key, &header_of(&key), Vec::new()).expect("memory");
        sealer.write_all(content).expect("memory");
        refused(&path, &key, &sealer.finish().expect("memory"))
    };
    assert_eq!(sealed(b""), "backup_unfit");
    assert_eq!(sealed(b"Fxx"), "backup_unfit");
    let mut end = Vec::new();
    Totals::default().write(&mut end).expect("memory");
    end.push(1);
    assert_eq!(sealed(&end), "backup_unfit");
    let mut long = Vec::new();
    Totals::default().write(&mut long).expect("memory");
    long.extend([0; 3 * SMALL as usize]);
    assert_eq!(sealed(&long), "backup_unfit");
}
