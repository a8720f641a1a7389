//! Valid names of packages: at most an exact version, no path, no address, and no text that a client could read as an option.
//!
//! Never repairs a name. See `reach::packages::fetch`, which passes them to the clients.

use crate::reach::mcp_jail::fetcher::{Registry, Wanted};
use crate::registry::software::{npm_parts, pypi_name, pypi_parts};
use ironclaw_contract::seam::change::Packages;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::start;

/// Names in one change; a person reads no longer list.
pub(super) const NAMES_MAX: usize = 64;
/// Longest name, close to the registries' own limits.
const NAME_BYTES_MAX: usize = 128;
/// Suffixes by which npm takes a name for a file.
const ARCHIVES: [&str; 3] = [".tgz", ".tar", ".tar.gz"];

/// Refuses the first invalid or repeated name.
pub(super) fn refused(wanted: &Packages) -> Option<Refusal> {
    let count = wanted.names().count();
    if count > NAMES_MAX {
        let bound = Bound::new("packages of one agent", NAMES_MAX, count, "name fewer packages");
        return Some(Refusal::over(DenialCode::PackagesTooMany, bound));
    }
    let of_apt = wanted.apt.iter().filter(|name| !is_of_apt(name)).map(|name| (name, "apt"));
    let of_npm = wanted.npm.iter().filter(|name| !is_of_npm(name)).map(|name| (name, "npm"));
    let of_pypi = wanted.pypi.iter().filter(|name| !is_of_pypi(name)).map(|name| (name, "pypi"));
    if let Some((name, of)) = of_apt.chain(of_npm).chain(of_pypi).next() {
        let shown = start(name, NAME_BYTES_MAX);
        let hint = match of {
            "apt" => "a name has characters of a-z 0-9 + - . and begins with a letter or a digit; it has no version",
            "npm" => {
                "a name has characters of a-z 0-9 - . _, perhaps with a scope before it as in @scope/name, and an exact version after it \
                 as in name@1.2.3"
            }
            _ => {
                "a name has characters of A-Z a-z 0-9 - . _ with a letter or a digit at both ends, and an exact version after it as in \
                 name==1.2.3"
            }
        };
        return Some(
            Refusal::new(DenialCode::PackagesName, format!("{shown:?} is not the name of a package of {of}"))
                .hint(hint),
        );
    }
    let twice = |names: Vec<String>| {
        names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, n)| n.clone())
    };
    let of_npm = wanted.npm.iter().map(|name| npm_parts(name).0.to_owned()).collect();
    let of_pypi = wanted.pypi.iter().map(|name| pypi_name(pypi_parts(name).0)).collect();
    let name = twice(wanted.apt.clone()).or_else(|| twice(of_npm)).or_else(|| twice(of_pypi))?;
    Some(Refusal::new(DenialCode::PackagesName, format!("package {name:?} is named twice")))
}

/// Returns a package with a version, a range or a tag in the words of its client.
///
/// # Errors
/// Refuses an invalid name, and a range that a client could read as a file, an address or an option.
pub(super) fn with_range(wanted: &Wanted) -> Result<String, Refusal> {
    let Wanted { registry, name, version } = wanted;
    let (of, is_name) = match registry {
        Registry::Npm => ("npm", is_of_npm(name) && npm_parts(name).1.is_none()),
        Registry::Pypi => ("pypi", is_of_pypi(name) && pypi_parts(name).1.is_none()),
    };
    let version = version.as_deref().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-!^~<>=*|, ".contains(&byte);
    let begins = |first: char| first.is_ascii_alphanumeric() || "^~<>=!*".contains(first);
    let is_file = ARCHIVES.iter().any(|ending| version.ends_with(ending));
    let is_range = version.len() <= NAME_BYTES_MAX && version.bytes().all(plain) && !is_file;
    if !is_name || !is_range || !(version.is_empty() || version.starts_with(begins)) {
        let shown = start(&format!("{name} {version}"), NAME_BYTES_MAX).to_owned();
        let message = format!("{:?} is not the name of a package of {of} with a version", shown.trim_end());
        return Err(Refusal::new(DenialCode::PackagesName, message).hint("name a package of the registry"));
    }
    Ok(match (registry, version) {
        (_, "") => name.clone(),
        (Registry::Npm, version) => format!("{name}@{version}"),
        (Registry::Pypi, version) if version.starts_with(|first: char| first.is_ascii_alphanumeric()) => {
            format!("{name}=={version}")
        }
        (Registry::Pypi, version) => format!("{name}{version}"),
    })
}

/// Checks a name by Debian policy, section 5.6.1. With a `-` at its end, apt would remove the package.
fn is_of_apt(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+.-".contains(&b);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    (2..=NAME_BYTES_MAX).contains(&name.len()) && begins && name.bytes().all(plain) && !name.ends_with('-')
}

/// Checks a name by PEP 508 with an exact version, without extras, markers, wildcards and addresses.
fn is_of_pypi(text: &str) -> bool {
    let (name, version) = pypi_parts(text);
    let ends = |c: char| c.is_ascii_alphanumeric();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let is_version = |version: &str| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.bytes().all(|b| b.is_ascii_alphanumeric() || b".+!".contains(&b))
    };
    let is_file = name.ends_with(".whl") || ARCHIVES.iter().any(|ending| name.ends_with(ending));
    text.len() <= NAME_BYTES_MAX
        && (name.starts_with(ends) && name.ends_with(ends))
        && name.bytes().all(plain)
        && version.is_none_or(is_version)
        && !is_file
}

/// Returns whether a text is an exact version of npm: three numbers, and perhaps a suffix.
pub(super) fn is_version_of_npm(text: &str) -> bool {
    let (core, suffix) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let numbers: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numbers.len() == 3
        && numbers.iter().all(is_number)
        && suffix.bytes().all(|b| b.is_ascii_alphanumeric() || b"-+.".contains(&b))
}

fn is_of_npm(text: &str) -> bool {
    let (name, version) = npm_parts(text);
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
    let is_whole = text.len() <= NAME_BYTES_MAX && version.is_none_or(is_version_of_npm);
    is_whole && scope.is_none_or(part) && part(bare) && !is_file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(apt: &[&str], npm: &[&str]) -> Option<Refusal> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        refused(&Packages { apt: own(apt), npm: own(npm), ..Packages::default() })
    }

    #[test]
    fn name_that_a_client_could_misread_is_refused_with_the_name() {
        let long = "a".repeat(129);
        let short = [
            "-o", "-", "", "a", "jq=1.6", "jq:i386", "jq-", "./x.deb", "Jq", "jq;id", "jq id", "jq\n", "$(id)", "`id`",
            "jq|id", "jq&", "jq>x", "*", "jq*", "?jq", "~njq", "^jq$", "jq\0", "jqé", "+jq", ".jq",
        ];
        let longer = ["--allow-unauthenticated", "jq/stable", "/tmp/x.deb", "jq\u{202e}", &long];
        for name in [&short[..], &longer].concat() {
            let refusal = of(&["figlet", name], &[]).unwrap_or_else(|| panic!("{name:?} was taken"));
            assert_eq!(refusal.code, DenialCode::PackagesName);
            let shown = start(name, NAME_BYTES_MAX);
            assert!(refusal.message.contains(&format!("{shown:?}")) && refusal.message.contains("apt"), "{refusal}");
        }
        let short = [
            "-g", ".", "..", "./x", "../x", "/x", "~/x", "", "x@1", "x@latest", "x@^1", "x@1.2", "x@1.2.x", "x@@1.2.3",
            "file:x", "npm:x", "x.tgz", "x.tar", "@a", "@/x", "@a/", "@a/b/c", "@a/.b", "@.a/b", "@-a/b", "_x", "X",
            "x y", "x;y", "$(id)", "x\n", "é",
        ];
        let urls = ["user/repo", "github:user/repo", "git+https://h/x", "https://h/x.tgz", "alias@npm:x"];
        let longer = ["--ignore-scripts=false", "x@1.2.3 ||1", "@a/x.tar.gz", &long];
        for name in [&short[..], &urls, &longer].concat() {
            let refusal = of(&["figlet"], &["cowsay", name]).unwrap_or_else(|| panic!("{name:?} was taken"));
            assert_eq!(refusal.code, DenialCode::PackagesName);
            assert!(refusal.message.contains("npm"), "{refusal}");
        }
    }

    fn of_pypi(names: &[&str]) -> Option<Refusal> {
        let pypi = names.iter().map(|name| (*name).to_owned()).collect();
        refused(&Packages { pypi, ..Packages::default() })
    }

    #[test]
    fn name_that_pip_could_misread_is_refused_with_the_name() {
        let short = [
            "", "-r", ".", "./x", "../x", "/x", "x/y", "x y", "x;y", "x[extra]", "x>=1", "x==1.*", "x==", "x~=1.0",
            "x===1", "x==1;a", "x.whl", "x.tar.gz", "x_", "_x", "é",
        ];
        let urls = ["--index-url=http://x", "x @ https://h/x.whl", "https://h/x.whl", "git+https://h/x"];
        for name in [&short[..], &urls, &["x==1\n--pre"]].concat() {
            let refusal = of_pypi(&["good", name]).unwrap_or_else(|| panic!("{name:?} was taken"));
            assert_eq!(refusal.code, DenialCode::PackagesName, "{name:?}");
            assert!(refusal.message.contains("pypi") && refusal.message.contains(&format!("{name:?}")), "{refusal}");
        }
    }

    #[test]
    fn too_many_names_and_repeated_names_are_refused() {
        let many: Vec<String> = (0..=NAMES_MAX).map(|number| format!("p{number}")).collect();
        let refusal = refused(&Packages { apt: many, ..Packages::default() }).expect("refused");
        assert_eq!(refusal.code, DenialCode::PackagesTooMany);
        assert!(of(&["jq", "figlet", "jq"], &[]).is_some());
        assert!(of(&[], &["a", "a@1.2.3"]).is_some());
        assert!(of_pypi(&["a-b", "A_B==1.0"]).is_some());
    }

    #[test]
    fn range_that_a_client_could_misread_is_refused() {
        let with = |registry, name: &str, version: &str| {
            let version = (!version.is_empty()).then(|| version.to_owned());
            with_range(&Wanted { registry, name: name.to_owned(), version })
        };
        for (registry, name, version, wanted) in [
            (Registry::Npm, "@a/b", "^1", "@a/b@^1"),
            (Registry::Npm, "b", ">=1.2 <2 || 3.x", "b@>=1.2 <2 || 3.x"),
            (Registry::Npm, "b", "next", "b@next"),
            (Registry::Npm, "b", "", "b"),
            (Registry::Pypi, "b", "1.2", "b==1.2"),
            (Registry::Pypi, "b", ">=1,<2", "b>=1,<2"),
            (Registry::Pypi, "b", "~=1.4", "b~=1.4"),
        ] {
            assert_eq!(with(registry, name, version).as_deref(), Ok(wanted), "{name} {version}");
        }
        for (registry, name, version) in [
            (Registry::Npm, "b", "./x"),
            (Registry::Npm, "b", "."),
            (Registry::Npm, "b", "-x"),
            (Registry::Npm, "b", "x.tgz"),
            (Registry::Npm, "b", "npm:c"),
            (Registry::Npm, "b", "user/repo"),
            (Registry::Npm, "b@1.0.0", "1"),
            (Registry::Npm, "-g", ""),
            (Registry::Pypi, "b", "==1; python_version"),
            (Registry::Pypi, "b", "@ file"),
            (Registry::Pypi, "--pre", ""),
            (Registry::Pypi, "b", "==1\n--pre"),
        ] {
            assert!(with(registry, name, version).is_err(), "{name} {version}");
        }
    }

    #[test]
    fn ordinary_names_are_taken() {
        assert_eq!(
            of(
                &["jq", "libstdc++6", "g++", "python3.11", "0ad", "7zip"],
                &["cowsay", "@types/node", "lodash.merge", "a_b", "cowsay2@1.2.3", "@a/b@10.0.0-rc.1+x"]
            ),
            None
        );
        assert_eq!(of_pypi(&["mcp-server-time", "Jinja2", "zope.interface==6.0", "a==1!2.0rc1+local.1"]), None);
    }
}
