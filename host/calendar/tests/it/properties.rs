//! Generated recurrences in zones with transitions, compared with the reference.

use crate::reference::{Fields, MINUTE_MS, clock, first_shown};
use crate::zone;
use ironclaw_calendar::{Recurrence, Series};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Zones with a gap and an overlap of an hour or less, at night and at midnight, one without, and one that left out a
/// day.
const ZONES: &[&str] = &[
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Africa/Cairo",
    "America/Havana",
    "Pacific/Apia",
    "Asia/Kolkata",
    "UTC",
];
/// Minutes before a transition at which a comparison begins, and its length: three days.
const LEAD_MINUTES: i64 = 36 * 60;
const WINDOW_MINUTES: i64 = 72 * 60;

/// A field with its text and its values.
#[derive(Debug, Clone)]
struct Field {
    text: String,
    values: BTreeSet<i8>,
}

fn part(low: i8, high: i8) -> impl Strategy<Value = Field> {
    let step = |first: i8, last: i8, step: i8| (first..=last).step_by(usize::from(step.unsigned_abs())).collect();
    prop_oneof![
        3 => Just(Field { text: "*".into(), values: (low..=high).collect() }),
        3 => (low..=high).prop_map(|value| Field { text: value.to_string(), values: [value].into() }),
        1 => (1..=high).prop_map(move |by| Field { text: format!("*/{by}"), values: step(low, high, by) }),
        1 => (low..=high, low..=high).prop_map(move |(a, b)| {
            let (first, last) = (a.min(b), a.max(b));
            Field { text: format!("{first}-{last}"), values: (first..=last).collect() }
        }),
        1 => (low..=high, low..=high, 1..=high).prop_map(move |(a, b, by)| {
            let (first, last) = (a.min(b), a.max(b));
            Field { text: format!("{first}-{last}/{by}"), values: step(first, last, by) }
        }),
    ]
}

fn field(low: i8, high: i8) -> impl Strategy<Value = Field> {
    vec(part(low, high), 1..=2).prop_map(|parts| Field {
        text: parts.iter().map(|part| part.text.clone()).collect::<Vec<_>>().join(","),
        values: parts.into_iter().flat_map(|part| part.values).collect(),
    })
}

/// Hours near transitions, or any.
fn hour() -> impl Strategy<Value = Field> {
    prop_oneof![
        (0..=3_i8).prop_map(|hour| Field { text: hour.to_string(), values: [hour].into() }),
        Just(Field { text: "23".into(), values: [23].into() }),
        field(0, 23),
    ]
}

prop_compose! {
    fn expression()(
        minute in field(0, 59),
        hour in hour(),
        day in field(1, 31),
        month in field(1, 12),
        weekday in field(0, 6),
    ) -> (String, Fields) {
        let text = [&minute, &hour, &day, &month, &weekday].map(|field| field.text.as_str()).join(" ");
        let fields = Fields {
            either_day: !day.text.contains('*') && !weekday.text.contains('*'),
            has_open_hour: hour.text.contains(['*', '/']),
            minutes: minute.values,
            hours: hour.values,
            days: day.values,
            months: month.values,
            weekdays: weekday.values,
        };
        (text, fields)
    }
}

prop_compose! {
    /// A zone, and an instant in whole minutes: mostly 36 hours before a transition.
    fn place()(name in prop::sample::select(ZONES), second in 1_300_000_000_i64..1_900_000_000, near in 0..5_i64)
        -> (&'static str, i64) {
        let rules = TimeZone::get(name).expect("a zone of the database");
        let any = Timestamp::from_second(second).expect("in range");
        let transition = rules.following(any).next().map(|transition| transition.timestamp());
        let at = transition.filter(|_| near > 0).unwrap_or(any).as_millisecond();
        (name, at.div_euclid(MINUTE_MS) * MINUTE_MS - LEAD_MINUTES * MINUTE_MS)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn cron_agrees_with_the_minutes_of_the_clock((text, fields) in expression(), (name, first) in place()) {
        let Ok(recurrence) = Recurrence::cron(&text) else {
            let never = fields.due(&TimeZone::UTC, first, WINDOW_MINUTES).is_empty();
            prop_assert!(never, "{text} is refused");
            return Ok(());
        };
        let series = Series { recurrence, zone: zone(name), anchor: 0 };
        let rules = TimeZone::get(name).expect("a zone of the database");
        let until = first + WINDOW_MINUTES * MINUTE_MS;
        let found = series.due_between(first, until, usize::MAX);
        prop_assert_eq!(&found, &fields.due(&rules, first, WINDOW_MINUTES), "{} in {}", text, name);
        let newest = found.len().min(5);
        prop_assert_eq!(&series.last_between(first, until, 5), &found[found.len() - newest..]);
        for part in [until, until - WINDOW_MINUTES * MINUTE_MS / 3, found.first().copied().unwrap_or(first)] {
            let counted = found.iter().filter(|due| **due <= part).count() as u64;
            prop_assert_eq!(series.count_between(first, part), counted, "{} in {}", text, name);
        }
    }

    #[test]
    fn days_agree_with_the_minutes_of_the_clock((name, first) in place(), days in 1..5_i64, minute in 0..4000_i64) {
        let text = format!("{days}d");
        let anchor = first + minute * MINUTE_MS;
        let series = Series { recurrence: Recurrence::every(&text).expect("an interval"), zone: zone(name), anchor };
        let rules = TimeZone::get(name).expect("a zone of the database");
        let begin = clock(&rules, anchor);
        let mut expected: Vec<i64> = (1..6).map(|number| first_shown(&rules, begin + (number * days).days())).collect();
        expected.dedup();
        prop_assert_eq!(series.due_between(anchor, i64::MAX, expected.len()), expected.clone(), "{} in {}", text, name);
        for (number, due) in (1..).zip(&expected) {
            prop_assert_eq!(series.count_between(anchor, *due), number, "{} in {}", text, name);
            prop_assert_eq!(series.count_between(anchor - 1, *due - 1), number, "with the anchor");
        }
    }

    #[test]
    fn local_time_agrees_with_the_minutes_of_the_clock((name, first) in place(), minute in 0..WINDOW_MINUTES) {
        let rules = TimeZone::get(name).expect("a zone of the database");
        let time = clock(&TimeZone::UTC, first + minute * MINUTE_MS);
        let at = Recurrence::at(&time.strftime("%Y-%m-%dT%H:%M").to_string(), &zone(name), 0).expect("a time");
        let expected = Timestamp::from_millisecond(first_shown(&rules, time)).expect("in range");
        prop_assert_eq!(at.to_string(), expected.to_string(), "{} in {}", time, name);
    }

    #[test]
    fn next_is_later_and_nothing_is_between((text, _) in expression(), (name, first) in place(), rest in 0..MINUTE_MS) {
        let Ok(recurrence) = Recurrence::cron(&text) else { return Ok(()) };
        let series = Series { recurrence, zone: zone(name), anchor: 0 };
        let after = first + rest;
        if let Some(next) = series.next_after(after) {
            prop_assert!(next > after, "{} in {}", text, name);
            prop_assert_eq!(series.next_after(next - 1), Some(next));
            prop_assert_eq!(series.next_after(after + (next - after) / 2), Some(next));
            let mut iterated = vec![next];
            while iterated.len() < 4 {
                let Some(next) = series.next_after(iterated[iterated.len() - 1]) else { break };
                iterated.push(next);
            }
            prop_assert_eq!(series.due_between(after, i64::MAX, 4), iterated);
        }
    }

    #[test]
    fn text_is_read_again(
        (text, _) in expression(),
        minutes in 1..527_040_u32,
        days in 1..=366_u32,
        at_ms in 1..4_000_000_000_000_i64,
    ) {
        let instant = Timestamp::from_millisecond(at_ms).expect("in range").to_string();
        let recurrences = [
            Recurrence::cron(&text),
            Recurrence::every(&format!("{minutes}m")),
            Recurrence::every(&format!("{days}d")),
            Recurrence::at(&instant, &zone("Asia/Beirut"), 0),
        ];
        let first = recurrences[3].clone().expect("a time");
        let starting = recurrences.clone().map(|recurrence| recurrence.map(|then| then.starting(&first)));
        let recurrences = recurrences.into_iter().chain(starting);
        for recurrence in recurrences.flatten() {
            prop_assert_eq!(Recurrence::parse(recurrence.kind(), &recurrence.to_string()), Ok(recurrence.clone()));
            prop_assert_eq!(recurrence.kind().as_str().parse(), Ok(recurrence.kind()));
        }
    }

    #[test]
    fn any_text_is_refused_or_read(text in ".{0,40}", now in any::<i64>()) {
        let utc = zone("UTC");
        let results = [
            Recurrence::cron(&text),
            Recurrence::every(&text),
            Recurrence::at(&text, &utc, now),
            Recurrence::repeated(&text),
        ];
        for error in results.into_iter().filter_map(Result::err) {
            prop_assert!(error.to_string().len() < 600, "{}", error);
        }
        prop_assert!(ironclaw_calendar::Zone::parse(&text).is_err() || text.len() < 40);
    }
}
