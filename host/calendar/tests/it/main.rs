//! The tests of the calendar through its public functions.

mod intervals;
mod properties;
mod reference;
mod zones;

use ironclaw_calendar::{Recurrence, Series, Zone};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Returns the instant of an RFC 3339 text in milliseconds since the Unix epoch.
fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().expect(text).as_millisecond()
}

fn zone(name: &str) -> Zone {
    Zone::parse(name).expect(name)
}

fn cron(zone_name: &str, text: &str) -> Series {
    Series { recurrence: Recurrence::cron(text).expect(text), zone: zone(zone_name), anchor: 0 }
}

/// Returns the first occurrences after an instant as local times with their offsets.
fn due(series: &Series, after: &str, count: usize) -> Vec<String> {
    let rules = TimeZone::get(series.zone.name()).expect("a zone of the database");
    let written = |at: i64| {
        let at = Timestamp::from_millisecond(at).expect("in range");
        at.to_zoned(rules.clone()).strftime("%Y-%m-%dT%H:%M%:z").to_string()
    };
    series.due_between(ms(after), i64::MAX, count).into_iter().map(written).collect()
}
