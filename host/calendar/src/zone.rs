//! Time zones by their IANA names.
//!
//! A name is valid if the data in the program has it, so a name is valid on each machine. The rules come from the data
//! of the machine if it has the zone, because updates of the machine bring newer rules; otherwise from the data in the
//! program.

use crate::error::CalendarError;
use ironclaw_text::excerpt::quoted;
use ironclaw_text::nearest::nearest;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::fmt;
use std::sync::LazyLock;

/// Bytes of the longest name. The longest of the database has 30.
const NAME_BYTES_MAX: usize = 64;
/// Similarity of names (0 to 1) from which an error shows the near one.
const SIMILARITY_MIN: f64 = 0.8;
/// The name that an error shows if no name is near.
const EXAMPLE: &str = "Europe/Berlin";

static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone of the IANA database.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    /// Returns the zone of an IANA name such as `Europe/Berlin`; letters of either case are equal.
    ///
    /// # Errors
    /// [`CalendarError::UnknownZone`] with a near name. Offsets (`+01:00`), abbreviations (`CEST`) and POSIX rules have
    /// no zone.
    pub fn parse(name: &str) -> Result<Self, CalendarError> {
        let unknown = || CalendarError::UnknownZone { value: quoted(name), near: near(name) };
        if name.len() > NAME_BYTES_MAX {
            return Err(unknown());
        }
        let bundled = BUNDLED.get(name).map_err(|_| unknown())?;
        let name = bundled.iana_name().ok_or_else(unknown)?.to_owned();
        let rules = jiff::tz::db().get(&name).unwrap_or(bundled);
        Ok(Self { name, rules })
    }

    /// Returns Coordinated Universal Time.
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), rules: TimeZone::UTC }
    }

    /// Returns the IANA name, in the letters of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an instant (milliseconds since the Unix epoch) as a local time for people: `Tue 2026-12-01 08:00 CET`.
    /// An instant outside of the years -9999 to 9999 is shown as its number.
    pub fn local(&self, at_ms: i64) -> String {
        match Timestamp::from_millisecond(at_ms) {
            Ok(at) => at.to_zoned(self.rules.clone()).strftime("%a %Y-%m-%d %H:%M %Z").to_string(),
            Err(_) => at_ms.to_string(),
        }
    }

    /// Returns the rules of the zone.
    pub fn rules(&self) -> &TimeZone {
        &self.rules
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Zone({})", self.name)
    }
}

/// Returns the zone whose city has this name, or whose name is most similar, or an example.
fn near(name: &str) -> String {
    let names: Vec<_> = BUNDLED.available().collect();
    let city = name.trim().replace(' ', "_");
    let of_city = names.iter().map(|known| known.as_str()).find(|known| {
        let last = known.rsplit_once('/').map_or(*known, |(_, last)| last);
        last.eq_ignore_ascii_case(&city)
    });
    let known = || names.iter().map(|known| known.as_str());
    of_city.or_else(|| nearest(name, known(), SIMILARITY_MIN)).unwrap_or(EXAMPLE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_zone_is_refused_with_a_near_name() {
        let near_of = |name: &str| match Zone::parse(name) {
            Err(CalendarError::UnknownZone { near, .. }) => near,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(near_of("Europe/Berln"), "Europe/Berlin");
        assert_eq!(near_of("berlin"), "Europe/Berlin");
        assert_eq!(near_of("New York"), "America/New_York");
        assert_eq!(near_of("banana"), EXAMPLE);
        assert_eq!(near_of(&"x".repeat(10_000)), EXAMPLE);
    }

    #[test]
    fn text_that_is_no_iana_name_is_refused() {
        let paths = ["EST5EDT,M3.2.0,M11.1.0", "../etc/passwd", "/etc/localtime", "Etc/Unknown"];
        for name in [&["", " ", "+01:00", "CEST", "local"][..], &paths].concat() {
            assert_eq!(Zone::parse(name).expect_err(name).code(), "unknown_zone", "{name}");
        }
        let long = Zone::parse(&"x".repeat(10_000)).expect_err("too long").to_string();
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn name_has_the_letters_of_the_database() {
        for (written, name) in [
            ("europe/BERLIN", "Europe/Berlin"),
            ("UTC", "UTC"),
            ("Etc/GMT+5", "Etc/GMT+5"),
            ("Asia/Beirut", "Asia/Beirut"),
        ] {
            assert_eq!(Zone::parse(written).expect("a zone").name(), name);
        }
    }

    #[test]
    fn local_time_names_day_and_abbreviation() {
        let berlin = Zone::parse("Europe/Berlin").expect("a zone");
        assert_eq!(berlin.local(1_796_108_400_000), "Tue 2026-12-01 08:00 CET");
        assert_eq!(berlin.local(i64::MAX), i64::MAX.to_string());
    }
}
