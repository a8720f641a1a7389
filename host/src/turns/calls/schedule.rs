//! Checks of the times of a `schedule_task` call: a first instant, a recurrence, or both.
//!
//! Never books a run and never computes the next one. See `turns::calls::judge`.

use ironclaw_contract::seam::action::ScheduleTask;
use jiff::{Span, SpanRelativeTo, Timestamp, Unit};

/// Shortest time between two runs of a task.
const RECURRENCE_SECONDS_MIN: f64 = 60.0;
/// Characters that are quoted of a refused value.
const QUOTED_CHARACTERS_MAX: usize = 64;
/// Shortest text of an RFC 3339 instant: `2026-11-22T08:00:00Z`.
const INSTANT_BYTES_MIN: usize = 20;

/// The fields of a cron expression, in order: name, lowest value, highest value, names of values.
const CRON_FIELDS: [(&str, u32, u32, &[&str]); 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of month", 1, 31, &[]),
    ("month", 1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    ("day of week", 0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Checks that a task has a time to run in a form that a scheduler can read.
///
/// # Errors
/// A sentence for the model that names the field and the accepted forms.
pub(super) fn check(task: &ScheduleTask) -> Result<(), String> {
    if task.run_at.is_none() && task.recurrence.is_none() {
        return Err("schedule_task needs run_at or recurrence".to_owned());
    }
    if let Some(run_at) = &task.run_at
        && !is_instant(run_at)
    {
        let quoted = quoted(run_at);
        return Err(format!("run_at {quoted} is not an RFC 3339 instant such as 2026-11-22T08:00:00Z"));
    }
    match &task.recurrence {
        Some(recurrence) => check_recurrence(recurrence),
        None => Ok(()),
    }
}

fn is_instant(text: &str) -> bool {
    // The parser also takes shorter forms of ISO 8601.
    let at = |place: usize, letters: &[u8]| text.as_bytes().get(place).is_some_and(|letter| letters.contains(letter));
    let has_shape = text.len() >= INSTANT_BYTES_MIN
        && at(4, b"-")
        && at(7, b"-")
        && at(10, b"Tt ")
        && at(13, b":")
        && at(16, b":")
        && !text.contains('[');
    has_shape && text.parse::<Timestamp>().is_ok()
}

fn check_recurrence(text: &str) -> Result<(), String> {
    if matches!(text, "hourly" | "daily" | "weekly") {
        return Ok(());
    }
    if let Ok(span) = text.parse::<Span>() {
        return match span.total((Unit::Second, SpanRelativeTo::from(jiff::civil::date(2026, 1, 1)))) {
            Ok(seconds) if seconds >= RECURRENCE_SECONDS_MIN => Ok(()),
            Ok(_) | Err(_) => Err(format!("recurrence {} is shorter than a minute", quoted(text))),
        };
    }
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    if fields.len() == CRON_FIELDS.len() {
        return fields.iter().zip(CRON_FIELDS).try_for_each(|(field, (name, low, high, names))| {
            let fits = field.split(',').all(|part| is_cron_part(part, low, high, names));
            if fits { Ok(()) } else { Err(format!("recurrence {}: the {name} cannot be read", quoted(text))) }
        });
    }
    let quoted = quoted(text);
    Err(format!(
        "recurrence {quoted} cannot be read: use hourly, daily, weekly, a duration such as 15m or P1D, or a cron expression of five fields"
    ))
}

/// Returns whether a part of a field is `*`, a value, or a range, each with an optional step.
fn is_cron_part(part: &str, low: u32, high: u32, names: &[&str]) -> bool {
    let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
    let value = |text: &str| {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let named = named.and_then(|place| u32::try_from(place).ok()).map(|place| place + low);
        let number = || text.bytes().all(|letter| letter.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        named.or_else(number).filter(|value| (low..=high).contains(value))
    };
    let has_range = match range.split_once('-') {
        _ if range == "*" => true,
        Some((first, last)) => value(first).zip(value(last)).is_some_and(|(first, last)| first <= last),
        None => value(range).is_some() && step.is_none(),
    };
    let steps = |step: &str| step.parse::<u32>().is_ok_and(|step| (1..=high).contains(&step));
    has_range && step.is_none_or(steps)
}

fn quoted(text: &str) -> String {
    let kept: String = text.chars().take(QUOTED_CHARACTERS_MAX).collect();
    format!("{kept:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(run_at: Option<&str>, recurrence: Option<&str>) -> Result<(), String> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        check(&ScheduleTask { prompt: "p".into(), run_at: text(run_at), recurrence: text(recurrence) })
    }

    #[test]
    fn unreadable_schedule_is_refused() {
        for recurrence in [
            "banana",
            "Daily",
            "",
            "every day",
            "0 8 * *",
            "0 8 * * * *",
            "60 8 * * *",
            "0 24 * * *",
            "0 8 0 * *",
            "0 8 * 13 *",
            "0 8 * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "1/2 * * * *",
            "a * * * *",
            "-15m",
            "0s",
            "30s",
            "PT1S",
        ] {
            let refused = checked(None, Some(recurrence)).expect_err(recurrence);
            assert!(refused.contains("recurrence"), "{refused}");
        }
        for run_at in
            ["tomorrow", "2026-11-22", "2026-11-22T08:00:00", "2026-13-22T08:00:00Z", "1795000000", "20261122T080000Z"]
        {
            assert!(checked(Some(run_at), None).expect_err(run_at).contains("run_at"), "{run_at}");
        }
        assert!(checked(None, None).is_err());
        assert!(checked(Some("2030-01-01T00:00:00Z"), Some("banana")).is_err(), "each of the two is checked");
        let long = checked(None, Some(&"x".repeat(10_000))).expect_err("no recurrence");
        assert!(long.len() < 300, "{}", long.len());
    }

    #[test]
    fn schedule_in_each_documented_form_is_accepted() {
        for recurrence in [
            "hourly",
            "daily",
            "weekly",
            "15m",
            "2h 30m",
            "1d",
            "PT15M",
            "P1D",
            "P1W",
            "P1M",
            "0 8 * * *",
            "*/15 9-17 * * mon-fri",
            "0,30 8 1,15 jan,JUL 0",
            "0 0 1-31/2 * 7",
        ] {
            assert_eq!(checked(None, Some(recurrence)), Ok(()), "{recurrence}");
        }
        for run_at in ["2026-11-22T08:00:00Z", "2026-11-22T08:00:00.25+01:00", "2026-11-22t08:00:00-05:30"] {
            assert_eq!(checked(Some(run_at), None), Ok(()), "{run_at}");
        }
    }
}
