//! A path below a workspace, parsed once. See [`crate::sessions::files`].

use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::start;
use ironclaw_text::{confusable, visible};

/// Longest path, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// Longest name in a path, in bytes; no file system allows more.
const NAME_BYTES_MAX: usize = 255;

const PATH_NAMES_MAX: usize = 32;

/// Names without a slash, none of them `.` or `..`. Without names it is the workspace itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath(Vec<String>);

impl FilePath {
    /// Parses a path that may exist. Its characters are free, because an agent may have chosen them.
    ///
    /// # Errors
    /// Refuses an absolute path, `..`, and a path over its bounds, with `file_path`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refused = |why: String| Err(refuse(text, &why));
        if text.starts_with('/') {
            return refused("it is absolute".to_owned());
        }
        let names: Vec<String> = text.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect();
        if names.iter().any(|name| name == "..") {
            return refused("`..` is not allowed".to_owned());
        }
        let is_long = |name: &String| name.len() > NAME_BYTES_MAX;
        if text.len() > PATH_BYTES_MAX || names.len() > PATH_NAMES_MAX || names.iter().any(is_long) {
            let bounds = format!("{PATH_BYTES_MAX} bytes and {PATH_NAMES_MAX} names of {NAME_BYTES_MAX} bytes");
            return refused(format!("a path has at most {bounds}"));
        }
        if text.contains('\0') {
            return refused("it has a NUL byte".to_owned());
        }
        Ok(Self(names))
    }

    /// Parses the path of a file that the host writes.
    ///
    /// # Errors
    /// Refuses it as [`Self::parse`] does, and a path without a name or with characters that a screen does not show.
    pub fn parse_new(text: &str) -> Result<Self, Refusal> {
        let path = Self::parse(text)?;
        if path.0.is_empty() || text.ends_with('/') {
            return Err(refuse(text, "it does not end with the name of a file"));
        }
        if text.chars().any(|character| character.is_control() || confusable::is_unseen(character)) {
            return Err(refuse(text, "it has a control character or an invisible one"));
        }
        Ok(path)
    }

    /// Returns the names of the directories above, and the name of the file; `None` for the workspace itself.
    pub fn split(&self) -> Option<(&[String], &str)> {
        self.0.split_last().map(|(name, above)| (above, name.as_str()))
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns the path as text; empty for the workspace itself.
    pub fn text(&self) -> String {
        self.0.join("/")
    }

    /// Returns the path for a sentence.
    pub fn shown(&self) -> String {
        if self.0.is_empty() { "the workspace".to_owned() } else { shown(&self.text()) }
    }
}

/// Returns a path for a person: as it is if each character is plainly visible, else in quotes with codes.
pub fn shown(path: &str) -> String {
    let marked = visible::name(path);
    let is_plain = !path.is_empty() && marked.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(path);
    if is_plain { path.to_owned() } else { marked }
}

fn refuse(text: &str, why: &str) -> Refusal {
    const SHOWN_CHARACTERS_MAX: usize = 200;
    let shown = shown(start(text, SHOWN_CHARACTERS_MAX));
    let refusal = Refusal::new(DenialCode::FilePath, format!("refused path {shown}: {why}"));
    refusal.hint("name a path below the workspace, such as notes/today.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_out_of_the_workspace_or_over_a_bound_is_refused() {
        let long = "a/".repeat(PATH_NAMES_MAX + 1);
        let (name, path) = ("n".repeat(NAME_BYTES_MAX + 1), "nnn/".repeat(PATH_BYTES_MAX));
        for text in ["/etc/passwd", "/workspace/a", "..", "a/../b", "a/..", "a\0b", &long, &name, &path] {
            let refused = FilePath::parse(text).expect_err(text);
            assert_eq!(refused.code, DenialCode::FilePath, "{text:?}");
        }
    }

    #[test]
    fn written_path_needs_a_visible_name() {
        for text in ["", ".", "a/", "a\nb", "a\u{1b}[2J", "gpj.\u{202e}exe", "a\u{200b}b", "\u{9b}31m/x"] {
            let refused = FilePath::parse_new(text).expect_err(text);
            assert_eq!(refused.code, DenialCode::FilePath, "{text:?}");
            let is_safe = |c: char| c != '\u{202e}' && c != '\u{200b}' && !c.is_control();
            assert!(refused.message.chars().all(is_safe), "{:?}", refused.message);
        }
        assert_eq!(FilePath::parse_new("a//./b c.txt").expect("a path").text(), "a/b c.txt");
        assert_eq!(FilePath::parse("a\nb").expect("an agent may have made it").text(), "a\nb");
        assert_eq!(FilePath::parse("").expect("the workspace").names(), &[] as &[String]);
    }

    #[test]
    fn plain_path_is_shown_as_it_is_and_another_with_codes() {
        assert_eq!(shown("notes/grüße 1.txt"), "notes/grüße 1.txt");
        let marked = shown("a\u{202e}b\n");
        assert!(marked.contains("U+202E") && marked.contains("U+000A") && marked.starts_with('"'), "{marked}");
    }
}
