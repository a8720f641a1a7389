//! The wait that the words of an error request: a field, or a sentence such as "try again in 7m12.5s".
//!
//! Reads words in lower case. The header of an answer precedes them: see [`super::retry_after`].

use super::wait_headers;
use jiff::Timestamp;
use std::time::Duration;

/// The longest wait that counts; a longer one is as good as none at all for a person.
pub(super) const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Fields whose value is a wait, with the unit of a value without one.
const FIELDS: [(&str, &str); 7] = [
    ("retryDelay", "s"),
    ("retry_delay", "s"),
    ("retryAfter", "s"),
    ("retry_after", "s"),
    ("retry_after_seconds", "s"),
    ("retry_after_ms", "ms"),
    ("Retry-After", "s"),
];
/// Words in front of a wait.
const INTRODUCTIONS: [&str; 7] = [
    "try again in ",
    "retry in ",
    "retry after ",
    "retry again in ",
    "try again after ",
    "please wait ",
    "please wait for ",
];

/// Returns the sentence for a field of an error that holds a wait, so that [`requested`] finds it; `None` for any other field.
pub(super) fn sentence(field: &str, value: &serde_json::Value) -> Option<String> {
    // The headers of the provider behind OpenRouter.
    if field.eq_ignore_ascii_case("x-ratelimit-reset") {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let wait = wait_headers::wait(value.trim(), Timestamp::now())?;
        return Some(format!("retry after {}ms. ", wait.as_millis()));
    }
    let (_, unit) = FIELDS.iter().find(|(name, _)| *name == field)?;
    let value = match value {
        serde_json::Value::Number(number) => number.to_string(),
        serde_json::Value::String(text) => text.to_lowercase(),
        // A duration of protocol buffers.
        serde_json::Value::Object(parts) => parts.get("seconds").map(|seconds| seconds.to_string().replace('"', ""))?,
        _ => return None,
    };
    let unit = if value.ends_with(|last: char| last.is_ascii_digit()) { unit } else { "" };
    Some(format!("retry after {value}{unit}. "))
}

/// Returns the wait that these words request. The longest counts: a limit by minutes may be beside one by seconds.
pub(super) fn requested(words: &str) -> Option<Duration> {
    let behind = |introduction: &&str| {
        let places = words.match_indices(*introduction).map(|(at, found)| at + found.len());
        places.filter_map(|at| duration(&words[at..])).max()
    };
    INTRODUCTIONS.iter().filter_map(behind).max()
}

/// Reads the duration at the start of a text: `1h2m3.5s`, `250ms`, `6 seconds`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum: Option<Duration> = None;
    while let Some((part, behind)) = part(rest) {
        sum = Some(sum.unwrap_or_default().saturating_add(part).min(LONGEST));
        rest = behind;
    }
    sum
}

/// Reads one number with its unit, and returns what is behind it.
fn part(text: &str) -> Option<(Duration, &str)> {
    let text = text.trim_start_matches([' ', ',']);
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let behind = text[digits..].trim_start();
    let letters = behind.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(behind.len());
    let seconds = match &behind[..letters] {
        "ms" | "millisecond" | "milliseconds" => number / 1000.0,
        "s" | "sec" | "secs" | "second" | "seconds" => number,
        "m" | "min" | "mins" | "minute" | "minutes" => number * 60.0,
        "h" | "hr" | "hour" | "hours" => number * 3600.0,
        "d" | "day" | "days" => number * 86_400.0,
        _ => return None,
    };
    Some((Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST), &behind[letters..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_read_from_the_words_of_servers() {
        for (words, ms) in [
            ("rate limit reached for x. please try again in 20ms. visit", Some(20)),
            ("please try again in 1.2s.", Some(1200)),
            ("please try again in 6m0s.", Some(360_000)),
            ("try again in 7m12.5s", Some(432_500)),
            ("please retry after 6 seconds.", Some(6000)),
            ("please retry in 34.074824224s.", Some(34_074)),
            ("retry in 1 hour, 2 minutes", Some(3_720_000)),
            ("retry after 1s. try again in 2 minutes", Some(120_000)),
            ("please try again in a few minutes", None),
            ("retry after", None),
            ("retry in 5 apples", None),
            ("retry in 9e999s", None),
            ("wait 5s", None),
            ("exceeded. please wait 43000 seconds before retrying.", Some(43_000_000)),
            ("retry in 2 days", Some(172_800_000)),
            ("retry in 99999999999999999999 hours", Some(LONGEST.as_millis())),
        ] {
            assert_eq!(requested(words).map(|wait| wait.as_millis()), ms, "{words}");
        }
    }

    #[test]
    fn wait_is_read_from_fields() {
        for (field, value, words) in [
            ("retryDelay", serde_json::json!("34s"), Some("retry after 34s. ")),
            ("retryDelay", serde_json::json!({ "seconds": 1, "nanos": 5 }), Some("retry after 1s. ")),
            ("retryDelay", serde_json::json!({ "seconds": "2" }), Some("retry after 2s. ")),
            ("retry_after_ms", serde_json::json!(250), Some("retry after 250ms. ")),
            ("X-RateLimit-Reset", serde_json::json!("1000000000000"), Some("retry after 0ms. ")),
            ("X-RateLimit-Limit", serde_json::json!("20"), None),
            ("retryDelay", serde_json::json!([1]), None),
        ] {
            assert_eq!(sentence(field, &value).as_deref(), words, "{field} {value}");
        }
    }
}
