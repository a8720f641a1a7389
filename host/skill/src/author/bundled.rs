//! The skill that comes with the program. It has no signature: the operator signs it as their own.

use crate::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Its files: path, true for a program, text.
const FILES: [(&str, bool, &str); 4] = [
    ("skill.toml", false, include_str!("../../bundled/meeting-notes/skill.toml")),
    ("SKILL.md", false, include_str!("../../bundled/meeting-notes/SKILL.md")),
    ("assets/template.md", false, include_str!("../../bundled/meeting-notes/assets/template.md")),
    ("scripts/open-tasks", true, include_str!("../../bundled/meeting-notes/scripts/open-tasks")),
];

/// Writes it into a new directory.
///
/// # Errors
/// [`Error::Io`] if the directory is there, or a file cannot be written.
pub fn write(into: &Path) -> Result<(), Error> {
    fs::create_dir(into).map_err(|error| Error::io(into, error))?;
    for (path, is_program, text) in FILES {
        let full = into.join(path);
        let directory = full.parent().expect("a file of the directory has a parent");
        fs::create_dir_all(directory).map_err(|error| Error::io(directory, error))?;
        fs::write(&full, text).map_err(|error| Error::io(&full, error))?;
        let mode = fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 });
        fs::set_permissions(&full, mode).map_err(|error| Error::io(&full, error))?;
    }
    Ok(())
}
