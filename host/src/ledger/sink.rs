//! Where heads of the ledger are kept: a directory outside of the home, or nowhere, and why.
//!
//! Never a directory inside of the home, where whoever changes the ledger could change it as well. Next: `ledger::keeper`.

use super::Config;
use super::head;
use crate::home::Home;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::operator::HeadsKept;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where heads are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// A directory that the operator named; it has to be there.
    Named(PathBuf),
    /// The user's data directory, made when it is missing.
    Usual(PathBuf),
    /// Nowhere, and why.
    Nowhere(&'static str),
}

impl Sink {
    /// The named directory, else one of the home's own below `ironclaw/heads` in the XDG data directory.
    ///
    /// # Errors
    /// A sentence, when the named directory lies in the home: whoever can change the ledger could change it as well.
    pub fn choose(config: &Config, home: &Home) -> Result<Self, String> {
        match &config.heads {
            Some(path) if !path.is_absolute() => Err("ledger.heads must be an absolute path".to_owned()),
            Some(path) if inside(path, home) => Err(format!(
                "ledger.heads is {}, inside of the home: heads belong where whoever changes the home does not reach",
                path.display()
            )),
            Some(path) => Ok(Self::Named(path.clone())),
            None => Ok(
                match directories::BaseDirs::new().map(|base| base.data_dir().join("ironclaw/heads").join(short(home)))
                {
                    Some(path) if inside(&path, home) => {
                        Self::Nowhere("the user's data directory lies inside of the home")
                    }
                    Some(path) => Self::Usual(path),
                    None => Self::Nowhere("the user has no data directory"),
                },
            ),
        }
    }

    /// The directory, if there is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Named(path) | Self::Usual(path) => Some(path),
            Self::Nowhere(_) => None,
        }
    }

    /// The directory, ready to be written to.
    pub(super) fn ready(&self, home: &Home) -> io::Result<&Path> {
        let path = match self {
            Self::Named(path) => path,
            Self::Usual(path) => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
                path
            }
            Self::Nowhere(why) => return Err(io::Error::other(*why)),
        };
        // A link may have been turned since the start.
        if inside(path, home) {
            return Err(io::Error::other("it leads into the home"));
        }
        Ok(path)
    }

    /// How heads are kept, as far as a look at the directory shows.
    pub fn look(&self, ledger: &str) -> HeadsKept {
        let directory = self.directory();
        HeadsKept {
            directory: directory.map(|path| path.display().to_string()),
            seq: directory.and_then(|path| head::newest(path, ledger)),
            trouble: match self {
                Self::Nowhere(why) => Some(nowhere(why)),
                Self::Named(path) if !path.is_dir() => Some(format!("{} is no directory", path.display())),
                Self::Named(_) | Self::Usual(_) => None,
            },
        }
    }
}

/// A name for a home that no other has.
fn short(home: &Home) -> String {
    Digest::of(home.path().as_os_str().as_encoded_bytes()).to_string()[..12].to_owned()
}

pub(super) fn nowhere(why: &str) -> String {
    format!("heads of the ledger are kept nowhere ({why}): name a directory with ledger.heads")
}

/// Whether a path leads into the home, as far as it exists.
fn inside(path: &Path, home: &Home) -> bool {
    let there = path.ancestors().find_map(|part| part.canonicalize().ok().map(|real| (part, real)));
    let real = there.map(|(part, real)| match path.strip_prefix(part) {
        Ok(rest) => real.join(rest),
        Err(_) => real,
    });
    path.starts_with(home.path()) || real.is_some_and(|real| real.starts_with(home.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_do_not_lie_in_the_home_by_whatever_way_it_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::create(&directory.path().join("home")).expect("made");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).expect("linked");
        let choose = |path: PathBuf| Sink::choose(&Config { heads: Some(path), ..Config::default() }, &home);
        for path in [home.path().join("heads"), link.join("ledger"), link.join("not/there/yet"), "heads".into()] {
            assert!(choose(path.clone()).is_err(), "{}", path.display());
        }
        let outside = directory.path().join("heads");
        assert_eq!(choose(outside.clone()), Ok(Sink::Named(outside)));
    }
}
