//! The failures of packages, with their codes and remedies.

use crate::failure::Error;
use ironclaw_skill::Error as Cause;
use std::path::Path;

/// Returns the failure of work on an object.
pub fn about(object: &Path, cause: Cause) -> Error {
    let (code, hint) = match &cause {
        Cause::Manifest { .. } => ("skill_malformed", "correct the field; `ironctl skill lint DIR` checks a directory"),
        Cause::Path { .. } => ("skill_path", "a package has SKILL.md, and files in scripts/, references/ and assets/"),
        Cause::File { .. } => ("skill_files", "pack the directory again, or get the package again"),
        Cause::TooLarge(_) => ("skill_too_large", "leave out files, or split the skill"),
        Cause::Unsigned(_) => ("skill_unsigned", ""),
        Cause::Signature(_) => ("skill_signature", "get the package and its signature again from their author"),
        Cause::Comment { .. } => ("skill_comment", "the author signs it again with `ironctl skill sign`"),
        Cause::Io { .. } => ("skill_file", ""),
    };
    match cause {
        Cause::Io { path, source } => Error::failed(code, format!("cannot read or write {path}")).because(source),
        other => Error::failed(code, object.display().to_string()).because(other).hinting(hint),
    }
}
