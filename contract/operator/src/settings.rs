//! Tables of settings, each setting declared once.
//!
//! A table is a struct. [`crate::settings!`] makes its default and the list of its settings from one row for each. It reads no file and
//! enforces no bound: the host does both.

use std::fmt;

/// One setting of `config.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The table, e.g. `session`.
    pub table: &'static str,
    /// The name in its table, e.g. `idle_seconds`.
    pub name: &'static str,
    /// The values that are accepted.
    pub bounds: Bounds,
    /// The moment at which a change of the file takes effect.
    pub applies: Applies,
    /// The meaning in one sentence.
    pub meaning: &'static str,
}

impl Setting {
    /// Returns its name with that of its table, e.g. `session.idle_seconds`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }
}

ironclaw_contract::words! {
    /// The moment at which a changed setting takes effect.
    pub enum Applies {
        /// At a reload.
        Live = "live",
        /// At the next start of the host.
        Restart = "restart",
    }
}

/// The values that a setting accepts. The last field of a range is the unit.
#[derive(Debug, Clone, Copy)]
pub enum Bounds {
    /// Numbers from the first to the second.
    Range(u64, u64, &'static str),
    /// Numbers from this one on.
    AtLeast(u64, &'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A rule in words.
    Rule(&'static str),
    /// A rule in words; without a value, the host uses something else.
    Optional {
        /// The rule.
        rule: &'static str,
        /// The substitute, in words.
        instead: &'static str,
        /// A value that is accepted, as TOML.
        example: &'static str,
    },
}

impl Bounds {
    /// Returns the unit of a number; empty for other values.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Range(_, _, unit) | Self::AtLeast(_, unit) => unit,
            Self::OneOf(_) | Self::Rule(_) | Self::Optional { .. } => "",
        }
    }

    /// Returns whether a number is within the bounds. Other bounds say nothing about numbers.
    #[must_use]
    pub fn contains(&self, number: i64) -> bool {
        let (least, most) = match *self {
            Self::Range(least, most, _) => (least, most),
            Self::AtLeast(least, _) => (least, u64::MAX),
            Self::OneOf(_) | Self::Rule(_) | Self::Optional { .. } => return true,
        };
        u64::try_from(number).is_ok_and(|number| (least..=most).contains(&number))
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(least, most, _) => write!(f, "{least} to {most}"),
            Self::AtLeast(least, _) => write!(f, "{least} or more"),
            Self::OneOf(words) => f.write_str(&words.join(", ")),
            Self::Rule(rule) | Self::Optional { rule, .. } => f.write_str(rule),
        }
    }
}

/// Declares a table of settings: a struct with its default and its list `SETTINGS`. A row has the meaning, the name, the type, the
/// default, the bounds, and the moment at which a change takes effect.
///
/// ```
/// ironclaw_operator::settings! {
///     /// `[disk]`
///     pub struct Config for disk {
///         /// The most files of one person.
///         files_max: u32 = 100, Range(1, 1000, "files"), Live;
///     }
/// }
///
/// assert_eq!(Config::default().files_max, 100);
/// assert_eq!(Config::SETTINGS[0].full_name(), "disk.files_max");
/// assert_eq!(Config::SETTINGS[0].meaning, "The most files of one person.");
/// ```
#[macro_export]
macro_rules! settings {
    ($(#[$doc:meta])* $vis:vis struct $config:ident for $table:ident {
        $($(#[doc = $meaning:literal])+ $name:ident: $type:ty = $default:expr, $bounds:expr, $applies:ident;)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Deserialize, ::serde::Serialize)]
        #[serde(default, deny_unknown_fields)]
        $vis struct $config {
            $($(#[doc = $meaning])+ pub $name: $type,)+
        }

        impl ::std::default::Default for $config {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl $config {
            /// The settings of the table.
            pub const SETTINGS: &'static [$crate::settings::Setting] = {
                use $crate::settings::Bounds::*;
                &[$(
                    $crate::settings::Setting {
                        table: stringify!($table),
                        name: stringify!($name),
                        bounds: $bounds,
                        applies: $crate::settings::Applies::$applies,
                        meaning: concat!($($meaning),+).trim_ascii(),
                    },
                )+]
            };
        }
    };
}
