//! The objects of git that a diff needs: commits, directories and files. Each counts by the hash of its bytes.
//!
//! Pure. Its input comes from a jail and may be anything. Never asks git for a difference: [`super::changes`] finds it in these objects.

use super::history::{Hash, hash_of, line};
use std::collections::BTreeMap;

/// Objects of one diff.
pub(super) const OBJECTS_MAX: usize = 8_000;
/// Bytes of the name of an object in a directory.
const HASH_BYTES: usize = 20;

/// The objects by their names.
#[derive(Debug, Default)]
pub(super) struct Objects {
    commits: BTreeMap<Hash, Commit>,
    directories: BTreeMap<Hash, BTreeMap<Vec<u8>, Entry>>,
    files: BTreeMap<Hash, Vec<u8>>,
    large: BTreeMap<Hash, u64>,
}

/// The parts of a commit that a diff needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) tree: Hash,
    /// The commits before it.
    pub(super) parents: Vec<Hash>,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// The name of its object.
    pub(super) hash: Hash,
}

/// The kind of an entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
    /// A file that can be run.
    Executable,
    /// A symbolic link; the file has its target.
    Link,
    /// A commit of another repository.
    Submodule,
    /// Another mode, which git does not write.
    Odd,
}

impl Kind {
    fn read(mode: &[u8]) -> Self {
        match mode {
            b"40000" | b"040000" => Self::Directory,
            b"100644" => Self::File,
            b"100755" => Self::Executable,
            b"120000" => Self::Link,
            b"160000" => Self::Submodule,
            _ => Self::Odd,
        }
    }
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'o> {
    /// Its bytes.
    Whole(&'o [u8]),
    /// It is too large to read; git says that it has so many bytes.
    Large(u64),
    /// The repository does not have it.
    Gone,
}

impl Objects {
    /// Reads the output of a jail: lines `large HASH BYTES`, and objects in the form of `git cat-file --batch`.
    pub(super) fn read(mut bytes: &[u8]) -> Result<Self, String> {
        let (mut objects, mut count) = (Self::default(), 0);
        while !bytes.is_empty() {
            count += 1;
            if count > OBJECTS_MAX {
                return Err(format!(
                    "it changes more than {OBJECTS_MAX} files and directories: push a part of them first"
                ));
            }
            let head = line(&mut bytes)?;
            let words: Vec<&str> = head.split(' ').collect();
            match words.as_slice() {
                ["large", hash, size] => {
                    objects.large.insert(hash.parse()?, size.parse().map_err(|_| cut())?);
                }
                [_, "missing"] => {}
                [hash, kind, size] => {
                    let size: usize = size.parse().map_err(|_| cut())?;
                    let body = bytes.get(..size).ok_or_else(cut)?;
                    bytes = bytes.get(size + 1..).ok_or_else(cut)?;
                    objects.add(hash.parse()?, kind, body)?;
                }
                _ => return Err(cut()),
            }
        }
        Ok(objects)
    }

    fn add(&mut self, hash: Hash, kind: &str, body: &[u8]) -> Result<(), String> {
        if hash_of(kind, body) != hash {
            return Err(format!("the workspace gave other bytes for object {hash}"));
        }
        match kind {
            "commit" => drop(self.commits.insert(hash, Commit::read(body)?)),
            "tree" => drop(self.directories.insert(hash, entries(body)?)),
            "blob" => drop(self.files.insert(hash, body.to_vec())),
            _ => return Err(cut()),
        }
        Ok(())
    }

    pub(super) fn commit(&self, hash: &Hash) -> Result<&Commit, String> {
        self.commits.get(hash).ok_or_else(|| format!("git gave no commit {hash}"))
    }

    pub(super) fn directory(&self, hash: &Hash) -> Result<&BTreeMap<Vec<u8>, Entry>, String> {
        self.directories.get(hash).ok_or_else(|| format!("git gave no directory {hash}"))
    }

    /// Returns the content of a file.
    pub(super) fn content(&self, hash: &Hash) -> Content<'_> {
        match (self.files.get(hash), self.large.get(hash)) {
            (Some(bytes), _) => Content::Whole(bytes),
            (None, Some(size)) => Content::Large(*size),
            (None, None) => Content::Gone,
        }
    }
}

impl Commit {
    fn read(body: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(body);
        let head = text.split_once("\n\n").map_or(&*text, |(head, _)| head);
        let (mut tree, mut parents) = (None, Vec::new());
        for field in head.lines() {
            match field.split_once(' ') {
                Some(("tree", hash)) if tree.is_none() => tree = Some(hash.parse()?),
                Some(("parent", hash)) => parents.push(hash.parse()?),
                _ => {}
            }
        }
        Ok(Self { tree: tree.ok_or_else(cut)?, parents })
    }
}

/// Reads a directory. A name that it has twice could show one file and push another.
fn entries(mut body: &[u8]) -> Result<BTreeMap<Vec<u8>, Entry>, String> {
    let mut all = BTreeMap::new();
    while !body.is_empty() {
        let space = body.iter().position(|byte| *byte == b' ').ok_or_else(cut)?;
        let end = body.iter().position(|byte| *byte == 0).filter(|end| *end > space).ok_or_else(cut)?;
        let hash = body.get(end + 1..end + 1 + HASH_BYTES).ok_or_else(cut)?;
        let entry = Entry { kind: Kind::read(&body[..space]), hash: Hash::from_bytes(hash)? };
        if all.insert(body[space + 1..end].to_vec(), entry).is_some() {
            return Err("a directory of the commit has one name twice".to_owned());
        }
        body = &body[end + 1 + HASH_BYTES..];
    }
    Ok(all)
}

fn cut() -> String {
    "git in the workspace gave no complete list of the changes".to_owned()
}
