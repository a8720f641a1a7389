//! The files of one directory, without its subdirectories.
//!
//! Follows no link in the directory, and reads regular files only.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Bytes of a file that are read.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// Files of a listing.
const FILES_MAX: usize = 200;

/// A directory whose files the server shows.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Creates the view of a directory.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the names and sizes of the regular files, one a line in the order of their names.
    ///
    /// # Errors
    /// A sentence if the directory cannot be read.
    pub fn list(&self) -> Result<String, String> {
        let entries = fs::read_dir(&self.path).map_err(|error| format!("cannot list the directory: {error}"))?;
        let mut lines: Vec<String> = Vec::new();
        for entry in entries.flatten() {
            // The metadata of the entry itself: a link is no regular file.
            let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
            // Only a file with a name in UTF-8 can be read by its name.
            let Ok(name) = entry.file_name().into_string() else { continue };
            lines.push(format!("{name} ({} bytes)", metadata.len()));
        }
        lines.sort();
        let more = lines.len().saturating_sub(FILES_MAX);
        lines.truncate(FILES_MAX);
        if more > 0 {
            lines.push(format!("and {more} more files"));
        }
        Ok(if lines.is_empty() { "the directory has no files".to_owned() } else { lines.join("\n") })
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// A sentence if the name has a path, if the file is no regular file, too long or no text, or if it cannot be read.
    pub fn read(&self, name: &str) -> Result<String, String> {
        let path = self.path.join(plain(name)?);
        let unreadable = |error| format!("cannot read {name:?}: {error}");
        let listed = fs::symlink_metadata(&path).map_err(unreadable)?;
        if !listed.is_file() {
            return Err(format!("{name:?} is no regular file; links are not followed"));
        }
        let file = File::open(&path).map_err(unreadable)?;
        let opened = file.metadata().map_err(unreadable)?;
        // The name may have become a link since: then another file was opened.
        if (opened.dev(), opened.ino()) != (listed.dev(), listed.ino()) {
            return Err(format!("{name:?} was replaced while it was read: try again"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(format!("{name:?} has over {FILE_BYTES_MAX} bytes"));
        }
        String::from_utf8(bytes).map_err(|_| format!("{name:?} is no text in UTF-8"))
    }
}

/// Returns the name as a path of one part.
fn plain(name: &str) -> Result<&Path, String> {
    let path = Path::new(name);
    let mut parts = path.components();
    let is_plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    if !is_plain || name.contains('\0') {
        return Err(format!("{name:?} is no name of a file in the directory: give one name of `list_files`"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn directory() -> (tempfile::TempDir, Directory) {
        let above = tempfile::tempdir().expect("a temporary directory");
        let path = above.path().join("files");
        fs::create_dir_all(path.join("below")).expect("made");
        fs::write(above.path().join("secret"), "secret").expect("written");
        fs::write(path.join("a.txt"), "hello").expect("written");
        fs::write(path.join("below/b.txt"), "b").expect("written");
        symlink("../secret", path.join("out")).expect("linked");
        symlink("a.txt", path.join("within")).expect("linked");
        (above, Directory::new(path))
    }

    #[test]
    fn only_regular_files_are_listed_and_read() {
        let (_above, directory) = directory();
        assert_eq!(directory.list(), Ok("a.txt (5 bytes)".to_owned()));
        assert_eq!(directory.read("a.txt"), Ok("hello".to_owned()));
        for name in ["out", "within", "below"] {
            assert!(directory.read(name).expect_err("refused").contains("no regular file"), "{name}");
        }
    }

    #[test]
    fn name_with_a_path_is_refused() {
        let (above, directory) = directory();
        let absolute = above.path().join("secret").display().to_string();
        for name in ["", ".", "..", "../secret", "./a.txt", "below/b.txt", "a.txt/", "/", "a\0", &absolute] {
            assert!(directory.read(name).expect_err("refused").contains("list_files"), "{name:?}");
        }
    }

    #[test]
    fn long_file_and_file_without_text_are_refused() {
        let (_above, directory) = directory();
        fs::write(directory.path.join("long"), vec![b'x'; FILE_BYTES_MAX + 1]).expect("written");
        fs::write(directory.path.join("bytes"), [0xff, 0xfe]).expect("written");
        assert!(directory.read("long").expect_err("refused").contains("bytes"));
        assert!(directory.read("bytes").expect_err("refused").contains("UTF-8"));
        assert!(directory.read("missing").expect_err("refused").contains("missing"));
    }
}
