//! The values of a configuration file: whether one is a secret, and the texts with `${…}` in them.
//!
//! Never prints a value. See [`super::entry`].

use std::env;

/// Words in the names of variables and headers whose values are secrets.
const SECRET_WORDS: [&str; 8] = ["auth", "authorization", "pat", "pass", "cred", "dsn", "webhook", "cookie"];

/// Ends of such words, as in `APIKEY`.
const SECRET_ENDS: [&str; 7] = ["key", "token", "secret", "password", "passwd", "passphrase", "credentials"];

/// Characters of a value from which on it may be a key.
const KEY_CHARACTERS_MIN: usize = 20;

/// A value as a file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// Its text, after its variables are replaced.
    Text(String),
    /// A text without a value, such as `${input:token}`, a variable that is not set, or `YOUR_TOKEN`.
    Absent,
}

/// Reads a value; `${NAME}` and `${env:NAME}` are variables of this process, `${NAME:-text}` has a default.
pub fn read(text: &str) -> Given {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        whole.push_str(before);
        let Some(value) = variable(name) else { return Given::Absent };
        whole.push_str(&value);
        rest = after;
    }
    whole.push_str(rest);
    if is_placeholder(&whole) { Given::Absent } else { Given::Text(whole) }
}

/// Returns whether a text takes a secret from a variable. A file of a repository may name any variable of its reader.
pub fn takes_secret(text: &str) -> bool {
    let named = text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    named.into_iter().any(|inner| {
        let name = inner.strip_prefix("env:").unwrap_or(inner);
        let name = name.split(":-").next().unwrap_or(name);
        is_secret(name, &variable(inner).unwrap_or_default())
    })
}

fn variable(name: &str) -> Option<String> {
    let name = name.strip_prefix("env:").unwrap_or(name);
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (name, None),
    };
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let set = if is_name { env::var(name).ok().filter(|value| !value.is_empty()) } else { None };
    match (name, set) {
        ("userHome", _) => env::var("HOME").ok(),
        (_, Some(value)) => Some(value),
        (_, None) => default.map(str::to_owned),
    }
}

/// Returns whether a person has to put a value in the place of this one.
fn is_placeholder(text: &str) -> bool {
    let lower = text.trim().to_lowercase();
    let is_bracketed = lower.starts_with('<') && lower.ends_with('>');
    let is_dots = lower.len() >= 3 && lower.bytes().all(|byte| b".x*".contains(&byte));
    is_bracketed
        || is_dots
        || ["your_", "your-", "your ", "replace", "changeme", "todo"].iter().any(|begin| lower.starts_with(begin))
}

/// Returns whether the value of a variable or a header with this name is a secret.
pub fn is_secret(name: &str, value: &str) -> bool {
    let parts = name.to_lowercase();
    let mut parts = parts.split(['_', '-', '.']);
    let by_name = parts.any(|part| SECRET_WORDS.contains(&part) || SECRET_ENDS.iter().any(|end| part.ends_with(end)));
    by_name || may_be_key(value)
}

/// Returns whether a value has a long mixed run of letters and digits as a key has, or is an address with a password.
pub fn may_be_key(value: &str) -> bool {
    let is_run = |run: &str| {
        let has = |is: fn(&u8) -> bool| run.as_bytes().iter().any(is);
        run.len() >= KEY_CHARACTERS_MIN && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    };
    let is_one_word = !value.contains([' ', '/', ',']);
    let is_authority = |rest: &str| rest.split('/').next().is_some_and(|host| host.contains('@'));
    let has_user = value.split_once("://").is_some_and(|(_, rest)| is_authority(rest));
    has_user || (is_one_word && value.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_a_variable_is_in_its_place() {
        let home = env::var("HOME").expect("it is set in tests");
        for (text, value) in [
            ("plain", Given::Text("plain".to_owned())),
            ("", Given::Text(String::new())),
            ("a ${HOME} b", Given::Text(format!("a {home} b"))),
            ("${env:HOME}", Given::Text(home.clone())),
            ("${userHome}/x", Given::Text(format!("{home}/x"))),
            ("${NOT_SET_HERE_7:-x y}", Given::Text("x y".to_owned())),
            ("${NOT_SET_HERE_7}", Given::Absent),
            ("--in=${input:region:-eu}", Given::Text("--in=eu".to_owned())),
            ("Bearer ${input:token}", Given::Absent),
            ("${input:token", Given::Text("${input:token".to_owned())),
            ("<token>", Given::Absent),
            ("YOUR_API_KEY", Given::Absent),
            ("...", Given::Absent),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
    }

    #[test]
    fn variable_with_a_secret_is_known_by_its_name() {
        for text in ["${GITHUB_TOKEN}", "a/${env:AWS_SECRET_ACCESS_KEY}/b", "${API_KEY:-x}", "${HOME} ${input:api-key}"]
        {
            assert!(takes_secret(text), "{text}");
        }
        for text in ["${HOME}/x", "${env:LEVEL:-debug}", "GITHUB_TOKEN", "${GITHUB_TOKEN"] {
            assert!(!takes_secret(text), "{text}");
        }
    }

    #[test]
    fn secret_is_known_by_its_name_or_its_form() {
        for (name, value) in [
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "x"),
            ("APIKEY", "x"),
            ("api-key", "x"),
            ("DB_PASSWORD", "x"),
            ("Authorization", "x"),
            ("ANYTHING", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
            ("DATABASE_URL", "postgres://me:word@db/x"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("PORT", "8080"),
            ("BASE_URL", "https://api.example/v1"),
            ("ALLOWED", "/srv/papers/2026/a-long-directory"),
            ("NODE_ENV", "production"),
            ("MEMORY_FILE_PATH", "/state/memory.jsonl"),
            ("AUTHOR", "me"),
            ("PACKAGE", "a-long-name-of-a-package2@2026.10.19"),
            ("NOTE", "a sentence with 20 words or fewer in it"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }
}
