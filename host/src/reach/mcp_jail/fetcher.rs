//! Commands that fetch a program of a registry and start it, such as `npx -y NAME@latest` and `uvx NAME`: their packages and their program.
//!
//! Pure, and starts nothing. An option that changes what would run is named, and not guessed. See `reach::mcp_jail::command`.

use ironclaw_text::shell::quoted;
use std::fmt;

/// The registry of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    Npm,
    Pypi,
}

/// A package as a command names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub registry: Registry,
    pub name: String,
    /// The version, a range or a tag, as written; `None` for the newest.
    pub version: Option<String>,
}

/// A command that fetches its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The package of the program, and those that the command names beside it.
    pub packages: Vec<Wanted>,
    /// The program, if the command names it beside the package.
    pub program: Option<String>,
    pub arguments: Vec<String>,
}

/// The words of one fetcher.
struct Grammar {
    registry: Registry,
    /// Options without a value that change nothing here.
    plain: &'static [&'static str],
    /// Options with a value that change nothing here, such as the version of the interpreter.
    ignored: &'static [&'static str],
    /// Options that name the package of the program.
    package: &'static [&'static str],
    /// Options that name a further package.
    with: &'static [&'static str],
    /// Whether the first word is a package unless an option names it.
    first_is_package: bool,
}

const NPX: Grammar = Grammar {
    registry: Registry::Npm,
    plain: &["-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-online", "--prefer-offline", "--bun"],
    ignored: &["--loglevel"],
    package: &["-p", "--package"],
    with: &[],
    first_is_package: true,
};

const UVX: Grammar = Grammar {
    registry: Registry::Pypi,
    plain: &[
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "--isolated",
        "--refresh",
        "--no-cache",
        "-n",
        "--no-progress",
        "--native-tls",
    ],
    ignored: &["-p", "--python", "--color", "--cache-dir"],
    package: &["--from", "--spec"],
    with: &["--with"],
    first_is_package: true,
};

/// Fetchers, with the words before the package.
const FETCHERS: [(&[&str], &Grammar); 13] = [
    (&["npx"], &NPX),
    (&["bunx"], &NPX),
    (&["pnpx"], &NPX),
    (&["npm", "exec"], &NPX),
    (&["npm", "x"], &NPX),
    (&["pnpm", "dlx"], &NPX),
    (&["yarn", "dlx"], &NPX),
    (&["bun", "x"], &NPX),
    (&["uvx"], &UVX),
    (&["uv", "x"], &UVX),
    (&["uv", "tool", "run"], &UVX),
    (&["uv", "run"], &UV_RUN),
    (&["pipx", "run"], &UVX),
];

/// `uv run` starts a program of a project unless an option names the package.
const UV_RUN: Grammar = Grammar { package: &["--with"], with: &[], first_is_package: false, ..UVX };

/// The scope of the reference servers of the protocol at npm.
const REFERENCE_SCOPE: &str = "@modelcontextprotocol/";

/// Reads a command; `None` if it is no known fetcher.
///
/// # Errors
/// The reason why a fetcher cannot be read, in words.
pub fn read(command: &[String]) -> Option<Result<Fetched, String>> {
    let name = command.first()?.rsplit('/').next()?;
    let name = name.strip_suffix(".cmd").or(name.strip_suffix(".exe")).unwrap_or(name);
    let (rest, grammar) = FETCHERS.iter().find_map(|(words, grammar)| {
        let (first, more) = words.split_first()?;
        if *first != name {
            return None;
        }
        let plain = command[1..].iter().take_while(|word| grammar.plain.contains(&word.as_str())).count();
        let rest = &command[1 + plain..];
        let begins = rest.len() >= more.len() && more.iter().zip(rest).all(|(word, given)| word == given);
        begins.then(|| (&rest[more.len()..], *grammar))
    })?;
    Some(grammar.read(name, rest))
}

impl Grammar {
    fn read(&self, fetcher: &str, words: &[String]) -> Result<Fetched, String> {
        let (mut named, mut with) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        let mut rest = Vec::new();
        while let Some(word) = words.next() {
            let (option, value) = match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let mut value_of = || {
                value
                    .clone()
                    .or_else(|| words.next().cloned())
                    .ok_or_else(|| format!("its option {option} has no value"))
            };
            if word == "--" {
                rest.extend(words.by_ref().cloned());
            } else if self.plain.contains(&option) {
                continue;
            } else if self.ignored.contains(&option) {
                value_of()?;
            } else if self.package.contains(&option) {
                named.push(self.package(&value_of()?)?);
            } else if self.with.contains(&option) {
                with.push(self.package(&value_of()?)?);
            } else if word.starts_with('-') {
                return Err(format!("the option {option} of {fetcher} has no counterpart here"));
            } else {
                rest.push(word.clone());
                rest.extend(words.by_ref().cloned());
            }
        }
        let Some((first, arguments)) = rest.split_first() else { return Err(format!("{fetcher} names no package")) };
        let program = if named.is_empty() {
            if !self.first_is_package {
                return Err("it runs a project of a directory: name the package of the server".to_owned());
            }
            named.push(self.package(first)?);
            None
        } else {
            Some(first.clone())
        };
        named.extend(with);
        Ok(Fetched { packages: named, program, arguments: arguments.to_vec() })
    }

    /// Reads a package with its version.
    fn package(&self, text: &str) -> Result<Wanted, String> {
        if text.contains("://") || text.contains("git+") || text.contains(" @ ") || text.starts_with(['.', '/', '~']) {
            return Err(format!("{text:?} is no package of a registry"));
        }
        if text.contains('[') {
            return Err(format!("{text:?} has an extra; name the packages of the extra by themselves, with --with"));
        }
        let (name, version) = match self.registry {
            Registry::Npm => match text.rsplit_once('@').filter(|(name, _)| !name.is_empty()) {
                Some((name, version)) => (name, Some(version)),
                None => (text, None),
            },
            Registry::Pypi => {
                let at = text.find(['@', '=', '<', '>', '~', '!']).unwrap_or(text.len());
                let (name, version) = text.split_at(at);
                (name, (!version.is_empty()).then(|| version.strip_prefix('@').unwrap_or(version)))
            }
        };
        let version = version.map(str::trim).filter(|version| !version.is_empty() && *version != "latest");
        Ok(Wanted { registry: self.registry, name: name.trim().to_owned(), version: version.map(str::to_owned) })
    }
}

impl Wanted {
    /// Returns the option of `ironctl mcp add` for it. A range or a tag is left out, because only an exact version has an option.
    fn option(&self) -> String {
        let (option, between) = match self.registry {
            Registry::Npm => ("--npm", "@"),
            Registry::Pypi => ("--pypi", "=="),
        };
        let exact = self.exact().map(|version| format!("{between}{version}"));
        format!("{option} {}{}", self.name, exact.unwrap_or_default())
    }

    /// Returns the version if it is an exact one.
    pub fn exact(&self) -> Option<&str> {
        let version = self.version.as_deref()?;
        let version = version.strip_prefix("==").unwrap_or(version);
        let is_exact = match self.registry {
            Registry::Npm => {
                let core = version.split(['-', '+']).next().unwrap_or_default();
                core.split('.').count() == 3
                    && core.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
            }
            Registry::Pypi => version.starts_with(|first: char| first.is_ascii_digit()),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-!".contains(&byte);
        (is_exact && version.bytes().all(plain)).then_some(version)
    }

    /// Returns the usual name of its program: that of the package, without the scope.
    fn usual_program(&self) -> String {
        let bare = self.name.rsplit('/').next().unwrap_or(&self.name);
        match self.name.starts_with(REFERENCE_SCOPE) && bare.starts_with("server-") {
            true => format!("mcp-{bare}"),
            false => bare.to_owned(),
        }
    }
}

impl Fetched {
    /// Returns the program that it starts, by the usual name if the command does not name it.
    pub fn usual_program(&self) -> String {
        self.program.clone().or_else(|| Some(self.packages.first()?.usual_program())).unwrap_or_default()
    }
}

impl fmt::Display for Fetched {
    /// Writes the words of `ironctl mcp add` in the place of the command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for package in &self.packages {
            write!(f, "{} ", package.option())?;
        }
        write!(f, "-- {}", self.usual_program())?;
        self.arguments.iter().try_for_each(|word| write!(f, " {}", quoted(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn fetcher_becomes_packages_a_program_and_arguments() {
        for (line, wanted) in [
            ("npx b", "--npm b -- b"),
            ("npx -y @a/b@1.2.3 /x", "--npm @a/b@1.2.3 -- b /x"),
            ("npx -y @a/b@latest", "--npm @a/b -- b"),
            ("npx -y b@1", "--npm b -- b"),
            ("npx --yes b@^1.2", "--npm b -- b"),
            ("npx.cmd -y b", "--npm b -- b"),
            ("/usr/bin/npx -y b", "--npm b -- b"),
            ("npx -y -p b@2.0.0 c --stdio", "--npm b@2.0.0 -- c --stdio"),
            ("npx --package=b -- c -p 1", "--npm b -- c -p 1"),
            (
                "npx -y @modelcontextprotocol/server-memory@1 /x",
                "--npm @modelcontextprotocol/server-memory -- mcp-server-memory /x",
            ),
            ("npm exec -y b@1.0.0 -- c", "--npm b@1.0.0 -- b -- c"),
            ("npm --yes exec b", "--npm b -- b"),
            ("pnpm dlx b", "--npm b -- b"),
            ("bunx b@next", "--npm b -- b"),
            ("uvx b", "--pypi b -- b"),
            ("uvx b@latest --x", "--pypi b -- b --x"),
            ("uvx b@1.2", "--pypi b==1.2 -- b"),
            ("uvx b==1.2", "--pypi b==1.2 -- b"),
            ("uvx b>=1", "--pypi b -- b"),
            ("uvx --python 3.12 --from b==1.0 c", "--pypi b==1.0 -- c"),
            ("uvx --with d b", "--pypi b --pypi d -- b"),
            ("uv tool run b", "--pypi b -- b"),
            ("uv run --with b c serve", "--pypi b -- c serve"),
            ("pipx run --spec b==1 c", "--pypi b==1 -- c"),
            ("pipx run b", "--pypi b -- b"),
        ] {
            let read = read(&words(line)).unwrap_or_else(|| panic!("{line}")).expect(line);
            assert_eq!(read.to_string(), wanted, "{line}");
        }
    }

    #[test]
    fn fetcher_that_cannot_be_read_has_a_reason() {
        for (line, reason) in [
            ("npx", "no package"),
            ("npx -y", "no package"),
            ("npx -c echo", "option -c"),
            ("npx --registry=http://x b", "--registry"),
            ("npx -y github+x/../y", "registry"),
            ("npx -y ./b", "registry"),
            ("npx -p", "no value"),
            ("uvx --from git+https://h/x b", "registry"),
            ("uvx --index-url http://x b", "--index-url"),
            ("uvx b[cli]", "extra"),
            ("uv run server.py", "project"),
            ("uv run --directory /x server.py", "--directory"),
        ] {
            let why = read(&words(line)).unwrap_or_else(|| panic!("{line}"));
            match why {
                Err(why) => assert!(why.contains(reason), "{line}: {why}"),
                // The name is checked with those of all packages.
                Ok(read) => assert!(line.contains("github+"), "{line}: {read}"),
            }
        }
        for line in ["node server.js", "npm start", "uv pip install x", "docker run x", "python3 -m x"] {
            assert_eq!(read(&words(line)), None, "{line}");
        }
    }
}
