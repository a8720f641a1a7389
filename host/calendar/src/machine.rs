//! The time zone of a machine, from the places where a machine can name one, and a doubt if they do not agree.
//!
//! Reads nothing: the host reads the environment and the files of the machine. See [`MachineZone::find`].

use crate::zone::Zone;
use ironclaw_text::excerpt::quoted;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt;
use std::path::{Path, PathBuf};

/// The file with the zone of the machine.
const LOCALTIME: &str = "/etc/localtime";
/// The directory, by any prefix, below which a file is named after its zone.
const DATABASE: &str = "zoneinfo";
/// Directories of the database with other kinds of the same zones.
const VARIANTS: [&str; 2] = ["posix", "right"];
/// Instants at which two zones are compared: every tenth day of six years.
const COMPARED: i64 = 219;
/// The first of them, and the time between two, in seconds: from 2025 on.
const COMPARED_FROM: i64 = 1_735_689_600;
const COMPARED_EVERY: i64 = 864_000;

/// The places that name the zone of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The environment variable `TZ`.
    pub variable: Option<String>,
    pub localtime: Localtime,
    /// The first line of `/etc/timezone`.
    pub name_file: Option<String>,
}

/// The file with the zone of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Localtime {
    #[default]
    Missing,
    /// A link, with its target.
    Link(PathBuf),
    /// A file of its own, with its bytes.
    Copy(Vec<u8>),
}

/// The reason why the zone of a machine is not sure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The variable and the file name zones with other times.
    Differ { variable: String, file: String },
    /// The variable has a rule and no name.
    Rule { variable: String },
    /// The file is missing, or is a link to a file without a name of a zone.
    Missing,
    /// The file is a copy, and no other file names it.
    Copy,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differ { variable, file } => {
                write!(f, "TZ names {} and {LOCALTIME} names {file}", quoted(variable))
            }
            Self::Rule { variable } => write!(f, "TZ is {}, which is no name of a time zone", quoted(variable)),
            Self::Missing => write!(f, "{LOCALTIME} is missing or names no time zone"),
            Self::Copy => write!(f, "{LOCALTIME} is a copy without the name of its time zone"),
        }
    }
}

/// The zone of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineZone {
    pub zone: Zone,
    pub doubt: Option<Doubt>,
}

impl MachineZone {
    /// Returns the zone of the machine with these sources. The variable comes first, as in every program; without a name it is UTC.
    pub fn find(sources: &Sources) -> Self {
        let file = zone_of_file(sources);
        let sure = |zone| Self { zone, doubt: None };
        let unsure = |zone, doubt| Self { zone, doubt: Some(doubt) };
        let Some(variable) = &sources.variable else {
            return match (file, &sources.localtime) {
                (Some(zone), _) => sure(zone),
                (None, Localtime::Copy(_)) => unsure(Zone::utc(), Doubt::Copy),
                (None, Localtime::Missing | Localtime::Link(_)) => unsure(Zone::utc(), Doubt::Missing),
            };
        };
        match (zone_of_variable(variable), file) {
            (Some(zone), Some(file)) if !have_same_times(zone.rules(), file.rules()) => {
                let doubt = Doubt::Differ { variable: zone.name().to_owned(), file: file.name().to_owned() };
                unsure(zone, doubt)
            }
            (Some(zone), _) => sure(zone),
            (None, file) => unsure(file.unwrap_or_else(Zone::utc), Doubt::Rule { variable: variable.clone() }),
        }
    }
}

/// Returns the zone that a value of `TZ` names: a name, or a path to a file of the database, with or without a colon. The empty value
/// is UTC.
fn zone_of_variable(value: &str) -> Option<Zone> {
    let value = value.strip_prefix(':').unwrap_or(value);
    if value.is_empty() {
        return Some(Zone::utc());
    }
    Zone::parse(value).ok().or_else(|| zone_of_path(Path::new(value)))
}

/// Returns the zone that the files name.
fn zone_of_file(sources: &Sources) -> Option<Zone> {
    match &sources.localtime {
        Localtime::Missing => None,
        Localtime::Link(target) => zone_of_path(target),
        Localtime::Copy(bytes) => {
            let zone = Zone::parse(sources.name_file.as_deref()?.trim()).ok()?;
            let copied = TimeZone::tzif("copy", bytes).ok()?;
            have_same_times(zone.rules(), &copied).then_some(zone)
        }
    }
}

/// Returns the zone of a file of the database.
fn zone_of_path(path: &Path) -> Option<Zone> {
    let names: Vec<&str> = path.components().filter_map(|name| name.as_os_str().to_str()).collect();
    let at = names.iter().rposition(|name| *name == DATABASE)?;
    let below = names.get(at + 1..)?;
    let name = match below {
        [variant, rest @ ..] if VARIANTS.contains(variant) => rest,
        all => all,
    };
    Zone::parse(&name.join("/")).ok()
}

/// Returns whether two zones show the same local times in these years.
fn have_same_times(one: &TimeZone, other: &TimeZone) -> bool {
    let instants = (0..COMPARED).filter_map(|n| Timestamp::from_second(COMPARED_FROM + n * COMPARED_EVERY).ok());
    instants.into_iter().all(|at| one.to_offset(at) == other.to_offset(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(target: &str) -> Localtime {
        Localtime::Link(target.into())
    }

    /// Returns the name of the zone, and the doubt in words.
    fn found(variable: Option<&str>, localtime: Localtime, name_file: Option<&str>) -> (String, String) {
        let sources =
            Sources { variable: variable.map(str::to_owned), localtime, name_file: name_file.map(str::to_owned) };
        let MachineZone { zone, doubt } = MachineZone::find(&sources);
        (zone.name().to_owned(), doubt.map(|doubt| doubt.to_string()).unwrap_or_default())
    }

    #[test]
    fn machine_that_names_one_zone_has_no_doubt() {
        const BERLIN: &str = "/usr/share/zoneinfo/Europe/Berlin";
        for (variable, localtime, expected) in [
            (None, link(BERLIN), "Europe/Berlin"),
            (None, link("../usr/share/zoneinfo/Europe/Berlin"), "Europe/Berlin"),
            (None, link("/etc/zoneinfo/America/Argentina/Buenos_Aires"), "America/Argentina/Buenos_Aires"),
            (None, link("/usr/share/zoneinfo/posix/Asia/Tokyo"), "Asia/Tokyo"),
            (None, link("/usr/share/zoneinfo/Etc/UTC"), "Etc/UTC"),
            (Some("Europe/Berlin"), link(BERLIN), "Europe/Berlin"),
            (Some(":Europe/Berlin"), link(BERLIN), "Europe/Berlin"),
            (Some(BERLIN), Localtime::Missing, "Europe/Berlin"),
            (Some("Asia/Tokyo"), Localtime::Missing, "Asia/Tokyo"),
            (Some("UTC"), link("/usr/share/zoneinfo/Etc/UTC"), "UTC"),
            (Some(""), Localtime::Missing, "UTC"),
            (Some("Asia/Kolkata"), link("/usr/share/zoneinfo/Asia/Calcutta"), "Asia/Kolkata"),
        ] {
            assert_eq!(found(variable, localtime.clone(), None), (expected.to_owned(), String::new()), "{localtime:?}");
        }
    }

    #[test]
    fn machine_whose_zone_is_not_clear_has_one_zone_and_a_doubt() {
        const BERLIN: &str = "/usr/share/zoneinfo/Europe/Berlin";
        for (variable, localtime, expected, doubt) in [
            (
                Some("America/New_York"),
                link(BERLIN),
                "America/New_York",
                "TZ names \"America/New_York\" and /etc/localtime names Europe/Berlin",
            ),
            (Some(""), link(BERLIN), "UTC", "TZ names \"UTC\""),
            (Some("CET-1CEST,M3.5.0,M10.5.0/3"), link(BERLIN), "Europe/Berlin", "TZ is \"CET-1CEST,M3.5.0,M10.5.0/3\""),
            (Some("<+03>-3"), Localtime::Missing, "UTC", "TZ is"),
            (None, Localtime::Missing, "UTC", "/etc/localtime is missing"),
            (None, link("/home/me/my-zone"), "UTC", "/etc/localtime is missing or names no time zone"),
            (None, Localtime::Copy(b"no zone".to_vec()), "UTC", "/etc/localtime is a copy"),
        ] {
            let (zone, words) = found(variable, localtime.clone(), None);
            assert_eq!(zone, expected, "{variable:?} {localtime:?}");
            assert!(words.starts_with(doubt), "{variable:?} {localtime:?}: {words}");
        }
    }

    #[test]
    fn copy_gets_the_name_of_the_file_with_the_same_times() {
        // Most machines have the database; the bundled one has no files.
        let Ok(bytes) = std::fs::read("/usr/share/zoneinfo/Europe/Berlin") else { return };
        let copy = || Localtime::Copy(bytes.clone());
        assert_eq!(found(None, copy(), Some("Europe/Berlin\n")), ("Europe/Berlin".to_owned(), String::new()));
        for other in [Some("America/New_York\n"), Some("nonsense"), None] {
            let (zone, doubt) = found(None, copy(), other);
            assert_eq!(zone, "UTC", "{other:?}");
            assert!(doubt.contains("copy"), "{doubt}");
        }
    }
}
