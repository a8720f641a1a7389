//! Writes the files of an archive into a new directory.

use super::{Entry, Error, Sink};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const DIRECTORY_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o444;
const PROGRAM_MODE: u32 = 0o555;

/// A new directory, with the file that is being written.
pub(super) struct Directory {
    root: PathBuf,
    open: Option<(File, PathBuf)>,
}

impl Directory {
    pub(super) fn create(root: &Path) -> Result<Self, Error> {
        make(root)?;
        Ok(Self { root: root.to_owned(), open: None })
    }
}

impl Sink for Directory {
    fn begin(&mut self, entry: &Entry) -> Result<(), Error> {
        for (end, _) in entry.path.match_indices('/') {
            let directory = self.root.join(&entry.path[..end]);
            // Every directory below the root is ours: the root is new, and no entry is a link.
            if !directory.is_dir() {
                make(&directory)?;
            }
        }
        let path = self.root.join(&entry.path);
        let mode = if entry.is_program { PROGRAM_MODE } else { FILE_MODE };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| Error::io(&path, error))?;
        file.set_permissions(Permissions::from_mode(mode)).map_err(|error| Error::io(&path, error))?;
        self.open = Some((file, path));
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (file, path) = self.open.as_mut().expect("begin comes before piece");
        file.write_all(bytes).map_err(|error| Error::io(path, error))
    }

    fn end(&mut self) -> Result<(), Error> {
        self.open = None;
        Ok(())
    }
}

fn make(directory: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().mode(DIRECTORY_MODE).create(directory);
    // The mask of the process must not close it to the jail.
    let made = made.and_then(|()| fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE)));
    made.map_err(|error| Error::io(directory, error))
}
