//! The wait that the headers of an answer request.
//!
//! Never reads a body. See [`super::wait`] for the words.

use super::wait::{LONGEST, duration};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// Numbers from which on a wait is a time since the epoch: in seconds, and in milliseconds.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MS: f64 = 1e12;

/// Returns the wait that an answer requests, in seconds, with a unit, or until a date. A longer one than [`LONGEST`] is cut.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let ms = ["retry-after-ms", "x-ms-retry-after-ms"].iter().find_map(|name| text(headers, name)?.parse::<u64>().ok());
    if let Some(ms) = ms {
        return Some(Duration::from_millis(ms).min(LONGEST));
    }
    wait(text(headers, "retry-after")?, now)
}

/// Returns the time until a limit that is used up begins anew. Without a count of what is left, the first of the limits counts.
pub fn reset(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let resets = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        let (is_reset, remaining) = match (name.strip_prefix("x-ratelimit-reset"), name.strip_suffix("-reset")) {
            (Some(limit), _) => (true, format!("x-ratelimit-remaining{limit}")),
            (None, Some(limit)) => (limit.contains("ratelimit-"), format!("{limit}-remaining")),
            (None, None) => (false, String::new()),
        };
        let wait = wait(value.to_str().ok().filter(|_| is_reset)?.trim(), now)?;
        Some((wait, text(headers, &remaining) == Some("0")))
    });
    let resets: Vec<(Duration, bool)> = resets.collect();
    let used_up = resets.iter().filter(|(_, is_used_up)| *is_used_up).map(|(wait, _)| *wait).max();
    used_up.or_else(|| resets.iter().map(|(wait, _)| *wait).min())
}

/// Returns whether the server says that another attempt is of no use.
pub fn is_final(headers: &HeaderMap) -> bool {
    text(headers, "x-should-retry") == Some("false")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Returns the wait in a value: a number of seconds, a time since the epoch, a duration with its unit, or a date. A time in the past
/// means no wait.
pub(super) fn wait(value: &str, now: Timestamp) -> Option<Duration> {
    let until = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default().min(LONGEST);
    if let Ok(number) = value.parse::<f64>() {
        if number.is_nan() || number < 0.0 {
            return None;
        }
        let since_epoch = match number {
            number if number >= EPOCH_MS => number / 1000.0,
            number => number,
        };
        let is_time = (EPOCH_SECONDS..EPOCH_SECONDS * 10.0).contains(&since_epoch);
        let seconds = if is_time { since_epoch - now.as_duration().as_secs_f64() } else { number };
        return Some(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(LONGEST).min(LONGEST));
    }
    let date = value.parse::<Timestamp>().ok();
    let date = date.or_else(|| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok());
    date.map(until).or_else(|| duration(&value.to_lowercase()))
}
