//! The tools that read, write and list files of the workspace.
//!
//! They change no byte of a text; a truncated result has a line that reports it. See [`crate::search`].

use crate::outcome::{RESULT_BYTES_MAX, prefix_that_fits};
use crate::workspace::{Below, EntryKind, Error, Workspace, kind, on_one_line, refusal};
use ironclaw_contract::ids::ItemId;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

/// Largest size to which a tool writes a file; the host bounds the workspace as a whole.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Entries of one listing.
pub const ENTRIES_MAX: usize = 1000;
/// Bytes of one character; a read is never shorter.
const CHARACTER_BYTES_MAX: usize = 4;
/// Bits of a mode that a rewritten file keeps.
const PERMISSIONS: u32 = 0o777;
/// Mode of a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// Arguments of `read_file`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    path: String,
    /// First byte; 0 if absent.
    #[serde(default)]
    offset: u64,
    /// Bytes at most; as many as fit into a result if absent.
    limit: Option<u64>,
}

/// Arguments of `write_file`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Path of the file; missing directories above it are made.
    path: String,
    /// The new content, or the text to append.
    content: String,
    /// True if the text is appended instead of replacing the content.
    #[serde(default)]
    append: bool,
}

/// Arguments of `list_dir`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListDir {
    /// Path of the directory; the workspace itself if absent.
    path: Option<String>,
}

/// Reads the text of a file, or a part of it; a last line reports the rest.
pub fn read(workspace: &Workspace, call: &ReadFile) -> Result<String, Error> {
    let path = Below::parse(&call.path)?;
    let system = |source| Error::System { what: "read", path: path.shown(), source };
    let (mut file, stat) = workspace.read(&path)?;
    let EntryKind::File(size) = kind(&stat) else { return Err(Error::Special(path.shown())) };
    let wrong_offset = || Error::Offset { path: path.shown(), bytes: size, offset: call.offset };
    if call.offset > size {
        return Err(wrong_offset());
    }
    file.seek(SeekFrom::Start(call.offset)).map_err(system)?;
    let limit = call.limit.map_or(RESULT_BYTES_MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let limit = limit.clamp(CHARACTER_BYTES_MAX, RESULT_BYTES_MAX);
    let mut bytes = Vec::with_capacity(limit.min(usize::try_from(size - call.offset).unwrap_or(limit)) + 1);
    // One more byte than requested shows whether the end was reached.
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(system)?;
    let ended = bytes.len() <= limit;
    bytes.truncate(limit);
    let whole = match std::str::from_utf8(&bytes) {
        Ok(text) => text.len(),
        // A character that is cut at the end of a part belongs to the next part.
        Err(error) if error.error_len().is_none() && !ended && error.valid_up_to() > 0 => error.valid_up_to(),
        Err(error) if call.offset > 0 && error.valid_up_to() == 0 => return Err(wrong_offset()),
        Err(_) => return Err(Error::NotText { path: path.shown(), bytes: size }),
    };
    bytes.truncate(whole);
    let mut text = String::from_utf8(bytes).map_err(|_| Error::NotText { path: path.shown(), bytes: size })?;
    let fits = prefix_that_fits(&text);
    let more = fits < text.len() || !ended;
    text.truncate(fits);
    if more {
        let next = call.offset + fits as u64;
        let from = call.offset;
        let _ = write!(text, "\n[bytes {from} to {next} of {size}; continue with offset {next}]");
    }
    Ok(text)
}

/// Replaces a file atomically or appends to it; reports its new size.
pub fn write(workspace: &Workspace, call: &WriteFile) -> Result<String, Error> {
    let path = Below::parse(&call.path)?;
    let content = call.content.as_bytes();
    let size = if call.append { append(workspace, &path, content)? } else { None };
    let size = match size {
        Some(size) => size,
        None => replace(workspace, &path, content)?,
    };
    Ok(format!("wrote {} bytes to {}, which has {size} bytes now", content.len(), path.shown()))
}

/// Appends to a file; `None` if the file does not exist.
fn append(workspace: &Workspace, path: &Below, content: &[u8]) -> Result<Option<u64>, Error> {
    let (mut file, stat) = match workspace.append(path) {
        Ok(open) => open,
        Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let EntryKind::File(before) = kind(&stat) else { return Err(Error::Special(path.shown())) };
    let after = before + content.len() as u64;
    check_size(path, after)?;
    match file.write_all(content) {
        Ok(()) => Ok(Some(after)),
        Err(source) => {
            // A part of the text is worse than none; if this fails too, the error reports the write anyway.
            let _ = file.set_len(before);
            Err(Error::System { what: "write", path: path.shown(), source })
        }
    }
}

/// Writes a draft beside the file and renames it, so that no reader sees an incomplete file.
fn replace(workspace: &Workspace, path: &Below, content: &[u8]) -> Result<u64, Error> {
    let refused = |error| refusal(error, "write", path);
    check_size(path, content.len() as u64)?;
    let (directory, name) = workspace.make_parent(path)?;
    let mode = match fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => match kind(&stat) {
            EntryKind::File(_) => stat.st_mode & PERMISSIONS,
            EntryKind::Directory => return Err(Error::IsDirectory(path.shown())),
            EntryKind::Link => return Err(Error::Link(path.shown())),
            EntryKind::Special => return Err(Error::Special(path.shown())),
        },
        Err(Errno::ENOENT) => NEW_FILE,
        Err(error) => return Err(refused(error)),
    };
    let draft = format!(".ironclaw-draft-{}", ItemId::new());
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let made = openat(&directory, draft.as_str(), flags, Mode::from_bits_truncate(mode)).map_err(refused)?;
    let written = fill(made, content).and_then(|()| {
        // The rename replaces any file with the name; it follows no link.
        renameat(&directory, draft.as_str(), &directory, name).map_err(io::Error::from)
    });
    match written {
        Ok(()) => Ok(content.len() as u64),
        Err(source) => {
            // A draft that remains does no harm.
            let _ = unlinkat(&directory, draft.as_str(), UnlinkatFlags::NoRemoveDir);
            Err(Error::System { what: "write", path: path.shown(), source })
        }
    }
}

fn fill(file: OwnedFd, content: &[u8]) -> io::Result<()> {
    File::from(file).write_all(content)
}

fn check_size(path: &Below, bytes: u64) -> Result<(), Error> {
    if bytes <= FILE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::TooLarge { path: path.shown(), bytes_max: FILE_BYTES_MAX })
}

/// Lists a directory with one line for each entry: its kind, its size if it is a file, and its name.
pub fn list(workspace: &Workspace, call: &ListDir) -> Result<String, Error> {
    let path = call.path.as_deref().map_or(Ok(Below::ROOT), Below::parse)?;
    let (entries, more) = workspace.list(&path, ENTRIES_MAX)?;
    let mut text = String::new();
    for entry in &entries {
        let name = on_one_line(&entry.name);
        let _ = match entry.kind {
            EntryKind::File(bytes) => writeln!(text, "file {bytes} {name}"),
            EntryKind::Directory => writeln!(text, "directory {name}"),
            EntryKind::Link => writeln!(text, "link {name}"),
            EntryKind::Special => writeln!(text, "special {name}"),
        };
    }
    text.truncate(prefix_that_fits(&text));
    if more {
        let _ = writeln!(text, "[more than {ENTRIES_MAX} entries; the others are not shown]");
    }
    if text.is_empty() {
        text.push_str("[empty]\n");
    }
    Ok(text)
}
