//! Valid names of packages: no version, no path, no address, and no text that a client could read as an option.
//!
//! Never repairs a name. See `packages::fetch`, which passes them to the clients.

use super::NAMES_MAX;
use crate::refusal::Refusal;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::Packages;

/// Longest name, close to the registries' own limits.
const NAME_BYTES_MAX: usize = 128;
/// Suffixes by which npm takes a name for a file.
const ARCHIVES: [&str; 3] = [".tgz", ".tar", ".tar.gz"];

/// Refuses the first invalid or repeated name.
pub(super) fn refused(wanted: &Packages) -> Option<Refusal> {
    if wanted.apt.len() + wanted.npm.len() > NAMES_MAX {
        let message = format!("{} packages are more than {NAMES_MAX}", wanted.apt.len() + wanted.npm.len());
        return Some(Refusal::new(DenialCode::PackagesTooMany, message));
    }
    let of_apt = wanted.apt.iter().filter(|name| !is_of_apt(name)).map(|name| (name, "apt"));
    let of_npm = wanted.npm.iter().filter(|name| !is_of_npm(name)).map(|name| (name, "npm"));
    if let Some((name, of)) = of_apt.chain(of_npm).next() {
        let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
        let hint = match of {
            "apt" => "a name has characters of a-z 0-9 + - . and begins with a letter or a digit; it has no version",
            _ => {
                "a name has characters of a-z 0-9 - . _, perhaps with a scope before it as in @scope/name; it has no version"
            }
        };
        return Some(
            Refusal::new(DenialCode::PackagesName, format!("{shown:?} is not the name of a package of {of}"))
                .hint(hint),
        );
    }
    let twice = |names: &[String]| {
        names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, n)| n.clone())
    };
    let name = twice(&wanted.apt).or_else(|| twice(&wanted.npm))?;
    Some(Refusal::new(DenialCode::PackagesName, format!("package {name:?} is named twice")))
}

/// Checks a name by Debian policy, section 5.6.1. With a `-` at its end, apt would remove the package.
fn is_of_apt(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+.-".contains(&b);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    (2..=NAME_BYTES_MAX).contains(&name.len()) && begins && name.bytes().all(plain) && !name.ends_with('-')
}

fn is_of_npm(name: &str) -> bool {
    let (scope, bare) = match name.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, bare)) => (Some(scope), bare),
            None => return false,
        },
        None => (None, name),
    };
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b);
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) && part.bytes().all(plain)
    };
    let is_file = ARCHIVES.iter().any(|ending| name.ends_with(ending));
    name.len() <= NAME_BYTES_MAX && scope.is_none_or(part) && part(bare) && !is_file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(apt: &[&str], npm: &[&str]) -> Option<Refusal> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        refused(&Packages { apt: own(apt), npm: own(npm) })
    }

    #[test]
    fn name_that_a_client_could_misread_is_refused_with_the_name() {
        let long = "a".repeat(129);
        for name in [
            "-o",
            "--allow-unauthenticated",
            "-",
            "",
            "a",
            "jq=1.6",
            "jq/stable",
            "jq:i386",
            "jq-",
            "./x.deb",
            "/tmp/x.deb",
            "Jq",
            "jq;id",
            "jq id",
            "jq\n",
            "$(id)",
            "`id`",
            "jq|id",
            "jq&",
            "jq>x",
            "*",
            "jq*",
            "?jq",
            "~njq",
            "^jq$",
            "jq\0",
            "jq\u{202e}",
            "jqé",
            "+jq",
            ".jq",
            &long,
        ] {
            let refusal = of(&["figlet", name], &[]).unwrap_or_else(|| panic!("{name:?} was taken"));
            assert_eq!(refusal.code, DenialCode::PackagesName);
            let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
            assert!(refusal.message.contains(&format!("{shown:?}")) && refusal.message.contains("apt"), "{refusal}");
        }
        for name in [
            "-g",
            "--ignore-scripts=false",
            ".",
            "..",
            "./x",
            "../x",
            "/x",
            "~/x",
            "",
            "x@1",
            "x@latest",
            "x@^1",
            "user/repo",
            "github:user/repo",
            "git+https://h/x",
            "https://h/x.tgz",
            "file:x",
            "npm:x",
            "alias@npm:x",
            "x.tgz",
            "@a/x.tar.gz",
            "x.tar",
            "@a",
            "@/x",
            "@a/",
            "@a/b/c",
            "@a/.b",
            "@.a/b",
            "@-a/b",
            "_x",
            "X",
            "x y",
            "x;y",
            "$(id)",
            "x\n",
            "é",
            &long,
        ] {
            let refusal = of(&["figlet"], &["cowsay", name]).unwrap_or_else(|| panic!("{name:?} was taken"));
            assert_eq!(refusal.code, DenialCode::PackagesName);
            assert!(refusal.message.contains("npm"), "{refusal}");
        }
    }

    #[test]
    fn too_many_names_and_repeated_names_are_refused() {
        let many: Vec<String> = (0..=NAMES_MAX).map(|number| format!("p{number}")).collect();
        let refusal = refused(&Packages { apt: many, npm: Vec::new() }).expect("refused");
        assert_eq!(refusal.code, DenialCode::PackagesTooMany);
        assert!(of(&["jq", "figlet", "jq"], &[]).is_some());
        assert!(of(&[], &["a", "a"]).is_some());
    }

    #[test]
    fn ordinary_names_are_taken() {
        assert_eq!(
            of(
                &["jq", "libstdc++6", "g++", "python3.11", "0ad", "7zip"],
                &["cowsay", "@types/node", "lodash.merge", "a_b"]
            ),
            None
        );
    }
}
