//! The quirks of one endpoint: what its operator set, what its answers showed, what its profile says, and the defaults, in this order.
//!
//! Never learns a quirk that the operator or the profile knows, and never a bound. See [`crate::quirks`] for the names and values, and
//! [`crate::remote`] for the requests.

use super::Output;
use super::error_body::Complaint;
use super::openai::RequestOptions;
use super::profile;
use super::quirks::{AnswerBegins, CallContent, CallIds, CallsTogether, LimitField, Quirk, StateSent, StreamUsage};
use super::quirks::{ThoughtField, ThoughtsSent, Values};
use super::spec::{Kind, Spec};
use ironclaw_contract::words;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Answers that must agree before a value is learned.
const ANSWERS_NEEDED: u32 = 2;

/// Milliseconds after which a learned value expires: 30 days.
const LEARNED_MS_MAX: i64 = 30 * 24 * 60 * 60 * 1000;

words! {
    /// The origin of the value of a quirk.
    pub enum Source {
        /// The operator set it.
        Operator = "operator",
        /// Answers of the server showed it.
        Learned = "learned",
        /// The profile of the provider has it.
        Profile = "profile",
        Default = "default",
    }
}

/// A value that answers of an endpoint showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    pub quirk: Quirk,
    pub value: &'static str,
    /// The answers in a row that agree; from two on, the value is used.
    pub answers: u32,
    /// The time of the last of them, milliseconds since the epoch.
    pub at: i64,
}

/// A quirk with its value and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InUse {
    pub quirk: Quirk,
    pub value: &'static str,
    pub source: Source,
    /// The time at which it was learned, milliseconds since the epoch.
    pub learned_at: Option<i64>,
}

/// A change of what is known about an endpoint, which the record must get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub quirk: Quirk,
    /// What was observed; `None` if an answer contradicted it.
    pub observed: Option<Observation>,
}

impl Observation {
    /// Reads an observation of the record; `None` if this version does not know its quirk or value.
    pub fn read(quirk: &str, value: &str, answers: u32, at: i64) -> Option<Self> {
        let quirk: Quirk = quirk.parse().ok().filter(|quirk: &Quirk| quirk.is_learned())?;
        let value = quirk.values().into_iter().find(|known| *known == value)?;
        Some(Self { quirk, value, answers, at })
    }

    /// Returns whether enough answers agree.
    pub const fn is_agreed(&self) -> bool {
        self.answers >= ANSWERS_NEEDED
    }

    /// Returns whether its value is used at this time.
    const fn is_learned(&self, now: i64) -> bool {
        self.is_agreed() && !self.is_expired(now)
    }

    const fn is_expired(&self, now: i64) -> bool {
        now >= self.expires_at()
    }

    /// Returns the time from which it no longer counts, milliseconds since the epoch.
    pub const fn expires_at(&self) -> i64 {
        self.at.saturating_add(LEARNED_MS_MAX)
    }
}

impl InUse {
    /// Returns the time at which a learned value expires, milliseconds since the epoch.
    pub fn expires_at(&self) -> Option<i64> {
        self.learned_at.map(|at| at.saturating_add(LEARNED_MS_MAX))
    }
}

/// The quirks of one endpoint.
#[derive(Debug)]
pub struct EndpointQuirks {
    kind: Kind,
    streams: bool,
    set: Values,
    profile: Values,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    observed: Vec<Observation>,
    /// Changes that the record does not have yet.
    changes: Vec<Change>,
}

impl Seen {
    fn find(&self, quirk: Quirk) -> Option<Observation> {
        self.observed.iter().copied().find(|observed| observed.quirk == quirk)
    }

    fn put(&mut self, quirk: Quirk, observed: Option<Observation>) {
        self.observed.retain(|old| old.quirk != quirk);
        self.observed.extend(observed);
        self.changes.retain(|old| old.quirk != quirk);
        self.changes.push(Change { quirk, observed });
    }
}

impl EndpointQuirks {
    /// Returns the quirks of an endpoint whose settings were checked.
    pub fn new(spec: &Spec) -> Self {
        let set = Values::read(&spec.settings.quirks, spec.kind).unwrap_or_default();
        let profile = profile::used_by(spec).map(|profile| profile.quirks).unwrap_or_default();
        Self { kind: spec.kind, streams: spec.streams, set, profile, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what the record has about this endpoint.
    pub fn recall(&self, observed: Vec<Observation>) {
        *self.seen() = Seen { observed, changes: Vec::new() };
    }

    /// Returns what the record does not have yet. A later call does not return it again.
    pub fn take_changes(&self) -> Vec<Change> {
        std::mem::take(&mut self.seen().changes)
    }

    /// Returns whether neither the operator nor the profile says the value of a quirk.
    fn is_unknown(&self, quirk: Quirk) -> bool {
        self.set.get(quirk).or(self.profile.get(quirk)).is_none()
    }

    /// Returns whether a refusal may change a quirk: this kind of endpoint has it, and the operator did not set it.
    fn may_turn(&self, quirk: Quirk) -> bool {
        quirk.applies(self.kind) && self.set.get(quirk).is_none()
    }

    fn learned(&self) -> Values {
        let (mut values, now) = (Values::default(), now_ms());
        for observed in &self.seen().observed {
            if self.is_unknown(observed.quirk) && observed.is_learned(now) {
                values.set(observed.quirk, observed.value);
            }
        }
        values
    }

    /// Returns the value of each quirk that the next request has.
    pub fn values(&self) -> Values {
        self.set.or(self.learned()).or(self.profile).or(Values::default_of(self.kind))
    }

    /// Returns each quirk of this kind of endpoint with its value and where it comes from.
    pub fn in_use(&self) -> Vec<InUse> {
        let (learned, values) = (self.learned(), self.values());
        let shown = |quirk: Quirk| {
            let source = [(self.set, Source::Operator), (learned, Source::Learned), (self.profile, Source::Profile)];
            let source = source.into_iter().find(|(values, _)| values.get(quirk).is_some());
            let source = source.map_or(Source::Default, |(_, source)| source);
            let learned_at = (source == Source::Learned).then(|| self.seen().find(quirk)).flatten();
            let value = values.get(quirk)?;
            Some(InUse { quirk, value, source, learned_at: learned_at.map(|observed| observed.at) })
        };
        Quirk::every(self.kind).filter_map(shown).collect()
    }

    /// Chooses another value for the rest of one request, after a refusal with this complaint. Each complaint changes a request once, so
    /// its tries end, and none changes what the operator set.
    pub fn turn(&self, complaint: Option<Complaint>, turned: &mut Values) {
        let used = self.values();
        match complaint {
            Some(Complaint::Usage) if self.set.stream_usage.is_none() => {
                turned.stream_usage = turned.stream_usage.or(Some(StreamUsage::Omit));
            }
            Some(Complaint::LimitField) if self.set.limit_field.is_none() => {
                let other = match used.limit_field {
                    Some(LimitField::MaxCompletionTokens) => LimitField::MaxTokens,
                    Some(LimitField::MaxTokens) | None => LimitField::MaxCompletionTokens,
                };
                turned.limit_field = turned.limit_field.or(Some(other));
            }
            Some(Complaint::Thoughts) if self.set.thoughts.is_none() => {
                turned.thoughts = turned.thoughts.or(Some(ThoughtsSent::Omit));
            }
            Some(Complaint::ThoughtsMissing) => {
                let has_all = turned.or(used).thoughts == Some(ThoughtsSent::All);
                if has_all || self.set.thoughts.is_some() {
                    let field = Some(ThoughtField::ReasoningContent).filter(|_| self.may_turn(Quirk::ThoughtField));
                    turned.thought_field = turned.thought_field.or(field);
                }
                if self.set.thoughts.is_none() {
                    turned.thoughts = turned.thoughts.or(Some(ThoughtsSent::All));
                }
            }
            Some(Complaint::CallsTogether) if self.may_turn(Quirk::CallsTogether) => {
                turned.calls_together = turned.calls_together.or(Some(CallsTogether::One));
            }
            Some(Complaint::State) if self.set.state.is_none() => {
                turned.state = turned.state.or(Some(StateSent::Omit));
            }
            Some(Complaint::NullContent) if self.set.call_content.is_none() => {
                turned.call_content = turned.call_content.or(Some(CallContent::Empty));
            }
            Some(Complaint::EmptyContent) if self.set.call_content.is_none() => {
                turned.call_content = turned.call_content.or(Some(CallContent::Null));
            }
            Some(_) | None => {}
        }
    }

    /// Returns whether the draft of an answer waits for the end of a thought. One answer that began so is enough: a draft is no answer.
    pub fn waits_for_thought(&self) -> bool {
        let is_seen = || {
            let seen = self.seen().find(Quirk::AnswerBegins).filter(|observed| !observed.is_expired(now_ms()));
            self.is_unknown(Quirk::AnswerBegins) && seen.is_some()
        };
        self.values().answer_begins == Some(AnswerBegins::Thought) || is_seen()
    }

    /// Learns from an answer how the answers of this server begin. One without words, or that is cut, says nothing about it.
    pub fn began(&self, output: &Output) {
        let has_words = !output.text.is_empty() && output.cut.is_none();
        let answer_begins = match output.begins_in_thought {
            true => AnswerBegins::Thought,
            false if has_words && self.waits_for_thought() => AnswerBegins::Words,
            false => return,
        };
        self.answered(&Values { answer_begins: Some(answer_begins), ..Values::default() }, |_| false);
    }

    /// Learns from an answer to a request with these values in place of refused ones. A server that accepts a value that it seemed to
    /// refuse contradicts what was seen once, if the request had a place for it.
    pub fn answered(&self, turned: &Values, has_place: impl Fn(Quirk) -> bool) {
        let (used, now) = (self.values(), now_ms());
        for quirk in Quirk::every(self.kind).filter(|quirk| quirk.is_learned() && self.is_unknown(*quirk)) {
            if quirk == Quirk::StreamUsage && !self.streams {
                continue;
            }
            let mut seen = self.seen();
            let before = seen.find(quirk).filter(|observed| !observed.is_expired(now));
            let default = Values::default_of(self.kind).get(quirk);
            match (turned.get(quirk), before) {
                (Some(value), Some(before)) if before.value == value => {
                    let answers = before.answers.saturating_add(1).min(ANSWERS_NEEDED);
                    seen.put(quirk, Some(Observation { answers, at: now, ..before }));
                }
                (Some(value), Some(_)) if Some(value) == default => seen.put(quirk, None),
                (Some(value), _) => seen.put(quirk, Some(Observation { quirk, value, answers: 1, at: now })),
                (None, Some(before)) if used.get(quirk) != Some(before.value) && has_place(quirk) => {
                    seen.put(quirk, None);
                }
                (None, Some(_) | None) => {}
            }
        }
    }

    /// Returns the options of the next try of a request with these values in place of refused ones.
    pub fn options(&self, spec: &Spec, turned: Values, output_tokens_max: u32) -> RequestOptions {
        let values = turned.or(self.values());
        RequestOptions {
            streams: spec.streams,
            takes_images: spec.takes_images,
            asks_usage: values.stream_usage != Some(StreamUsage::Omit),
            short_ids: values.call_ids == Some(CallIds::Nine),
            empty_content: values.call_content == Some(CallContent::Empty),
            splits_calls: values.calls_together == Some(CallsTogether::One),
            needs_thought_field: values.thought_field == Some(ThoughtField::ReasoningContent),
            thoughts: values.thoughts,
            state: values.state,
            limit_field: values.limit_field.unwrap_or(LimitField::MaxTokens).name(),
            system_role: values.system_role,
            output_tokens_max,
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::EndpointSettings;

    fn quirks(profile: Option<&str>, set: &[(&str, &str)]) -> EndpointQuirks {
        let quirks = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = EndpointSettings { profile: profile.map(str::to_owned), quirks, ..Default::default() };
        EndpointQuirks::new(&Spec { kind: Kind::Openai, streams: true, settings, ..Spec::builtin() })
    }

    /// Makes one request to a server that refuses the default, and returns the tries.
    fn ask(quirks: &EndpointQuirks, complaint: Complaint, refused: &str) -> usize {
        let mut turned = Values::default();
        let quirk = if complaint == Complaint::Usage { Quirk::StreamUsage } else { Quirk::LimitField };
        for tries in 1..=2 {
            if turned.or(quirks.values()).get(quirk) != Some(refused) {
                quirks.answered(&turned, |_| true);
                return tries;
            }
            quirks.turn(Some(complaint), &mut turned);
        }
        3
    }

    fn source(quirks: &EndpointQuirks, quirk: Quirk) -> (&'static str, Source) {
        let found = quirks.in_use().into_iter().find(|found| found.quirk == quirk).expect("a quirk of this kind");
        (found.value, found.source)
    }

    #[test]
    fn a_value_is_learned_from_two_answers_that_agree() {
        for (complaint, quirk, refused, other) in [
            (Complaint::LimitField, Quirk::LimitField, "max_tokens", "max_completion_tokens"),
            (Complaint::Usage, Quirk::StreamUsage, "ask", "omit"),
        ] {
            let quirks = quirks(None, &[]);
            assert_eq!(ask(&quirks, complaint, refused), 2);
            assert_eq!(source(&quirks, quirk), (refused, Source::Default), "one answer is not enough");
            assert_eq!(ask(&quirks, complaint, refused), 2);
            assert_eq!(source(&quirks, quirk), (other, Source::Learned));
            assert_eq!(ask(&quirks, complaint, refused), 1);
            let changes = quirks.take_changes();
            assert_eq!(changes.len(), 1, "the record gets the last state of a quirk once");
            assert!(changes[0].observed.is_some_and(|observed| observed.answers == 2));
            assert_eq!(quirks.take_changes(), []);
        }
    }

    #[test]
    fn an_answer_that_contradicts_forgets_the_first() {
        let quirks = quirks(None, &[]);
        assert_eq!(ask(&quirks, Complaint::LimitField, "max_tokens"), 2);
        quirks.answered(&Values::default(), |_| true);
        assert_eq!(quirks.take_changes(), [Change { quirk: Quirk::LimitField, observed: None }]);
        assert_eq!(ask(&quirks, Complaint::LimitField, "max_tokens"), 2);
        assert_eq!(source(&quirks, Quirk::LimitField).1, Source::Default);
        assert_eq!(ask(&quirks, Complaint::LimitField, "max_tokens"), 2);
        assert_eq!(source(&quirks, Quirk::LimitField).1, Source::Learned);
        // The server changed: it refuses what was learned.
        assert_eq!(ask(&quirks, Complaint::LimitField, "max_completion_tokens"), 2);
        assert_eq!(source(&quirks, Quirk::LimitField), ("max_tokens", Source::Default));
    }

    #[test]
    fn nothing_that_is_known_is_learned_and_nothing_set_is_changed() {
        let known = quirks(Some("mistral"), &[]);
        for _ in 0..3 {
            assert_eq!(ask(&known, Complaint::LimitField, "max_tokens"), 2, "a request has its second try");
        }
        assert_eq!(source(&known, Quirk::LimitField), ("max_tokens", Source::Profile));
        assert_eq!(source(&known, Quirk::CallIds), ("nine", Source::Profile));
        assert_eq!(known.take_changes(), []);
        let set =
            quirks(Some("mistral"), &[("limit_field", "max_tokens"), ("call_ids", "long"), ("stream_usage", "ask")]);
        assert_eq!(ask(&set, Complaint::LimitField, "max_tokens"), 3, "the operator's value stays");
        assert_eq!(ask(&set, Complaint::Usage, "ask"), 3);
        assert_eq!(source(&set, Quirk::CallIds), ("long", Source::Operator));
        assert_eq!(set.take_changes(), []);
    }

    #[test]
    fn beginning_in_a_thought_is_learned_and_forgotten() {
        let output = |text: &str, begins_in_thought| Output { begins_in_thought, ..Output::new(text.to_owned(), None) };
        let quirks = quirks(None, &[]);
        quirks.began(&output("hello", false));
        assert_eq!(
            (quirks.waits_for_thought(), quirks.take_changes()),
            (false, Vec::new()),
            "the usual is not learned"
        );
        quirks.began(&output("hello", true));
        assert!(quirks.waits_for_thought(), "one answer is enough for the draft");
        assert_eq!(source(&quirks, Quirk::AnswerBegins), ("words", Source::Default));
        quirks.began(&output("", false));
        quirks.began(&output("hello", true));
        assert_eq!(source(&quirks, Quirk::AnswerBegins), ("thought", Source::Learned));
        quirks.began(&output("hello", false));
        assert_eq!(source(&quirks, Quirk::AnswerBegins), ("words", Source::Default));
        assert!(!quirks.waits_for_thought());
        let set = super::tests::quirks(None, &[("answer_begins", "words")]);
        set.began(&output("hello", true));
        assert_eq!((set.waits_for_thought(), set.take_changes()), (false, Vec::new()), "the operator's value stays");
    }

    #[test]
    fn what_was_learned_expires_and_odd_rows_are_ignored() {
        let quirks = quirks(None, &[]);
        let (now, name) = (now_ms(), "max_completion_tokens");
        for (at, answers, value) in [
            (now, 2, name),
            (now - LEARNED_MS_MAX + 60_000, 2, name),
            (now - LEARNED_MS_MAX, 2, "max_tokens"),
            (now, 1, "max_tokens"),
        ] {
            quirks.recall(Observation::read("limit_field", name, answers, at).into_iter().collect());
            assert_eq!(source(&quirks, Quirk::LimitField).0, value, "{answers} answers at {at}");
        }
        for (quirk, value) in [("limit_field", "n"), ("output_tokens_max", "1"), ("key_header", "bearer"), ("a", "b")] {
            assert_eq!(Observation::read(quirk, value, 2, now), None, "{quirk}");
        }
        quirks.recall(Observation::read("limit_field", name, 2, 0).into_iter().collect());
        assert_eq!(ask(&quirks, Complaint::LimitField, "max_tokens"), 2);
        assert_eq!(source(&quirks, Quirk::LimitField).1, Source::Default, "an expired answer does not count");
    }
}
