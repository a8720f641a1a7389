//! The proof of the commits of a push: each commit counts by the hash of its bytes, and the host itself walks over the parents.
//!
//! Pure. Its input comes from a jail and may be anything; a false byte changes a hash, and a missing commit ends in a refusal.

use ironclaw_text::lookalike;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;

/// Commits that one push may show.
const SHOWN_MAX: usize = 50;
/// Characters of an author, and of a subject.
const TEXT_CHARACTERS_MAX: usize = 120;

/// The SHA-1 of a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hash(String);

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_hex = text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_one = is_hex && text.bytes().any(|byte| byte != b'0');
        is_one.then(|| Self(text.to_owned())).ok_or_else(|| "a name is not the SHA-1 of a commit".to_owned())
    }
}

impl Hash {
    /// Reads the 20 bytes of a name in a directory.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        hex(bytes).parse()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A commit, as its bytes say.
#[derive(Debug, Clone)]
struct Commit {
    parents: Vec<Hash>,
    author: String,
    subject: String,
}

/// What a jail said about a push.
#[derive(Debug)]
pub(super) struct Log {
    /// The commit to push.
    pub(super) new: Hash,
    /// The commit of the branch before; `None` for a new branch.
    pub(super) old: Option<Hash>,
    /// Commits that the server has.
    pub(super) known: Vec<Hash>,
    commits: BTreeMap<Hash, Commit>,
    pub(super) pack: Vec<u8>,
}

impl Log {
    /// Reads the output of a jail: lines `new`, `old` and `known`, the line `commits`, the objects of `git cat-file --batch`, the line
    /// `pack` and the pack.
    pub(super) fn read(mut bytes: &[u8]) -> Result<Self, String> {
        let (mut new, mut old, mut known) = (None, None, Vec::new());
        loop {
            match line(&mut bytes)?.split_once(' ') {
                Some(("new", hash)) => new = Some(hash.parse()?),
                Some(("old", hash)) => old = Some(hash.parse()?),
                Some(("known", hash)) => known.push(hash.parse()?),
                None => break,
                Some(_) => return Err(cut()),
            }
        }
        let mut commits = BTreeMap::new();
        loop {
            let head = line(&mut bytes)?;
            if head == "pack" {
                break;
            }
            let mut words = head.split(' ');
            let (Some(hash), Some("commit"), Some(size)) = (words.next(), words.next(), words.next()) else {
                return Err(cut());
            };
            let size: usize = size.parse().map_err(|_| cut())?;
            let body = bytes.get(..size).ok_or_else(cut)?;
            bytes = bytes.get(size + 1..).ok_or_else(cut)?;
            let hash: Hash = hash.parse()?;
            if hash_of("commit", body) != hash {
                return Err(format!("the workspace gave other bytes for commit {hash}"));
            }
            commits.insert(hash, Commit::read(body)?);
        }
        Ok(Self { new: new.ok_or_else(cut)?, old, known, commits, pack: bytes.to_vec() })
    }

    /// Returns a line for each commit that the push adds to the commits of the server, the newest first.
    pub(super) fn exact(&self) -> Result<Vec<String>, String> {
        if self.old.as_ref() == Some(&self.new) {
            return Err("the branch has this commit already".to_owned());
        }
        let all = self.reached([&self.new]);
        if let Some(old) = self.old.as_ref().filter(|old| !all.contains(old)) {
            return Err(format!("it is no fast-forward: {} does not continue {old}", self.new));
        }
        let had = self.reached(self.old.iter().chain(&self.known));
        let (mut lines, mut seen) = (Vec::new(), BTreeSet::new());
        let mut waiting = VecDeque::from([&self.new]);
        while let Some(hash) = waiting.pop_front() {
            if had.contains(hash) || !seen.insert(hash) {
                continue;
            }
            let Some(commit) = self.commits.get(hash) else {
                return Err(format!("the commits end at {hash}, and it is not known that the server has it"));
            };
            lines.push(format!("{hash} {}: {}", commit.author, commit.subject));
            if lines.len() > SHOWN_MAX {
                return Err(format!("it has more than {SHOWN_MAX} commits: push a part of them first"));
            }
            waiting.extend(&commit.parents);
        }
        Ok(lines)
    }

    /// Returns these commits and all commits before them.
    fn reached<'l>(&'l self, from: impl IntoIterator<Item = &'l Hash>) -> BTreeSet<&'l Hash> {
        let (mut all, mut waiting) = (BTreeSet::new(), from.into_iter().collect::<Vec<_>>());
        while let Some(hash) = waiting.pop() {
            if all.insert(hash) {
                waiting.extend(self.commits.get(hash).into_iter().flat_map(|commit| &commit.parents));
            }
        }
        all
    }
}

impl Commit {
    fn read(body: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(body);
        let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let mut parents = Vec::new();
        let mut author = None;
        for field in head.lines() {
            match field.split_once(' ') {
                Some(("parent", hash)) => parents.push(hash.parse()?),
                Some(("author", name)) if author.is_none() => {
                    author = Some(name.rfind('>').map_or(name, |end| &name[..=end]));
                }
                _ => {}
            }
        }
        let subject = message.lines().next().unwrap_or_default();
        Ok(Self { parents, author: plain(author.unwrap_or_default()), subject: plain(subject) })
    }
}

/// Returns words of a commit for one line of a page.
fn plain(text: &str) -> String {
    let one_line: String =
        text.chars().take(TEXT_CHARACTERS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    lookalike::neutralise(&one_line).replace(['\u{2028}', '\u{2029}', '\u{85}'], " ")
}

/// Returns the name that git gives to an object of this kind with these bytes.
pub(super) fn hash_of(kind: &str, body: &[u8]) -> Hash {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(format!("{kind} {}\0", body.len()).as_bytes());
    context.update(body);
    Hash(hex(context.finish().as_ref()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes the next line off.
pub(super) fn line<'b>(bytes: &mut &'b [u8]) -> Result<&'b str, String> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(cut)?;
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| cut())?;
    *bytes = &bytes[end + 1..];
    Ok(text)
}

fn cut() -> String {
    "git in the workspace gave no complete list of commits: is it a repository with this commit?".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(parents: &[&Hash], subject: &str) -> (Hash, String) {
        let parents: String = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
        let body = format!(
            "tree {}\n{parents}author A <a@b> 1 +0000\ncommitter C <c@d> 1 +0000\n\n{subject}\n",
            "1".repeat(40)
        );
        (hash_of("commit", body.as_bytes()), body)
    }

    fn log(new: &Hash, old: Option<&Hash>, known: &[&Hash], objects: &[&(Hash, String)]) -> String {
        let mut text = format!("new {new}\n");
        old.iter().for_each(|old| text.push_str(&format!("old {old}\n")));
        known.iter().for_each(|known| text.push_str(&format!("known {known}\n")));
        text.push_str("commits\n");
        for (hash, body) in objects {
            text.push_str(&format!("{hash} commit {}\n{body}\n", body.len()));
        }
        text + "pack\nPACK"
    }

    fn exact(text: &str) -> Result<Vec<String>, String> {
        Log::read(text.as_bytes())?.exact()
    }

    #[test]
    fn name_of_a_commit_is_that_of_git() {
        let body =
            "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nx\n";
        assert_eq!(hash_of("commit", body.as_bytes()).to_string(), "7b8051db3dcc0fcfd006919cfa7376ddbd7bdc1a");
    }

    #[test]
    fn push_shows_what_the_server_lacks() {
        let a = object(&[], "a");
        let b = object(&[&a.0], "b\u{1b}[2K");
        let side = object(&[&a.0], "side");
        let merge = object(&[&b.0, &side.0], "merge");
        let all = [&merge, &side, &b, &a];
        let lines = exact(&log(&merge.0, Some(&b.0), &[], &all)).expect("exact");
        assert_eq!(lines, [format!("{} A <a@b>: merge", merge.0), format!("{} A <a@b>: side", side.0)]);
        assert_eq!(exact(&log(&merge.0, Some(&b.0), &[&side.0], &all)).expect("exact").len(), 1);
        let new_branch = exact(&log(&b.0, None, &[], &all)).expect("exact");
        assert_eq!(new_branch.len(), 2);
        assert!(!new_branch[0].contains('\u{1b}'), "{new_branch:?}");
    }

    #[test]
    fn false_history_is_refused() {
        let (a, other) = (object(&[], "a"), object(&[], "other"));
        let b = object(&[&a.0], "b");
        for (text, why) in [
            (log(&b.0, Some(&a.0), &[], &[&(b.0.clone(), b.1.replace('b', "c")), &a]), "other bytes"),
            (log(&b.0, Some(&other.0), &[], &[&b, &a, &other]), "no fast-forward"),
            (log(&b.0, Some(&b.0), &[], &[&b, &a]), "already"),
            (log(&b.0, None, &[], &[&b]), "the commits end"),
            (log(&b.0, Some(&a.0), &[], &[&b, &a]).replace("pack\nPACK", ""), "no complete list"),
        ] {
            let words = exact(&text).expect_err(why);
            assert!(words.contains(why), "{words}");
        }
    }
}
