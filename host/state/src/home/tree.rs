//! The removal of directories with untrusted content.
//!
//! Never follows a link. See `packages` of the host and `session` of the host.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a directory of any depth. It moves each level up and removes it there, so neither the stack nor the number of
/// descriptors grows with the depth. Links are removed, never followed.
pub fn remove_tree(top: &Path) -> io::Result<()> {
    match top.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return fs::remove_file(top),
        Ok(_) => {}
    }
    let mut moved = 0u64;
    open_up(top)?;
    loop {
        let mut empty = true;
        for entry in fs::read_dir(top)? {
            let entry = entry?;
            empty = false;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                fs::remove_file(&path)?;
                continue;
            }
            open_up(&path)?;
            for inner in fs::read_dir(&path)? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    open_up(&inner.path())?;
                    let to = loop {
                        moved += 1;
                        let to = top.join(format!(".removed-{moved}"));
                        if to.symlink_metadata().is_err() {
                            break to;
                        }
                    };
                    fs::rename(inner.path(), to)?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(&path)?;
        }
        if empty {
            return fs::remove_dir(top);
        }
    }
}

/// Gives the owner all rights to a directory; without them it could not be emptied.
fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_any_depth_is_removed_and_nothing_behind_a_link() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let kept = directory.path().join("kept");
        std::fs::write(&kept, "x").expect("written");
        let top = directory.path().join("top");
        std::fs::create_dir(&top).expect("made");
        std::os::unix::fs::symlink(directory.path(), top.join("link")).expect("linked");
        // Deeper than the longest path: the directories are made from within, as a hostile agent could.
        let made = std::process::Command::new("sh")
            .args([
                "-c",
                "for i in $(seq 1 1500); do mkdir abcdefgh && cd -P abcdefgh || exit 1; done; mkdir -m 000 shut",
            ])
            .current_dir(&top)
            .status();
        assert!(made.is_ok_and(|made| made.success()));
        remove_tree(&top).expect("removed");
        assert!(!top.exists() && kept.exists());
        remove_tree(&top).expect("a second call does nothing");
    }
}
