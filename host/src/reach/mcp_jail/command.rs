//! Commands that are no argument vector of a server: shell strings, containers, and programs that fetch other programs.
//!
//! It helps a person early; the jail is the wall, because a server can start each program that it sees. See `reach::mcp_jail::program`.

use super::fetcher;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;

/// Remedy for a command that fetches its program.
const PACKAGE: &str = "name the package with --npm or --pypi, and its own program as the command";
/// Remedy for a shell string.
const VECTOR: &str = "a command is an argument vector: give the program and each argument as a word of its own";
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"];
const CONTAINERS: [&str; 5] = ["docker", "docker-compose", "podman", "nerdctl", "buildah"];
/// Programs whose every use fetches, or prepares it.
const ONLY_FETCH: [&str; 6] = ["npx", "bunx", "pnpx", "uvx", "pipx", "uv"];
/// Package managers that also run a package, with the words that request it.
const RUNNERS: [(&str, &[&str]); 4] = [
    ("npm", &["exec", "x", "init", "create"]),
    ("pnpm", &["dlx", "exec", "create"]),
    ("yarn", &["dlx", "exec", "create"]),
    ("bun", &["x", "create"]),
];

/// Refuses a command by its fault; the hint has the remedy.
pub(super) fn check(program: &[String]) -> Result<(), Refusal> {
    let no = |message: String, hint: &str| Err(Refusal::new(DenialCode::McpCommand, message).hint(hint));
    let Some(first) = program.first().filter(|first| !first.is_empty()) else {
        return no("the server has no command".to_owned(), VECTOR);
    };
    if program.iter().any(|word| word.contains('\0')) {
        return no("a word of the command has a null byte".to_owned(), VECTOR);
    }
    if first.contains(char::is_whitespace) {
        // One word in quotation marks, as people copy it.
        let words: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
        if fetcher::read(&words).is_some() && program.len() == 1 {
            return check(&words);
        }
        return no(format!("{first:?} is a shell string"), VECTOR);
    }
    let name = first.rsplit('/').next().unwrap_or(first);
    let rest = &program[1..];
    if SHELLS.contains(&name) && runs_a_string(rest) {
        return no(format!("`{name} -c` runs a shell string"), VECTOR);
    }
    if name == "env" {
        return no("`env` hides the command".to_owned(), "set variables with --env, and give the program itself");
    }
    if CONTAINERS.contains(&name) {
        return no(format!("{name} has no place in the jail of a server, which is a container itself"), PACKAGE);
    }
    let runs = |(manager, words): &(&str, &[&str])| {
        *manager == name && rest.iter().find(|word| !word.starts_with('-')).is_some_and(|w| words.contains(&w.as_str()))
    };
    let read = fetcher::read(program);
    if read.is_some() || ONLY_FETCH.contains(&name) || RUNNERS.iter().any(runs) {
        let hint = match read {
            Some(Ok(fetched)) => format!(
                "type {fetched} instead, with the name of its program after --; `ironctl mcp import` finds versions and programs by itself"
            ),
            Some(Err(why)) => format!("{why}; {PACKAGE}"),
            None => PACKAGE.to_owned(),
        };
        return no(format!("{name} fetches a program that no person approved"), &hint);
    }
    Ok(())
}

/// Returns whether a shell with these arguments runs a string: an option with `c` precedes the script.
fn runs_a_string(arguments: &[String]) -> bool {
    // `busybox` has the name of the shell as its first argument.
    let arguments = match arguments {
        [first, rest @ ..] if SHELLS.contains(&first.as_str()) => rest,
        all => all,
    };
    let options = arguments.iter().take_while(|word| word.starts_with(['-', '+']) && *word != "--");
    options.into_iter().any(|word| word.trim_start_matches("--") == "command" || is_bundle_with_c(word))
}

/// Returns whether a word is a bundle of short options with `c`, such as `-lc`.
fn is_bundle_with_c(word: &str) -> bool {
    !word.starts_with("--") && word.contains('c')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn shell_string_container_and_fetcher_are_refused_by_name() {
        for (line, name, remedy) in [
            (&[][..], "no command", "vector"),
            (&[""], "no command", "vector"),
            (&["node server.js"], "node server.js", "vector"),
            (&["sh", "-c", "cat"], "sh", "vector"),
            (&["/bin/bash", "-lc", "cat"], "bash", "vector"),
            (&["bash", "--norc", "-e", "-c", "cat"], "bash", "vector"),
            (&["busybox", "sh", "-c", "cat"], "busybox", "vector"),
            (&["fish", "--command", "cat"], "fish", "vector"),
            (&["cat", "a\0b"], "null byte", "vector"),
            (&["env", "A=b", "cat"], "env", "--env"),
            (&["docker", "run", "-i", "mcp/x"], "docker", "--npm"),
            (&["/usr/bin/podman", "run"], "podman", "--npm"),
            (&["npx", "-y", "@a/b"], "npx", "--npm"),
            (&["uvx", "mcp-server-git"], "uvx", "--pypi"),
            (&["uv", "run", "x"], "uv", "--pypi"),
            (&["npm", "--yes", "exec", "x"], "npm", "--npm"),
            (&["pnpm", "dlx", "x"], "pnpm", "--npm"),
        ] {
            let refusal = check(&words(line)).expect_err("refused");
            assert_eq!(refusal.code, DenialCode::McpCommand, "{line:?}");
            assert!(refusal.message.contains(name) && refusal.hint.contains(remedy), "{line:?}: {refusal:?}");
        }
    }

    #[test]
    fn hint_replaces_a_fetcher_by_its_package() {
        for (line, wanted) in [
            (&["npx", "-y", "@a/b@1.2.3", "/x"][..], "--npm @a/b@1.2.3 -- b /x "),
            (&["npx", "-y", "@a/b@latest"], "--npm @a/b -- b "),
            (&["npx", "b"], "--npm b -- b "),
            (&["npx -y b@latest /x"], "--npm b -- b /x "),
            (&["uvx", "mcp-server-git==1"], "--pypi mcp-server-git==1 -- mcp-server-git "),
            (&["npx", "-p", "x", "y"], "--npm x -- y "),
            (&["npx", "-c", "y"], PACKAGE),
        ] {
            let refusal = check(&words(line)).expect_err("refused");
            assert!(refusal.hint.contains(wanted), "{line:?}: {refusal:?}");
        }
    }

    #[test]
    fn argument_vector_is_accepted_even_with_blanks_in_an_argument() {
        for line in [
            &["node", "server.js", "two words"][..],
            &["python3", "-m", "mcp_server_git"],
            &["/usr/bin/python3", "-c", "print(1)"],
            &["sh", "/usr/share/x/start.sh", "-c"],
            &["bash", "--", "-c"],
            &["npm-server", "exec"],
        ] {
            assert_eq!(check(&words(line)), Ok(()), "{line:?}");
        }
    }
}
