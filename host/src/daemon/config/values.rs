//! The values of a settings file by the names of the settings, to compare two files and to find the line of a mistake.
//!
//! Reads no file; [`super::read`] does. See [`super::settings`] for the list of the settings.

use super::{Config, check, settings};
use ironclaw_operator::settings::{Applies, Setting};
use ironclaw_store::toml_file::{self, Error};
use std::path::Path;
use toml::{Table, Value};

/// The values of a settings file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(Table);

impl Values {
    /// Reads a text; `path` is for messages.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        toml_file::parse(text, path).map(Self)
    }

    /// Returns the defaults. An optional setting has none.
    pub(super) fn defaults() -> Self {
        Self(Table::try_from(Config::default()).expect("a test writes the defaults as TOML"))
    }

    /// Returns the value of a setting, if it is written.
    pub(super) fn written(&self, setting: &Setting) -> Option<&Value> {
        self.0.get(setting.table)?.as_table()?.get(setting.name)
    }

    /// Returns whether a key is written, by its name with that of its table.
    pub(super) fn has(&self, full_name: &str) -> bool {
        let value = full_name.split_once('.').and_then(|(table, name)| self.0.get(table)?.get(name));
        value.is_some()
    }

    /// Returns the settings whose values differ in another file; the default is the value of one that is not written.
    pub fn differences<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'static Setting> + 'a {
        let defaults = Self::defaults();
        settings().filter(move |setting| {
            let default = defaults.written(setting);
            self.written(setting).or(default) != other.written(setting).or(default)
        })
    }

    /// Returns these values with the live settings of another file.
    pub fn with_live_of(&self, other: &Self) -> Self {
        let mut mixed = self.clone();
        for setting in settings().filter(|setting| setting.applies == Applies::Live) {
            mixed.set(setting, other.written(setting).cloned());
        }
        mixed
    }

    fn set(&mut self, setting: &Setting, value: Option<Value>) {
        let table = self.0.entry(setting.table).or_insert_with(|| Value::Table(Table::new()));
        let Some(table) = table.as_table_mut() else { return };
        match value {
            Some(value) => drop(table.insert(setting.name.to_owned(), value)),
            None => drop(table.remove(setting.name)),
        }
    }

    /// Returns the settings with these values.
    ///
    /// # Errors
    /// A sentence, if one is out of its bounds or they do not fit together.
    pub fn config(&self) -> Result<Config, String> {
        let config: Config = self.0.clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        for setting in settings() {
            let number = self.written(setting).and_then(Value::as_integer);
            if number.is_some_and(|number| !setting.bounds.contains(number)) {
                return Err(format!("{} must be {}", setting.full_name(), setting.bounds));
            }
        }
        check(&config)?;
        Ok(config)
    }

    /// Returns the settings of the table `[keys]`.
    pub(super) fn keys(&self) -> Result<ironclaw_state::keys::Config, String> {
        let Some(table) = self.0.get("keys") else { return Ok(Default::default()) };
        table.clone().try_into().map_err(|error: toml::de::Error| format!("[keys]: {}", error.message()))
    }

    /// Adds the number of the line to a sentence about a mistake: that of the first setting that is refused by itself, or else of the first
    /// setting that the sentence names.
    pub(super) fn locate(&self, text: &str, what: &str) -> String {
        let written = || settings().filter(|setting| self.written(setting).is_some());
        let alone = |setting: &&Setting| {
            let mut only = Self::default();
            only.set(setting, self.written(setting).cloned());
            only.config().is_err()
        };
        let wrong = written().find(alone).or_else(|| written().find(|setting| what.contains(&setting.full_name())));
        match wrong {
            Some(setting) => toml_file::at_line(text, &setting.full_name(), what.to_owned()),
            None => what.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Values {
        Values::parse(text, Path::new("c.toml")).expect("valid TOML")
    }

    fn names<'a>(found: impl Iterator<Item = &'a Setting>) -> Vec<String> {
        found.map(Setting::full_name).collect()
    }

    #[test]
    fn written_default_is_no_difference() {
        let (none, same) = (values(""), values("[session]\nidle_seconds = 300\n[mounts]\nallow = []\n"));
        assert_eq!(names(none.differences(&same)), Vec::<String>::new());
        let other = values("[log]\nlevel = \"debug\"\n[turn]\nseconds_max = 5\n[packages]\nproxy = \"http://p/\"\n");
        assert_eq!(names(none.differences(&other)), ["log.level", "turn.seconds_max", "packages.proxy"]);
        assert_eq!(names(other.differences(&none)), names(none.differences(&other)));
    }

    #[test]
    fn mix_has_the_live_settings_of_the_file_and_no_other() {
        let old = values("[log]\nlevel = \"debug\"\n[session]\nawake_max = 5\n[quota]\nwaiting_per_person = 7\n");
        let new = values("[log]\nformat = \"json\"\n[session]\nawake_max = 6\n[mounts]\nallow = [\"/srv\"]\n");
        let mixed = old.with_live_of(&new);
        let expected = values("[session]\nawake_max = 5\n[mounts]\nallow = [\"/srv\"]\n");
        assert_eq!(mixed.config(), expected.config());
        assert_eq!(names(mixed.differences(&new)), ["log.format", "session.awake_max"], "these need a restart");
        assert_eq!(mixed.with_live_of(&new), mixed);
    }

    #[test]
    fn mistake_is_found_by_the_line_of_its_setting() {
        let text = "[quota]\nwaiting_per_person = 7\n# workspace_files = 3\nworkspace_files = 0\n";
        let what = "quota.workspace_files must be 1 or more";
        assert_eq!(values(text).locate(text, what), format!("line 4: {what}"));
        // The sentence names both settings, and only the second one is wrong.
        let text = "[webhook]\nattempts_max = 3\n\nbackoff_ms = 0\n";
        let both = "webhook.attempts_max must be 1 to 100, and webhook.backoff_ms 1 or more";
        assert_eq!(values(text).locate(text, both), format!("line 4: {both}"));
        // Two settings that do not fit together.
        let text = "[session]\nawake_max = 2\nawake_per_agent_max = 3\n";
        let pair = "session.awake_max must be at least session.awake_per_agent_max";
        assert!(values(text).locate(text, pair).starts_with("line 2: "));
    }
}
