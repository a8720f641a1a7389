//! The reasons that servers give for the end of an answer.
//!
//! Never takes an unknown reason for a good one: calls run only behind a reason of the list. See [`crate::assembly`].

use serde_json::Value;

/// The reason for the end of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The output ends with calls.
    Calls,
    /// The host does not know the reason.
    Unknown,
    /// The output reached the limit of tokens.
    Length,
    /// Prompt and output together reached the end of the context.
    Full,
    /// The provider stopped it.
    Withheld,
    /// The server broke it off.
    Broken,
}

/// Reasons of whole answers.
const WHOLE: [&str; 25] = [
    "stop",
    "stop_sequence",
    "stop_token",
    "stopped",
    "end_turn",
    "end",
    "end_of_text",
    "end_of_turn",
    "eos",
    "eos_token",
    "eos_token_id",
    "eot",
    "complete",
    "completed",
    "done",
    "finish",
    "finished",
    "pause_turn",
    "success",
    "succeeded",
    "normal",
    "stop_sequences",
    "stop_str",
    "stop_word",
    "endoftext",
];
/// Reasons of answers with calls.
const CALLS: [&str; 8] =
    ["tool_calls", "tool_call", "tool_use", "function_call", "function_calls", "tooluse", "toolcalls", "functioncall"];
/// Parts of the reasons of answers that the provider stopped.
const WITHHELD: [&str; 17] = [
    "filter",
    "sensitive",
    "safety",
    "recitation",
    "refus",
    "prohibited",
    "blocklist",
    "blocked",
    "spii",
    "guardrail",
    "toxic",
    "moderat",
    "policy",
    "violation",
    "copyright",
    "harmful",
    "language",
];
/// Parts of the reasons of answers at the end of the context.
const FULL: [&str; 3] = ["context_window", "contextwindow", "context_length"];
/// Parts of the reasons of answers at a limit.
const LENGTH: [&str; 8] = ["length", "max_", "maxtoken", "maxoutput", "limit", "truncat", "budget", "exceeded"];
/// Parts of the reasons of answers that the server broke off.
const BROKEN: [&str; 18] = [
    "error",
    "abort",
    "cancel",
    "timeout",
    "timed_out",
    "time_limit",
    "deadline",
    "insufficient",
    "interrupt",
    "fail",
    "overload",
    "unavailable",
    "disconnect",
    "incomplete",
    "evict",
    "preempt",
    "shutdown",
    "malformed",
];

impl End {
    /// Reads the reason of an answer; `None` without one.
    pub fn read(reason: &Value) -> Option<Self> {
        let name = match reason {
            Value::Null => return None,
            Value::String(reason) => normal(reason),
            Value::Object(fields) => normal(fields.get("type").and_then(Value::as_str).unwrap_or("?")),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => "?".to_owned(),
        };
        if name.is_empty() {
            return None;
        }
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        Some(match name.as_str() {
            name if WHOLE.contains(&name) => Self::Whole,
            name if CALLS.contains(&name) => Self::Calls,
            _ if has(&["time_limit", "rate_limit"]) => Self::Broken,
            _ if has(&WITHHELD) => Self::Withheld,
            _ if has(&FULL) => Self::Full,
            _ if has(&LENGTH) => Self::Length,
            _ if has(&BROKEN) => Self::Broken,
            _ => Self::Unknown,
        })
    }

    /// Reads the reason of a provider behind a gateway, which counts only if it cuts the answer short.
    pub fn read_native(reason: &Value) -> Option<Self> {
        Self::read(reason).filter(|end| end.cuts_short())
    }

    /// Returns whether the output is not the whole answer.
    pub const fn cuts_short(self) -> bool {
        matches!(self, Self::Length | Self::Full | Self::Withheld | Self::Broken)
    }

    /// Returns the reason that holds after another one came before: the first that cuts the output short, else the one that permits
    /// less.
    pub const fn after(self, before: Option<Self>) -> Self {
        match (before, self) {
            (None, end) => end,
            (Some(before), _) if before.cuts_short() => before,
            (Some(_), end) if end.cuts_short() => end,
            (Some(Self::Unknown), _) | (Some(_), Self::Unknown) => Self::Unknown,
            (Some(Self::Calls), _) | (Some(_), Self::Calls) => Self::Calls,
            (Some(_), _) => Self::Whole,
        }
    }
}

/// Returns a reason in small letters, with one mark between its words.
fn normal(reason: &str) -> String {
    let letter = |letter: char| if matches!(letter, '-' | ' ' | '.') { '_' } else { letter.to_ascii_lowercase() };
    let name: String = reason.trim().chars().map(letter).collect();
    // Some SDKs write the name of the list in front.
    let name = name.rsplit_once("finishreason_").map_or(name.as_str(), |(_, name)| name);
    let name = name.strip_prefix("finish_reason_").unwrap_or(name);
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_known_reason_has_its_end_and_no_other_is_good() {
        for (end, reasons) in [
            (
                End::Whole,
                &["stop", "STOP", "end_turn", "eos_token", "COMPLETE", "stop-sequence", "FinishReason.STOP"][..],
            ),
            (End::Calls, &["tool_calls", "TOOL_CALL", "tool_use", "function_call"]),
            (
                End::Length,
                &[
                    "length",
                    "model_length",
                    "max_tokens",
                    "MAX_TOKENS",
                    "max_output_tokens",
                    "ERROR_LIMIT",
                    "token_limit",
                ],
            ),
            (End::Length, &["maxTokens"]),
            (End::Full, &["model_context_window_exceeded", "context_length_exceeded"]),
            (
                End::Withheld,
                &[
                    "content_filter",
                    "content_filtered",
                    "sensitive",
                    "SAFETY",
                    "RECITATION",
                    "refusal",
                    "PROHIBITED_CONTENT",
                ],
            ),
            (End::Withheld, &["guardrail_intervened", "ERROR_TOXIC", "BLOCKLIST", "SPII", "IMAGE_SAFETY", "LANGUAGE"]),
            (
                End::Broken,
                &[
                    "error",
                    "abort",
                    "insufficient_system_resource",
                    "network_error",
                    "timeout",
                    "cancelled",
                    "USER_CANCEL",
                ],
            ),
            (End::Broken, &["time_limit", "incomplete", "failed", "server_shutdown"]),
            (End::Unknown, &["other", "OTHER", "load", "a new reason", "stop it", "tool_calls_2"]),
        ] {
            for reason in reasons {
                assert_eq!(End::read(&json!(reason)), Some(end), "{reason}");
            }
        }
        for none in [json!(null), json!(""), json!(" ")] {
            assert_eq!(End::read(&none), None);
        }
        for odd in [json!(1), json!(true), json!(["stop"]), json!({})] {
            assert_eq!(End::read(&odd), Some(End::Unknown), "{odd}");
        }
        assert_eq!(End::read_native(&json!("MAX_TOKENS")), Some(End::Length));
        assert_eq!(End::read_native(&json!("a new reason")), None);
    }
}
