//! The list of the kept versions of a workspace: the newest copy of each file, and the older copies.
//!
//! Touches no file. Each copy is named by the digest of its content, so equal contents take their space once.

use super::limits::{Limits, Reason};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::TurnId;
use nix::sys::stat::FileStat;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};

pub use ironclaw_operator::FileLoss as Why;

/// Bytes of a block, to which the size of a copy is rounded up.
const BLOCK_BYTES: u64 = 4096;

/// The facts by which the host recognises an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub bytes: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Returns the facts of a file.
    pub fn from_stat(stat: &FileStat) -> Self {
        Self {
            bytes: stat.st_size.unsigned_abs(),
            inode: stat.st_ino,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Returns the same facts with the size of the content that was read.
    pub const fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Returns the difference to the file that has the path now.
    pub fn why(&self, now: &Self) -> Why {
        if self.inode == now.inode { Why::Changed } else { Why::Overwritten }
    }
}

/// A kept copy of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its number, unique in the session.
    pub id: u64,
    /// The digest of its content.
    pub digest: Digest,
    /// The time of the copy, in milliseconds since the epoch.
    pub kept_at: i64,
    /// The file at that time.
    pub stamp: Stamp,
}

/// A version that its path no longer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The path below the workspace.
    pub path: String,
    pub version: Version,
    pub why: Why,
    /// The last turn with a contained call that may change files, before the host saw the change.
    pub turn: Option<TurnId>,
}

/// The copies by their digest, with the number of versions that share them.
#[derive(Debug, Default)]
struct Used {
    by_digest: HashMap<Digest, (u64, u32)>,
    bytes: u64,
}

impl Used {
    fn add(&mut self, version: &Version) {
        let bytes = on_disk(version.stamp.bytes);
        let (_, count) = self.by_digest.entry(version.digest).or_insert_with(|| {
            self.bytes += bytes;
            (bytes, 0)
        });
        *count += 1;
    }

    fn remove(&mut self, version: &Version) {
        let Some((bytes, count)) = self.by_digest.get_mut(&version.digest) else { return };
        *count -= 1;
        if *count == 0 {
            self.bytes -= *bytes;
            self.by_digest.remove(&version.digest);
        }
    }
}

/// The versions of one workspace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Index {
    last_id: u64,
    /// The newest copy of each file that the host knows in the workspace.
    current: BTreeMap<String, Version>,
    /// The others, in the order in which their paths lost them.
    past: VecDeque<Past>,
    #[serde(skip)]
    used: Used,
    /// The space of the newest copies, as if none shared a content.
    #[serde(skip)]
    current_bytes: u64,
    /// True if the stored list is older.
    #[serde(skip)]
    pub has_changed: bool,
}

impl Index {
    /// Counts the copies, after the index was read.
    pub fn count(&mut self) {
        let all = self.current.values().chain(self.past.iter().map(|past| &past.version));
        let mut used = Used::default();
        all.for_each(|version| used.add(version));
        self.used = used;
        self.current_bytes = self.current.values().map(|version| on_disk(version.stamp.bytes)).sum();
    }

    /// Returns the newest copy of a file.
    pub fn current(&self, path: &str) -> Option<&Version> {
        self.current.get(path)
    }

    /// Returns the newest copies of all files.
    pub fn all_current(&self) -> impl Iterator<Item = (&String, &Version)> {
        self.current.iter()
    }

    /// Returns the other versions, the newest first.
    pub fn past(&self) -> impl Iterator<Item = &Past> {
        self.past.iter().rev()
    }

    /// Returns whether a copy with this content is kept.
    pub fn has_copy(&self, digest: &Digest) -> bool {
        self.used.by_digest.contains_key(digest)
    }

    /// Notes that a file has other facts and the same content.
    pub fn touch(&mut self, path: &str, stamp: Stamp) {
        if let Some(version) = self.current.get_mut(path) {
            version.stamp = stamp;
            self.has_changed = true;
        }
    }

    /// Adds the copy of a file. The former copy becomes a past version by `turn`.
    pub fn keep(&mut self, path: &str, digest: Digest, stamp: Stamp, kept_at: i64, turn: Option<TurnId>) {
        if let Some(former) = self.current.get(path) {
            self.end(path, former.stamp.why(&stamp), turn);
        }
        self.last_id += 1;
        let version = Version { id: self.last_id, digest, kept_at, stamp };
        self.used.add(&version);
        self.current_bytes += on_disk(stamp.bytes);
        self.current.insert(path.to_owned(), version);
        self.has_changed = true;
    }

    /// Notes that a path lost its newest version.
    pub fn end(&mut self, path: &str, why: Why, turn: Option<TurnId>) {
        if let Some((path, version)) = self.current.remove_entry(path) {
            self.current_bytes -= on_disk(version.stamp.bytes);
            self.past.push_back(Past { path, version, why, turn });
            self.has_changed = true;
        }
    }

    /// Evicts the oldest past versions until there is room for a copy of this size.
    ///
    /// Returns the exceeded bound if the newest copies alone leave no room; then it evicts nothing.
    pub fn make_room(&mut self, bytes: u64, limits: &Limits) -> Option<Reason> {
        let wanted = on_disk(bytes);
        if self.current.len() as u64 >= limits.versions {
            return Some(Reason::Versions);
        }
        if self.used.bytes + wanted <= limits.session_bytes && self.versions() < limits.versions {
            return None;
        }
        if self.current_bytes + wanted > limits.session_bytes {
            return Some(Reason::SessionBytes);
        }
        while (self.used.bytes + wanted > limits.session_bytes || self.versions() >= limits.versions) && self.evict() {}
        None
    }

    /// Evicts what is over the bounds: the oldest versions of a file, then the oldest versions, then the largest copies. Returns the paths
    /// that lost their newest copy.
    pub fn trim(&mut self, limits: &Limits) -> Vec<String> {
        self.trim_files(limits.of_file);
        while (self.used.bytes > limits.session_bytes || self.versions() > limits.versions) && self.evict() {}
        let mut lost = Vec::new();
        if self.used.bytes > limits.session_bytes || self.versions() > limits.versions {
            let mut largest: Vec<(u64, String)> =
                self.current.iter().map(|(path, version)| (version.stamp.bytes, path.clone())).collect();
            largest.sort_unstable();
            while self.used.bytes > limits.session_bytes || self.versions() > limits.versions {
                let Some((_, path)) = largest.pop() else { break };
                if let Some(version) = self.current.remove(&path) {
                    self.used.remove(&version);
                    self.current_bytes -= on_disk(version.stamp.bytes);
                    self.has_changed = true;
                    lost.push(path);
                }
            }
        }
        lost
    }

    fn trim_files(&mut self, of_file: usize) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let kept: Vec<bool> = self
            .past
            .iter()
            .rev()
            .map(|past| {
                let count = seen.entry(&past.path).or_default();
                *count += 1;
                *count <= of_file
            })
            .collect();
        if kept.iter().all(|kept| *kept) {
            return;
        }
        for (past, kept) in std::mem::take(&mut self.past).into_iter().zip(kept.into_iter().rev()) {
            if kept {
                self.past.push_back(past);
            } else {
                self.used.remove(&past.version);
            }
        }
        self.has_changed = true;
    }

    /// Drops the oldest past version, if there is one.
    fn evict(&mut self) -> bool {
        let Some(oldest) = self.past.pop_front() else { return false };
        self.used.remove(&oldest.version);
        self.has_changed = true;
        true
    }

    fn versions(&self) -> u64 {
        (self.current.len() + self.past.len()) as u64
    }
}

/// Returns the space that a copy takes.
const fn on_disk(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
}
