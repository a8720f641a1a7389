//! Reads an archive strictly: the one form of tar that `pack` writes.
//!
//! A header has a path, a size and a mode; a header with anything else is refused, so that two readers cannot understand an archive
//! differently. Never keeps the bytes of a file. See [`crate::package`].

use crate::{Error, PACKAGE_BYTES_MAX, path};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Bytes of a block of tar.
pub(crate) const BLOCK_BYTES: usize = 512;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 * 1024;
/// The mode of a file, and of a program.
pub(crate) const MODES: [u32; 2] = [0o644, 0o755];

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) is_program: bool,
    pub(crate) bytes: u64,
}

impl Entry {
    /// Returns its header, in the only form that is read; `None` for a path that tar cannot hold.
    pub(crate) fn header(&self) -> Option<[u8; BLOCK_BYTES]> {
        let mut header = tar::Header::new_ustar();
        header.set_path(&self.path).ok()?;
        header.set_mode(MODES[usize::from(self.is_program)]);
        header.set_size(self.bytes);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        Some(*header.as_bytes())
    }
}

/// An archive that is read once, from its beginning.
pub(crate) struct Archive<'a, R> {
    reader: BufReader<R>,
    /// Gets every byte that is read, in order and in large pieces.
    seen: &'a mut dyn FnMut(&[u8]),
    pub(crate) bytes: u64,
}

impl<'a, R: Read> Archive<'a, R> {
    pub(crate) fn new(reader: R, seen: &'a mut dyn FnMut(&[u8])) -> Self {
        Self { reader: BufReader::with_capacity(BUFFER_BYTES, reader), seen, bytes: 0 }
    }

    /// Returns the next file; `None` at the end of the archive, after which there is no byte.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, Error> {
        let header = self.block()?;
        if header.iter().all(|byte| *byte == 0) {
            if self.block()?.iter().any(|byte| *byte != 0) {
                return Err(Error::file(WHOLE, "the end of the archive is damaged"));
            }
            return match self.fill()? {
                0 => Ok(None),
                _ => Err(Error::file(WHOLE, "there are bytes after the end of the archive")),
            };
        }
        let entry = read_header(&header)?;
        if entry.bytes > PACKAGE_BYTES_MAX - self.bytes.min(PACKAGE_BYTES_MAX) {
            return Err(too_large());
        }
        Ok(Some(entry))
    }

    /// Passes the bytes of a file on, in pieces.
    pub(crate) fn content(
        &mut self,
        entry: &Entry,
        mut piece: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut left = entry.bytes;
        while left > 0 {
            let got = usize::try_from(left).unwrap_or(usize::MAX).min(self.fill()?);
            if got == 0 {
                return Err(Error::file(&entry.path, ENDS_EARLY));
            }
            let bytes = &self.reader.buffer()[..got];
            piece(bytes)?;
            self.take(got);
            left -= got as u64;
        }
        let padding = (BLOCK_BYTES - (entry.bytes % BLOCK_BYTES as u64) as usize) % BLOCK_BYTES;
        let mut rest = [0; BLOCK_BYTES];
        self.exact(&mut rest[..padding])?;
        match rest.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(Error::file(&entry.path, "there are bytes between the end of the file and the next one")),
        }
    }

    /// Reads to the end, so that every byte was seen.
    pub(crate) fn drain(&mut self) -> Result<(), Error> {
        loop {
            match self.fill()? {
                0 => return Ok(()),
                got => self.take(got),
            }
        }
    }

    fn block(&mut self) -> Result<[u8; BLOCK_BYTES], Error> {
        let mut block = [0; BLOCK_BYTES];
        self.exact(&mut block)?;
        Ok(block)
    }

    fn exact(&mut self, mut into: &mut [u8]) -> Result<(), Error> {
        while !into.is_empty() {
            let got = into.len().min(self.fill()?);
            if got == 0 {
                return Err(Error::file(WHOLE, ENDS_EARLY));
            }
            into[..got].copy_from_slice(&self.reader.buffer()[..got]);
            self.take(got);
            into = &mut into[got..];
        }
        Ok(())
    }

    /// Returns the number of bytes in the buffer; 0 at the end.
    fn fill(&mut self) -> Result<usize, Error> {
        if self.reader.buffer().is_empty() {
            let failed = |source| Error::Io { path: "the package".to_owned(), source };
            let got = self.reader.fill_buf().map_err(failed)?;
            (self.seen)(got);
        }
        let got = self.reader.buffer().len();
        match self.bytes + got as u64 > PACKAGE_BYTES_MAX {
            true => Err(too_large()),
            false => Ok(got),
        }
    }

    fn take(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.reader.consume(bytes);
    }
}

/// The name of the archive itself in an error.
const WHOLE: &str = "archive";
const ENDS_EARLY: &str = "the archive ends too early";

pub(crate) fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| Error::io(path, error))
}

pub(crate) fn too_large() -> Error {
    Error::TooLarge(format!("it has more than {PACKAGE_BYTES_MAX} bytes"))
}

fn read_header(bytes: &[u8; BLOCK_BYTES]) -> Result<Entry, Error> {
    let header = tar::Header::from_byte_slice(bytes);
    let raw = header.path_bytes();
    let shown = String::from_utf8_lossy(&raw);
    let refused = |what| path::refused(&shown, what);
    let what = match header.entry_type().as_byte() {
        b'0' => "",
        b'1' => "it is a hard link",
        b'2' => "it is a link",
        b'3' | b'4' => "it is a device",
        b'5' => "it is a directory: an archive has files only",
        b'6' => "it is a pipe",
        b'S' => "it is a sparse file",
        b'L' | b'K' => "it is a long name in the form of GNU tar",
        b'x' | b'g' => "it is a header of pax",
        _ => "it is a file of an unknown type",
    };
    if !what.is_empty() {
        return Err(refused(what));
    }
    if &bytes[257..265] != b"ustar\x0000" {
        return Err(refused("its header is not in the form ustar"));
    }
    let path = std::str::from_utf8(&raw).map_err(|_| refused("its path is not UTF-8"))?;
    path::check(path)?;
    let mode = header.mode().map_err(|_| refused("its mode is not a number"))?;
    if mode & 0o7000 != 0 {
        return Err(refused("it has a set-uid, set-gid or sticky mode"));
    }
    if !MODES.contains(&mode) {
        return Err(refused("its mode is neither 0644 nor 0755"));
    }
    let bytes_of_file = header.entry_size().map_err(|_| refused("its size is not a number"))?;
    let entry = Entry { path: path.to_owned(), is_program: mode == MODES[1], bytes: bytes_of_file };
    match entry.header() {
        Some(expected) if expected == *bytes => Ok(entry),
        _ => Err(refused("its header has more than a path, a size and a mode, or another form than pack writes")),
    }
}
