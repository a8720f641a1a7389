//! The paths of a package: `skill.toml`, `SKILL.md`, and files in `scripts/`, `references/` and `assets/`.
//!
//! Never repairs a path. A file system that ignores case or the Unicode form of a name gets no two paths that it takes for one.

use crate::{DIRECTORIES, Error, FILES_MAX, INSTRUCTIONS, MANIFEST};
use ironclaw_text::confusable::is_unseen;
use std::collections::BTreeMap;
use unicode_normalization::UnicodeNormalization;

/// Bytes of a path. A header of tar has room for no more.
pub const PATH_BYTES_MAX: usize = 255;
pub const PARTS_MAX: usize = 8;
/// Characters of a path in an error.
const SHOWN_CHARACTERS_MAX: usize = 100;

/// Checks one path.
///
/// # Errors
/// [`Error::Path`] with the reason.
pub fn check(path: &str) -> Result<(), Error> {
    reason(path).map_err(|what| refused(path, what))
}

pub(crate) fn refused(path: &str, what: &'static str) -> Error {
    Error::Path { path: path.chars().take(SHOWN_CHARACTERS_MAX).collect(), what }
}

fn reason(path: &str) -> Result<(), &'static str> {
    if path.len() > PATH_BYTES_MAX {
        return Err("the path is longer than 255 bytes");
    }
    if path.starts_with('/') {
        return Err("the path is absolute");
    }
    if path.chars().any(|c| c.is_control() || is_unseen(c)) {
        return Err("the path has a character that is invisible, reorders text or controls a terminal");
    }
    if path.contains('\\') {
        return Err("the path has a backslash");
    }
    let parts: Vec<&str> = path.split('/').collect();
    for part in &parts {
        match *part {
            ".." => return Err("the path leaves the package"),
            "" | "." => return Err("the path has an empty part"),
            part if part.trim() != part => return Err("a part of the path begins or ends with a space"),
            part => ironclaw_text::file::check_name(part)?,
        }
    }
    if parts.len() > PARTS_MAX {
        return Err("the path has more than 8 parts");
    }
    match parts.as_slice() {
        [MANIFEST | INSTRUCTIONS] => Ok(()),
        [directory, _, ..] if DIRECTORIES.contains(directory) => Ok(()),
        _ => Err("the file is not in scripts/, references/ or assets/"),
    }
}

#[cfg(feature = "author")]
pub(crate) const DIRECTORY_OF_SCRIPTS: &str = "scripts/";

/// The paths that were seen.
#[derive(Debug, Default)]
pub struct Paths {
    /// The path and each of its directories, by the form that a file system may take for it. True for a file.
    seen: BTreeMap<String, (String, bool)>,
    files: usize,
}

impl Paths {
    /// Checks and adds the path of a file.
    ///
    /// # Errors
    /// [`Error::Path`] for a path that no package may have, and one that a file system may take for an earlier one; [`Error::TooLarge`]
    /// for too many.
    pub fn add(&mut self, path: &str) -> Result<(), Error> {
        check(path)?;
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(Error::TooLarge(format!("it has more than {FILES_MAX} files")));
        }
        for (end, _) in path.match_indices('/') {
            self.add_part(path, &path[..end], false)?;
        }
        self.add_part(path, path, true)
    }

    /// Adds the path of a file if [`Paths::add`] would, and changes nothing otherwise. Returns whether it did.
    #[cfg(feature = "author")]
    pub(crate) fn try_add(&mut self, path: &str) -> bool {
        let is_free = |part: &str| match self.seen.get(&folded(part)) {
            Some((other, is_file)) => other == part && !is_file && part.len() < path.len(),
            None => true,
        };
        let is_apart = path.match_indices('/').all(|(end, _)| is_free(&path[..end])) && is_free(path);
        is_apart && self.add(path).is_ok()
    }

    fn add_part(&mut self, path: &str, part: &str, is_file: bool) -> Result<(), Error> {
        let Some((other, is_other_file)) = self.seen.insert(folded(part), (part.to_owned(), is_file)) else {
            return Ok(());
        };
        match (other == part, is_file, is_other_file) {
            (true, false, false) => Ok(()),
            (true, true, true) => Err(refused(path, "the path is there twice")),
            (true, ..) => Err(refused(path, "the path is that of a file and of a directory")),
            (false, ..) => Err(refused(path, "the path differs from another one by case or by Unicode form only")),
        }
    }
}

/// Returns the form of a path that is equal for paths which a file system may take for one.
fn folded(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    // Upper case first: ß and ss have the same. Twice: folding may make characters that compose.
    let once: String = path.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    once.nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_outside_of_the_package_is_refused() {
        let long = format!("assets/{}", "n".repeat(PATH_BYTES_MAX));
        let deep = format!("assets/{}x", "d/".repeat(PARTS_MAX));
        let outside = ["", "/etc/passwd", "../x", "scripts/../../x", "scripts/..", "./SKILL.md", "C:/x", &long, &deep];
        let elsewhere = ["scripts//a", "scripts/", "scripts", "README.md", "skill.md", "bin/a", "Scripts/a"];
        let hidden = ["scripts/a\0", "scripts/a\nb", "scripts/gpj.\u{202e}hs", "scripts/a\u{200b}"];
        for path in [&outside[..], &elsewhere, &hidden, &["scripts\\a", "scripts/ a"]].concat() {
            assert!(matches!(check(path), Err(Error::Path { .. })), "{path:?}");
        }
        for path in ["skill.toml", "SKILL.md", "scripts/a.sh", "references/für/日本.md", "assets/.keep", "assets/a b"]
        {
            assert!(check(path).is_ok(), "{path:?}");
        }
    }

    #[test]
    fn path_that_a_file_system_takes_for_another_is_refused() {
        for (one, other, what) in [
            ("scripts/a", "scripts/a", "twice"),
            ("scripts/a", "scripts/A", "case"),
            ("references/A/x", "references/a/y", "case"),
            ("references/\u{e9}", "references/e\u{301}", "Unicode form"),
            ("references/ﬁ", "references/fi", "Unicode form"),
            ("references/Straße", "references/STRASSE", "Unicode form"),
            ("references/a", "references/a/b", "a file and of a directory"),
            ("references/a/b", "references/a", "a file and of a directory"),
        ] {
            let mut paths = Paths::default();
            paths.add(one).expect("the first");
            let error = paths.add(other).expect_err(other).to_string();
            assert!(error.contains(what), "{error}");
        }
        let mut paths = Paths::default();
        for number in 0..FILES_MAX {
            paths.add(&format!("assets/{number}")).expect("within the bound");
        }
        assert!(matches!(paths.add("assets/x"), Err(Error::TooLarge(_))));
    }
}
