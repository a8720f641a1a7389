//! The refused requests to each channel since the start, by the rule that refused them.
//!
//! Counts only for channels that exist, and never keeps content of a request. The ledger has the same refusals at a bounded rate.

use ironclaw_operator::{DenialCode, RefusedRequests, SignatureRule};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Channels that are counted. A host has as many; a removed one gives its place to the next.
const CHANNELS_MAX: usize = 64;

/// The channel and the rule of one refusal, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The name of a channel that exists.
    pub channel: Option<String>,
    pub rule: Option<SignatureRule>,
}

/// The reason of a refusal: its code, and the rule about signatures.
type Rule = (DenialCode, Option<SignatureRule>);

/// The count of one reason, and the time of its newest refusal.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    count: u64,
    last_at: i64,
}

/// The counts of all channels.
#[derive(Debug, Clone, Default)]
pub struct RefusedHooks(Arc<Mutex<HashMap<String, HashMap<Rule, Counted>>>>);

impl RefusedHooks {
    /// Counts a refusal at this time, in milliseconds since the epoch.
    pub(super) fn count(&self, code: DenialCode, cause: &Cause, now: i64) {
        let Some(channel) = &cause.channel else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CHANNELS_MAX && !all.contains_key(channel) {
            let newest = |rules: &HashMap<Rule, Counted>| rules.values().map(|counted| counted.last_at).max();
            let oldest = all.iter().min_by_key(|(_, rules)| newest(rules)).map(|(name, _)| name.clone());
            oldest.map(|name| all.remove(&name));
        }
        let counted = all.entry(channel.clone()).or_default().entry((code, cause.rule)).or_default();
        counted.count += 1;
        counted.last_at = now;
    }

    /// Returns the refused requests to a channel, the newest first.
    pub fn list(&self, channel: &str) -> Vec<RefusedRequests> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<_> = all.get(channel).into_iter().flatten().collect();
        found.sort_by_key(|((code, _), counted)| (-counted.last_at, *code));
        found
            .into_iter()
            .map(|((code, rule), counted)| RefusedRequests {
                code: *code,
                rule: *rule,
                count: counted.count,
                last_at: ironclaw_ledger::rfc3339(counted.last_at),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_count_by_rule_and_for_known_channels_only() {
        let refused = RefusedHooks::default();
        let cause = |channel: &str, rule| Cause { channel: Some(channel.to_owned()), rule };
        let wrong = Some(SignatureRule::Wrong);
        refused.count(DenialCode::SignatureInvalid, &cause("shop", wrong), 1);
        refused.count(DenialCode::TimestampOutside, &cause("shop", None), 2);
        refused.count(DenialCode::SignatureInvalid, &cause("shop", wrong), 3);
        refused.count(DenialCode::SignatureInvalid, &Cause { channel: None, rule: wrong }, 4);
        let found = |channel| refused.list(channel).iter().map(|one| (one.rule_name(), one.count)).collect::<Vec<_>>();
        assert_eq!(found("shop"), [("signature_wrong", 2), ("timestamp_outside", 1)]);
        assert_eq!(found("desk"), []);
        for number in 0..CHANNELS_MAX as i64 {
            refused.count(DenialCode::SignatureInvalid, &cause(&format!("c{number}"), wrong), 10 + number);
        }
        assert_eq!(found("shop"), [], "the longest silent channel gives its place");
        assert_eq!(found("c0").len(), 1);
    }
}
