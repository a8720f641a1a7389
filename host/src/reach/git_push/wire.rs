//! The protocol of `git-receive-pack` over HTTP: the branches of a server, one push to one branch, and the report.
//!
//! Pure. Never deletes a branch and never names a second one.

use super::history::Hash;
use super::shortened;
use std::collections::BTreeMap;

/// Characters of the name of a branch.
const BRANCH_CHARACTERS_MAX: usize = 200;

/// Returns whether a name is a branch in plain letters: no part is empty or begins or ends with a dot. A name of git with its place,
/// such as `refs/heads/main`, is none: the server would make `refs/heads/refs/heads/main` of it, and `main` would be ambiguous.
pub(super) fn is_branch(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with('.') && !part.ends_with(".lock")
    };
    name.len() <= BRANCH_CHARACTERS_MAX
        && name != "HEAD"
        && !name.split('/').next().is_some_and(|first| first.eq_ignore_ascii_case("refs"))
        && name.chars().all(is_plain)
        && !name.contains("..")
        && name.split('/').all(is_part)
}

/// Returns the branches and tags of a server.
pub(super) fn branches(mut body: &[u8]) -> Result<BTreeMap<String, Hash>, String> {
    let mut all = BTreeMap::new();
    while let Some(text) = next(&mut body)? {
        let (line, capabilities) = text.split_once('\0').unwrap_or((&text, ""));
        if capabilities
            .split(' ')
            .any(|one| one.starts_with("object-format=") && one.trim_end() != "object-format=sha1")
        {
            return Err("the repository has no SHA-1 names".to_owned());
        }
        if let Some((hash, name)) = line.trim_end().split_once(' ')
            && let Ok(hash) = hash.parse()
        {
            all.insert(name.to_owned(), hash);
        }
    }
    Ok(all)
}

/// Returns the body of a push: the one command, and the pack.
pub(super) fn push(old: &str, new: &Hash, branch: &str, pack: &[u8]) -> Vec<u8> {
    let command = format!("{old} {new} refs/heads/{branch}\0 report-status");
    let mut body = format!("{:04x}{command}0000", command.len() + 4).into_bytes();
    body.extend_from_slice(pack);
    body
}

/// The report of a server on one branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    Changed,
    /// The server refused the change, in its own words.
    Refused(String),
}

/// Reads the report of a server on one branch.
///
/// # Errors
/// Without a report, in words: then it is unknown if the branch changed.
pub(super) fn report(mut body: &[u8], branch: &str) -> Result<Report, String> {
    let (wanted, mut is_unpacked, mut is_ok) = (format!("ok refs/heads/{branch}"), false, false);
    while let Some(line) = next(&mut body)? {
        let line = line.trim_end();
        is_unpacked |= line == "unpack ok";
        is_ok |= line == wanted;
        if line.starts_with("ng ") || line.starts_with("unpack ") && line != "unpack ok" {
            return Ok(Report::Refused(format!("the server refused the push: {}", shortened(line))));
        }
    }
    if is_unpacked && is_ok {
        return Ok(Report::Changed);
    }
    Err("the server gave no report".to_owned())
}

/// Returns the next line with content; `None` at the end.
fn next(body: &mut &[u8]) -> Result<Option<String>, String> {
    let cut = || "the server does not answer as a server of git".to_owned();
    while !body.is_empty() {
        let length = body.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
        let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok()).ok_or_else(cut)?;
        let end = length.max(4);
        let content = body.get(4..end).ok_or_else(cut)?;
        *body = &body[end..];
        if length > 4 {
            return Ok(Some(String::from_utf8_lossy(content).into_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_branches() {
        for name in ["main", "feature/one", "v1.2", "feature/refs/one", "refs-of-mine", "heads/one"] {
            assert!(is_branch(name), "{name}");
        }
        for name in ["", "a b", "a..b", "/a", "a/", "-a", "a.lock", "a:b", "+a", "a\nb", ".a", "é"] {
            assert!(!is_branch(name), "{name}");
        }
        for name in ["refs/heads/main", "refs/tags/x", "refs/for/main", "refs/x", "refs", "Refs/heads/main", "HEAD"] {
            assert!(!is_branch(name), "{name}");
        }
    }

    #[test]
    fn push_has_one_command_and_a_good_report_names_its_branch() {
        let (old, new) = ("1".repeat(40), "2".repeat(40));
        let body = push(&old, &new.parse().expect("a hash"), "main", b"PACK");
        let (command, rest) =
            body.split_at(usize::from_str_radix(std::str::from_utf8(&body[..4]).expect("text"), 16).expect("hex"));
        assert_eq!(&command[4..], format!("{old} {new} refs/heads/main\0 report-status").as_bytes());
        assert_eq!(rest, b"0000PACK");
        assert_eq!(report(b"000eunpack ok\n0017ok refs/heads/main\n0000", "main"), Ok(Report::Changed));
        assert!(report(b"000eunpack ok\n0018ok refs/heads/other\n0000", "main").is_err());
        assert!(matches!(report(b"000eunpack ok\n001bng refs/heads/main hook0000", "main"), Ok(Report::Refused(_))));
    }
}
