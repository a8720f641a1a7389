//! The decision whether a message of a channel opens a turn of the agent that hears the channel.
//!
//! Never lets more through than the rules that a person confirmed: a pattern that does not compile matches nothing. See
//! [`crate::channels::inbound::inbox`].

use crate::channels::inbound::channel::Received;
use crate::channels::inbound::identity::Authenticated;
use crate::registry::Agent;
use crate::registry::channels::{Channel, Hears};
use crate::sessions::store::Session;
use ironclaw_contract::seam::change::{Senders, UnknownSenders, Wiring};
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables::destinations;
use regex::{Regex, RegexBuilder};

/// Bytes of a compiled pattern, and of the cache of a match. The pattern is compiled for each message.
const COMPILED_BYTES_MAX: usize = 256 * 1024;

/// Nesting depth of groups.
const DEPTH_MAX: u32 = 32;

/// The reason that a message opens a turn, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engaged {
    /// It is no request.
    Not,
    /// The rules of the channel.
    ByRule,
    /// It mentions the agent.
    ByMention,
}

/// Returns whether the rules let messages of this sender open a turn.
pub(super) fn hears_sender(channel: &Channel, message: &Authenticated) -> bool {
    match channel.rules.from {
        // A sender that a person calls theirs is context where other strangers are refused.
        Senders::All => message.person().is_some() || channel.rules.unknown == UnknownSenders::Public,
        Senders::Known => message.person().is_some(),
    }
}

/// Returns whether this message asks for an answer. `session` is the session of its origin, if there is one.
pub(super) fn engaged(
    tx: &ReadTx<'_>,
    channel: &Channel,
    agent: &Agent,
    received: &Received,
    session: Option<&Session>,
) -> Result<Engaged, ironclaw_state::Error> {
    let by_rule = |is: bool| if is { Engaged::ByRule } else { Engaged::Not };
    Ok(match &channel.rules.hears {
        Hears::All => Engaged::ByRule,
        Hears::Pattern(pattern) => match compile(pattern) {
            Ok(pattern) => by_rule(pattern.is_match(&received.text)),
            Err(_) => {
                tracing::error!(channel = channel.name, "the confirmed pattern does not compile");
                Engaged::Not
            }
        },
        Hears::Mention | Hears::MentionSticky if received.mentions.contains(&agent.name) => Engaged::ByMention,
        Hears::Mention => Engaged::Not,
        Hears::MentionSticky => by_rule(is_sticky(tx, received, session)?),
    })
}

/// Returns whether the agent was mentioned in the thread of this message before. A message without a thread is in none.
fn is_sticky(tx: &ReadTx<'_>, received: &Received, session: Option<&Session>) -> Result<bool, ironclaw_state::Error> {
    let Some(session) = session.filter(|_| !received.thread_id.is_empty()) else { return Ok(false) };
    destinations::is_mentioned_in(tx, session.id, received.group.as_deref().unwrap_or_default(), &received.thread_id)
}

/// Refuses a wiring with a pattern that cannot be used.
///
/// # Errors
/// A malformed pattern, and one that would take too much memory.
pub fn check(wiring: &Wiring) -> Result<(), Refusal> {
    let Some(Err(error)) = wiring.pattern.as_deref().map(compile) else { return Ok(()) };
    // The message of `regex` has many lines and contains the pattern.
    let why = match error {
        regex::Error::CompiledTooBig(_) => "it would take too much memory",
        _ => "it is not a regular expression",
    };
    let refusal = Refusal::new(DenialCode::PatternMalformed, format!("the pattern cannot be used: {why}"));
    Err(refusal.hint("look-around and back-references are not supported; (?i) at the beginning ignores case"))
}

/// Compiles a pattern. It matches anywhere in a message unless it has an anchor, and is case-sensitive unless it has `(?i)`.
/// A match takes time in proportion to the message, for any pattern.
///
/// # Errors
/// Refuses a malformed pattern, and one that would take too much memory.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(DEPTH_MAX)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_or_too_large_pattern_is_refused() {
        for bad in ["(", "[z-a]", "a{1000}{1000}", r"(?=x)", &"(".repeat(100)] {
            assert!(compile(bad).is_err(), "{bad}");
        }
        assert!(compile("^!bot").expect("a pattern").is_match("!bot hello"));
        assert!(!compile("^!bot").expect("a pattern").is_match("hello !bot"));
    }
}
