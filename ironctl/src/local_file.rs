//! Files of the caller: reads them up to a bound, and writes them without surprise.
//!
//! Never writes through a link, and never replaces a file unasked. See `commands::file` and `commands::chat::attach`.

use crate::failure::Error;
use crate::new_file::NewFile;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a mebibyte.
const MIB: usize = 1024 * 1024;

/// Reads a file; refuses one with more than `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let refused =
        |cause: io::Error| Error::failed("file_refused", format!("cannot send {}", path.display())).because(cause);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refused)?;
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() > bytes_max {
        let bound =
            if bytes_max < MIB { format!("{} KiB", bytes_max / 1024) } else { format!("{} MiB", bytes_max / MIB) };
        return Err(refused(io::Error::other(format!("it is longer than {bound}"))));
    }
    Ok(bytes)
}

/// Writes a new file of mode 0600; with `force` it replaces a regular file as a whole.
pub fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Error> {
    let unwritable = || Error::failed("file_unwritable", format!("cannot write {}", path.display()));
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(unwritable().because(cause)),
        Ok(found) if found.is_symlink() => {
            return Err(unwritable()
                .because("it is a link, and links are not followed")
                .hinting("-o names another file"));
        }
        Ok(found) if !found.is_file() => {
            return Err(unwritable().because("it is no regular file").hinting("-o names another file"));
        }
        Ok(_) if !force => {
            return Err(unwritable()
                .because("the file exists")
                .hinting("-o names another file, and --force replaces it"));
        }
        Ok(_) => {}
    }
    let mut file = NewFile::create(path, force)?;
    file.write(bytes)?;
    file.keep()
}

/// Returns the media type of a content, from its first bytes.
pub fn media_type(bytes: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 8] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"PK\x05\x06", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    match KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        Some((_, kind)) => kind,
        None if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() => TEXT,
        None => "application/octet-stream",
    }
}

/// Returns whether a media type is one of the images that models take.
pub fn is_image(media_type: &str) -> bool {
    media_type.starts_with("image/")
}

/// The media type of a text.
pub const TEXT: &str = "text/plain";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn media_type_comes_from_the_content() {
        for (bytes, kind) in [
            (b"\x89PNG\r\n\x1a\nrest".as_slice(), "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x10\0\0\0WAVEfmt ", "application/octet-stream"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"PK\x03\x04..", "application/zip"),
            (b"\x1f\x8b\x08", "application/gzip"),
            ("grüße\n".as_bytes(), TEXT),
            (b"", TEXT),
            (b"a\0b", "application/octet-stream"),
            (b"\xff\xfe", "application/octet-stream"),
        ] {
            assert_eq!(media_type(bytes), kind, "{bytes:?}");
        }
    }

    #[test]
    fn links_and_existing_files_are_not_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("kept"), "old").expect("written");
        symlink(at("kept"), at("link")).expect("linked");
        symlink(at("none"), at("dangling")).expect("linked");
        fs::create_dir(at("directory")).expect("made");
        for (name, force) in [
            ("kept", false),
            ("link", false),
            ("link", true),
            ("dangling", true),
            ("directory", true),
            ("no/file", true),
        ] {
            let error = write(&at(name), b"new", force).expect_err(name).report().expect("reported").error;
            assert_eq!(error.code, "file_unwritable", "{name}");
        }
        assert!(!at("none").exists());
        assert_eq!(fs::read(at("kept")).expect("there"), b"old");
        write(&at("kept"), b"new", true).expect("replaced");
        write(&at("fresh"), b"new", false).expect("written");
        assert_eq!(
            (fs::read(at("kept")).expect("there"), fs::read(at("fresh")).expect("there")),
            (b"new".to_vec(), b"new".to_vec())
        );
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 5, "no draft remains");
    }

    #[test]
    fn file_over_the_bound_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("big");
        fs::write(&path, b"12345").expect("written");
        assert_eq!(read(&path, 5).expect("fits").len(), 5);
        assert!(read(&path, 4).is_err());
        assert!(read(directory.path(), 5).is_err());
    }
}
