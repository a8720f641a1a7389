//! The `config.toml` of a new home: every setting as a comment.
//!
//! The tables of the manual are made from the same list. See [`super::settings`].

use super::{Values, settings};
use ironclaw_operator::settings::{Bounds, Setting};

const HEAD: &str = "\
# Settings of IronClaw. Remove the # before a setting to change it.
# Each line shows the default, or an example where the comment above it names another default.
# A change of a setting with (live) takes effect with `ironctl config reload`; one with (restart) needs a start of the host.
# `ironctl config check` reads this file and names what is wrong with it.
";

/// Returns the `config.toml` of a new home.
pub fn template() -> String {
    let (mut text, mut table, defaults) = (HEAD.to_owned(), "", Values::defaults());
    for setting in settings() {
        if setting.table != table {
            table = setting.table;
            text += &format!("\n[{table}]\n");
        }
        text += &format!("# {}\n# {}\n", comment(setting), line(setting, &defaults));
    }
    text
}

/// Returns the comment above a setting.
fn comment(Setting { bounds, meaning, applies, .. }: &Setting) -> String {
    let unit = match bounds.unit() {
        "" => String::new(),
        unit => format!(" ({unit})"),
    };
    let instead = match bounds {
        Bounds::Optional { instead, .. } => format!(" Default: {instead}."),
        Bounds::Range(..) | Bounds::AtLeast(..) | Bounds::OneOf(_) | Bounds::Rule(_) => String::new(),
    };
    format!("{meaning} Accepts: {bounds}{unit}.{instead} ({applies})")
}

/// Returns the line of a setting without the `#`.
fn line(setting: &Setting, defaults: &Values) -> String {
    let value = match setting.bounds {
        Bounds::Optional { example, .. } => example.to_owned(),
        _ => defaults.written(setting).map(ToString::to_string).unwrap_or_default(),
    };
    format!("{} = {value}", setting.name)
}

#[cfg(test)]
mod tests {
    use super::super::{Config, parse};
    use super::*;
    use std::collections::BTreeMap;
    use std::fmt::Write;
    use std::path::Path;

    fn read(setting: &Setting, value: &str) -> Result<Config, String> {
        let text = format!("[{}]\n{} = {value}\n", setting.table, setting.name);
        parse(&text, Path::new("c.toml")).map(|(config, _)| config).map_err(|error| error.to_string())
    }

    #[test]
    fn default_of_each_setting_is_accepted() {
        let defaults = Values::defaults();
        for setting in settings() {
            match (setting.bounds, defaults.written(setting)) {
                (Bounds::Optional { example, .. }, None) => {
                    assert_ne!(read(setting, example), Ok(Config::default()), "{setting:?}")
                }
                (_, Some(value)) => assert_eq!(read(setting, &value.to_string()), Ok(Config::default()), "{setting:?}"),
                (_, None) => panic!("a setting has a default or is optional: {setting:?}"),
            }
        }
    }

    /// Returns the words that serde expects instead of an unknown one.
    fn expected(error: &str) -> Vec<&str> {
        let words = error.split("expected ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
        words.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn bounds_of_each_setting_are_those_of_the_code() {
        for setting in settings() {
            let accepts = |value: u64| read(setting, &value.to_string()).is_ok();
            let (least, most) = match setting.bounds {
                Bounds::Range(least, most, _) => (least, Some(most)),
                Bounds::AtLeast(least, _) => (least, None),
                Bounds::OneOf(words) => {
                    let error = read(setting, "\"other\"").expect_err("refused");
                    assert_eq!(expected(&error), words, "{setting:?}");
                    continue;
                }
                Bounds::Rule(_) | Bounds::Optional { .. } => continue,
            };
            assert!(accepts(least), "{setting:?}");
            assert!(least == 0 || !accepts(least - 1), "{setting:?}");
            assert!(most.is_none_or(|most| accepts(most) && !accepts(most + 1)), "{setting:?}");
        }
    }

    #[test]
    fn list_has_every_setting_of_the_code() {
        let refused = |text: &str| parse(text, Path::new("c.toml")).expect_err("refused").to_string();
        let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for setting in settings() {
            listed.entry(setting.table).or_default().push(setting.name);
        }
        let error = refused("[unknown_table]\n");
        let mut tables = expected(&error);
        tables.sort_unstable();
        assert_eq!(tables, listed.keys().copied().collect::<Vec<_>>());
        for (table, mut listed) in listed {
            let error = refused(&format!("[{table}]\nunknown_field = 1\n"));
            let mut fields = expected(&error);
            fields.sort_unstable();
            listed.sort_unstable();
            assert_eq!(fields, listed, "[{table}]");
        }
    }

    #[test]
    fn template_holds_every_default_as_a_comment() {
        let text = template();
        assert_eq!(parse(&text, Path::new("c.toml")).expect("reads").0, Config::default());
        let open: Vec<&str> = text.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
        for setting in settings() {
            assert!(open.contains(&line(setting, &Values::defaults()).as_str()), "{setting:?}");
        }
    }

    const BEGIN: &str =
        "<!-- settings: begin; made from the code by `IRONCLAW_GOLDEN=write cargo test manual_lists` -->\n";
    const END: &str = "<!-- settings: end -->\n";

    #[test]
    fn manual_lists_every_setting() {
        let (mut now, mut table) = (String::new(), "");
        for setting in settings() {
            if setting.table != table {
                table = setting.table;
                let head = "| setting | default | unit | accepts | change | meaning |\n|---|---|---|---|---|---|\n";
                write!(now, "\n### `[{table}]`\n\n{head}").expect("text grows");
            }
            let Setting { name, bounds, applies, meaning, .. } = setting;
            let default = match (bounds, Values::defaults().written(setting)) {
                (Bounds::Optional { instead, .. }, _) => (*instead).to_owned(),
                (_, value) => format!("`{}`", value.expect("a default")),
            };
            let unit = bounds.unit();
            writeln!(now, "| `{table}.{name}` | {default} | {unit} | {bounds} | {applies} | {meaning} |")
                .expect("text grows");
        }
        now.push('\n');
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate/settings.md");
        let page = std::fs::read_to_string(&path).expect("the page of settings");
        let (before, rest) = page.split_once(BEGIN).expect("the page has the mark at which the tables begin");
        let (committed, after) = rest.split_once(END).expect("the page has the mark at which the tables end");
        if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write") {
            std::fs::write(&path, format!("{before}{BEGIN}{now}{END}{after}")).expect("written");
            return;
        }
        assert!(committed == now, "docs/operate/settings.md is out of date; IRONCLAW_GOLDEN=write rewrites it");
    }
}
