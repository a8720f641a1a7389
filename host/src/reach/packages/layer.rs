//! The fetched files as one tree below `usr`: checked without following links, made read-only, and named by its digest.
//!
//! Keeps only plain files, directories and inner links: no set-uid file, no device, no pipe, no socket, no link that leads out. See
//! [`crate::reach::packages`].

use super::error::{Error, unfit};
use super::shadow::Machine;
use super::source::{Entry, PATH_BYTES_MAX, Place, Source, TOP, check_size, copy};
use super::work_dir::{discard, set_mode};
use crate::registry::live_settings::packages::Config;
use ironclaw_contract::canonical::Digest;
use ironclaw_jail::system::LINKS;
use ironclaw_operator::DenialCode;
use ironclaw_state::home::{Home, LayerOwner, make_private};
use ironclaw_store::refusal::Refusal;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Domain separator of a layer's digest.
const MANIFEST: &[u8] = b"ironclaw layer 1\n";
/// Directories in the root of a machine besides those merged into `/usr` (Filesystem Hierarchy Standard 3.0, with `proc` and `sys`).
const ROOT: [&str; 14] =
    ["boot", "dev", "etc", "home", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "var"];
/// Name for all other places in the root.
const ELSEWHERE: &str = "other places";
/// The mode of every directory of a layer. The owner may write, so that `rm -rf` removes the home. In a jail the mount is read-only, and
/// every file is read-only by itself.
const DIRECTORY_MODE: u32 = 0o755;
/// Most characters of a path with special characters in a refusal.
const EXCERPT_CHARS_MAX: usize = 128;

#[derive(Debug)]
pub(super) struct Built {
    pub(super) digest: Digest,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) left_out: BTreeMap<&'static str, u64>,
    pub(super) behind: Vec<String>,
}

/// Builds the layer of an owner at `place` and moves it to the layers. An intact layer with the same content is kept.
pub(super) fn build(
    home: &Home,
    config: &Config,
    owner: &LayerOwner,
    sources: &[Source],
    place: &Path,
) -> Result<Built, Error> {
    let is_of_server = matches!(owner, LayerOwner::Server(_));
    let mut tree = Tree { machine: Some(Machine::default()), is_of_server, ..Tree::default() };
    for source in sources {
        tree.take(source, Some(config))?;
    }
    tree.check()?;
    let digest = tree.write(place)?;
    let target = home.layer(owner, &digest);
    let layers = ironclaw_state::home::directory_of(&target).to_owned();
    make_private(&home.layers_of(owner))?;
    make_private(&layers)?;
    if verify(&target, &digest).is_err() {
        discard(&target)?;
        fs::rename(place, &target).map_err(Error::io(&target))?;
    }
    ironclaw_state::failpoint::reach("packages.placed");
    File::open(&layers).and_then(|layers| layers.sync_all()).map_err(Error::io(&layers))?;
    Ok(Built {
        digest,
        files: tree.entries.len() as u64,
        bytes: tree.bytes,
        left_out: tree.left_out,
        behind: tree.behind,
    })
}

/// Checks that the layer in this directory still matches its digest.
///
/// # Errors
/// Refuses a damaged layer, or returns an error of the system.
pub fn verify(directory: &Path, digest: &Digest) -> Result<(), Error> {
    let damaged = |why: String| {
        let layer = directory.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("the packages in the layer {layer} are not those that were approved: {why}");
        let hint = "ask for the packages again; until then no jail with them starts";
        Error::from(Refusal::new(DenialCode::PackagesDamaged, message).hint(hint))
    };
    let mut tree = Tree::default();
    let source = Source { root: directory.to_owned(), place: Place::Layer, name: "the layer".to_owned() };
    // No limits: a layer that was within them remains valid when they are lowered.
    let looked = tree.take(&source, None).and_then(|()| tree.check()).and_then(|()| tree.digest());
    match looked {
        Ok(found) if found == *digest => Ok(()),
        Ok(found) => Err(damaged(format!("their digest is {found}"))),
        Err(Error::Refused(refusal)) => Err(damaged(refusal.message)),
        Err(Error::Io { path, source }) => {
            // The refusal does not reveal the path of the home.
            let within = path.strip_prefix(directory).unwrap_or(Path::new("")).to_path_buf();
            Err(damaged(format!("{:?}: {source}", within.display().to_string())))
        }
        Err(error @ (Error::Launch(_) | Error::Home(_))) => Err(error),
    }
}

/// Entries of a layer, by path.
#[derive(Debug, Default)]
struct Tree {
    /// Paths without a leading slash; the directory above each is here too.
    entries: BTreeMap<String, Entry>,
    bytes: u64,
    left_out: BTreeMap<&'static str, u64>,
    /// The machine whose `/usr` it covers; `None` for a mere verification.
    machine: Option<Machine>,
    /// Whether it is for the jail of one server. There, a program of a package is laid behind one of the machine with its name.
    is_of_server: bool,
    /// The programs that are laid behind, by their paths in the jail.
    behind: Vec<String>,
    /// For each hard-linked file: its number of links, the number seen, and one path.
    names: HashMap<(u64, u64), (u64, u64, String)>,
}

impl Tree {
    /// Adds the files of a source, within these limits.
    fn take(&mut self, source: &Source, limits: Option<&Config>) -> Result<(), Error> {
        let root = fs::symlink_metadata(&source.root).map_err(Error::io(&source.root))?;
        if !root.is_dir() {
            return Err(unfit(format!("{} is not a directory", source.name)));
        }
        self.entries.entry(TOP.to_owned()).or_insert(Entry::Directory);
        let mut open = vec![(source.root.clone(), String::new())];
        while let Some((directory, below)) = open.pop() {
            for entry in fs::read_dir(&directory).map_err(Error::io(&directory))? {
                let path = entry.map_err(Error::io(&directory))?.path();
                let name = plain_name(&path).ok_or_else(|| {
                    let within = excerpt(path.strip_prefix(&source.root).unwrap_or(Path::new("")));
                    unfit(format!("{} brings {within:?}, a name that is not plain text", source.name))
                })?;
                let place = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
                let found = fs::symlink_metadata(&path).map_err(Error::io(&path))?;
                self.check_kind(source, &place, &found, root.dev())?;
                if source.place == Place::Layer && !found.is_symlink() && found.mode() & writable(&found) != 0 {
                    return Err(unfit(format!("{place:?} can be written")));
                }
                let Some(target) = placed(source, &place, &path, &found)? else {
                    *self.left_out.entry(left_out(&place)).or_default() += 1;
                    self.bytes = self.bytes.saturating_add(if found.is_file() { found.len() } else { 0 });
                    self.check_size(limits)?;
                    if found.is_dir() {
                        open.push((path, place));
                    }
                    continue;
                };
                self.insert(source, target, &path, &found)?;
                self.check_size(limits)?;
                if found.is_dir() {
                    open.push((path, place));
                }
            }
        }
        Ok(())
    }

    fn check_size(&self, limits: Option<&Config>) -> Result<(), Error> {
        let files = self.entries.len() as u64 + self.left_out.values().sum::<u64>();
        limits.map_or(Ok(()), |config| check_size(self.bytes, files, config))
    }

    /// Refuses special files, set-uid files, long paths, and files of another file system.
    fn check_kind(&mut self, source: &Source, place: &str, found: &Metadata, device: u64) -> Result<(), Error> {
        let no = |what: &str| Err(unfit(format!("{} brings {place:?}, which is {what}", source.name)));
        if place.len() > PATH_BYTES_MAX {
            return no(&format!("longer than {PATH_BYTES_MAX} bytes"));
        }
        match found.mode() & libc::S_IFMT {
            libc::S_IFREG | libc::S_IFDIR | libc::S_IFLNK => {}
            libc::S_IFCHR | libc::S_IFBLK => return no("a device"),
            libc::S_IFIFO => return no("a pipe"),
            libc::S_IFSOCK => return no("a socket"),
            _ => return no("neither file, directory nor link"),
        }
        if !found.is_symlink() && found.mode() & 0o6000 != 0 {
            return no("set-uid or set-gid");
        }
        if found.dev() != device {
            return no("on another file system");
        }
        if !found.is_dir() && found.nlink() > 1 {
            let file = (found.dev(), found.ino());
            let (_, seen, _) = self.names.entry(file).or_insert_with(|| (found.nlink(), 0, place.to_owned()));
            *seen += 1;
        }
        Ok(())
    }

    fn insert(&mut self, source: &Source, target: String, path: &Path, found: &Metadata) -> Result<(), Error> {
        let entry = if found.is_dir() {
            Entry::Directory
        } else if found.is_symlink() {
            let target = fs::read_link(path).map_err(Error::io(path))?;
            let text = target.to_str().filter(|text| is_plain(text) && text.len() <= PATH_BYTES_MAX);
            let text = text.ok_or_else(|| {
                unfit(format!("{} brings a link to {:?}, not plain text", source.name, excerpt(&target)))
            })?;
            Entry::Link { target: text.to_owned() }
        } else {
            Entry::File { source: path.to_owned(), executable: found.mode() & 0o111 != 0, bytes: found.len() }
        };
        let bytes = if let Entry::File { bytes, .. } = &entry { *bytes } else { 0 };
        let target = self.placed_behind(source, target, &entry)?;
        match self.entries.get(&target) {
            None => {
                if let Some(machine) = &mut self.machine {
                    machine.check(source, &target, &entry)?;
                }
                self.bytes = self.bytes.saturating_add(bytes);
                self.entries.insert(target, entry);
                Ok(())
            }
            Some(there) if are_same(there, &entry)? => Ok(()),
            Some(_) => {
                Err(unfit(format!("{} brings {target:?}, which another package brings differently", source.name)))
            }
        }
    }

    /// Returns the place of an entry, which is another one for a program of a server that would hide one of the machine.
    fn placed_behind(&mut self, source: &Source, target: String, entry: &Entry) -> Result<String, Error> {
        let Some(machine) = self.machine.as_mut().filter(|_| self.is_of_server) else { return Ok(target) };
        let Some(behind) = machine.behind(source, &target, entry)? else { return Ok(target) };
        let (directory, _) = behind.rsplit_once('/').expect("a program is in a directory");
        self.entries.entry(directory.to_owned()).or_insert(Entry::Directory);
        self.behind.push(format!("/{behind}"));
        Ok(behind)
    }

    /// Refuses links that lead out, and hard links to other files. Both can only be judged with the whole tree.
    fn check(&self) -> Result<(), Error> {
        if let Some((_, _, place)) = self.names.values().find(|(names, seen, _)| names != seen) {
            return Err(unfit(format!("{place:?} is a hard link to a file that is not among those that were fetched")));
        }
        for (path, entry) in &self.entries {
            if let Entry::Link { target } = entry
                && !self.stays_inside(path, target)
            {
                return Err(unfit(format!("{path:?} is a link to {target:?}, which leads out of /{TOP}")));
            }
        }
        Ok(())
    }

    /// Returns true if a link leads to a place below `/usr`, whatever the other links are. `..` is accepted only from a real directory of
    /// this tree, so that no link on the way changes its meaning.
    fn stays_inside(&self, path: &str, target: &str) -> bool {
        let mut at: Vec<&str> = match target.starts_with('/') {
            true => Vec::new(),
            false => path.rsplit_once('/').map_or("", |(above, _)| above).split('/').collect(),
        };
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    let is_own = matches!(self.entries.get(&at.join("/")), Some(Entry::Directory));
                    if at.is_empty() || !is_own {
                        return false;
                    }
                    at.pop();
                }
                // In the root, these names link into `/usr`.
                merged if at.is_empty() && LINKS.contains(&merged) => at.extend([TOP, merged]),
                other => at.push(other),
            }
        }
        at.first() == Some(&TOP)
    }

    /// Writes the tree to `place`, a new directory, and returns the digest of the written content.
    fn write(&self, place: &Path) -> Result<Digest, Error> {
        DirBuilder::new().mode(0o755).create(place).map_err(Error::io(place))?;
        let mut manifest = Manifest::new();
        for (path, entry) in &self.entries {
            let target = place.join(path);
            match entry {
                Entry::Directory => {
                    DirBuilder::new().mode(0o755).create(&target).map_err(Error::io(&target))?;
                    manifest.directory(path);
                }
                Entry::Link { target: to } => {
                    symlink(to, &target).map_err(Error::io(&target))?;
                    manifest.link(path, to);
                }
                Entry::File { source, executable, bytes } => {
                    let mut options = OpenOptions::new();
                    let file = options.write(true).create_new(true).mode(0o600).open(&target);
                    let file = file.map_err(Error::io(&target))?;
                    let content = copy(source, *bytes, Some(&file)).map_err(Error::io(source))?;
                    manifest.file(path, *executable, &content);
                    set_mode(&target, if *executable { 0o555 } else { 0o444 })?;
                }
            }
        }
        for (path, _) in self.entries.iter().rev().filter(|(_, entry)| matches!(entry, Entry::Directory)) {
            set_mode(&place.join(path), DIRECTORY_MODE)?;
        }
        set_mode(place, DIRECTORY_MODE)?;
        // Synced before the rename: after a power cut, a layer with its name is complete.
        let synced = File::open(place).and_then(|place| Ok(nix::unistd::syncfs(&place)?));
        synced.map_err(Error::io(place))?;
        Ok(manifest.digest())
    }

    /// Returns the digest of the present files.
    fn digest(&self) -> Result<Digest, Error> {
        let mut manifest = Manifest::new();
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory => manifest.directory(path),
                Entry::Link { target } => manifest.link(path, target),
                Entry::File { source, executable, bytes } => {
                    manifest.file(path, *executable, &copy(source, *bytes, None).map_err(Error::io(source))?);
                }
            }
        }
        Ok(manifest.digest())
    }
}

/// Returns the write bits that no entry of this kind has in a layer.
fn writable(found: &Metadata) -> u32 {
    if found.is_dir() { 0o022 } else { 0o222 }
}

/// Lets the owner write the directories of a layer that an earlier version made read-only. The layer itself comes last: the next start only
/// checks that one to detect an interruption.
pub(super) fn open_directories(layer: &Path) -> io::Result<()> {
    let mut found = vec![layer.to_owned()];
    let mut looked = 0;
    while let Some(directory) = found.get(looked) {
        let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
        for entry in entries {
            if entry.file_type()?.is_dir() {
                found.push(entry.path());
            }
        }
        looked += 1;
    }
    for directory in found.iter().rev() {
        if fs::symlink_metadata(directory)?.mode() & 0o7777 != DIRECTORY_MODE {
            fs::set_permissions(directory, fs::Permissions::from_mode(DIRECTORY_MODE))?;
        }
    }
    Ok(())
}

/// Returns the place of a file in the layer; `None` for files that a layer does not have.
fn placed(source: &Source, place: &str, path: &Path, found: &Metadata) -> Result<Option<String>, Error> {
    let (top, rest) = place.split_once('/').map_or((place, None), |(top, rest)| (top, Some(rest)));
    let joined = |above: &str| rest.map_or_else(|| above.to_owned(), |rest| format!("{above}/{rest}"));
    let merged = LINKS.contains(&top);
    let at_top = rest.is_none() && !found.is_dir();
    match source.place {
        Place::Prefix => Ok(Some(format!("{TOP}/{place}"))),
        Place::Root | Place::Layer if top == TOP && !at_top => Ok(Some(joined(TOP))),
        Place::Layer => Err(unfit(format!("{place:?} does not belong in a layer"))),
        Place::Root if merged && at_top && fs::read_link(path).is_ok_and(|to| is_merging(top, &to)) => Ok(None),
        Place::Root if (merged || top == TOP) && at_top => {
            Err(unfit(format!("{} brings {place:?}, where every machine has a directory", source.name)))
        }
        Place::Root if merged => Ok(Some(joined(&format!("{TOP}/{top}")))),
        Place::Root => Ok(None),
    }
}

/// Returns the name of a place that is left out: a well-known one, or a general word. A name from a package never becomes a word of the
/// host.
fn left_out(place: &str) -> &'static str {
    let top = place.split('/').next().unwrap_or_default();
    ROOT.into_iter().chain(LINKS).find(|known| *known == top).unwrap_or(ELSEWHERE)
}

/// Returns true if a link in the root is the usual one of a merged machine.
fn is_merging(top: &str, to: &Path) -> bool {
    [format!("usr/{top}"), format!("/usr/{top}")].iter().any(|own| to == Path::new(own))
}

fn are_same(one: &Entry, other: &Entry) -> Result<bool, Error> {
    match (one, other) {
        (Entry::Directory, Entry::Directory) => Ok(true),
        (Entry::Link { target: one }, Entry::Link { target: other }) => Ok(one == other),
        (
            Entry::File { source: one, executable: can, bytes },
            Entry::File { source: other, executable: could, bytes: length },
        ) => {
            let of = |path: &PathBuf| copy(path, *bytes, None).map_err(Error::io(path));
            Ok(can == could && bytes == length && of(one)? == of(other)?)
        }
        (Entry::Directory | Entry::Link { .. } | Entry::File { .. }, _) => Ok(false),
    }
}

/// Returns the beginning of a path, for a refusal.
fn excerpt(path: &Path) -> String {
    path.to_string_lossy().chars().take(EXCERPT_CHARS_MAX).collect()
}

/// Returns the name of a path, if it is text without control characters.
fn plain_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str().filter(|name| is_plain(name))
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.chars().any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

/// The input of a layer's digest: each path with its kind and content, in byte order. Every part has a length prefix, so that different
/// layers have different input.
struct Manifest(Sha256);

impl Manifest {
    fn new() -> Self {
        Self(Sha256::new_with_prefix(MANIFEST))
    }

    fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn directory(&mut self, path: &str) {
        self.part(b"directory");
        self.part(path.as_bytes());
    }

    fn link(&mut self, path: &str, target: &str) {
        self.part(b"link");
        self.part(path.as_bytes());
        self.part(target.as_bytes());
    }

    fn file(&mut self, path: &str, executable: bool, content: &Digest) {
        self.part(if executable { b"program" } else { b"file" });
        self.part(path.as_bytes());
        self.part(content.as_bytes());
    }

    fn digest(self) -> Digest {
        Digest::from_bytes(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests;
