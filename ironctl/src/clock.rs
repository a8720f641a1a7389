//! The times of the host in its time zone, or in that of this machine as long as no host has named one.
//!
//! Never fails: an invalid time is shown unchanged. See [`crate::commands`].

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::OnceLock;

/// The zone that the first answer of the host named.
static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Shows all later times in this zone, by its IANA name. A name that this machine does not know changes nothing.
pub fn show_in(name: &str) {
    if ZONE.get().is_none()
        && let Ok(zone) = TimeZone::get(name)
    {
        // Another thread named the same one.
        let _ = ZONE.set(zone);
    }
}

/// Formats RFC 3339 as local date and time, to the second.
pub fn date_and_time(rfc3339: &str) -> String {
    local(rfc3339, "%Y-%m-%d %H:%M:%S")
}

/// Formats RFC 3339 as local date and time, to the minute: for a list.
pub fn to_the_minute(rfc3339: &str) -> String {
    local(rfc3339, "%Y-%m-%d %H:%M")
}

/// Formats RFC 3339 as local time of day, to the millisecond.
pub fn time_of_day(rfc3339: &str) -> String {
    local(rfc3339, "%H:%M:%S%.3f")
}

fn local(rfc3339: &str, format: &str) -> String {
    match rfc3339.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(ZONE.get().cloned().unwrap_or_else(TimeZone::system)).strftime(format).to_string(),
        Err(_) => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_time_is_shown_unchanged() {
        assert_eq!(time_of_day("soon"), "soon");
        assert_eq!(time_of_day("2026-01-02T03:04:05.678Z").len(), "03:04:05.678".len());
    }
}
