//! The directories of verified packages in the home, and the directory with the skills of an agent that its jail shows.
//!
//! ```text
//! skills/DIGEST/          the files of one package, read-only
//! skills/shown/DIGEST/    the packages of one agent by name: links of the same files
//! skills/incoming/        packages that are not verified yet
//! ```

use ironclaw_contract::canonical::Digest;
use ironclaw_skill::{Error, Manifest, Package};
use ironclaw_state::home::{self, Home, make_private, remove_tree};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a text that `read_skill` or `skill show` can show.
const TEXT_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of all such texts of a package.
const TEXTS_BYTES_MAX: usize = 1024 * 1024;

/// The directories of packages of one home.
#[derive(Debug)]
pub struct Shelf {
    home: Home,
    /// The shown directories that were verified since the host started.
    verified: Mutex<HashSet<Digest>>,
    /// The packages whose directory was not whole at the last look.
    damaged: Mutex<BTreeSet<Digest>>,
    /// Held while a directory of a package is replaced.
    keeping: Mutex<()>,
}

/// A temporary directory in `skills/incoming`, which its drop removes.
#[derive(Debug)]
pub struct Incoming(PathBuf);

impl Incoming {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.0) {
            tracing::warn!(%error, "cannot remove a directory of a fetched skill");
        }
    }
}

/// A package that was unpacked and checked, but not recorded.
pub struct Unpacked {
    pub package: Package,
    /// `skill.toml`.
    pub manifest_text: String,
    tree: PathBuf,
    _incoming: Incoming,
}

impl Unpacked {
    /// Unpacks an archive beside itself.
    ///
    /// # Errors
    /// Refuses as [`Package::unpack`] does.
    pub fn unpack(archive: &Path, incoming: Incoming) -> Result<Self, Error> {
        let tree = incoming.path().join("tree");
        let package = Package::unpack(archive, &tree)?;
        let path = tree.join("skill.toml");
        let manifest_text = std::fs::read_to_string(&path).map_err(|source| io_error(&path, source))?;
        Ok(Self { package, manifest_text, tree, _incoming: incoming })
    }

    /// Returns the texts that an agent may read with `read_skill`: `SKILL.md`, the files of `references`, and documents beside programs,
    /// as far as they are short.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub fn texts(&self) -> Result<Vec<(String, String)>, Error> {
        let (mut texts, mut left) = (Vec::new(), TEXTS_BYTES_MAX);
        let is_text = |path: &&String| path.starts_with("references/") || path.ends_with(".md");
        for path in self.package.manifest.files.keys().filter(is_text) {
            let file = self.tree.join(path);
            let bytes = file.metadata().map_err(|source| io_error(&file, source))?.len();
            if bytes > TEXT_BYTES_MAX || bytes as usize > left {
                continue;
            }
            if let Ok(text) = String::from_utf8(std::fs::read(&file).map_err(|source| io_error(&file, source))?) {
                left -= text.len();
                texts.push((path.clone(), text));
            }
        }
        Ok(texts)
    }

    /// Moves the files to their place, unless they are there. Returns whether the package was damaged before.
    ///
    /// # Errors
    /// Fails if the home cannot be written.
    pub fn keep(self, shelf: &Shelf, digest: Digest) -> io::Result<bool> {
        let _keeping = shelf.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        let place = shelf.package(&digest);
        if place.is_dir() && self.package.manifest.verify_tree(&place).is_ok() {
            return Ok(shelf.lock_damaged().remove(&digest));
        }
        remove_tree(&place)?;
        // The bytes are on the disk before a row names them.
        nix::unistd::syncfs(std::fs::File::open(&self.tree)?)?;
        home::rename_durably(&self.tree, &place)?;
        Ok(shelf.lock_damaged().remove(&digest))
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

impl Shelf {
    pub fn new(home: Home) -> Self {
        Self { home, verified: Mutex::default(), damaged: Mutex::default(), keeping: Mutex::default() }
    }

    fn root(&self) -> PathBuf {
        self.home.skills()
    }

    /// Returns the directory of a package.
    fn package(&self, digest: &Digest) -> PathBuf {
        self.root().join(digest.to_string())
    }

    /// Verifies each of these packages, and notes those that are damaged. It blocks.
    pub fn refresh_damaged(&self, packages: &[(Digest, Manifest)]) {
        for (digest, manifest) in packages {
            match manifest.verify_tree(&self.package(digest)) {
                Ok(()) => drop(self.lock_damaged().remove(digest)),
                Err(error) => {
                    tracing::error!(name = %manifest.name, %error, "a skill is damaged");
                    self.lock_damaged().insert(*digest);
                }
            }
        }
    }

    /// Returns the packages that were damaged at the last look.
    pub fn damaged(&self) -> BTreeSet<Digest> {
        self.lock_damaged().clone()
    }

    fn lock_damaged(&self) -> MutexGuard<'_, BTreeSet<Digest>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the directory of a package is there.
    pub fn has(&self, digest: &Digest) -> bool {
        self.package(digest).is_dir()
    }

    /// Returns a file of a package as text; `None` for a long one and for one that is no text. `path` is one of its manifest. It blocks.
    pub fn text(&self, digest: &Digest, path: &str) -> Option<String> {
        home::read_text(&self.package(digest).join(path), TEXT_BYTES_MAX).ok()
    }

    /// Removes the directory of a package.
    pub fn remove(&self, digest: &Digest) {
        let _keeping = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = remove_tree(&self.package(digest)) {
            tracing::warn!(%error, "could not remove a refused skill");
        }
    }

    /// Makes a new directory for a package that is fetched.
    ///
    /// # Errors
    /// Fails if the home cannot be written.
    pub fn incoming(&self) -> io::Result<Incoming> {
        let all = self.root().join("incoming");
        for directory in [&self.root(), &all] {
            make_private(directory).map_err(io::Error::other)?;
        }
        let own = all.join(ironclaw_contract::ids::ChangeId::new().to_string());
        make_private(&own).map_err(io::Error::other)?;
        Ok(Incoming(own))
    }

    /// Returns the directory with the files of these skills, by name, and makes it if it is missing. Every file is verified once in each
    /// start of the host. It blocks.
    ///
    /// # Errors
    /// Fails if a file is missing or differs from the verified package.
    pub fn shown(&self, skills: &[(Digest, Manifest)]) -> Result<PathBuf, Error> {
        let listed: Vec<String> =
            skills.iter().map(|(digest, manifest)| format!("{} {digest}", manifest.name)).collect();
        let digest = Digest::of(listed.join("\n").as_bytes());
        let all = self.root().join("shown");
        let directory = all.join(digest.to_string());
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.contains(&digest) {
            return Ok(directory);
        }
        if !directory.is_dir() || verify(skills, &directory).is_err() {
            // A damaged file of a shown directory may be whole in the directory of its package.
            remove_tree(&directory).map_err(|source| io_error(&directory, source))?;
            let made = self.link(skills, &all, &directory).and_then(|()| verify(skills, &directory));
            if made.is_err() {
                self.refresh_damaged(skills);
            }
            made?;
        }
        verified.insert(digest);
        Ok(directory)
    }

    /// Makes a directory with links of the files of these skills.
    fn link(&self, skills: &[(Digest, Manifest)], all: &Path, directory: &Path) -> Result<(), Error> {
        let made = make_private(&self.root()).and_then(|()| make_private(all));
        made.map_err(|error| io_error(all, io::Error::other(error)))?;
        let incoming = self.incoming().map_err(|source| io_error(all, source))?;
        let new = incoming.path().join("shown");
        make_directory(&new)?;
        for (digest, manifest) in skills {
            link_tree(&self.package(digest), &new.join(manifest.name.as_ref()))?;
        }
        std::fs::rename(&new, directory).map_err(|source| io_error(directory, source))
    }

    /// Removes the directories of other packages than these, and everything that the host makes again. Call it while no sandbox runs.
    pub fn sweep(&self, used: &[Digest]) {
        let used: HashSet<String> = used.iter().map(ToString::to_string).collect();
        for entry in std::fs::read_dir(self.root()).into_iter().flatten().flatten() {
            let is_used = entry.file_name().to_str().is_some_and(|name| used.contains(name));
            if !is_used && let Err(error) = remove_tree(&entry.path()) {
                tracing::warn!(%error, "could not remove an unused skill");
            }
        }
    }
}

/// Checks every file of a shown directory.
fn verify(skills: &[(Digest, Manifest)], directory: &Path) -> Result<(), Error> {
    skills.iter().try_for_each(|(_, manifest)| manifest.verify_tree(&directory.join(manifest.name.as_ref())))
}

/// Makes a directory that the user of a jail may enter.
fn make_directory(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::create_dir(path)
        .and_then(|()| std::fs::set_permissions(path, mode))
        .map_err(|source| io_error(path, source))
}

/// Makes a directory with links of the same files.
fn link_tree(from: &Path, to: &Path) -> Result<(), Error> {
    make_directory(to)?;
    for entry in std::fs::read_dir(from).map_err(|source| io_error(from, source))? {
        let entry = entry.map_err(|source| io_error(from, source))?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|source| io_error(&path, source))?;
        match kind.is_dir() {
            true => link_tree(&path, &place)?,
            false => std::fs::hard_link(&path, &place).map_err(|source| io_error(&path, source))?,
        }
    }
    Ok(())
}
