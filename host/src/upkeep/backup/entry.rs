//! The content of a backup: directories, files and links of a home, one after another, and the totals at the end.
//!
//! A path is relative, and only the places of this module are accepted. See [`super::format`] for the container.

use super::error::Error;
use super::format::Opener;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, SessionId};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// Bytes of a path or of the target of a link.
pub const PATH_BYTES_MAX: usize = 4096;

/// The permissions that a backup keeps: no set-uid, no set-gid.
pub const MODE_MASK: u32 = 0o777;

/// The directory of the heads in a backup. It is outside of the home otherwise.
pub const HEADS: &str = "heads";

/// Files in the root of a home.
pub const FILES: [&str; 6] = ["state.db", "config.toml", "policy.toml", "keys.json", "owner.token", "panic"];

/// The owner of files that belong to the owner of the home.
const OWN: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    /// A regular file; its content follows.
    File,
    /// A symbolic link; its target follows.
    Link,
}

impl Kind {
    const fn tag(self) -> u8 {
        match self {
            Self::Directory => b'D',
            Self::File => b'F',
            Self::Link => b'L',
        }
    }
}

/// The tag of the totals.
const END: u8 = b'E';

/// One directory, file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// The path from the root of the home.
    pub path: PathBuf,
    pub mode: u32,
    /// User and group; `None` for the owner of the home.
    pub owner: Option<(u32, u32)>,
    /// Seconds since the epoch of the last change.
    pub changed_at: i64,
    /// Bytes that follow.
    pub size: u64,
}

/// The totals of a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of files that changed while they were read.
    pub changed: u64,
    /// Number of files and directories that were left out.
    pub skipped: u64,
}

/// An entry, or the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An entry. Its content follows.
    Entry(Entry),
    End(Totals),
}

impl Entry {
    /// Writes everything except the content.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let path = self.path.as_os_str().as_bytes();
        let length = u16::try_from(path.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
        let (user, group) = self.owner.unwrap_or((OWN, OWN));
        let mut bytes = vec![self.kind.tag()];
        bytes.extend(length.to_be_bytes());
        bytes.extend(path);
        bytes.extend(self.mode.to_be_bytes());
        bytes.extend(user.to_be_bytes());
        bytes.extend(group.to_be_bytes());
        bytes.extend(self.changed_at.to_be_bytes());
        bytes.extend(self.size.to_be_bytes());
        out.write_all(&bytes)
    }
}

impl Totals {
    /// Writes the totals, which end the content.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&[END])?;
        [self.files, self.bytes, self.changed, self.skipped]
            .into_iter()
            .try_for_each(|number| out.write_all(&number.to_be_bytes()))
    }
}

fn take<const N: usize>(from: &mut Opener<'_>) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    from.fill(&mut bytes)?;
    Ok(bytes)
}

/// Reads the next entry without its content, or the end. Accepts only the places of a home.
///
/// # Errors
/// Those of the container, and [`Error::Unfit`].
pub fn read(from: &mut Opener<'_>) -> Result<Item, Error> {
    let [tag] = take(from)?;
    if tag == END {
        let mut number = || Ok::<_, Error>(u64::from_be_bytes(take(from)?));
        let totals = Totals { files: number()?, bytes: number()?, changed: number()?, skipped: number()? };
        from.finish()?;
        return Ok(Item::End(totals));
    }
    let kinds = [Kind::Directory, Kind::File, Kind::Link];
    let Some(kind) = kinds.into_iter().find(|kind| kind.tag() == tag) else {
        return Err(from.unfit(format!("it has an entry of the unknown kind {tag}")));
    };
    let mut path = vec![0; usize::from(u16::from_be_bytes(take(from)?))];
    from.fill(&mut path)?;
    let path = PathBuf::from(OsStr::from_bytes(&path));
    let mode = u32::from_be_bytes(take(from)?);
    let (user, group) = (u32::from_be_bytes(take(from)?), u32::from_be_bytes(take(from)?));
    let changed_at = i64::from_be_bytes(take(from)?);
    let size = u64::from_be_bytes(take(from)?);
    let fits = match kind {
        Kind::Directory => size == 0,
        Kind::File => true,
        Kind::Link => (1..=PATH_BYTES_MAX as u64).contains(&size),
    };
    if !fits || mode & !MODE_MASK != 0 || !is_place(&path, kind) {
        return Err(from.unfit(format!("its entry {:?} has no place in a home", path.display().to_string())));
    }
    let owner = ((user, group) != (OWN, OWN)).then_some((user, group));
    Ok(Item::Entry(Entry { kind, path, mode, owner, changed_at, size }))
}

/// Returns whether a home has a place for an entry of this kind.
pub fn is_place(path: &Path, kind: Kind) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let mut names = Vec::new();
    for component in path.components() {
        let Component::Normal(name) = component else { return false };
        names.push(name.as_bytes());
    }
    // `components` ignores doubled slashes and dots, which this refuses.
    if bytes.is_empty() || bytes.len() > PATH_BYTES_MAX || bytes.contains(&0) || names.join(&b'/') != bytes {
        return false;
    }
    let is_directory = kind == Kind::Directory;
    fn has<T: FromStr>(name: &[u8]) -> bool {
        std::str::from_utf8(name).is_ok_and(|text| text.parse::<T>().is_ok())
    }
    let is_server = |name: &[u8]| std::str::from_utf8(name).is_ok_and(crate::registry::secrets::is_name);
    match names[..] {
        [name] if is_directory => {
            [b"ledger".as_slice(), b"agents", b"mcp", b"sessions", b"skills", HEADS.as_bytes()].contains(&name)
        }
        [name] => kind == Kind::File && FILES.iter().any(|file| file.as_bytes() == name),
        [b"ledger", _] => kind == Kind::File,
        [head, _] if head == HEADS.as_bytes() => kind == Kind::File,
        [b"agents", agent] | [b"agents", agent, b"layers"] => is_directory && has::<AgentId>(agent),
        [b"agents", agent, b"layers", layer] => is_directory && has::<AgentId>(agent) && has::<Digest>(layer),
        [b"agents", agent, b"layers", layer, ..] => has::<AgentId>(agent) && has::<Digest>(layer),
        [b"mcp", server] | [b"mcp", server, b"layers"] => is_directory && is_server(server),
        [b"mcp", server, b"layers", layer] => is_directory && is_server(server) && has::<Digest>(layer),
        [b"mcp", server, b"layers", layer, ..] => is_server(server) && has::<Digest>(layer),
        [b"skills", package] => is_directory && has::<Digest>(package),
        [b"skills", package, ..] => has::<Digest>(package),
        [b"sessions", session] | [b"sessions", session, b"workspace"] => is_directory && has::<SessionId>(session),
        [b"sessions", session, b"workspace", ..] => has::<SessionId>(session),
        [b"sessions", session, b"versions"] => is_directory && has::<SessionId>(session),
        [b"sessions", session, b"versions", _] => kind == Kind::File && has::<SessionId>(session),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_places_of_a_home_are_accepted() {
        let (agent, session, layer) = (AgentId::new(), SessionId::new(), Digest::of(b"x"));
        let at = |text: &str| {
            text.replace("AGT", &agent.to_string())
                .replace("SES", &session.to_string())
                .replace("LAY", &layer.to_string())
        };
        for (kind, paths) in [
            (Kind::File, &["state.db", "ledger/chain-000000000000.ndjson"][..]),
            (Kind::File, &["heads/0123456789abcdef-000000000001-0123456789abcdef.json"]),
            (Kind::File, &["agents/AGT/layers/LAY/usr/bin/jq", "mcp/papers/layers/LAY/usr/bin/server"]),
            (Kind::File, &["skills/LAY/SKILL.md", "sessions/SES/versions/index.json"]),
            (Kind::Directory, &["ledger", "sessions/SES/workspace", "sessions/SES/versions"]),
            (Kind::Link, &["agents/AGT/layers/LAY/usr/bin/jql", "sessions/SES/workspace/..a/ b"]),
        ] {
            for path in paths {
                assert!(is_place(Path::new(&at(path)), kind), "{path}");
            }
        }
        for (kind, paths) in [
            (Kind::File, &["", "/etc/passwd", "master.key", "state.db-wal", "host.lock", "ledger/a/b"][..]),
            (Kind::File, &["sessions/SES/in/inbound.db", "sessions/SES/workspace/../../../state.db"]),
            (Kind::File, &["sessions/SES/workspace/./a", "sessions/SES/workspace//a", "sessions/SES/workspace/a/"]),
            (Kind::File, &["sessions/SES/workspace/a\0b", "sessions/x/workspace/a", "sessions/SES/versions/a/b"]),
            (Kind::File, &["skills/incoming/x"]),
            (Kind::Directory, &["..", "state.db", "agents/AGT/layers/x/usr", "agents/AGT/fetching"]),
            (Kind::Directory, &["mcp/papers/agt_x", "mcp/.x/layers", "mcp/papers/layers/x/usr", "skills/shown"]),
            (Kind::Link, &["state.db", "sessions", "ledger/a", "sessions/SES", "sessions/SES/workspace"]),
            (Kind::Link, &["sessions/SES/versions", "sessions/SES/versions/a"]),
        ] {
            for path in paths {
                assert!(!is_place(Path::new(&at(path)), kind), "{path:?}");
            }
        }
    }
}
