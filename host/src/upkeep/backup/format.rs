//! The container of a backup: a header in plain text, and chunks that are encrypted and authenticated one by one.
//!
//! Each chunk is bound to the header, to its number, and to whether it is the last. So a file that was cut, extended, reordered or
//! changed does not open. All chunks have the same size, so a cut file is known by its length. `docs/decisions/0049` has each byte. See
//! [`super::entry`] for the content.

use super::error::Error;
use ironclaw_state::keys::BackupKey;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The first bytes of a backup.
const MAGIC: &[u8; 16] = b"ironclaw-backup\n";

const VERSION: u16 = 1;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 80;

/// Bytes of content in a chunk.
pub const CHUNK_BYTES: u32 = 64 * 1024;

/// The largest chunk that a reader accepts; a header is read before it is authenticated.
const CHUNK_BYTES_MAX: u32 = 1024 * 1024;

/// The smallest chunk that a reader accepts.
const CHUNK_BYTES_MIN: u32 = 16;

/// The bytes of a file that a reader reads at once.
const READ_BYTES: usize = 256 * 1024;

/// The header. Every chunk is bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Bytes of content in each chunk.
    pub chunk_bytes: u32,
    /// Fingerprint of the master key.
    pub key: [u8; BackupKey::NAME_BYTES],
    pub id: [u8; 16],
    /// The time of the creation, in milliseconds since the epoch.
    pub created_at: i64,
    /// The generation of the record.
    pub generation: u64,
    /// The number of entries in the ledger.
    pub entries: u64,
    /// The version of the schema of the record.
    pub schema: u32,
}

/// Why the first bytes of a file are no header that this version reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// The file is not a backup.
    Foreign,
    /// The format has a later version.
    Newer(u16),
    /// The header was changed.
    Changed,
}

impl Header {
    /// Returns the bytes of the header.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(self.chunk_bytes.to_be_bytes());
        bytes.extend(self.key);
        bytes.extend(self.id);
        bytes.extend(self.created_at.to_be_bytes());
        bytes.extend(self.generation.to_be_bytes());
        bytes.extend(self.entries.to_be_bytes());
        bytes.extend(self.schema.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.try_into().expect("the fields have 80 bytes together")
    }

    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let mut rest = Fields(bytes);
        let magic: [u8; 16] = rest.take();
        if magic != *MAGIC {
            return Err(HeaderFault::Foreign);
        }
        let version = u16::from_be_bytes(rest.take());
        if version > VERSION {
            return Err(HeaderFault::Newer(version));
        }
        let _: [u8; 2] = rest.take();
        let header = Self {
            chunk_bytes: u32::from_be_bytes(rest.take()),
            key: rest.take(),
            id: rest.take(),
            created_at: i64::from_be_bytes(rest.take()),
            generation: u64::from_be_bytes(rest.take()),
            entries: u64::from_be_bytes(rest.take()),
            schema: u32::from_be_bytes(rest.take()),
        };
        let has_size = (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&header.chunk_bytes);
        // This also refuses another version and unused bytes that are not zero.
        if has_size && header.to_bytes() == *bytes { Ok(header) } else { Err(HeaderFault::Changed) }
    }

    /// Returns the id as people see it: 32 hex characters.
    pub fn shown_id(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The fields of a header that are not read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("the fields have 80 bytes together");
        self.0 = rest;
        *field
    }
}

/// Returns the context of a chunk: the header, its number, and whether it is the last.
fn context(header: &[u8; HEADER_BYTES], number: u64, is_last: bool) -> Vec<u8> {
    [header.as_slice(), &number.to_be_bytes(), &[u8::from(is_last)]].concat()
}

/// The writer of a backup. It holds one chunk in memory.
pub struct Sealer<'k, W> {
    key: &'k BackupKey,
    header: [u8; HEADER_BYTES],
    out: W,
    chunk: Vec<u8>,
    chunk_bytes: usize,
    number: u64,
}

impl<'k, W: Write> Sealer<'k, W> {
    pub fn begin(key: &'k BackupKey, header: &Header, mut out: W) -> io::Result<Self> {
        let (chunk_bytes, header) = (header.chunk_bytes as usize, header.to_bytes());
        out.write_all(&header)?;
        Ok(Self { key, header, out, chunk: Vec::with_capacity(chunk_bytes), chunk_bytes, number: 0 })
    }

    fn seal(&mut self, is_last: bool) -> io::Result<()> {
        let sealed =
            self.key.seal(&context(&self.header, self.number, is_last), &self.chunk).map_err(io::Error::other)?;
        self.out.write_all(&sealed)?;
        self.number += 1;
        self.chunk.clear();
        Ok(())
    }

    /// Writes the last chunk, filled up with zeros, and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.chunk.resize(self.chunk_bytes, 0);
        self.seal(true)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Write for Sealer<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits for further content, because it may be the last.
        if self.chunk.len() == self.chunk_bytes && !bytes.is_empty() {
            self.seal(false)?;
        }
        let taken = bytes.len().min(self.chunk_bytes - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The reader of a backup. It returns only authenticated content, and holds one chunk in memory.
pub struct Opener<'k> {
    key: &'k BackupKey,
    path: PathBuf,
    input: BufReader<File>,
    header: [u8; HEADER_BYTES],
    chunk: Vec<u8>,
    /// Bytes of the chunk that were read.
    read: usize,
    sealed: Vec<u8>,
    number: u64,
    chunks: u64,
}

impl<'k> Opener<'k> {
    /// Opens a backup, and checks its header and its length.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::Newer`], [`Error::OtherKey`], [`Error::Truncated`] and [`Error::Changed`].
    pub fn open(path: &Path, key: &'k BackupKey) -> Result<(Self, Header), Error> {
        let fault = |source| Error::Io { path: path.to_owned(), source };
        let file = ironclaw_state::home::open_file(path).map_err(fault)?;
        let length = file.metadata().map_err(fault)?.len();
        let mut input = BufReader::with_capacity(READ_BYTES, file);
        let mut bytes = [0; HEADER_BYTES];
        let header = match input.read_exact(&mut bytes) {
            Ok(()) => parsed(path, &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(short(path, &bytes)),
            Err(error) => return Err(fault(error)),
        };
        if header.key != key.name() {
            return Err(Error::OtherKey { path: path.to_owned(), wanted: header.key, found: key.name() });
        }
        let sealed_bytes = header.chunk_bytes as usize + BackupKey::OVERHEAD_BYTES;
        let body = length.saturating_sub(HEADER_BYTES as u64);
        let chunks = body / sealed_bytes as u64;
        if chunks == 0 || !body.is_multiple_of(sealed_bytes as u64) {
            return Err(Error::Truncated(path.to_owned()));
        }
        let (sealed, path) = (vec![0; sealed_bytes], path.to_owned());
        let opener = Self { key, path, input, header: bytes, chunk: Vec::new(), read: 0, sealed, number: 0, chunks };
        Ok((opener, header))
    }

    /// Decrypts the next chunk.
    fn next_chunk(&mut self) -> Result<(), Error> {
        let (number, is_last) = (self.number, self.number + 1 == self.chunks);
        if number == self.chunks {
            return Err(self.unfit("its content ends early"));
        }
        self.input.read_exact(&mut self.sealed).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => Error::Truncated(self.path.clone()),
            _ => Error::Io { path: self.path.clone(), source },
        })?;
        let open = |is_last| self.key.open(&context(&self.header, number, is_last), &self.sealed);
        self.chunk = match open(is_last) {
            Ok(chunk) => chunk,
            // It is whole, and further chunks followed it once.
            Err(_) if is_last && open(false).is_ok() => return Err(Error::Truncated(self.path.clone())),
            Err(_) => {
                let at = HEADER_BYTES as u64 + number * self.sealed.len() as u64;
                return Err(Error::Changed { path: self.path.clone(), at });
            }
        };
        (self.read, self.number) = (0, number + 1);
        Ok(())
    }

    pub fn fill(&mut self, mut buffer: &mut [u8]) -> Result<(), Error> {
        while !buffer.is_empty() {
            let some = self.some(buffer.len())?;
            let (now, later) = buffer.split_at_mut(some.len());
            now.copy_from_slice(some);
            buffer = later;
        }
        Ok(())
    }

    /// Returns the next bytes of the content: at least 1 and at most `bytes_max`.
    pub fn some(&mut self, bytes_max: usize) -> Result<&[u8], Error> {
        if self.read == self.chunk.len() {
            self.next_chunk()?;
        }
        let from = self.read;
        self.read = self.chunk.len().min(from.saturating_add(bytes_max));
        Ok(&self.chunk[from..self.read])
    }

    /// Checks that the content has ended: this chunk is the last, and only zeros follow.
    pub fn finish(&mut self) -> Result<(), Error> {
        match self.number == self.chunks && self.chunk[self.read..].iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(self.unfit("it continues behind the end of its content")),
        }
    }

    /// Makes the error for an authenticated content that no version of this program writes.
    pub fn unfit(&self, why: impl Into<String>) -> Error {
        Error::Unfit { path: self.path.clone(), why: why.into() }
    }
}

/// Parses the header of a file.
fn parsed(path: &Path, bytes: &[u8; HEADER_BYTES]) -> Result<Header, Error> {
    Header::parse(bytes).map_err(|fault| match fault {
        HeaderFault::Foreign => Error::Foreign(path.to_owned()),
        HeaderFault::Newer(found) => Error::Newer { path: path.to_owned(), found, known: VERSION },
        HeaderFault::Changed => Error::Changed { path: path.to_owned(), at: 0 },
    })
}

/// Returns the error for a file that is shorter than a header.
fn short(path: &Path, bytes: &[u8; HEADER_BYTES]) -> Error {
    match bytes.starts_with(MAGIC) {
        true => Error::Truncated(path.to_owned()),
        false => Error::Foreign(path.to_owned()),
    }
}

/// Reads the header of a backup, which needs no key.
///
/// # Errors
/// [`Error::Foreign`], [`Error::Newer`], [`Error::Truncated`] and [`Error::Changed`].
pub fn header(path: &Path) -> Result<Header, Error> {
    let fault = |source| Error::Io { path: path.to_owned(), source };
    let mut bytes = [0; HEADER_BYTES];
    match ironclaw_state::home::open_file(path).map_err(fault)?.read_exact(&mut bytes) {
        Ok(()) => parsed(path, &bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(short(path, &bytes)),
        Err(error) => Err(fault(error)),
    }
}

#[cfg(test)]
mod tests;
