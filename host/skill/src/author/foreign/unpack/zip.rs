//! Reads a ZIP archive by its directory at the end: files that are stored or deflated.

use super::{UNPACKED_BYTES_MAX, archive_too_large, failed, inside};
use crate::Error;
use crate::author::foreign::tree::{Content, Entry, Tree};
use flate2::Crc;
use flate2::read::DeflateDecoder;
use std::fs::File;
use std::io::Read;

/// The name of the archive itself in an error.
const WHOLE: &str = "archive";
const DAMAGED: &str = "the archive is damaged: get it again";
/// Bytes of the end of an archive, and of the comment that may follow.
const END_BYTES: usize = 22;
const COMMENT_BYTES_MAX: usize = 65_535;
const END: &[u8] = b"PK\x05\x06";
const CENTRAL: &[u8] = b"PK\x01\x02";
const CENTRAL_BYTES: usize = 46;
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;
/// The system that wrote the attributes of an entry.
const UNIX: u8 = 3;
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;
const REGULAR: u32 = 0o100_000;

struct Header<'a> {
    name: &'a [u8],
    is_encrypted: bool,
    method: u16,
    sum: u32,
    packed: usize,
    size: u64,
    /// The mode, if a system with modes wrote it.
    mode: u32,
    at: usize,
}

pub(super) fn read(file: File) -> Result<Tree, Error> {
    let mut bytes = Vec::new();
    file.take(UNPACKED_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > UNPACKED_BYTES_MAX {
        return Err(archive_too_large());
    }
    let mut tree = Tree::default();
    let mut left = UNPACKED_BYTES_MAX;
    for header in directory(&bytes).ok_or_else(damaged)? {
        // Some programs of Windows write backslashes.
        let raw = String::from_utf8_lossy(header.name).replace('\\', "/");
        if raw.ends_with('/') {
            continue;
        }
        let path = inside(&raw)?;
        let content = content(&bytes, &header, &path, left)?;
        left -= content.len() as u64;
        let content = match header.mode & KIND {
            LINK => Content::Link(String::from_utf8_lossy(&content).into_owned()),
            0 | REGULAR => Content::Bytes(content),
            _ => return Err(Error::file(path, "it is a device, a pipe or a socket")),
        };
        tree.add(path, Entry { may_run: header.mode & 0o111 != 0, content })?;
    }
    Ok(tree)
}

fn damaged() -> Error {
    Error::file(WHOLE, DAMAGED)
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the headers of all entries; `None` for a damaged archive.
fn directory(bytes: &[u8]) -> Option<Vec<Header<'_>>> {
    let from = bytes.len().saturating_sub(END_BYTES + COMMENT_BYTES_MAX);
    let end = from + bytes[from..].windows(END.len()).rposition(|four| four == END)?;
    let count = number(bytes, end + 10)?;
    let mut at = long(bytes, end + 16)? as usize;
    let mut headers = Vec::new();
    for _ in 0..count {
        let header = bytes.get(at..).filter(|rest| rest.starts_with(CENTRAL))?;
        let (name, extra, comment) = (number(header, 28)?, number(header, 30)?, number(header, 32)?);
        let is_of_unix = *header.get(5)? == UNIX;
        headers.push(Header {
            name: header.get(CENTRAL_BYTES..CENTRAL_BYTES + usize::from(name))?,
            is_encrypted: number(header, 8)? & 1 != 0,
            method: number(header, 10)?,
            sum: long(header, 16)?,
            packed: long(header, 20)? as usize,
            size: u64::from(long(header, 24)?),
            mode: if is_of_unix { long(header, 38)? >> 16 } else { 0 },
            at: long(header, 42)? as usize,
        });
        at += CENTRAL_BYTES + usize::from(name) + usize::from(extra) + usize::from(comment);
    }
    Some(headers)
}

fn content(bytes: &[u8], header: &Header<'_>, path: &str, left: u64) -> Result<Vec<u8>, Error> {
    if header.is_encrypted {
        return Err(Error::file(
            path,
            "it is encrypted: unpack the archive with its password, and import the directory",
        ));
    }
    if header.size > left {
        return Err(archive_too_large());
    }
    let packed = packed(bytes, header).ok_or_else(damaged)?;
    let mut content = Vec::new();
    match header.method {
        0 => content.extend_from_slice(packed),
        8 => {
            let read = DeflateDecoder::new(packed).take(header.size + 1).read_to_end(&mut content);
            read.map_err(|_| Error::file(path, DAMAGED))?;
        }
        _ => {
            let what = "it is compressed in a form that is not read: unpack the archive, and import the directory";
            return Err(Error::file(path, what));
        }
    }
    let mut sum = Crc::new();
    sum.update(&content);
    match sum.sum() == header.sum && content.len() as u64 == header.size {
        true => Ok(content),
        false => Err(Error::file(path, DAMAGED)),
    }
}

fn packed<'a>(bytes: &'a [u8], header: &Header<'_>) -> Option<&'a [u8]> {
    let local = bytes.get(header.at..).filter(|rest| rest.starts_with(LOCAL))?;
    let from = LOCAL_BYTES + usize::from(number(local, 26)?) + usize::from(number(local, 28)?);
    local.get(from..from.checked_add(header.packed)?)
}
