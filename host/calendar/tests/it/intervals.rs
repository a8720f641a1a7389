//! Intervals and single instants in zones.

use crate::{due, ms, zone};
use ironclaw_calendar::{Kind, Recurrence, Series};

fn every(zone_name: &str, text: &str, anchor: &str) -> Series {
    Series { recurrence: Recurrence::every(text).expect(text), zone: zone(zone_name), anchor: ms(anchor) }
}

/// Returns the code of a refused time, on 26 November 2026.
fn refused_at(text: &str) -> &'static str {
    let now = ms("2026-11-26T12:00:00Z");
    Recurrence::at(text, &zone("Europe/Berlin"), now).expect_err(text).code()
}

fn at(zone_name: &str, text: &str) -> String {
    let recurrence = Recurrence::at(text, &zone(zone_name), ms("2026-01-01T00:00:00Z")).expect(text);
    assert_eq!(recurrence.kind(), Kind::At);
    recurrence.to_string()
}

#[test]
fn unreadable_time_is_refused() {
    for text in [
        "banana",
        "",
        "tomorrow",
        "2026-12-01",
        "08:00",
        "20261201T0800",
        "2026-12-01T8:00",
        "2026-13-01T08:00",
        "2026-12-32T08:00",
        "2027-02-29T08:00",
        "2026-12-01T25:00",
        "2026-12-01T08:00Z",
        "2026-12-01T08:00+01:00",
        "2026-12-01T08:00[Europe/Berlin]",
        "2026-12-01T08:00:00+01:00[Europe/Berlin]",
        "2026-12-01T08:00 CET",
        "١٢٣٤-12-01T08:00",
        "1795000000",
    ] {
        assert_eq!(refused_at(text), "at_unreadable", "{text}");
    }
    assert_eq!(refused_at(&"2".repeat(10_000)), "at_unreadable");
}

#[test]
fn time_in_the_past_is_refused_with_the_present() {
    for text in ["2026-11-26T13:00", "2026-11-26T12:00:00Z", "2020-01-01T00:00", "2026-11-26T13:59:59+02:00"] {
        assert_eq!(refused_at(text), "at_past", "{text}");
    }
    let error = Recurrence::at("2026-11-26T08:00", &zone("Europe/Berlin"), ms("2026-11-26T12:00:00Z"));
    let error = error.expect_err("in the past").to_string();
    assert!(error.contains("Thu 2026-11-26 13:00 CET"), "{error}");
}

#[test]
fn text_that_is_no_recurrence_is_refused() {
    for (text, code) in [
        ("banana", "recurrence_unreadable"),
        ("every day", "recurrence_unreadable"),
        ("0 8 * *", "recurrence_unreadable"),
        ("60 8 * * *", "cron_field"),
        ("30s", "interval_unit"),
    ] {
        assert_eq!(Recurrence::repeated(text).expect_err(text).code(), code, "{text}");
    }
    assert_eq!(Recurrence::parse(Kind::At, "2026-12-01T08:00").expect_err("local").code(), "at_unreadable");
    assert_eq!("banana".parse::<Kind>().expect_err("no kind").code(), "unknown_kind");
}

#[test]
fn recurrence_of_either_form_is_read() {
    assert_eq!(Recurrence::repeated("daily"), Recurrence::every("1d"));
    assert_eq!(Recurrence::repeated(" 2h 30m "), Recurrence::every("150m"));
    assert_eq!(Recurrence::repeated("0 8 * * MON"), Recurrence::cron("0 8 * * mon"));
}

#[test]
fn local_time_is_read_in_its_zone() {
    for (zone, text, instant) in [
        ("Europe/Berlin", "2026-12-01T08:00", "2026-12-01T07:00:00Z"),
        ("America/New_York", "2026-12-01 08:00", "2026-12-01T13:00:00Z"),
        ("Australia/Lord_Howe", "2026-12-01T08:00:30", "2026-11-30T21:00:30Z"),
        ("Europe/Berlin", "2026-12-01T08:00:00+05:30", "2026-12-01T02:30:00Z"),
        ("Europe/Berlin", "2026-12-01t08:00:00.25z", "2026-12-01T08:00:00.25Z"),
        // In a gap: the first instant after it.
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30:00Z"),
        ("Asia/Beirut", "2026-03-29T00:00", "2026-03-28T22:00:00Z"),
        // In an overlap: the first instant.
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30:00Z"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30:00Z"),
        ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45:00Z"),
        ("Asia/Beirut", "2026-10-24T23:30", "2026-10-24T20:30:00Z"),
    ] {
        assert_eq!(at(zone, text), instant, "{zone} {text}");
    }
}

#[test]
fn single_instant_is_due_once() {
    let recurrence = Recurrence::at("2026-12-01T08:00", &zone("Europe/Berlin"), 0).expect("a time");
    let series = Series { recurrence, zone: zone("Europe/Berlin"), anchor: ms("2026-11-26T12:00:00Z") };
    assert_eq!(due(&series, "2026-11-26T12:00:00Z", 5), ["2026-12-01T08:00+01:00"]);
    assert_eq!(series.next_after(ms("2026-12-01T07:00:00Z")), None);
}

#[test]
fn hours_count_real_time_over_gap_and_overlap() {
    let series = every("Europe/Berlin", "2h", "2026-03-28T23:30:00Z");
    assert_eq!(
        due(&series, "2026-03-28T23:30:00Z", 2),
        ["2026-03-29T03:30+02:00", "2026-03-29T05:30+02:00"],
        "one hour of the clock is missing"
    );
    let series = every("America/New_York", "90m", "2026-11-01T04:00:00Z");
    assert_eq!(
        due(&series, "2026-11-01T04:00:00Z", 3),
        ["2026-11-01T01:30-04:00", "2026-11-01T02:00-05:00", "2026-11-01T03:30-05:00"]
    );
}

#[test]
fn days_keep_the_wall_time_over_gap_and_overlap() {
    for (zone, text, anchor, expected) in [
        ("Europe/Berlin", "1d", "2026-03-27T07:00:00Z", ["2026-03-28T08:00+01:00", "2026-03-29T08:00+02:00"]),
        ("Europe/Berlin", "1d", "2026-03-28T01:30:00Z", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
        ("Europe/Berlin", "1d", "2026-10-24T00:30:00Z", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        ("America/New_York", "weekly", "2026-10-28T12:00:00Z", ["2026-11-04T08:00-05:00", "2026-11-11T08:00-05:00"]),
        ("Australia/Lord_Howe", "2d", "2026-10-01T15:45:00Z", ["2026-10-04T02:30+11:00", "2026-10-06T02:15+11:00"]),
        ("Asia/Beirut", "1w", "2026-03-21T22:30:00Z", ["2026-03-29T01:00+03:00", "2026-04-05T00:30+03:00"]),
        // The anchor is in the second pass of 02:30.
        ("Europe/Berlin", "1d", "2026-10-25T01:30:00Z", ["2026-10-26T02:30+01:00", "2026-10-27T02:30+01:00"]),
    ] {
        let series = every(zone, text, anchor);
        assert_eq!(due(&series, anchor, 2), expected, "{zone} {text}");
        assert_eq!(series.next_after(ms(anchor) - 1), Some(ms(anchor)), "the anchor is an occurrence");
        assert_eq!(series.next_after(i64::MIN), Some(ms(anchor)), "the anchor is the first occurrence");
    }
}

#[test]
fn instants_out_of_range_have_no_occurrence() {
    for text in ["1m", "1d"] {
        let series = every("Europe/Berlin", text, "2026-11-26T12:00:00Z");
        assert_eq!(series.next_after(i64::MAX), None, "{text}");
        assert!(series.count_between(series.anchor, i64::MAX) > 0, "{text}");
        let far = Series { anchor: i64::MIN, ..series };
        assert_eq!(far.next_after(i64::MAX), None, "{text}");
    }
    let cron = crate::cron("Europe/Berlin", "* * * * *");
    assert_eq!(cron.next_after(i64::MAX), None);
}

#[test]
fn newest_occurrences_are_found_without_the_others() {
    let series = crate::cron("Europe/Berlin", "0 8 * * *");
    let (after, until) = (ms("2020-01-01T00:00:00Z"), ms("2026-11-26T07:00:00Z"));
    let last = series.last_between(after, until, 2);
    assert_eq!(last, [ms("2026-11-25T07:00:00Z"), until], "the end is part of the range");
    assert_eq!(series.last_between(until, until, 2), [0_i64; 0], "the beginning is not");
    assert_eq!(series.last_between(after, until, 0), [0_i64; 0]);
    assert_eq!(series.last_between(ms("2026-11-24T08:00:00Z"), until, 9).len(), 2);
    assert_eq!(series.last_between(until, after, 9), [0_i64; 0], "the range is empty");
}

#[test]
fn recurrence_with_a_first_time_follows_it() {
    let starting = |recurrence: Recurrence, first: &str| {
        let first = Recurrence::at(first, &zone("Europe/Berlin"), 0).expect("a time");
        let anchor = ms("2026-11-26T12:00:00Z");
        Series { recurrence: recurrence.starting(&first), zone: zone("Europe/Berlin"), anchor }
    };
    let daily = starting(Recurrence::every("1d").expect("a period"), "2026-12-01T08:30");
    let eight = starting(Recurrence::cron("0 8 * * *").expect("an expression"), "2026-12-01T08:30");
    let same = starting(Recurrence::cron("0 8 * * *").expect("an expression"), "2026-12-01T08:00");
    for (series, times) in [
        (&daily, ["2026-12-01T08:30+01:00", "2026-12-02T08:30+01:00", "2026-12-03T08:30+01:00"]),
        (&eight, ["2026-12-01T08:30+01:00", "2026-12-02T08:00+01:00", "2026-12-03T08:00+01:00"]),
        (&same, ["2026-12-01T08:00+01:00", "2026-12-02T08:00+01:00", "2026-12-03T08:00+01:00"]),
    ] {
        assert_eq!(due(series, "2026-11-26T12:00:00Z", 3), times);
        assert_eq!(due(series, "2026-12-01T07:45:00Z", 1), times[1..2], "also after the first time");
        let third = ms("2026-12-03T07:30:00Z");
        assert_eq!(series.count_between(series.anchor, third), 3);
        assert!(series.has(ms("2026-12-02T07:30:00Z")) == (times[1] == "2026-12-02T08:30+01:00"));
    }
}

#[test]
fn count_has_each_of_many_occurrences() {
    let (anchor, day) = (ms("2026-01-01T00:00:00Z"), 24 * 3_600_000);
    let minutes = |recurrence: Recurrence| Series { recurrence, zone: zone("Europe/Berlin"), anchor };
    for (recurrence, a_day) in [
        (Recurrence::every("1m").expect("a period"), 1440),
        (Recurrence::cron("* * * * *").expect("an expression"), 1440),
        (Recurrence::cron("*/5 * * * *").expect("an expression"), 288),
        (Recurrence::every("1d").expect("a period"), 1),
    ] {
        let series = minutes(recurrence);
        assert_eq!(series.count_between(anchor, anchor + 400 * day), 400 * a_day, "{:?}", series.recurrence);
        assert_eq!(series.count_between(anchor + 400 * day, anchor), 0, "the range is empty");
    }
}
