//! Adds a directory to `[mounts] allow` in the text of a settings file.
//!
//! Keeps every other byte, comments too, and never returns a text whose other settings differ. See [`super::super::reload`].

use serde::Deserialize;
use std::path::Path;
use toml::{Spanned, Table, Value};

/// The name of the table, and that of the setting.
const TABLE: &str = "mounts";
const SETTING: &str = "allow";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    mounts: Mounts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Mounts {
    allow: Option<Spanned<Vec<Spanned<String>>>>,
}

/// Returns the text with this directory; the same text if it is there.
///
/// # Errors
/// A sentence, for a text that is no TOML, and for one in a form that has no place for the directory.
pub fn with_allowed(text: &str, directory: &Path) -> Result<String, String> {
    let by_hand = || format!("cannot add {} to `allow` below `[mounts]`: add it by hand", directory.display());
    let settings: Settings = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let path = directory.to_str().filter(|path| !path.chars().any(char::is_control)).ok_or_else(by_hand)?;
    let held = settings.mounts.allow.as_ref().map_or(&[][..], |allow| allow.get_ref());
    if held.iter().any(|one| one.get_ref() == path) {
        return Ok(text.to_owned());
    }
    let entry = Value::from(path).to_string();
    let changed = match (&settings.mounts.allow, held.last()) {
        (Some(_), Some(last)) => inserted(text, last.span().end, &format!(", {entry}")),
        (Some(allow), None) => inserted(text, allow.span().start + 1, &entry),
        (None, _) => with_setting(text, &entry),
    };
    if is_this_change(text, &changed, path) { Ok(changed) } else { Err(by_hand()) }
}

fn inserted(text: &str, at: usize, new: &str) -> String {
    format!("{}{new}{}", &text[..at], &text[at..])
}

/// Returns the text with the setting: below the heading of its table, or with a table at the end.
fn with_setting(text: &str, entry: &str) -> String {
    let setting = format!("{SETTING} = [{entry}]\n");
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        if line.split('#').next().is_some_and(|line| line.trim() == format!("[{TABLE}]")) {
            let line_end = if line.ends_with('\n') { "" } else { "\n" };
            return inserted(text, end, &format!("{line_end}{setting}"));
        }
    }
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{line_end}[{TABLE}]\n{setting}")
}

/// Returns whether the texts differ in this directory alone.
fn is_this_change(before: &str, after: &str, path: &str) -> bool {
    let (Ok(mut wanted), Ok(found)) = (before.parse::<Table>(), after.parse::<Table>()) else { return false };
    let mounts = wanted.entry(TABLE).or_insert_with(|| Value::Table(Table::new()));
    let allow = mounts.as_table_mut().map(|mounts| mounts.entry(SETTING).or_insert_with(|| Value::Array(Vec::new())));
    match allow.and_then(Value::as_array_mut) {
        Some(allow) => {
            allow.push(path.into());
            wanted == found
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_added_and_all_else_stays() {
        for (text, wanted) in [
            ("", "[mounts]\nallow = [\"/srv/a\"]\n"),
            ("[log] # all\nlevel = \"info\"", "[log] # all\nlevel = \"info\"\n[mounts]\nallow = [\"/srv/a\"]\n"),
            (
                "[mounts] # what agents may get\n# allow = []\n\n[log]\n",
                "[mounts] # what agents may get\nallow = [\"/srv/a\"]\n# allow = []\n\n[log]\n",
            ),
            ("[mounts]", "[mounts]\nallow = [\"/srv/a\"]\n"),
            ("[mounts]\nallow = [ # none\n]\n", "[mounts]\nallow = [\"/srv/a\" # none\n]\n"),
            ("mounts.allow = [\"/b\"]\n", "mounts.allow = [\"/b\", \"/srv/a\"]\n"),
            ("mounts = { allow = ['/b'] }\n", "mounts = { allow = ['/b', \"/srv/a\"] }\n"),
            (
                "[mounts]\nallow = [\n  \"/b\", # notes\n  '/ä#[mounts]', # more\n]\n",
                "[mounts]\nallow = [\n  \"/b\", # notes\n  '/ä#[mounts]', \"/srv/a\", # more\n]\n",
            ),
            ("[mounts]\nallow = [\"/srv/a\"] # there\n", "[mounts]\nallow = [\"/srv/a\"] # there\n"),
        ] {
            assert_eq!(with_allowed(text, Path::new("/srv/a")).as_deref(), Ok(wanted), "{text}");
        }
        let odd = with_allowed("", Path::new("/a \"b\"\\c")).expect("a path");
        let read: Table = odd.parse().expect("TOML");
        assert_eq!(read["mounts"]["allow"][0].as_str(), Some("/a \"b\"\\c"));
    }

    #[test]
    fn text_without_a_place_for_it_is_refused() {
        for text in ["[mounts\n", "mounts = {}\n", "[mounts]\nallow = \"/b\"\n", "[[mounts]]\n"] {
            assert!(with_allowed(text, Path::new("/srv/a")).is_err(), "{text}");
        }
        assert!(with_allowed("", Path::new("/a\nb")).is_err());
        // The heading is a part of a text.
        let text = "[log]\nformat = \"\"\"\n[mounts]\n\"\"\"\n";
        assert!(with_allowed(text, Path::new("/srv/a")).is_err());
    }
}
